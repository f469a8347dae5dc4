"""Runs on disk that never ran: evaluations and metrics written by hand, for tests of what reads them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from farhorizon.config.recipe import dump, parse
from farhorizon.core.record import Context, Group, Origin, Segment, Status, StopReason, Task, Trajectory, Turn
from farhorizon.core.rundir import RunDirectory
from farhorizon.core.store import write_update

Said = tuple[str, str] | tuple[str, str, bool]
"""An observation, the action taken on it, whether the environment refused it."""

SOLVED: tuple[Said, ...] = (("Count to 1.", " 1\n"),)
FAILED: tuple[Said, ...] = (("Count to 1.", " one\n", True), ("Say 1.", " two\n", True))


def episode(
    said: Sequence[Said] = SOLVED, success: bool | None = True, task: str = "count/1", domain: str = "short", **fields
) -> Trajectory:
    """A trajectory of which one token is known; one not solved has used up its turns."""
    turns = tuple(
        Turn(observation, action, action.strip(), info={"valid": not any(refused)})
        for observation, action, *refused in said
    )
    given = {
        "status": Status.OK if success else Status.TRUNCATED,
        "stop_reason": StopReason.TERMINATED if success else StopReason.HORIZON,
        "horizon": len(turns),
        **fields,
    }
    contexts = (Context((Segment(Origin.OBSERVATION, [1]),)),)
    named = Task(task, "count", "eval", domain)
    return Trajectory("", named, contexts, turns, (), success=success, seed=0, group_seed=0, **given)


def broken(task: str, domain: str = "short") -> Trajectory:
    """An episode whose environment broke."""
    return episode((), None, task, domain, status=Status.INFRA_FAULT, stop_reason=StopReason.ENV_FAULT)


def evaluation(update: int, *episodes: Trajectory) -> list[Group]:
    """The episodes as an evaluation stores them: a group for each task, in the order given."""
    by_task: dict[str, list[Trajectory]] = {}
    for one in episodes:
        by_task.setdefault(one.task.id, []).append(one)
    groups = []
    for g, members in enumerate(by_task.values()):
        named = tuple(replace(one, id=f"eval/{update}/{g}/{m}") for m, one in enumerate(members))
        groups.append(Group(f"eval/{update}/{g}", members[0].task, named, 0, 0, len(members)))
    return groups


def stored_run(
    path: Path, *, updates: int = 2, lines: Sequence[dict] = (), **evaluations: list[Trajectory]
) -> RunDirectory:
    """A run of `updates` updates: `after_0 = [episodes]` and so on are its evaluations, `lines` its metrics."""
    recipe = parse({"env": {"kind": "textcraft"}, "runtime": {"max_updates": updates}})
    run = RunDirectory.create(path, dump(recipe), {})
    for name, episodes in evaluations.items():
        update = int(name.removeprefix("after_"))
        write_update(run.evaluations, update, evaluation(update, *episodes))
    for line in lines:
        run.append_metrics(line)
    return run
