"""The game: an inventory, base items for the taking, and recipes that turn some into others.

As in the published package: `get` gives only what no recipe makes. `craft` applies one recipe once, any
recipe that exists and not only those shown. Each ingredient is written with the recipe's own amount, in any
order, and one item stands for all of a tag. The number said to be made does not matter.

Ours: a wrong or missing number made is corrected and reported as `normalised`; that no such recipe exists is
told before what is missing for it; what is carried is limited (`actions.MOST`); the inventory is listed in
alphabetical order, so that equal states read the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from typing import Any

from farhorizon.core.errors import UserError
from farhorizon.core.record import Task
from farhorizon.core.values import Json
from farhorizon.envs.base import Environment, Episode, StepResult
from farhorizon.envs.textcraft import phrases
from farhorizon.envs.textcraft.actions import MOST, Craft, Get, parse
from farhorizon.envs.textcraft.recipes import Recipe, RecipeBook, craft_text


class Refused(Exception):
    """An action that changes nothing; the message is shown to the agent."""


class Game(Environment):
    """Plays one task at a time. There is no noise: the task alone decides the episode."""

    def __init__(self, book_of: Callable[[Task], RecipeBook]) -> None:
        """Play tasks, each with the recipes that `book_of` gives it."""
        self._book_of = book_of
        self._book = RecipeBook((), {}, ())
        self._task: Task | None = None
        self._goal = ""
        self._shown: tuple[Recipe, ...] = ()
        self._inventory: dict[str, int] = {}
        self._done = False
        self._observation = ""

    def reset(self, task: Task, episode: Episode) -> str:
        self._begin(task)
        return self._observation

    def step(self, action: str) -> StepResult:
        if self._task is None:
            raise RuntimeError("step before reset")
        if self._done:
            return self._answer(phrases.OVER, action, action, valid=False)
        parsed = parse(action)
        if isinstance(parsed, str):
            return self._answer(parsed, action, action, valid=False)
        try:
            if isinstance(parsed, Get):
                return self._answer(self._get(parsed), action, parsed.text)
            if isinstance(parsed, Craft):
                recipe = self._craft(parsed)
                executed = craft_text(recipe.count, recipe.output, parsed.inputs)
                self._done = recipe.output == self._goal
                observation = phrases.crafted(recipe.count, recipe.output)
                return self._answer(observation, action, executed, reward=float(self._done))
            return self._answer(phrases.inventory(sorted(self._inventory.items())), action, parsed.text)
        except Refused as refusal:
            return self._answer(str(refusal), action, parsed.text, valid=False)

    def snapshot(self) -> Json:
        if self._task is None:
            raise RuntimeError("snapshot before reset")
        return {
            "task": asdict(self._task),
            "inventory": dict(sorted(self._inventory.items())),
            "done": self._done,
            "observation": self._observation,
        }

    def restore(self, snapshot: Json) -> str:
        self._begin(Task(**snapshot["task"]))
        self._inventory = dict(snapshot["inventory"])
        self._done = snapshot["done"]
        self._observation = snapshot["observation"]
        return self._observation

    def available_actions(self) -> Sequence[str]:
        """`inventory`; `get` for each base item a shown recipe uses, in the amounts used; the shown recipes
        whose ingredients are there, with each carried item that can stand for a tag."""
        if self._done:
            return ()
        gets = {
            f"get {count} {name}": None
            for recipe in self._shown
            for name, count in recipe.inputs
            if name in self._book.base and self._fits(name, count)
        }
        crafts = {text: None for recipe in self._shown for text in self._possible(recipe)}
        return ("inventory", *gets, *crafts)

    def state_key(self) -> str:
        carried = ",".join(f"{item}:{count}" for item, count in sorted(self._inventory.items()))
        return f"done|{carried}" if self._done else carried

    def _begin(self, task: Task) -> None:
        recipes, goal = task.data["recipes"], task.data["goal"]
        self._book = self._book_of(task)
        unknown = next((text for text in recipes if text not in self._book.by_text), None)
        if unknown is not None:
            raise UserError(f'task {task.id}: no installed recipe reads "{unknown}"; make the tasks anew')
        self._task, self._goal = task, goal
        self._shown = tuple(self._book.by_text[text] for text in recipes)
        self._inventory, self._done = {}, False
        self._observation = phrases.prompt(recipes, goal)

    def _answer(
        self, observation: str, action: str, executed: str, *, reward: float = 0.0, valid: bool = True
    ) -> StepResult:
        info: dict[str, Any] = {} if valid else {"valid": False}
        if executed != action:
            info["normalised"] = executed
        self._observation = observation
        return StepResult(observation, reward, terminated=self._done, success=self._done, info=info)

    def _get(self, action: Get) -> str:
        self._require_item(action.item)
        if action.item not in self._book.base:
            raise Refused(phrases.must_craft(action.item))
        self._add(action.item, action.count)
        return phrases.got(action.count, action.item)

    def _craft(self, action: Craft) -> Recipe:
        for item in (action.output, *(item for item, _ in action.inputs)):
            self._require_item(item)
        if action.output in self._book.base:
            raise Refused(phrases.must_get(action.output))
        recipes = self._book.by_output[action.output]
        recipe = next((recipe for recipe in recipes if self._matches(recipe, action.inputs)), None)
        if recipe is None:
            shown = next((recipe for recipe in self._shown if recipe.output == action.output), None)
            raise Refused(phrases.follow(shown.text) if shown else phrases.wrong_ingredients(action.output))
        lacking = [(item, count - self._inventory.get(item, 0)) for item, count in action.inputs]
        lacking = [(item, count) for item, count in lacking if count > 0]
        if lacking:
            raise Refused(phrases.missing(lacking))
        if not self._fits(recipe.output, recipe.count):
            raise Refused(phrases.full(recipe.output))
        for item, count in action.inputs:
            self._inventory[item] -= count
            if not self._inventory[item]:
                del self._inventory[item]
        self._add(recipe.output, recipe.count)
        return recipe

    def _require_item(self, name: str) -> None:
        if name in self._book.base or name in self._book.by_output:
            return
        if name in self._book.kinds:
            members = self._book.kinds[name]
            shown = (recipe.output for recipe in self._shown if recipe.output in members)
            raise Refused(phrases.name_one(name, next(shown, members[0])))
        named = (n for recipe in self._shown for n in (recipe.output, *(item for item, _ in recipe.inputs)))
        shown_items = list(dict.fromkeys(n for n in named if n not in self._book.kinds))
        near = get_close_matches(name[:40], shown_items, n=1, cutoff=0.75)
        raise Refused(phrases.did_you_mean(near[0]) if near else phrases.NO_SUCH_ITEM)

    def _matches(self, recipe: Recipe, inputs: tuple[tuple[str, int], ...]) -> bool:
        """Whether each ingredient of the recipe has one of the inputs for itself, with the same count."""
        left = dict(inputs)
        if len(left) != len(recipe.inputs) or len(inputs) != len(left):
            return False
        for name, count in recipe.inputs:
            item = name if name in left else next((i for i in left if self._book.tags.get(i) == name), None)
            if item is None or left.pop(item) != count:
                return False
        return True

    def _possible(self, recipe: Recipe) -> list[str]:
        """Ways to craft a recipe now: one for each carried item that can stand for its tag."""
        if not self._fits(recipe.output, recipe.count):
            return []
        ways: list[list[tuple[str, int]]] = [[]]
        for name, count in recipe.inputs:
            items = self._book.kinds.get(name, (name,))
            held = [item for item in items if self._inventory.get(item, 0) >= count]
            ways = [[*way, (item, count)] for way in ways for item in held]
        return [craft_text(recipe.count, recipe.output, way) for way in ways]

    def _fits(self, item: str, count: int) -> bool:
        return self._inventory.get(item, 0) + count <= MOST

    def _add(self, item: str, count: int) -> None:
        if not self._fits(item, count):
            raise Refused(phrases.full(item))
        self._inventory[item] = self._inventory.get(item, 0) + count
