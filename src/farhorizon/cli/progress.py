"""Progress of a run on a terminal: bars where there is one, lines where there is not."""

from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from farhorizon.evaluation.evaluate import Evaluation, Rate


class Progress:
    """Draws what a runtime reports."""

    def __init__(self) -> None:
        self.run: Path | None = None
        self.console = Console()
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> "Progress":
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def begin(self, what: str, total: int) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(what, total=total or None)

    def advance(self) -> None:
        if self._task is not None:
            self._bars.advance(self._task)

    def updated(self, update: int, metrics: dict[str, float]) -> None:
        parts = [f"update {update:4d}", f"turns ≤ {metrics['horizon']:.0f}"]
        if "success/rate" in metrics:
            parts.append(f"success {metrics['success/rate']:.2f}")
        if "success/part_way" in metrics:
            parts.append(f"part-way {metrics['success/part_way']:.2f}")
        parts.append(f"valid actions {metrics.get('actions/valid', 0.0):.2f}")
        parts.append(f"{metrics['time/rollout']:.0f} s rollout, {metrics['time/learn']:.0f} s learning")
        self.console.print("  ".join(parts), highlight=False, soft_wrap=True)

    def evaluated(self, finished: int, evaluation: Evaluation) -> None:
        rates = [f"{domain} {described(rate)}" for domain, rate in evaluation.by_domain.items()]
        self.console.print(
            f"[bold]after {finished} updates[/bold]: held-out success {described(evaluation.overall)}"
            + (f"  ({'; '.join(rates)})" if len(rates) > 1 else ""),
            highlight=False,
            soft_wrap=True,
        )

    def say(self, message: str) -> None:
        self.console.print(message, highlight=False, markup=False, soft_wrap=True)


def described(rate: Rate) -> str:
    """`0.52 [0.40, 0.64] of 64`: a rate, its 95% interval, its trials."""
    low, high = rate.interval
    return f"{rate.rate:.2f} \\[{low:.2f}, {high:.2f}] of {rate.trials}"
