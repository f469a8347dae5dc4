"""Worked episodes with items that exist nowhere, so that they are in no split.

The first gets and crafts, the second crafts on the way, the third shows what to write where a recipe asks
for a kind of item.

They are played, not written, so what they show is what the game says.
"""

from functools import cache

from farhorizon.core.record import Task
from farhorizon.envs.base import Episode, Example
from farhorizon.envs.textcraft.game import Game
from farhorizon.envs.textcraft.recipes import Recipe, RecipeBook

_RECIPES = (
    Recipe("copper bell", 1, (("copper ingot", 3),)),
    Recipe("copper wire", 4, (("copper ingot", 1),)),
    Recipe("tin pipe", 2, (("tin ingot", 1),)),
    Recipe("tin flute", 1, (("tin pipe", 3), ("cork", 1))),
    Recipe("willow board", 2, (("willow trunk", 1),)),
    Recipe("cedar board", 2, (("cedar trunk", 1),)),
    Recipe("raft", 1, (("boards", 4), ("rope", 2))),
)
_TAGS = {"willow board": "boards", "cedar board": "boards"}
_PLAYED = (
    (
        "copper bell",
        ("copper wire", "copper bell"),
        ("get 3 copper ingot", "craft 1 copper bell using 3 copper ingot"),
    ),
    (
        "tin flute",
        ("tin flute", "copper bell", "tin pipe"),
        (
            "get 2 tin ingot",
            "craft 2 tin pipe using 1 tin ingot",
            "craft 2 tin pipe using 1 tin ingot",
            "get 1 cork",
            "craft 1 tin flute using 3 tin pipe, 1 cork",
        ),
    ),
    (
        "raft",
        ("willow board", "raft", "tin pipe"),
        (
            "get 2 willow trunk",
            "craft 2 willow board using 1 willow trunk",
            "craft 2 willow board using 1 willow trunk",
            "get 2 rope",
            "craft 1 raft using 4 willow board, 2 rope",
        ),
    ),
)


@cache
def examples() -> tuple[Example, ...]:
    """All examples, simplest first."""
    book = RecipeBook(_RECIPES, _TAGS, tuple(sorted({recipe.output for recipe in _RECIPES})))
    return tuple(_play(book, goal, outputs, actions) for goal, outputs, actions in _PLAYED)


def _play(book: RecipeBook, goal: str, outputs: tuple[str, ...], actions: tuple[str, ...]) -> Example:
    recipes = [recipe.text for output in outputs for recipe in book.by_output[output]]
    task = Task(f"example/{goal}", "textcraft", "example", data={"goal": goal, "recipes": recipes})
    game = Game(lambda task: book)
    observations = [game.reset(task, Episode(seed=0, group_seed=0, update=0, horizon=len(actions)))]
    results = [game.step(action) for action in actions]
    if not results[-1].success:
        raise AssertionError(f"the example for {goal} ends with: {results[-1].observation}")
    observations += [result.observation for result in results[:-1]]
    return Example(tuple(observations), actions)
