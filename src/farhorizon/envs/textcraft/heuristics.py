"""Rules that play without understanding the goal, for a policy to be compared with. Ours."""

from collections.abc import Iterator, Mapping
from itertools import cycle

from farhorizon.envs.base import Environment
from farhorizon.envs.players import MakePlayer
from farhorizon.envs.textcraft.actions import Craft, Get, Inventory, parse


class FirstRecipe:
    """Gets each ingredient of the first command shown in the amount named, crafts it, and begins again. Refusals do
    not stop it, and it never reads the goal."""

    def __init__(self) -> None:
        self._plan: Iterator[str] | None = None

    def act(self, observation: str, environment: Environment) -> str:
        if self._plan is None:
            self._plan = cycle(_actions(observation))
        return next(self._plan)


HEURISTICS: Mapping[str, MakePlayer] = {"first_recipe": lambda task, key: FirstRecipe()}
"""What both kinds of TextCraft offer."""


def _actions(opening: str) -> list[str]:
    commands = (parse(line) for line in opening.splitlines())
    first = next((command for command in commands if isinstance(command, Craft)), None)
    if first is None:
        return [Inventory.text]
    return [*(Get(count, item).text for item, count in first.inputs), first.text]
