"""Players that are not models: they look at an observation and answer with an action.

For `play` and `eval`, for checking environments, and as the simplest things that can be put in an agent's place.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from farhorizon.core.errors import UserError
from farhorizon.core.record import Task
from farhorizon.core.seeds import Key, uniforms
from farhorizon.envs.base import Environment, Episode, StepResult, World

T = TypeVar("T")


class Player(Protocol):
    """Anything that chooses actions; one is made for each episode."""

    def act(self, observation: str, environment: Environment) -> str:
        """The next action."""


MakePlayer = Callable[[Task, Key], Player]
"""Makes a player for one episode, from its task and the key of its noise."""


class ScriptedPlayer:
    """Plays given actions in order, then empty ones."""

    def __init__(self, actions: Sequence[str]) -> None:
        self._actions = tuple(actions)
        self._turn = 0

    def act(self, observation: str, environment: Environment) -> str:
        self._turn += 1
        return self._actions[self._turn - 1] if self._turn <= len(self._actions) else ""


class OraclePlayer(ScriptedPlayer):
    """Plays the world's own solution of a task."""

    def __init__(self, world: World, task: Task) -> None:
        actions = world.oracle(task)
        if actions is None:
            raise UserError(f"{world.name} knows no solution of task {task.id}; play another task or another player")
        super().__init__(actions)


class RandomPlayer:
    """Draws uniformly from the available actions; where none are listed, from the words of the observation.

    The noise of each turn is keyed, so a player made with the same key plays the same way.
    """

    def __init__(self, key: Key) -> None:
        self._key = key
        self._turn = 0

    def act(self, observation: str, environment: Environment) -> str:
        draw = float(uniforms([self._key.digest()], [self._turn])[0])
        self._turn += 1
        choices = environment.available_actions()
        if choices is None:
            choices = observation.split()
        return choices[int(draw * len(choices))] if choices else ""


def players(world: World) -> dict[str, MakePlayer]:
    """Everyone who can play a world without a model, by name."""
    return {
        **world.heuristics(),
        "oracle": lambda task, key: OraclePlayer(world, task),
        "random": lambda task, key: RandomPlayer(key),
    }


@dataclass(frozen=True)
class Played:
    """An episode as it was played."""

    opening: str
    """First observation."""
    steps: tuple[tuple[str, StepResult], ...]
    """Actions and what followed each."""

    @property
    def success(self) -> bool | None:
        """As declared at the end; None where nothing was played or declared."""
        return self.steps[-1][1].success if self.steps else None


async def play(environment: Environment, task: Task, player: Player, episode: Episode) -> Played:
    """Play one episode to its end or horizon. The environment's methods may be plain or `async`."""
    opening = observation = await settled(environment.reset(task, episode))
    steps: list[tuple[str, StepResult]] = []
    while len(steps) < episode.horizon:
        action = player.act(observation, environment)
        result = await settled(environment.step(action))
        steps.append((action, result))
        if result.terminated or result.truncated:
            break
        observation = result.observation
    return Played(opening, tuple(steps))


async def settled(value: T | Awaitable[T]) -> T:
    """The value itself, awaited where it is awaitable."""
    if inspect.isawaitable(value):
        return await value
    return value
