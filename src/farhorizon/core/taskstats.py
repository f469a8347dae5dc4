"""What is known about each training task: the one store that curricula and filters read."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from farhorizon.core.record import Group


@dataclass
class TaskRecord:
    """Counts over the scored episodes of one task, from its true start unless said otherwise."""

    attempts: int = 0
    """Episodes from the true start."""
    successes: int = 0
    """Of these, solved."""
    reward: float = 0.0
    """Sum of total rewards over the same episodes."""
    part_way: int = 0
    """Episodes started part-way, counted apart."""
    last_update: int = -1
    """Update of the last episode."""


class TaskStats:
    """`TaskRecord` by task id. Evaluation episodes never enter."""

    def __init__(self) -> None:
        self._records: dict[str, TaskRecord] = {}

    def add(self, groups: Iterable[Group], update: int) -> None:
        """Count the scored trajectories of an update."""
        for group in groups:
            record = self._records.setdefault(group.task.id, TaskRecord())
            record.last_update = update
            for trajectory in group.scored:
                if trajectory.start_depth:
                    record.part_way += 1
                    continue
                record.attempts += 1
                record.successes += bool(trajectory.success)
                record.reward += trajectory.total_reward

    def __getitem__(self, task_id: str) -> TaskRecord:
        return self._records.get(task_id, TaskRecord())

    def state_dict(self) -> dict[str, Any]:
        return {task_id: asdict(record) for task_id, record in self._records.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._records = {task_id: TaskRecord(**record) for task_id, record in state.items()}

    def metrics(self) -> dict[str, float]:
        solved = sum(record.successes > 0 for record in self._records.values())
        return {"tasks/seen": len(self._records), "tasks/solved_once": solved}
