"""`farhorizon play`"""

from pathlib import Path
from typing import Annotated, Any

import typer

from farhorizon.cli.extras import require_torch
from farhorizon.config.registry import resolve
from farhorizon.core.errors import UserError
from farhorizon.core.record import Task
from farhorizon.core.seeds import Key
from farhorizon.envs.base import Episode, World
from farhorizon.envs.players import OraclePlayer, RandomPlayer


def play(
    env: Annotated[str, typer.Argument(help="Environment, as recipes name it.")],
    as_: Annotated[
        str,
        typer.Option("--as", help="person, oracle, random, a run directory, or a model (name, directory, hub id)."),
    ] = "person",
    task: Annotated[str | None, typer.Option(help="Task id; default: the first of the split.")] = None,
    split: Annotated[str, typer.Option(help="Split the task is taken from.")] = "eval",
    turns: Annotated[int, typer.Option(min=1, help="Maximum turns.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the random player, or of the model's sampling.")] = 0,
) -> None:
    """Play one episode and print it."""
    if as_ not in ("person", "oracle", "random"):
        require_torch()
        from farhorizon.cli.play_model import play_model

        play_model(env, as_, task, split, turns, seed)
        return
    world = resolve("env", env).build()
    chosen = find_task(world, split, task)
    player: Any = {
        "person": lambda: _Person(),
        "oracle": lambda: OraclePlayer(world, chosen),
        "random": lambda: RandomPlayer(Key(seed, "play")),
    }[as_]()
    environment = world.make()
    if as_ == "person":
        print(f"{world.instructions()}\n")
    observation = environment.reset(
        chosen, Episode(seed=seed, group_seed=seed, update=0, horizon=turns, training=False)
    )
    try:
        _play(environment, player, str(observation), turns)
    finally:
        environment.close()


def find_task(world: World, split: str, task_id: str | None) -> Task:
    """The task of that id in the split, or its first."""
    tasks = world.tasks(split)
    if task_id is None:
        return tasks[0]
    for task in tasks:
        if task.id == task_id:
            return task
    raise UserError(f'"{world.name}" has no task "{task_id}" in split {split}; the first is "{tasks[0].id}"')


def _play(environment: Any, player: Any, observation: str, turns: int) -> None:
    print(observation)
    for _ in range(turns):
        action = player.act(observation, environment)
        if not isinstance(player, _Person):
            print(f"> {action}")
        result = environment.step(action)
        observation = result.observation
        print(observation)
        if result.terminated or result.truncated:
            break
    else:
        print(f"(no turns left after {turns})")
        return
    print("(solved)" if result.success else "(not solved)")


class _Person:
    """Asks whoever sits at the terminal."""

    def act(self, observation: str, environment: Any) -> str:
        try:
            return input("> ")
        except EOFError:
            raise typer.Exit from None


def run_directory(name: str) -> Path | None:
    """The path when `name` is a run."""
    path = Path(name)
    return path if (path / "recipe.toml").exists() else None
