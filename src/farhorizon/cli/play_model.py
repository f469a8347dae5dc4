"""`farhorizon play --as MODEL`: one episode by a model, through the same driver as training."""

import asyncio

from farhorizon.cli.play import find_task
from farhorizon.cli.progress import Progress
from farhorizon.cli.who import find_weights, recipe_on, run_directory
from farhorizon.config.recipe import read
from farhorizon.core.errors import UserError
from farhorizon.engines.base import Sampling
from farhorizon.rollout.driver import Circumstances
from farhorizon.tasks.base import Assignment
from farhorizon.viewer.text import as_text


def play_model(env: str, name: str, task_id: str | None, split: str, turns: int, seed: int) -> None:
    """Play and print one episode; a run directory brings its recipe and its last checkpoint."""
    values, run = [f"runtime.seed={seed}"], run_directory(name)
    defaults = recipe_on(env, ["sampling.temperature=0.5", *values])
    recipe = defaults if run is None else read(run / "recipe.toml", values)
    if recipe.env.kind != env:
        raise UserError(f'run {run} was trained on "{recipe.env.kind}", not on "{env}"')
    world = recipe.env.build()
    task = find_task(world, split, task_id)
    with Progress() as report:
        source = find_weights(name, world, recipe, "last", report).source
    from farhorizon.models.load import load_tokenizer
    from farhorizon.runtime.assemble import play_with

    driver, engine = play_with(recipe, world, load_tokenizer(source), source)
    given = Circumstances("play", 0, turns, Sampling(recipe.sampling.temperature), training=False)
    try:
        groups = asyncio.run(driver.groups([Assignment(task, 1)], given))
    finally:
        engine.close()
    print(as_text(groups[0].trajectories[0]))
