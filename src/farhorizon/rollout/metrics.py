"""What a batch of trajectories looks like in numbers; the names are explained in `core/metrics.py`."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from farhorizon.core.record import Group, Status, StopReason, Trajectory, Turn


def rollout_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """Means over the scored trajectories of an update; set-aside ones are only counted."""
    everyone = [trajectory for group in groups for trajectory in group.trajectories]
    scored = [trajectory for trajectory in everyone if trajectory.scored]
    metrics = {
        "faults/set_aside": float(len(everyone) - len(scored)),
        "faults/retries": float(sum(trajectory.retries for trajectory in everyone)),
        "groups/short": float(sum(group.short_reason is not None for group in groups)),
        "samples/forked": float(sum(trajectory.forks for trajectory in scored)),
    }
    if not scored:
        return metrics
    from_start = [trajectory for trajectory in scored if trajectory.start_depth == 0]
    part_way = [trajectory for trajectory in scored if trajectory.start_depth > 0]
    turns = [turn for trajectory in scored for turn in own_turns(trajectory)]
    metrics |= {
        "reward/mean": _mean([trajectory.total_reward for trajectory in scored]),
        "turns/mean": _mean([len(own_turns(trajectory)) for trajectory in scored]),
        "actions/valid": _mean([bool(turn.info.get("valid", True)) for turn in turns]),
        "tokens/sampled": float(sum(trajectory.sampled_tokens for trajectory in scored)),
        "tokens/context_max": float(max(len(context) for t in scored for context in t.contexts)),
        "truncated/mean": _mean([trajectory.status is Status.TRUNCATED for trajectory in scored]),
        "turn_cut/mean": _mean([c.stop_reason is StopReason.TURN_TOKENS for turn in turns for c in turn.calls]),
    }
    if from_start:
        metrics["success/rate"] = _mean([bool(trajectory.success) for trajectory in from_start])
    if part_way:
        metrics["success/part_way"] = _mean([bool(trajectory.success) for trajectory in part_way])
    for reason, count in Counter(trajectory.stop_reason for trajectory in scored).items():
        metrics[f"stop/{reason.value}"] = count / len(scored)
    return metrics


def own_turns(trajectory: Trajectory) -> tuple[Turn, ...]:
    """The turns the policy took itself."""
    return trajectory.turns[trajectory.start_depth :]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else 0.0
