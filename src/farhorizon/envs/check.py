"""Checks of a world that any author can run: does it keep the promises that training and evaluation rely on?

Each check plays a few tasks with scripted, random and oracle players on fresh instances. What a world does
not offer (an oracle, snapshots, a list of actions) is said and passes. Hanging is not caught here; the
driver's deadlines do that.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from math import isfinite

from farhorizon.core.record import Task
from farhorizon.core.seeds import Key
from farhorizon.envs.base import Environment, Episode, StepResult, World
from farhorizon.envs.players import OraclePlayer, Played, Player, RandomPlayer, ScriptedPlayer, play, settled

SPLITS = ("train", "eval")

HOSTILE_ACTIONS = (
    "", " ", "\n\n\n", "\x00\x1b[2J", "`", "a" * 100_000, "9" * 5_000, "get " + "9" * 5_000 + " of everything",
    "-1", "nan", "1e309", "null", '{"action": {"action": {}}}', "[" * 5_000, "<tool_call></tool_call>",
    "%s%n{}", "'; DROP TABLE tasks; --", "../../../../etc/passwd", "$(exit 1)", "__import__('os').abort()",
    "\u202e\u0000\ufeff", "💥🧨" * 100, "ﷺ" * 100, "İ" * 100, "١٢٣", "using using using",
)  # fmt: skip
"""What a model, or somebody, may write. Each must be answered with a StepResult."""

LONGEST_ANSWER = 10_000
"""Most characters in which a hostile action may be answered."""


@dataclass(frozen=True)
class CheckResult:
    """One check."""

    name: str
    """What was checked."""
    ok: bool
    """Whether the world keeps the promise."""
    detail: str
    """What was found, or how it was broken."""


class Broken(Exception):
    """A promise is not kept; the message says which task and what happened."""


@dataclass(frozen=True)
class _Trial:
    """What the checks share."""

    world: World
    tasks: tuple[Task, ...]
    seed: int
    horizon: int

    def episode(self, horizon: int | None = None) -> Episode:
        return Episode(self.seed, self.seed, 0, self.horizon if horizon is None else horizon, training=False)

    def random_player(self, task_index: int) -> RandomPlayer:
        return RandomPlayer(Key(self.seed, "check", group=task_index))

    async def played(self, task: Task, player: Player, horizon: int | None = None) -> Played:
        async with _opened(self.world) as environment:
            return await play(environment, task, player, self.episode(horizon))

    def solved(self) -> list[tuple[Task, Sequence[str]]]:
        """Tasks with the oracle's actions, where there are any."""
        pairs = [(task, self.world.oracle(task)) for task in self.tasks]
        return [(task, actions) for task, actions in pairs if actions is not None]


def check(world: World, *, tasks: int = 6, horizon: int = 30, seed: int = 0) -> list[CheckResult]:
    """Run every check.

    Args:
        world: what to check.
        tasks: how many tasks of each split to play, spread evenly over its list.
        horizon: turns a random player gets.
        seed: seed of episodes and players.

    Returns:
        One result per check, in a fixed order.
    """
    return asyncio.run(_check(world, tasks, horizon, seed))


async def _check(world: World, tasks: int, horizon: int, seed: int) -> list[CheckResult]:
    try:
        chosen = tuple(task for split in SPLITS for task in _spread(world.tasks(split), tasks))
    except Exception as error:
        return [CheckResult("tasks", False, _words(error))]
    trial = _Trial(world, chosen, seed, horizon)
    results = []
    for name, function in CHECKS.items():
        try:
            results.append(CheckResult(name, True, await function(trial)))
        except Exception as error:
            results.append(CheckResult(name, False, _words(error)))
    return results


async def _tasks(trial: _Trial) -> str:
    """Tasks are listed the same twice, belong here and have names of their own."""
    counts = []
    for split in SPLITS:
        listed = trial.world.tasks(split)
        if list(listed) != list(trial.world.tasks(split)):
            raise Broken(f"{split} lists other tasks the second time")
        if len({task.id for task in listed}) < len(listed):
            raise Broken(f"two tasks of {split} share an id")
        for task in listed:
            if (task.env, task.split) != (trial.world.name, split):
                raise Broken(f"task {task.id} of {split} says that it is of {task.env}, {task.split}")
        counts.append(f"{len(listed)} {split}")
    if not trial.tasks:
        raise Broken("there are no tasks")
    return ", ".join(counts)


