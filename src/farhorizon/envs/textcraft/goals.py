"""From a goal to what a task shows: one minimal crafting tree, its distractors, and the actions that solve it.

A tree gives every item it needs the recipe of least depth and, among those, of fewest actions. Depth falls
along each recipe, so the mutual recipes of dyes, wools and carpets cannot lead it in a circle. Where a
recipe asks for a tag (`planks`), the task draws which of its easiest items the tree makes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from farhorizon.envs.textcraft.actions import MOST
from farhorizon.envs.textcraft.draws import rank
from farhorizon.envs.textcraft.recipes import Recipe, RecipeBook, craft_text

BOOKS = 64
"""Recipe books whose trees are remembered."""


@dataclass(frozen=True)
class Tree:
    """How to make one goal item from base items."""

    crafts: tuple[tuple[Recipe, int], ...]
    """Recipes with the times each is crafted, ingredients before what they make."""
    gets: Mapping[str, int]
    """Base items with their totals."""
    members: Mapping[str, str]
    """The item that stands for each tag."""

    @property
    def actions(self) -> tuple[str, ...]:
        """Actions that make the goal. A base item is got when it is first needed, all of it at once or as
        much as can be carried."""
        remaining, carried = dict(self.gets), dict.fromkeys(self.gets, 0)
        actions: list[str] = []
        for recipe, times in self.crafts:
            inputs = [(self.members.get(name, name), count) for name, count in recipe.inputs]
            for _ in range(times):
                for item, count in inputs:
                    if item not in carried:
                        continue
                    if carried[item] < count:
                        got = min(remaining[item], MOST - carried[item])
                        actions.append(f"get {got} {item}")
                        carried[item] += got
                        remaining[item] -= got
                    carried[item] -= count
                actions.append(craft_text(recipe.count, recipe.output, inputs))
        return tuple(actions)


def tree(book: RecipeBook, goal: str, task_id: str = "") -> Tree:
    """The tree of a goal; the task id decides which items stand for tags."""
    members = {
        tag: min(easiest, key=lambda item: rank("member", task_id, item)) for tag, easiest in _easiest(book).items()
    }
    return _grow(book, goal, _best(book), members)


def distractors(book: RecipeBook, task_id: str, crafts: tuple[Recipe, ...], least: int, most: int) -> list[Recipe]:
    """Recipes that the tree does not need, their number drawn from `least` to `most`.

    As in the published package they use ingredients that the tree uses too. Ours: none makes an item that
    the tree makes, or another of a tag the tree asks for; where too few are left, any others fill up.
    """
    wanted = least + rank("distractors", task_id) % (most - least + 1)
    if not wanted:
        return []
    inputs = {name: None for recipe in crafts for name, _ in recipe.inputs}
    made = {recipe.output for recipe in crafts}

    def unneeded(recipe: Recipe) -> bool:
        return recipe.output not in made and book.tags.get(recipe.output) not in inputs

    related = {recipe: None for name in inputs for recipe in book.uses[name] if unneeded(recipe)}
    chosen = sorted(related, key=lambda recipe: rank("distractor", task_id, recipe.text))[:wanted]
    others = [recipe for recipe in book.recipes if recipe not in related and unneeded(recipe)]
    for place in range(min(wanted - len(chosen), len(others))):
        chosen.append(others.pop(rank("filler", task_id, str(place)) % len(others)))
    return chosen


def _grow(book: RecipeBook, goal: str, best: Mapping[str, Recipe], members: Mapping[str, str]) -> Tree:
    """Take the deepest item still needed, until only base items are left: by then all uses of it are known."""
    needed = {goal: 1}
    crafts: list[tuple[Recipe, int]] = []
    while any(book.depth[item] for item in needed):
        item = max(needed, key=lambda item: book.depth[item])
        recipe = best[item]
        times = ceil(needed.pop(item) / recipe.count)
        crafts.append((recipe, times))
        for name, count in recipe.inputs:
            member = members.get(name, name)
            needed[member] = needed.get(member, 0) + count * times
    crafts.reverse()
    return Tree(tuple(crafts), needed, members)


@lru_cache(maxsize=BOOKS)
def _best(book: RecipeBook) -> Mapping[str, Recipe]:
    """The recipe a tree uses for each item: least depth, then fewest actions for one, then first in order."""
    depth, first = book.depth, _shallowest(book)
    best: dict[str, Recipe] = {}
    for item in sorted(book.by_output, key=lambda item: depth[item]):
        shallow = [r for r in book.by_output[item] if 1 + max(depth[name] for name, _ in r.inputs) == depth[item]]
        best[item] = min(shallow, key=lambda r: len(_grow(book, item, {**best, item: r}, first).actions))
    return best


def _shallowest(book: RecipeBook) -> dict[str, str]:
    """An item of least depth for each tag."""
    return {tag: min(items, key=lambda item: book.depth[item]) for tag, items in book.kinds.items()}


@lru_cache(maxsize=BOOKS)
def _easiest(book: RecipeBook) -> Mapping[str, tuple[str, ...]]:
    """Items of each tag that take the least depth and the fewest actions."""
    cost = {
        item: (book.depth[item], len(_grow(book, item, _best(book), _shallowest(book)).actions))
        for items in book.kinds.values()
        for item in items
    }
    return {
        tag: tuple(item for item in items if cost[item] == min(cost[other] for other in items))
        for tag, items in book.kinds.items()
    }
