"""`farhorizon play`"""

import asyncio
from typing import Annotated

import typer

from farhorizon.config.registry import resolve
from farhorizon.core.errors import UserError
from farhorizon.core.record import Task
from farhorizon.core.seeds import Key
from farhorizon.envs.base import Environment, Episode, World
from farhorizon.envs.players import Player, players, settled


def play(
    env: Annotated[str, typer.Argument(help="Environment, as recipes name it.")],
    as_: Annotated[
        str,
        typer.Option(
            "--as",
            help="person, oracle, random, a heuristic of the environment, a run, or a model (name, directory, hub id).",
        ),
    ] = "person",
    task: Annotated[str | None, typer.Option(help="Task id; default: the first of the split.")] = None,
    split: Annotated[str, typer.Option(help="Split the task is taken from.")] = "eval",
    turns: Annotated[int, typer.Option(min=1, help="Maximum turns.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the random player, or of the model's sampling.")] = 0,
) -> None:
    """Play one episode and print it."""
    world = resolve("env", env).build()
    who = {**players(world), "person": lambda task, key: _Person()}
    if as_ not in who:
        from farhorizon.cli.play_model import play_model

        play_model(env, as_, task, split, turns, seed)
        return
    chosen = find_task(world, split, task)
    asyncio.run(_play(world, chosen, who[as_](chosen, Key(seed, "play")), turns, seed))


def find_task(world: World, split: str, task_id: str | None) -> Task:
    """The task of that id in the split, or its first."""
    tasks = world.tasks(split)
    if not tasks:
        raise UserError(f'"{world.name}" has no tasks in split {split}')
    if task_id is None:
        return tasks[0]
    for task in tasks:
        if task.id == task_id:
            return task
    raise UserError(f'"{world.name}" has no task "{task_id}" in split {split}; the first is "{tasks[0].id}"')


async def _play(world: World, task: Task, player: Player, turns: int, seed: int) -> None:
    person = isinstance(player, _Person)
    if person:
        print(f"{world.instructions()}\n")
    environment = world.make()
    try:
        episode = Episode(seed=seed, group_seed=seed, update=0, horizon=turns, training=False)
        observation = await settled(environment.reset(task, episode))
        print(observation)
        for _ in range(turns):
            action = player.act(observation, environment)
            if not person:
                print(f"> {action}")
            result = await settled(environment.step(action))
            observation = result.observation
            print(observation)
            if result.terminated or result.truncated:
                print("(solved)" if result.success else "(not solved)")
                return
        print(f"(no turns left after {turns})")
    finally:
        await settled(environment.close())


class _Person:
    """Asks whoever sits at the terminal."""

    def act(self, observation: str, environment: Environment) -> str:
        try:
            return input("> ")
        except EOFError:
            raise typer.Exit from None
