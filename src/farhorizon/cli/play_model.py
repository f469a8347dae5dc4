"""`farhorizon play --as MODEL`: one episode by a model, through the same driver as training."""

import asyncio
from pathlib import Path

from farhorizon.cli.play import find_task, run_directory
from farhorizon.config.recipe import Recipe, parse, read
from farhorizon.core.errors import UserError
from farhorizon.core.rundir import RunDirectory
from farhorizon.engines.base import Sampling
from farhorizon.models.load import load_tokenizer, resolve
from farhorizon.rollout.driver import Circumstances
from farhorizon.runtime.assemble import play_with
from farhorizon.tasks.base import Assignment
from farhorizon.viewer.text import as_text


def play_model(env: str, name: str, task_id: str | None, split: str, turns: int, seed: int) -> None:
    """Play and print one episode; a run directory brings its recipe and its last checkpoint."""
    recipe, source = _recipe(env, name, seed)
    world = recipe.env.build()
    task = find_task(world, split, task_id)
    driver, engine = play_with(recipe, world, load_tokenizer(source), source)
    given = Circumstances("play", 0, turns, Sampling(recipe.sampling.temperature), training=False)
    try:
        groups = asyncio.run(driver.groups([Assignment(task, 1)], given))
    finally:
        engine.close()
    print(as_text(groups[0].trajectories[0]))


def _recipe(env: str, name: str, seed: int) -> tuple[Recipe, str | Path]:
    path = run_directory(name)
    seeded = [f"runtime.seed={seed}"]
    if path is None:
        return parse({"env": {"kind": env}, "sampling": {"temperature": 0.5}, "runtime": {"seed": seed}}), resolve(name)
    run = RunDirectory.open(path)
    recipe = read(run.recipe, seeded)
    if recipe.env.kind != env:
        raise UserError(f'run {path} was trained on "{recipe.env.kind}", not on "{env}"')
    checkpoint = run.last_checkpoint(print)
    if checkpoint is None:
        raise UserError(f"run {path} has no whole checkpoint yet")
    return recipe, checkpoint
