"""An evaluation on disk, in whole chunks, so that one interrupted anywhere continues to the same files.

DIR/eval.json       what is evaluated on what: an evaluation continues only where this is the same
DIR/recipe.toml     every value of the recipe
DIR/items.jsonl     one line per episode
DIR/evaluations/    the episodes in full, one numbered file a chunk (core/store.py)
DIR/report.json     what they come to; written last
DIR/report.md       the same for people
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from farhorizon.core.errors import UserError
from farhorizon.core.files import replace as replace_file
from farhorizon.core.files import replace_text, sync
from farhorizon.core.record import Group, Task, Trajectory
from farhorizon.core.store import write_update
from farhorizon.envs.base import World
from farhorizon.evaluation.evaluate import chosen_tasks
from farhorizon.evaluation.items import Item, from_line, item_of, to_line
from farhorizon.evaluation.report import Report, as_markdown, summarised
from farhorizon.evaluation.subject import STREAM, Subject


@dataclass(frozen=True)
class Plan:
    """What a subject is evaluated on."""

    environment: dict[str, str]
    """Name and version of the environment."""
    configuration: dict[str, Any]
    """Its table of the recipe."""
    split: str
    """Split of the environment."""
    split_sha256: str
    """Digest of the ids and contents of all its tasks."""
    tasks: tuple[Task, ...]
    """Those played, in the order that numbers their noise."""
    samples: int
    """Episodes per task."""
    turns: int
    """Horizon."""
    seed: int
    """Of all noise."""


def plan(
    world: World, configuration: dict[str, Any], split: str, count: int | None, samples: int, turns: int, seed: int
) -> Plan:
    """Choose `count` tasks of a split by `chosen_tasks`; None for all.

    Raises:
        UserError: the split has no tasks.
    """
    listed = world.tasks(split)
    if not listed:
        raise UserError(f'"{world.name}" has no tasks in split "{split}"')
    return Plan(
        environment={"name": world.name, "version": world.version},
        configuration=configuration,
        split=split,
        split_sha256=split_sha256(listed),
        tasks=tuple(chosen_tasks(listed, len(listed) if count is None else count)),
        samples=samples,
        turns=turns,
        seed=seed,
    )


def split_sha256(tasks: Sequence[Task]) -> str:
    """Digest of the ids and contents of tasks, in whatever order they are listed."""
    lines = sorted(json.dumps(asdict(task), sort_keys=True) + "\n" for task in tasks)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


class EvaluationDirectory:
    """Where one evaluation is written, or was."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.facts_file = path / "eval.json"
        self.items_file = path / "items.jsonl"
        self.report_file = path / "report.json"
        self.episodes = path / "evaluations"

    async def carry_out(
        self,
        plan: Plan,
        subject: Subject,
        recipe: str,
        begin: Callable[[int], None] | None = None,
        on_done: Callable[[Trajectory], None] | None = None,
    ) -> Report:
        """Play what is not played yet, write everything, and say what it comes to.

        Args:
            recipe: text of `recipe.toml`.
            begin: told how many episodes are left to play.
            on_done: called as each ends.

        Raises:
            UserError: the directory holds something else, or another evaluation.
        """
        size = max(1, subject.tasks_at_once // plan.samples)
        chunks = [plan.tasks[start : start + size] for start in range(0, len(plan.tasks), size)]
        self._open(_facts(plan, subject, size), recipe)
        items = self._whole(chunks, plan.samples)
        if begin is not None:
            begin(len(plan.tasks) * plan.samples - len(items))
        done = -(-len(items) // (size * plan.samples))  # the last chunk may be smaller
        for number, tasks in enumerate(chunks[done:], start=done):
            groups = [
                _renumbered(group, number) for group in await subject.play(tasks, plan.samples, number * size, on_done)
            ]
            write_update(self.episodes, number, groups)
            played = [item_of(trajectory, s) for group in groups for s, trajectory in enumerate(group.trajectories)]
            self._append(played)
            items += played
        report = summarised(items, plan.turns)
        title = f"{subject.facts['name']} on {plan.environment['name']}, split {plan.split}"
        replace_text(self.path / "report.md", as_markdown(report, title))
        replace_text(self.report_file, _json(asdict(report)))
        return report

    def facts(self) -> dict[str, Any]:
        """What was evaluated on what.

        Raises:
            UserError: this is no finished evaluation.
        """
        if not self.facts_file.is_file():
            raise UserError(f"{self.path} is not an evaluation: it has no {self.facts_file.name}")
        if not self.report_file.is_file():
            raise UserError(f"the evaluation {self.path} is not finished; repeat its command to continue it")
        return json.loads(self.facts_file.read_text(encoding="utf-8"))

    def items(self) -> list[Item]:
        """Its episodes, task by task."""
        return [from_line(line) for line in self.items_file.read_text(encoding="utf-8").splitlines()]

    def _open(self, facts: dict[str, Any], recipe: str) -> None:
        """Begin an evaluation, or make sure that the one found here is the same."""
        if self.facts_file.is_file():
            found = _flat(json.loads(self.facts_file.read_text(encoding="utf-8")))
            wanted = _flat(json.loads(_json(facts)))
            for name in [*wanted, *found]:
                if found.get(name) != wanted.get(name):
                    raise UserError(
                        f"{self.path} holds an evaluation with {name} = {_told(found.get(name))}, this one has "
                        f"{_told(wanted.get(name))}; name another directory with --out"
                    )
            return
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise UserError(f"{self.path} is there already and is no evaluation; name another directory with --out")
        self.path.mkdir(parents=True, exist_ok=True)
        replace_text(self.path / "recipe.toml", recipe)
        replace_text(self.facts_file, _json(facts))

    def _whole(self, chunks: Sequence[Sequence[Task]], samples: int) -> list[Item]:
        """Items of the chunks that were written whole; what follows them is cut off."""
        text = self.items_file.read_bytes() if self.items_file.exists() else b""
        lines = text.splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()
        kept = 0
        for tasks in chunks:
            after = kept + len(tasks) * samples
            if after > len(lines):
                break
            kept = after
        whole = b"".join(lines[:kept])
        if whole != text:
            replace_file(self.items_file, lambda aside: aside.write_bytes(whole))
        items = [from_line(line.decode()) for line in lines[:kept]]
        tasks_in_order = [task.id for chunk in chunks for task in chunk for _ in range(samples)]
        if [item.task for item in items] != tasks_in_order[:kept]:
            raise UserError(f"{self.items_file} is not of the evaluation in {self.facts_file}; delete {self.path}")
        return items

    def _append(self, items: Sequence[Item]) -> None:
        with self.items_file.open("ab") as file:
            file.write("".join(map(to_line, items)).encode())
        sync(self.items_file)


def _facts(plan: Plan, subject: Subject, chunk: int) -> dict[str, Any]:
    return {
        "subject": subject.facts,
        "environment": plan.environment,
        "env": plan.configuration,
        "split": {"name": plan.split, "sha256": plan.split_sha256},
        "tasks": len(plan.tasks),
        "samples": plan.samples,
        "turns": plan.turns,
        "seed": plan.seed,
        "chunk": chunk,
    }


def _renumbered(group: Group, chunk: int) -> Group:
    """The group as it is stored: named by the file it is in, and without clock times."""
    _, _, place = group.id.split("/")
    members = []
    for sample, trajectory in enumerate(group.trajectories):
        name = f"{STREAM}/{chunk}/{place}/{sample}"
        turns = tuple(replace(turn, timings={}) for turn in trajectory.turns)
        members.append(replace(trajectory, id=name, episode_id=name, turns=turns))
    return replace(group, id=f"{STREAM}/{chunk}/{place}", trajectories=tuple(members))


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """Nested tables as `table.key` -> value."""
    if not isinstance(value, dict):
        return {name: value}
    flat: dict[str, Any] = {}
    for part, inner in value.items():
        flat |= _flat(inner, f"{name}.{part}" if name else part)
    return flat


def _told(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value)
