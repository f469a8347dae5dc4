"""What can be evaluated: anything that plays tasks and says who it is."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from farhorizon.core.record import Group, Task, Trajectory

STREAM = "eval"
"""Noise stream of evaluation episodes."""
UPDATE = 0
"""Update of their keys, whatever a policy has been through: policies evaluated with one seed meet the same noise."""


class Subject(Protocol):
    """A model or another player, with the circumstances it plays in."""

    facts: dict[str, Any]
    """What decides its episodes beside tasks and samples, as JSON: name, content of its weights, temperature, …"""
    tasks_at_once: int
    """Tasks it plays together."""

    async def play(
        self, tasks: Sequence[Task], samples: int, first: int, on_done: Callable[[Trajectory], None] | None = None
    ) -> Sequence[Group]:
        """Play each task `samples` times from its true start, with every training aid off.

        Args:
            first: place of the first task in the evaluation. The noise of an episode depends on seed, place of the
                task and index of the sample alone.
            on_done: called as each trajectory ends.

        Returns:
            One group a task, in order.
        """
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...
