"""Where cells start from, made once before any of them, so that they neither wait for each other nor pay for it."""

from collections.abc import Callable, Iterable

from farhorizon.config.recipe import Recipe
from farhorizon.runtime.assemble import starting_model
from farhorizon.runtime.report import Silent


class _Sayer(Silent):
    """Passes on what is worth reading."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def say(self, message: str) -> None:
        self._say(message)


def make(recipes: Iterable[Recipe], say: Callable[[str], None]) -> None:
    """Make or fetch the starting model of each recipe.

    Raises:
        UserError: one cannot be had.
    """
    done = []
    for recipe in recipes:
        decisive = (recipe.models, recipe.env, recipe.agent, recipe.sampling)
        if decisive not in done:
            done.append(decisive)
            starting_model(recipe, _Sayer(say))
