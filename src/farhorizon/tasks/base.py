"""The task slot: which task next, how many attempts, and from where."""

from dataclasses import dataclass
from typing import Protocol

from farhorizon.core.record import Task
from farhorizon.core.taskstats import TaskStats
from farhorizon.envs.base import Start


@dataclass(frozen=True)
class Assignment:
    """One group to be rolled out."""

    task: Task
    """The task its members share."""
    size: int
    """Members asked for."""
    start: Start = Start()
    """Where they start."""
    weight: float = 1.0
    """Factor of the group's terms in the loss; the denominator does not change."""


class TaskSource(Protocol):
    """Decides what to practise."""

    groups: int
    """Groups an update is to have."""

    def next(self, k: int, stats: TaskStats, update: int, asked: int = 0) -> list[Assignment]:
        """`k` assignments for an update of which `asked` were handed out before; a pure function of the
        arguments and of what the source's own state says."""
        ...
