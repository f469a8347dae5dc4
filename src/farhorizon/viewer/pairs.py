"""The same held-out tasks in two evaluations: what changed, and which few episodes to show for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from farhorizon.core.record import Group, Task, Trajectory

SHOWN = 3
"""Pairs shown."""
OUTCOMES = ("only after", "only before", "both times", "neither time")
"""When a task was solved."""


@dataclass(frozen=True, eq=False)
class Pair:
    """A task's episodes of the same sample number, both scored."""

    task: Task
    """What was to be done."""
    before: Trajectory
    """In the earlier evaluation."""
    after: Trajectory
    """In the later one."""

    @property
    def outcome(self) -> str:
        """When it was solved: one of `OUTCOMES`."""
        before, after = bool(self.before.success), bool(self.after.success)
        if before == after:
            return "both times" if after else "neither time"
        return "only after" if after else "only before"


def paired(before: Sequence[Group], after: Sequence[Group]) -> list[Pair]:
    """Every task's episodes of two evaluations, sample by sample, in the order of a hash of the tasks' ids.

    Tasks of one evaluation alone and episodes that infrastructure broke have no pair.
    """
    earlier = {group.task.id: group for group in before}
    return [
        Pair(group.task, first, second)
        for group in sorted(after, key=lambda group: blake2b(group.task.id.encode(errors="surrogatepass")).digest())
        if group.task.id in earlier
        for first, second in zip(earlier[group.task.id].trajectories, group.trajectories, strict=False)
        if first.scored and second.scored
    ]


def chosen(pairs: Sequence[Pair]) -> list[tuple[str, Pair]]:
    """The pairs to show, each with how it was chosen: wins and failures alike, whatever the run came to.

    Walking the pairs in their order, each of another task: the first solved only after, the first not solved after,
    the next solved after; where there is none of a kind, the next of any. Ours.
    """
    kinds: list[tuple[str, Callable[[Pair], bool]]] = [
        ("the first solved only after", lambda pair: pair.outcome == "only after"),
        ("the first not solved after", lambda pair: not pair.after.success),
        ("the next solved after", lambda pair: bool(pair.after.success)),
        *[("the next in order", lambda pair: True)] * SHOWN,
    ]
    found: list[tuple[str, Pair]] = []
    for how, fits in kinds:
        shown = {pair.task.id for _, pair in found}
        match = next((pair for pair in pairs if fits(pair) and pair.task.id not in shown), None)
        if match is not None and len(found) < SHOWN:
            found.append((how, match))
    return found
