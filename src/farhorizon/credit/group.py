"""Advantages relative to the other trajectories of a group (the GRPO family)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farhorizon.config import credit as configs
from farhorizon.core.record import ContextKey, Group
from farhorizon.credit.base import Credit, on_action_tokens


@dataclass(frozen=True, eq=False)
class GroupAdvantages:
    """Advantages and how many groups gave none."""

    advantages: NDArray[np.float64]
    """Of each trajectory, `[trajectories]`."""
    degenerate: int
    """Groups with one member or one value."""


def standardised(returns: NDArray[np.floating], group: NDArray[np.integer], *, eps: float = 1e-6) -> GroupAdvantages:
    """Advantage of each trajectory: its return, less the group's mean, over the group's unbiased standard
    deviation plus `eps` (GRPO, Shao et al. 2024, eq. 3).

    Args:
        returns: shaped return of each trajectory, `[trajectories]`.
        group: group index of each trajectory, `[trajectories]`.
        eps: added to the standard deviation (verl 1e-6, TRL 1e-4).

    Returns:
        Advantages `[trajectories]`, exactly zero where a group has one member or one value. Equality is tested
        on the returns themselves: a small `eps` would turn rounding noise into advantages near one.
    """
    return _by_group(returns, group, lambda values: (values - values.mean()) / (values.std(ddof=1) + eps))


def centred(returns: NDArray[np.floating], group: NDArray[np.integer]) -> GroupAdvantages:
    """`standardised` without the division (Dr. GRPO, Liu et al. 2025); else the same."""
    return _by_group(returns, group, lambda values: values - values.mean())


def _by_group(returns, group, formula) -> GroupAdvantages:  # type: ignore[no-untyped-def]
    returns = np.asarray(returns)
    advantages = np.zeros(len(returns))
    degenerate = 0
    for index in np.unique(group):
        members = np.flatnonzero(np.asarray(group) == index)
        values = returns[members]
        if (values == values[0]).all():
            degenerate += 1
        else:
            advantages[members] = formula(values.astype(np.float64))
    return GroupAdvantages(advantages, degenerate)


class GroupStandardised:
    """`standardised` over each group's scored trajectories, spread over their action tokens."""

    def __init__(self, config: configs.GroupStandardised) -> None:
        self._eps = config.eps

    def __call__(self, groups: Sequence[Group]) -> Credit:
        returns, group = scored_returns(groups)
        return spread(groups, standardised(returns, group, eps=self._eps))


class GroupCentred:
    """`centred` over each group's scored trajectories, spread over their action tokens."""

    def __init__(self, config: configs.GroupCentred) -> None:
        del config

    def __call__(self, groups: Sequence[Group]) -> Credit:
        return spread(groups, centred(*scored_returns(groups)))


def scored_returns(groups: Sequence[Group]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sum of all rewards of each scored trajectory and its group's index, both `[trajectories]`, in order."""
    returns = [trajectory.total_reward for group in groups for trajectory in group.scored]
    return np.array(returns), np.repeat(np.arange(len(groups)), [len(group.scored) for group in groups])


def spread(groups: Sequence[Group], result: GroupAdvantages) -> Credit:
    """Give each scored trajectory's advantage to all its action tokens."""
    by_context: dict[ContextKey, NDArray[np.float64]] = {}
    values = iter(result.advantages)
    for g, group in enumerate(groups):
        for t, trajectory in enumerate(group.trajectories):
            if trajectory.scored:
                tokens = on_action_tokens(trajectory, float(next(values)))
                by_context.update({(g, t, c): array for c, array in tokens.items()})
    silent = result.degenerate + sum(not group.scored for group in groups)
    return Credit(
        by_context,
        metrics={
            "credit/groups": float(len(groups)),
            "credit/groups_without_signal": float(silent),
            "credit/groups_without_signal_fraction": silent / max(len(groups), 1),
        },
    )
