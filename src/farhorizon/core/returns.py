"""Where rewards land: each on the last action token of what it belongs to, and none is lost (law 3)."""

from collections.abc import Iterator

import numpy as np

from farhorizon.core.record import Reward, Trajectory

Position = tuple[int, int]
"""A token: (context, index in that context)."""


def reward_positions(trajectory: Trajectory) -> list[tuple[int, int, float]]:
    """The token each reward lands on, in the order of `trajectory.rewards`.

    Only sampled tokens that a context owns carry rewards: a span's reward lands on the last one inside it, a
    turn's on the last one of its last call that sampled any, a trajectory's on the last one of its last such
    turn (of its last context, where no turn has calls).

    Returns:
        `(context, token index, value)` of each reward; empty for a trajectory without any sampled token.

    Raises:
        ValueError: a reward belongs to something that holds no sampled token, or that is not there.
    """
    if trajectory.sampled_tokens == 0:
        return []
    return [(*_position(trajectory, reward), reward.value) for reward in trajectory.rewards]


def _position(trajectory: Trajectory, reward: Reward) -> Position:
    where = f"trajectory {trajectory.id}: reward {reward.name!r} = {reward.value} belongs to"
    if reward.at == "trajectory":
        return next(_ends(trajectory, range(len(trajectory.turns))), None) or _very_last(trajectory)
    if isinstance(reward.at, int):
        if not 0 <= reward.at < len(trajectory.turns):
            raise ValueError(f"{where} turn {reward.at}, but there are {len(trajectory.turns)} turns")
        found = next(_ends(trajectory, [reward.at]), None)
        unit = f"turn {reward.at}"
    else:
        span = reward.at
        if not 0 <= span.context < len(trajectory.contexts):
            there = len(trajectory.contexts)
            raise ValueError(f"{where} context {span.context}, but there are {there} contexts")
        found = _last_sampled(trajectory, span.context, span.start, span.stop)
        unit = f"tokens {span.start} to {span.stop} of context {span.context}"
    if found is None:
        raise ValueError(f"{where} {unit}, which holds no sampled token to carry it")
    return found


def _ends(trajectory: Trajectory, turns: "range | list[int]") -> Iterator[Position]:
    """Last sampled token of each call of these turns that owns any, the latest call first."""
    for turn in reversed(turns):
        for call in reversed(trajectory.turns[turn].calls):
            span = call.span
            found = _last_sampled(trajectory, span.context, span.start, span.stop)
            if found is not None:
                yield found


def _last_sampled(trajectory: Trajectory, context: int, start: int, stop: int) -> Position | None:
    indices = np.flatnonzero(trajectory.contexts[context].sampled[start:stop])
    return (context, start + int(indices[-1])) if len(indices) else None


def _very_last(trajectory: Trajectory) -> Position:
    """Last sampled token of the last context that owns any; there is one."""
    last = max(index for index, context in enumerate(trajectory.contexts) if context.sampled.any())
    return last, int(np.flatnonzero(trajectory.contexts[last].sampled)[-1])
