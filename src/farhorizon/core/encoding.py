"""The record as JSON lines and back. Token arrays are left out: they live beside the lines as tensors."""

from dataclasses import asdict
from typing import Any

from farhorizon.core.record import (
    Branch,
    Call,
    Comparison,
    Context,
    Group,
    PolicyRef,
    Reward,
    Span,
    Status,
    StopReason,
    Task,
    Trajectory,
    Turn,
)


def trajectory_to_json(trajectory: Trajectory, contexts: list[dict[str, Any]]) -> dict[str, Any]:
    """A `trajectory` line; `contexts` says where each context's tokens are stored."""
    line = {name: getattr(trajectory, name) for name in _PLAIN_TRAJECTORY}
    return {
        "type": "trajectory",
        **line,
        "task": asdict(trajectory.task),
        "policy": asdict(trajectory.policy),
        "faults": list(trajectory.faults),
        "rewards": [{**asdict(r), "at": asdict(r.at) if isinstance(r.at, Span) else r.at} for r in trajectory.rewards],
        "turns": [asdict(turn) for turn in trajectory.turns],
        "contexts": contexts,
    }


def trajectory_from_json(line: dict[str, Any], contexts: tuple[Context, ...]) -> Trajectory:
    """The inverse of `trajectory_to_json`."""
    plain = {name: line[name] for name in _PLAIN_TRAJECTORY}
    plain["status"], plain["stop_reason"] = Status(line["status"]), StopReason(line["stop_reason"])
    return Trajectory(
        **plain,
        task=Task(**line["task"]),
        policy=PolicyRef(**line["policy"]),
        faults=tuple(line["faults"]),
        rewards=tuple(_reward(reward) for reward in line["rewards"]),
        turns=tuple(_turn(turn) for turn in line["turns"]),
        contexts=contexts,
    )


def group_to_json(group: Group) -> dict[str, Any]:
    """A `group` line; its trajectories are lines of their own and follow it."""
    return {
        "type": "group",
        "id": group.id,
        "task": group.task.id,
        "trajectories": [trajectory.id for trajectory in group.trajectories],
        "start_depth": group.start_depth,
        "seed": group.seed,
        "requested": group.requested,
        "short_reason": group.short_reason,
        "weight": group.weight,
        "comparisons": [asdict(comparison) for comparison in group.comparisons],
    }


def group_from_json(line: dict[str, Any], trajectories: dict[str, Trajectory]) -> Group:
    """The inverse of `group_to_json`, given the file's trajectories by id."""
    members = tuple(trajectories[name] for name in line["trajectories"])
    return Group(
        id=line["id"],
        task=members[0].task,
        trajectories=members,
        start_depth=line["start_depth"],
        seed=line["seed"],
        requested=line["requested"],
        short_reason=line["short_reason"],
        weight=line["weight"],
        comparisons=tuple(Comparison(**comparison) for comparison in line["comparisons"]),
    )


def branch_from_json(value: dict[str, Any] | None) -> Branch | None:
    """A context's parent, or None for one that stands alone."""
    return None if value is None else Branch(**value)


_PLAIN_TRAJECTORY = (
    "id",
    "status",
    "stop_reason",
    "success",
    "seed",
    "group_seed",
    "horizon",
    "start_depth",
    "group",
    "episode_id",
    "retries",
    "forks",
)


def _reward(value: dict[str, Any]) -> Reward:
    at = value["at"]
    return Reward(value["name"], value["value"], Span(**at) if isinstance(at, dict) else at)


def _turn(value: dict[str, Any]) -> Turn:
    calls = tuple(
        Call(**{**call, "span": Span(**call["span"]), "stop_reason": StopReason(call["stop_reason"])})
        for call in value["calls"]
    )
    return Turn(**{**value, "calls": calls})
