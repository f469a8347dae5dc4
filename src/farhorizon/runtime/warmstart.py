"""The common start of every study: a micro model that acts well enough to be reinforced, and no better.

A model that never acts validly has nothing to reinforce, and one that has mastered the task nothing to learn. So
the model is trained by cross-entropy on the oracle's episodes and played every few steps; the first one whose sampled
success on training tasks lies in the band is kept, cached under the hash of everything that decides it.
"""

import asyncio
import copy
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from farhorizon.config.agent import AppendOnly
from farhorizon.config.base import Component
from farhorizon.config.engine import Local
from farhorizon.config.learner import AdamW
from farhorizon.config.models import MicroConfig
from farhorizon.config.recipe import Recipe
from farhorizon.config.tables import Rollout
from farhorizon.core.errors import UserError
from farhorizon.core.record import Context, Origin, Task
from farhorizon.core.seeds import Key
from farhorizon.engines.base import Sampling
from farhorizon.engines.local import LocalEngine
from farhorizon.envs.base import World
from farhorizon.evaluation.evaluate import evaluate
from farhorizon.learners.torch_learner import TorchLearner
from farhorizon.models.fetch import locked
from farhorizon.models.load import save_model
from farhorizon.models.micro import WorldStamp, build_micro, micro_dir, micro_hash
from farhorizon.rollout.demonstrate import demonstrate
from farhorizon.rollout.driver import Circumstances, Driver
from farhorizon.runtime.renaming import RARE, Renaming
from farhorizon.runtime.report import Reporter

BAND = (0.1, 0.3)
"""Sampled success on training tasks, below and above which a start is no good."""
BATCH = 8
"""Oracle episodes per step."""
PERIOD = 300
"""Steps between two plays; halved, from the weights of the last play below the band, when one overshoots."""
SPARE = 1
"""Turns beyond the oracle's longest path, and tokens beyond its longest action, when playing."""
EPISODES = 128
"""Episodes per play: a standard error of 0.035 at 0.2."""
MAX_STEPS = 12000
"""After which a start is given up."""
LEARNER = AdamW(learning_rate=2e-3, warmup_updates=50, weight_decay=0.01, tokens_per_microbatch=16384)


@dataclass(frozen=True, eq=False)
class _School:
    """One world as it is taught and played."""

    world: World
    driver: Driver
    tasks: Sequence[Task]
    """Training tasks with an oracle."""
    lessons: Sequence[Context]
    """The oracle's episodes."""
    renaming: Renaming
    """Trades names, so that the model learns to read its prompt."""
    horizon: int
    """Turns allowed when playing: the oracle's longest path and `SPARE` more."""


def micro_start(recipe: Recipe, report: Reporter) -> Path:
    """The micro start of a recipe's own environment, made when it is not cached."""
    return make_micro([recipe.env], recipe.agent, recipe.models.micro, report, recipe.sampling.temperature)


def make_micro(
    envs: Sequence[Component], agent: AppendOnly, config: MicroConfig, report: Reporter, temperature: float = 1.0
) -> Path:
    """A directory with the start for these environments together.

    Args:
        temperature: at which the policy is defined, and the start's success therefore measured. Lessons are taught
            at temperature 1.

    Raises:
        UserError: an environment has no oracle, or the band is not reached.
    """
    envs = sorted(envs, key=lambda env: env.model_dump_json())
    directory = start_directory(envs, agent, config, temperature)
    if (directory / "start.json").exists():
        return directory
    directory.parent.mkdir(parents=True, exist_ok=True)
    threads = torch.get_num_threads()
    with locked(directory.parent / f".{directory.name}.lock", report.say):
        if not (directory / "start.json").exists():
            report.say(f"making the micro start of {', '.join(env.kind for env in envs)} (once; it is cached)")
            torch.set_num_threads(1)  # rounding, and so the start, must not depend on the number of cores
            try:
                _make([env.build() for env in envs], agent, config, temperature, directory, report)
            finally:
                torch.set_num_threads(threads)
    return directory


def start_directory(
    envs: Sequence[Component], agent: AppendOnly, config: MicroConfig, temperature: float = 1.0
) -> Path:
    """Where the start for these environments is cached, made or not."""
    worlds = [env.build() for env in envs]
    stamps = [
        WorldStamp(world.name, world.version, env.model_dump(mode="json"))
        for world, env in zip(worlds, envs, strict=True)
    ]
    training = {
        "agent": agent.model_dump(mode="json", serialize_as_any=True),
        "learner": LEARNER.model_dump(mode="json"),
        "band": BAND,
        "batch": BATCH,
        "period": PERIOD,
        "episodes": EPISODES,
        "rare": RARE,
        "temperature": temperature,
        "spare": SPARE,
        "seed": 0,
    }
    return micro_dir(micro_hash(config, stamps, training))