async def _disjoint(trial: _Trial) -> str:
    """No task of one split is in the other, under its own name or another."""
    train, held_out = (trial.world.tasks(split) for split in SPLITS)
    ids = {task.id for task in train} & {task.id for task in held_out}
    if ids:
        raise Broken(f"{len(ids)} ids are in both splits, such as {min(ids)}")
    contents = {json.dumps(task.data, sort_keys=True): task.id for task in train if task.data}
    for task in held_out:
        twin = contents.get(json.dumps(task.data, sort_keys=True))
        if twin is not None:
            raise Broken(f"eval task {task.id} has the content of train task {twin}")
    return "no id and no content in both splits"


async def _repeats(trial: _Trial) -> str:
    """The same task, seed and actions give the same episode on another instance."""
    for index, task in enumerate(trial.tasks):
        first = await trial.played(task, trial.random_player(index))
        _same(task, first, await trial.played(task, trial.random_player(index)), "a second time")
    return f"{len(trial.tasks)} tasks, same observations and rewards twice"


async def _isolated(trial: _Trial) -> str:
    """Two instances stepped in turn give what each gives alone."""
    for index, (left, right) in enumerate(zip(trial.tasks, trial.tasks[1:] + trial.tasks[:1], strict=True)):
        alone = [await trial.played(task, trial.random_player(index)) for task in (left, right)]
        async with _opened(trial.world) as one, _opened(trial.world) as other:
            environments = (one, other)
            openings = [
                await settled(e.reset(t, trial.episode())) for e, t in zip(environments, (left, right), strict=True)
            ]
            steps: tuple[list[tuple[str, StepResult]], ...] = ([], [])
            for turn in range(max(len(played.steps) for played in alone)):
                for environment, played, done in zip(environments, alone, steps, strict=True):
                    if turn < len(played.steps):
                        action = played.steps[turn][0]
                        done.append((action, await settled(environment.step(action))))
        for task, played, opening, done in zip((left, right), alone, openings, steps, strict=True):
            _same(task, played, Played(opening, tuple(done)), "beside another instance")
    return "instances do not disturb each other"


async def _resets(trial: _Trial) -> str:
    """A used instance, reset, plays like a fresh one."""
    async with _opened(trial.world) as used:
        for index, task in enumerate(trial.tasks):
            first = await trial.played(task, trial.random_player(index))
            await settled(used.reset(task, trial.episode()))
            _same(
                task,
                first,
                await play(used, task, trial.random_player(index), trial.episode()),
                "after a reset",
            )
    return "one instance served all tasks, each reset twice"


async def _hostile(trial: _Trial) -> str:
    """Malformed, empty and enormous actions are answered."""
    refused = 0
    task = trial.tasks[0]
    async with _opened(trial.world) as environment:
        await settled(environment.reset(task, trial.episode()))
        for action in HOSTILE_ACTIONS:
            shown = repr(action[:40])
            try:
                result = await settled(environment.step(action))
            except Exception as error:
                raise Broken(f"task {task.id}: action {shown} raised {_words(error)}") from error
            _sane(task, shown, result)
            refused += result.info.get("valid") is False
            if result.terminated or result.truncated:
                await settled(environment.reset(task, trial.episode()))
    return f"{len(HOSTILE_ACTIONS)} answered, {refused} marked as not valid"


async def _random(trial: _Trial) -> str:
    """A random player reaches the end or the horizon, and listed actions are valid."""
    turns = refused = 0
    for index, task in enumerate(trial.tasks):
        for action, result in (await trial.played(task, trial.random_player(index))).steps:
            _sane(task, repr(action[:40]), result)
            turns += 1
            refused += result.info.get("valid") is False
    async with _opened(trial.world) as environment:
        await settled(environment.reset(trial.tasks[0], trial.episode()))
        listed = environment.available_actions() is not None
    if listed and refused:
        raise Broken(f"{refused} of {turns} actions listed as available were refused")
    return f"{turns} turns" if listed else f"{turns} turns, available actions not listed"


async def _declared(trial: _Trial) -> str:
    """Every step says whether the task is solved."""
    for index, task in enumerate(trial.tasks):
        for action, result in (await trial.played(task, trial.random_player(index))).steps:
            if result.success is None:
                raise Broken(f"task {task.id}: success is None after {action[:40]!r}; declare True or False")
    return "success is declared"


async def _oracle(trial: _Trial) -> str:
    """The oracle's actions solve their tasks."""
    solved = trial.solved()
    for task, actions in solved:
        played = await trial.played(task, OraclePlayer(trial.world, task), len(actions))
        if not played.success:
            said = played.steps[-1][1].observation if played.steps else "nothing"
            raise Broken(f"task {task.id}: the oracle's {len(actions)} actions do not solve it; last answer: {said}")
    lengths = [len(actions) for _, actions in solved]
    return (
        f"{len(solved)} of {len(trial.tasks)} tasks solved, in {min(lengths)} to {max(lengths)} turns"
        if solved
        else "no oracle"
    )


