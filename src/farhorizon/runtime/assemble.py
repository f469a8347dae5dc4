"""From a recipe to the pieces of a run."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from farhorizon.config.recipe import Recipe
from farhorizon.core.ledger import Ledger
from farhorizon.core.taskstats import TaskStats
from farhorizon.engines.local import LocalEngine
from farhorizon.envs.base import World
from farhorizon.learners.torch_learner import TorchLearner
from farhorizon.models.load import load_model, load_tokenizer, resolve
from farhorizon.rollout.driver import Driver
from farhorizon.runtime.report import Reporter
from farhorizon.runtime.warmstart import micro_start
from farhorizon.tasks.base import TaskSource
from farhorizon.tasks.horizon import Horizon


@dataclass(eq=False)
class Parts:
    """Everything a runtime wires together."""

    recipe: Recipe
    world: World
    tokenizer: Any
    engine: LocalEngine
    driver: Driver
    tasks: TaskSource
    horizon: Horizon
    reward: Callable[[list[Any]], list[Any]]
    learner: TorchLearner
    stats: TaskStats
    ledger: Ledger


def starting_model(recipe: Recipe, report: Reporter) -> str | Path:
    """Where the policy starts: a directory or a hub id. `micro` is made for the recipe's environment if need be."""
    if recipe.models.policy == "micro":
        return micro_start(recipe, report)
    return resolve(recipe.models.policy)


def assemble(recipe: Recipe, source: str | Path, report: Reporter, check_stop: Callable[[], None]) -> Parts:
    """Build every component of a recipe.

    Args:
        source: weights of the policy: where the run starts, or a checkpoint it continues from.
        check_stop: raises `Interrupted` when the run was asked to stop.
    """
    torch.set_num_threads(recipe.runtime.threads or os.cpu_count() or 1)
    world = recipe.env.build()
    tokenizer = load_tokenizer(source)
    learner = recipe.learner.build(
        model=load_model(source, torch.float32),
        objective=recipe.objective.build(),
        credit=recipe.credit.build(),
        temperature=recipe.sampling.temperature,
        reference=_reference(recipe, report) if "logp_ref" in recipe.objective.needs else None,
        check_stop=check_stop,
    )
    driver, engine = play_with(recipe, world, tokenizer, source)
    return Parts(
        recipe=recipe,
        world=world,
        tokenizer=tokenizer,
        engine=engine,
        driver=driver,
        tasks=recipe.tasks.build(world=world, seed=recipe.runtime.seed),
        horizon=recipe.horizon.build(),
        reward=recipe.reward.build(),
        learner=learner,
        stats=TaskStats(),
        ledger=Ledger(),
    )


def play_with(recipe: Recipe, world: World, tokenizer: Any, source: str | Path) -> tuple[Driver, LocalEngine]:
    """A driver and the engine behind it, for a model that only plays."""
    config = recipe.rollout.engine
    engine = config.build(model=load_model(source, torch.float32), deterministic=recipe.runtime.deterministic)
    agent = recipe.agent.build(tokenizer=tokenizer, world=world)
    driver = Driver(world=world, agent=agent, engine=engine, limits=recipe.rollout, seed=recipe.runtime.seed)
    return driver, engine


def _reference(recipe: Recipe, report: Reporter) -> Any:
    source = recipe.models.reference
    model = load_model(starting_model(recipe, report) if source is None else resolve(source), torch.float32)
    return model.requires_grad_(False)
