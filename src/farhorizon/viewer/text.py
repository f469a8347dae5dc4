"""A trajectory as text, and its tokens line by line."""

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from farhorizon.core.record import ORIGINS, StopReason, Trajectory
from farhorizon.core.returns import reward_positions

_CONTROL = {"Cc", "Cs", "Zl", "Zp"}
"""Unicode categories no terminal shows: control characters, lone surrogates, line and paragraph separators."""

_WHY = {
    StopReason.TERMINATED: "the environment ended the episode",
    StopReason.ENV_TRUNCATED: "the environment's own limit was reached",
    StopReason.TRAJECTORY_TOKENS: "the tokens of an episode were used up",
    StopReason.CONTEXT_OVERFLOW: "the context was full",
    StopReason.TIMEOUT: "the environment did not answer in time",
    StopReason.ENV_FAULT: "the environment broke",
}


def as_text(trajectory: Trajectory) -> str:
    """Turns, rewards and how it ended, for reading."""
    task = printable(f"{trajectory.task.id} ({trajectory.task.domain})")
    lines = [
        f"{trajectory.id}: task {task}, at most {trajectory.horizon} turns, policy version {trajectory.policy.version}"
    ]
    by_turn: dict[int, float] = {}
    for reward in trajectory.rewards:
        if isinstance(reward.at, int):
            by_turn[reward.at] = by_turn.get(reward.at, 0.0) + reward.value
    for index, turn in enumerate(trajectory.turns):
        replayed = "  (replayed)" if index < trajectory.start_depth else ""
        reward_text = f"  [reward {by_turn[index]:g}]" if index in by_turn else ""
        invalid = "  [not valid]" if turn.info.get("valid") is False else ""
        action = printable(turn.action.strip())
        lines += ["", printable(turn.observation), f"> {action}{replayed}{reward_text}{invalid}"]
    success = {None: "not declared", True: "yes", False: "no"}[trajectory.success]
    lines += [
        "",
        f"ended: {trajectory.stop_reason.value} ({trajectory.status.value}); success: {success}; "
        f"total reward {trajectory.total_reward:g}; {trajectory.sampled_tokens} sampled tokens",
    ]
    lines += [f"fault: {fault}" for fault in trajectory.faults]
    return "\n".join(lines)


def ending(trajectory: Trajectory) -> str:
    """`solved in 2 turns`, or `not solved: the 6 turns were used up`; an environment may declare neither."""
    turns = len(trajectory.turns) - trajectory.start_depth
    if trajectory.success:
        return f"solved in {turns} turn{'s' if turns != 1 else ''}"
    if trajectory.stop_reason is StopReason.HORIZON:
        most = trajectory.horizon
        why = f"the {most} turns were used up" if most != 1 else "the one turn was used up"
    else:
        why = _WHY.get(trajectory.stop_reason, trajectory.stop_reason.value)
    return f"{'success not declared' if trajectory.success is None else 'not solved'}: {why}"


def printable(text: str) -> str:
    """Text as a terminal and a UTF-8 file can take it: what would steer the one or break the other is escaped."""
    return "".join(
        character.encode("unicode_escape").decode()
        if character != "\n" and unicodedata.category(character) in _CONTROL
        else character
        for character in text.replace("\r\n", "\n").expandtabs(4)
    )


def shortened(text: str, *, lines: int, characters: int) -> str:
    """At most so many lines and characters of a text, and how much was left out."""
    kept = "\n".join(text.split("\n")[:lines])[:characters]
    left = len(text) - len(kept)
    return f"{kept.rstrip()} … ({left:,} more characters)" if left else text


def as_tokens(trajectory: Trajectory, tokenizer: Any | None) -> str:
    """A line per token of every context: origin, text, log-probabilities, policy version, reward, learner's arrays."""
    rewards = {(c, position): value for c, position, value in reward_positions(trajectory)}
    names = sorted({name for context in trajectory.contexts for name in context.arrays})
    columns = ["logp_behaviour", "version", "reward", *names]
    lines = []
    for c, context in enumerate(trajectory.contexts):
        lines += [f"{trajectory.id}, context {c}", _row("", "origin", "token", columns, columns)]
        for position, token in enumerate(context.token_ids):
            version = int(context.policy_version[position])
            cells = [
                _number(context.logp_behaviour[position]),
                "" if version < 0 else str(version),
                _number(rewards.get((c, position), np.nan)),
                *(_number(context.arrays[name][position]) if name in context.arrays else "" for name in names),
            ]
            text = str(token) if tokenizer is None else repr(tokenizer.decode([int(token)]))
            lines.append(_row(str(position), ORIGINS[context.origins[position]].value, text, cells, columns))
    return "\n".join(lines)


def _row(position: str, origin: str, text: str, cells: Sequence[str], columns: Sequence[str]) -> str:
    aligned = (f"{cell:>{max(9, len(column))}}" for cell, column in zip(cells, columns, strict=True))
    return " ".join([f"{position:>5} {origin:<12} {text:<18}", *aligned]).rstrip()


def _number(value: Any) -> str:
    return "" if np.isnan(value) else f"{float(value):.4g}"