def _make(
    worlds: Sequence[World],
    agent: AppendOnly,
    config: MicroConfig,
    temperature: float,
    directory: Path,
    report: Reporter,
) -> None:
    model, tokenizer = build_micro(config, _texts(worlds, agent), seed=0)
    engine = LocalEngine(Local(), model=copy.deepcopy(model), deterministic=True)
    learner = TorchLearner(LEARNER, model=model, temperature=1.0)
    try:
        with asyncio.Runner() as runner:
            schools = [_school(world, agent, config, tokenizer, engine, runner) for world in worlds]
            steps, success = _teach(learner, engine, schools, temperature, runner, report)
    finally:
        engine.close()
    aside = directory.with_name(f".{directory.name}.partial")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir()
        save_model(model, tokenizer, aside)
        facts = {"worlds": [world.name for world in worlds], "steps": steps, "success": success}
        (aside / "start.json").write_text(json.dumps(facts) + "\n")
        shutil.rmtree(directory, ignore_errors=True)
        os.replace(aside, directory)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    report.say(f"micro start: sampled success {success:.2f} after {steps} steps, in {directory}")


def _teach(
    learner: TorchLearner,
    engine: LocalEngine,
    schools: Sequence[_School],
    temperature: float,
    runner: asyncio.Runner,
    report: Reporter,
) -> tuple[int, float]:
    done, period = 0, PERIOD
    below = _saved(learner)
    report.begin("teaching micro", 0)
    while done < MAX_STEPS:
        for step in range(done, done + period):
            learner.supervised_step(_batch(schools, step), step)
        success = _play(learner, engine, schools, temperature, done + period, runner)
        report.say(f"micro start: step {done + period}, sampled success {success:.2f}")
        if success > BAND[1] and period > 1:
            _restore(learner, below)
            period //= 2
            continue
        done += period
        if success >= BAND[0]:
            return done, success
        below = _saved(learner)
    raise UserError(
        f"micro did not reach a sampled success of {BAND[0]} in {MAX_STEPS} steps; try fewer or easier tasks"
    )


def _play(
    learner: TorchLearner,
    engine: LocalEngine,
    schools: Sequence[_School],
    temperature: float,
    step: int,
    runner: asyncio.Runner,
) -> float:
    """Mean over the worlds of the success of sampled episodes on training tasks."""
    engine.load_weights(learner.weights(), step)
    rates = []
    for school in schools:
        draw = Key(0, "plays", update=step).generator()
        tasks = [school.tasks[index] for index in draw.integers(len(school.tasks), size=EPISODES // len(schools))]
        given = Circumstances("warmstart", step, school.horizon, Sampling(temperature), step, training=False)
        rates.append(runner.run(evaluate(school.driver, tasks, 1, given)).overall.rate)
    return sum(rates) / len(rates)


def _school(
    world: World,
    agent: AppendOnly,
    config: MicroConfig,
    tokenizer: Any,
    engine: LocalEngine,
    runner: asyncio.Runner,
) -> _School:
    paths = [(task, path) for task in world.tasks("train") if (path := world.oracle(task))]
    if not paths:
        raise UserError(f'environment "{world.name}" has no oracle; micro learns its first steps from one')
    player = agent.build(tokenizer=tokenizer, world=world)
    lessons = [
        context
        for task, path in paths
        for context in runner.run(demonstrate(world, player, task, path))
        if len(context) <= config.context_tokens
    ]
    if not lessons:
        raise UserError(
            f'no solution of environment "{world.name}" fits into {config.context_tokens} tokens; '
            "raise [models.micro] context_tokens"
        )
    longest = max(len(s.token_ids) for lesson in lessons for s in lesson.segments if s.origin is Origin.DEMONSTRATED)
    limits = Rollout(max_turn_tokens=longest + SPARE, context_tokens=config.context_tokens)
    driver = Driver(world=world, agent=player, engine=engine, limits=limits, seed=0)
    horizon = SPARE + max(len(path) for _, path in paths)
    return _School(world, driver, [task for task, _ in paths], lessons, Renaming(tokenizer, lessons), horizon)


def _batch(schools: Sequence[_School], step: int) -> list[Context]:
    """Lessons of one step, drawn over all worlds, with the names of each traded."""
    lessons = [(school, lesson) for school in schools for lesson in school.lessons]
    draw = Key(0, "lessons", update=step).generator()
    chosen = [lessons[index] for index in draw.choice(len(lessons), size=min(BATCH, len(lessons)), replace=False)]
    return [
        school.renaming(lesson, Key(0, "names", update=step, member=place))
        for place, (school, lesson) in enumerate(chosen)
    ]


def _texts(worlds: Sequence[World], agent: AppendOnly) -> list[str]:
    """Every text of the worlds, and what the agent writes around them."""
    texts = ["\n", "> ", *(text for world in worlds for text in world.texts())]
    for world in worlds:
        texts += [world.instructions(), "Nothing was written. Write one action."]
        texts += [text for example in world.examples() for text in (*example.observations, *example.actions)]
    return texts


def _saved(learner: TorchLearner) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    return copy.deepcopy(learner.weights()), copy.deepcopy(learner.state_dict())


def _restore(learner: TorchLearner, saved: tuple[dict[str, torch.Tensor], dict[str, Any]]) -> None:
    learner.model.load_state_dict(saved[0])
    learner.load_state_dict(copy.deepcopy(saved[1]))
