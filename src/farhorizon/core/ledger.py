"""What a run has spent, in the units budgets are compared by."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from farhorizon.core.record import Group


@dataclass
class Ledger:
    """Totals since the start of the run; evaluation is not counted."""

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
