"""What a run came to, in a few lines."""

from collections import defaultdict

from rich.console import Console
from rich.table import Table

from farhorizon.cli.progress import described
from farhorizon.config.recipe import read
from farhorizon.core.record import Trajectory
from farhorizon.core.rundir import RunDirectory
from farhorizon.core.store import read_update, stored_updates, update_path
from farhorizon.evaluation.evaluate import Rate


def tell(run: RunDirectory) -> None:
    """Print success before and after on held-out tasks, training success, cost, and where everything is."""
    console = Console()
    updates = stored_updates(run.evaluations)
    lines = [line for line in run.read_metrics() if line["phase"] == "train"]
    if updates:
        console.print(_table(run, updates[0], updates[-1]))
    if lines:
        console.print(_training(lines), highlight=False, soft_wrap=True)
        console.print(_cost(run, lines), highlight=False, soft_wrap=True)
    best = run.path / "best.json"
    console.print(f"\nThe run is in {run.path}; its checkpoints in {run.checkpoints}", highlight=False, soft_wrap=True)
    if best.exists():
        console.print(f"Look at an episode:   farhorizon show {run.path}", highlight=False, soft_wrap=True)
        console.print(
            f"Let the model play:   farhorizon play {read(run.recipe).env.kind} --as {run.path}", highlight=False
        )


def _table(run: RunDirectory, first: int, last: int) -> Table:
    before, after = _outcomes(run, first), _outcomes(run, last)
    table = Table(title="Success on held-out tasks (rate, 95% interval)")
    for column in ("", f"after {first} updates", f"after {last} updates"):
        table.add_column(column)
    for domain in sorted(after):
        table.add_row(domain, *(described(each[domain]) for each in (before, after) if domain in each))
    return table


def _outcomes(run: RunDirectory, update: int) -> dict[str, Rate]:
    by_domain: dict[str, list[Trajectory]] = defaultdict(list)
    for group in read_update(update_path(run.evaluations, update)):
        by_domain[group.task.domain] += group.scored
        by_domain["all"] += group.scored
    if len(by_domain) == 2:
        del by_domain["all"]
    return {domain: Rate(sum(bool(t.success) for t in each), len(each)) for domain, each in by_domain.items()}


def _training(lines: list[dict[str, float]]) -> str:
    rates = [line["success/rate"] for line in lines if "success/rate" in line]
    valid = [line["actions/valid"] for line in lines if "actions/valid" in line]
    few = max(1, min(3, len(rates) // 2))
    if not rates:
        return "No training episode started from the beginning."
    return (
        f"Training success from the start of a task: {_mean(rates[:few]):.2f} over the first {few} updates, "
        f"{_mean(rates[-few:]):.2f} over the last {few}; "
        f"valid actions {_mean(valid[:few]):.2f} → {_mean(valid[-few:]):.2f}"
    )


def _cost(run: RunDirectory, lines: list[dict[str, float]]) -> str:
    last = lines[-1]
    seconds = sum(line.get("time/rollout", 0) + line.get("time/learn", 0) for line in lines)
    seconds += sum(line.get("time/eval", 0) for line in run.read_metrics() if line["phase"] == "eval")
    return (
        f"{len(lines)} updates, {seconds / 60:.1f} minutes with evaluation, "
        f"{last['total/episodes']:.0f} training episodes, {last['total/env_steps']:.0f} actions, "
        f"{last['total/sampled_tokens']:.0f} sampled tokens"
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