async def _snapshots(trial: _Trial) -> str:
    """A snapshot taken half-way, read back from JSON on a fresh instance, continues identically."""
    for index, task in enumerate(trial.tasks):
        oracle = trial.world.oracle(task)
        player = trial.random_player(index) if oracle is None else ScriptedPlayer(oracle)
        whole = await trial.played(task, player, None if oracle is None else len(oracle))
        half = len(whole.steps) // 2
        async with _opened(trial.world) as one, _opened(trial.world) as other:
            shown = await settled(one.reset(task, trial.episode()))
            for action, _ in whole.steps[:half]:
                shown = (await settled(one.step(action))).observation
            try:
                snapshot = json.loads(json.dumps(await settled(one.snapshot())))
            except NotImplementedError:
                return "no snapshots"
            if await settled(other.restore(snapshot)) != shown:
                raise Broken(f"task {task.id}: restore returns another observation than the current one")
            if one.state_key() != other.state_key():
                raise Broken(f"task {task.id}: the restored state has another key")
            rest = [(action, await settled(other.step(action))) for action, _ in whole.steps[half:]]
        _same(task, Played(shown, whole.steps[half:]), Played(shown, tuple(rest)), "after a restore")
    return f"{len(trial.tasks)} tasks continued identically"


async def _speed(trial: _Trial) -> str:
    """Steps per second, for about a fifth of a second."""
    pairs = trial.solved()
    steps, began = 0, time.perf_counter()
    async with _opened(trial.world) as environment:
        while time.perf_counter() - began < 0.2:
            for index, task in enumerate(trial.tasks):
                actions = next((actions for other, actions in pairs if other is task), None)
                player = trial.random_player(index) if actions is None else ScriptedPlayer(actions)
                limit = trial.horizon if actions is None else max(len(actions), 1)
                steps += len((await play(environment, task, player, trial.episode(limit))).steps)
            if not steps:
                return "no steps to time"
    rate = steps / (time.perf_counter() - began)
    return f"{rate:,.0f} steps per second, resets included, {'oracle' if pairs else 'random'} episodes"


CHECKS: dict[str, Callable[[_Trial], Awaitable[str]]] = {
    "tasks": _tasks,
    "splits disjoint": _disjoint,
    "same episode twice": _repeats,
    "instances isolated": _isolated,
    "reset": _resets,
    "hostile actions": _hostile,
    "random player": _random,
    "success declared": _declared,
    "oracle": _oracle,
    "snapshot": _snapshots,
    "speed": _speed,
}
"""Checks in the order they are reported."""


@asynccontextmanager
async def _opened(world: World) -> AsyncIterator[Environment]:
    """A fresh instance, closed afterwards."""
    environment = world.make()
    try:
        yield environment
    finally:
        await settled(environment.close())


def _spread(tasks: Sequence[Task], count: int) -> list[Task]:
    """`count` tasks, evenly over the list."""
    count = min(count, len(tasks))
    return [tasks[index * len(tasks) // count] for index in range(count)]


def _same(task: Task, expected: Played, found: Played, when: str) -> None:
    if expected.opening != found.opening:
        raise Broken(f"task {task.id} opens differently {when}")
    for turn, ((action, one), (_, other)) in enumerate(zip(expected.steps, found.steps, strict=False)):
        if one != other:
            names = [name for name, value in asdict(one).items() if asdict(other)[name] != value]
            raise Broken(f"task {task.id}, turn {turn}: {action[:40]!r} gives another {names[0]} {when}")
    if len(expected.steps) != len(found.steps):
        raise Broken(f"task {task.id} ends after {len(found.steps)} turns {when}, before after {len(expected.steps)}")


def _sane(task: Task, shown: str, result: object) -> None:
    where = f"task {task.id}: action {shown}"
    if not isinstance(result, StepResult):
        raise Broken(f"{where} returned a {type(result).__name__}, not a StepResult")
    if not isinstance(result.observation, str) or not result.observation.strip():
        raise Broken(f"{where} was answered with nothing to read")
    if len(result.observation) > LONGEST_ANSWER:
        raise Broken(f"{where} was answered with {len(result.observation):,} characters")
    if not isfinite(result.reward):
        raise Broken(f"{where} was rewarded with {result.reward}")


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, Broken) else f"{type(error).__name__}: {error}"
