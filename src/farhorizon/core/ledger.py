"""What a run has spent, in the units budgets are compared by."""

import os
import resource
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from farhorizon.core.record import Group


@dataclass
class Ledger:
    """Totals over the groups added: a run's counts its training since the start, evaluation aside."""

    env_steps: int = 0
    """Actions taken in environments, replayed ones included; attempts that a fault ended are not counted."""
    episodes: int = 0
    """Episodes played."""
    sampled_tokens: int = 0
    """Tokens sampled."""
    context_tokens: int = 0
    """Tokens of all contexts, prompts included."""

    def add(self, groups: Iterable[Group]) -> None:
        """Count an update's trajectories."""
        for trajectory in (t for group in groups for t in group.trajectories):
            self.env_steps += sum(turn.parsed is not None for turn in trajectory.turns)
            self.episodes += 1
            self.sampled_tokens += trajectory.sampled_tokens
            self.context_tokens += sum(len(context) for context in trajectory.contexts)

    def state_dict(self) -> dict[str, Any]:
        return asdict(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for field in fields(self):
            setattr(self, field.name, state[field.name])

    def metrics(self) -> dict[str, float]:
        return {f"total/{name}": float(value) for name, value in asdict(self).items()}


class Meter:
    """Wall and CPU seconds from one line of the metrics file to the next, so that lines add up to what a run cost.

    CPU time is user and system time of all threads, and of the child processes that were waited for. Both run from
    when the meter is made.
    """

    def __init__(self) -> None:
        self._since, self._spent = time.perf_counter(), _cpu_seconds()

    @classmethod
    def of_process(cls) -> "Meter":
        """A meter whose CPU time runs from the start of the process. Made first thing, its wall time nearly does."""
        meter = cls()
        meter._spent = 0.0
        return meter

    def lap(self) -> dict[str, float]:
        """`time/wall` and `time/cpu` since the last call, and the process's `perf/peak_memory_gib` so far."""
        now, spent = time.perf_counter(), _cpu_seconds()
        lap = {"time/wall": now - self._since, "time/cpu": spent - self._spent}
        self._since, self._spent = now, spent
        unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return {**lap, "perf/peak_memory_gib": peak / 2**30}


def _cpu_seconds() -> float:
    return sum(os.times()[:4])
