"""Metrics as they are logged: a JSON-lines file, and TensorBoard beside it."""

from typing import Any

from torch.utils.tensorboard import SummaryWriter

from farhorizon.core.metrics import check_names
from farhorizon.core.rundir import RunDirectory


class Tracker:
    """Writes every metric of a run. Steps are updates."""

    def __init__(self, run: RunDirectory, finished: int) -> None:
        self._run = run
        self._board = SummaryWriter(str(run.tensorboard), purge_step=finished)

    def __enter__(self) -> "Tracker":
        return self

    def __exit__(self, *_: object) -> None:
        self._board.close()

    def log(self, update: int, phase: str, metrics: dict[str, float]) -> None:
        """Add a line. `phase` is `train` or `eval`; an evaluation's `update` is the number of updates finished."""
        check_names(metrics)
        line: dict[str, Any] = {"update": update, "phase": phase, **dict(sorted(metrics.items()))}
        self._run.append_metrics(line)
        for name, value in metrics.items():
            self._board.add_scalar(name, value, update)
        self._board.flush()
