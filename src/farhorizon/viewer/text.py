"""A trajectory as text, and its tokens as a table."""

from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from farhorizon.core.record import ORIGINS, Origin, Trajectory
from farhorizon.core.returns import reward_positions

_STYLES = {
    Origin.TEMPLATE: "dim",
    Origin.OBSERVATION: "cyan",
    Origin.HINT: "magenta",
    Origin.PREFIX: "yellow",
    Origin.DEMONSTRATED: "yellow",
    Origin.SAMPLED: "bold green",
}


def as_text(trajectory: Trajectory) -> str:
    """Turns, rewards and how it ended, for reading."""
    lines = [
        f"{trajectory.id}: task {trajectory.task.id} ({trajectory.task.domain}), at most {trajectory.horizon} turns, "
        f"policy version {trajectory.policy.version}"
    ]
    by_turn: dict[int, float] = {}
    for reward in trajectory.rewards:
        if isinstance(reward.at, int):
            by_turn[reward.at] = by_turn.get(reward.at, 0.0) + reward.value
    for index, turn in enumerate(trajectory.turns):
        replayed = "  (replayed)" if index < trajectory.start_depth else ""
        reward_text = f"  [reward {by_turn[index]:g}]" if index in by_turn else ""
        invalid = "  [not valid]" if turn.info.get("valid") is False else ""
        lines += ["", turn.observation, f"> {turn.action.strip()}{replayed}{reward_text}{invalid}"]
    success = {None: "not declared", True: "yes", False: "no"}[trajectory.success]
    lines += [
        "",
        f"ended: {trajectory.stop_reason.value} ({trajectory.status.value}); success: {success}; "
        f"total reward {trajectory.total_reward:g}; {trajectory.sampled_tokens} sampled tokens",
    ]
    lines += [f"fault: {fault}" for fault in trajectory.faults]
    return "\n".join(lines)


def token_table(trajectory: Trajectory, tokenizer: Any | None) -> Table:
    """Every token of every context: origin, log-probabilities, policy version, and the learner's arrays."""
    rewards = {(c, position): value for c, position, value in reward_positions(trajectory)}
    names = sorted({name for context in trajectory.contexts for name in context.arrays})
    table = Table(title=trajectory.id)
    for column in ("context", "position", "token", "origin", "logp_behaviour", "version", "reward", *names):
        table.add_column(column)
    for c, context in enumerate(trajectory.contexts):
        for position, token in enumerate(context.token_ids):
            origin = ORIGINS[context.origins[position]]
            text = str(token) if tokenizer is None else repr(tokenizer.decode([int(token)]))
            version = int(context.policy_version[position])
            table.add_row(
                str(c),
                str(position),
                Text(text, _STYLES[origin]),
                origin.value,
                _value(context.logp_behaviour[position]),
                "" if version < 0 else str(version),
                f"{rewards[c, position]:g}" if (c, position) in rewards else "",
                *(_value(context.arrays[name][position]) if name in context.arrays else "" for name in names),
            )
    return table


def _value(value: Any) -> str:
    return "" if np.isnan(value) else f"{float(value):.4f}"
