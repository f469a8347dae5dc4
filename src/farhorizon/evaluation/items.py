"""One line per episode: everything a report or a comparison is computed from, and no clock time."""

import json
from dataclasses import asdict, dataclass

from farhorizon.core.record import Status, StopReason, Trajectory
from farhorizon.rollout.metrics import own_turns


@dataclass(frozen=True)
class Item:
    """One episode of an evaluation."""

    task: str
    """Id of the task."""
    domain: str
    """Its category."""
    sample: int
    """Index among the task's episodes."""
    success: bool | None
    """Whether the task stood solved at the end, as the environment declares; None where it does not, or broke."""
    reward: float
    """Total reward."""
    turns: int
    """Turns taken."""
    success_turn: int | None
    """Turn, counted from 1, since which the task stood solved until the end; None where it did not."""
    sampled_tokens: int
    """Tokens sampled."""
    context_tokens: int
    """Tokens of the longest context."""
    valid_actions: int
    """Actions that were found and that the environment accepted."""
    actions: int
    """Actions written, those included in which nothing could be found: one a turn."""
    truncated: bool
    """Whether a limit ended the episode: turns, tokens, or the environment's own."""
    status: Status
    """How it ended; `infra_fault` is set aside and never scored (law 4)."""
    stop_reason: StopReason
    """Why it ended."""
    seed: int
    """Episode seed."""

    @property
    def scored(self) -> bool:
        """False for what infrastructure broke."""
        return self.status is not Status.INFRA_FAULT

    def solved_within(self, turns: int) -> bool:
        """Whether the task stood solved after so many turns."""
        return self.success_turn is not None and self.success_turn <= turns


def item_of(trajectory: Trajectory, sample: int) -> Item:
    """The item of an episode."""
    turns = own_turns(trajectory)
    since: int | None = None
    for number, turn in enumerate(turns, start=1):
        if turn.success is not None:
            since = (since or number) if turn.success else None
    return Item(
        task=trajectory.task.id,
        domain=trajectory.task.domain,
        sample=sample,
        success=trajectory.success,
        reward=trajectory.total_reward,
        turns=len(turns),
        success_turn=since,
        sampled_tokens=trajectory.sampled_tokens,
        context_tokens=max((len(context) for context in trajectory.contexts), default=0),
        valid_actions=sum(bool(turn.info.get("valid", True)) for turn in turns),
        actions=len(turns),
        truncated=trajectory.status is Status.TRUNCATED,
        status=trajectory.status,
        stop_reason=trajectory.stop_reason,
        seed=trajectory.seed,
    )


def to_line(item: Item) -> str:
    """The item as a line of JSON, line end included."""
    return json.dumps(asdict(item), allow_nan=False) + "\n"


def from_line(line: str) -> Item:
    """The inverse of `to_line`.

    Raises:
        ValueError: the line is not whole.
    """
    value = json.loads(line)
    return Item(**{**value, "status": Status(value["status"]), "stop_reason": StopReason(value["stop_reason"])})
