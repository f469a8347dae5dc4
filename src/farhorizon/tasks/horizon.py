"""Horizon schedules: maximum turns as a pure function of the update, so that resuming cannot shift a stage."""

from typing import Protocol

from farhorizon.config import horizon as config
from farhorizon.core.taskstats import TaskStats


class Horizon(Protocol):
    """Maximum turns for the episodes of an update."""

    longest: int
    """The largest value the schedule reaches; what evaluation uses unless told otherwise."""

    def horizon(self, update: int, stats: TaskStats) -> int:
        """Maximum turns of episodes that start in `update`."""
        ...


class Fixed:
    """The same horizon throughout."""

    def __init__(self, config: config.Fixed) -> None:
        self.longest = config.turns

    def horizon(self, update: int, stats: TaskStats) -> int:
        return self.longest


class Stages:
    """ScalingInter-RL: `values[update // every]`, the last value for good (Xi et al. 2025, section 3.3)."""

    def __init__(self, config: config.Stages) -> None:
        self._config = config
        self.longest = max(config.values)

    def horizon(self, update: int, stats: TaskStats) -> int:
        stage = min(update // self._config.every, len(self._config.values) - 1)
        return self._config.values[stage]
