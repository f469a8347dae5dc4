"""The credit slot: groups in, advantages on action tokens out. Sees nothing that carries gradient."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from farhorizon.core.record import ContextKey, Group, Trajectory


@dataclass(frozen=True, eq=False)
class Credit:
    """What an update's groups are worth, token by token.

    Keys name the contexts of scored trajectories that own sampled tokens; each array has one number per owned
    sampled token, in order: observations have no place, so they can carry nothing (law 3).
    """

    advantages: Mapping[ContextKey, NDArray[np.float64]]
    """Advantage of each action token, `[action tokens of the context]`."""
    returns: Mapping[ContextKey, NDArray[np.float64]] | None = None
    """What a critic should have predicted at each action token, of the same shapes; None without a critic."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Named in `core/metrics.py`."""


class CreditAssignment(Protocol):
    """A component of the slot."""

    def __call__(self, groups: Sequence[Group]) -> Credit:
        """Advantages for one update's groups. Infrastructure faults have no part in it (law 4)."""
        ...


def on_action_tokens(trajectory: Trajectory, value: float) -> dict[int, NDArray[np.float64]]:
    """The same advantage for all action tokens of a trajectory: context -> `[action tokens of the context]`."""
    counts = {index: int(context.sampled.sum()) for index, context in enumerate(trajectory.contexts)}
    return {index: np.full(count, value) for index, count in counts.items() if count}
