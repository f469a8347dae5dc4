"""Recipe worlds made up for each task: any depth, as many as wanted, and nothing any model has read.

A task has items with invented names, a recipe for each item to be crafted, and distractors. It carries all that
exists in it, so the game knows no other recipe. Task `index` is a pure function of the configuration; the split
of a task follows from its content, so the splits share none. Ours throughout.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import TypeVar

from farhorizon.config.env import TextCraftGenerated as Config
from farhorizon.core.errors import UserError
from farhorizon.core.record import Task
from farhorizon.envs.base import Example, World
from farhorizon.envs.players import MakePlayer
from farhorizon.envs.textcraft import phrases
from farhorizon.envs.textcraft.actions import MOST, Craft, parse
from farhorizon.envs.textcraft.draws import rank
from farhorizon.envs.textcraft.examples import examples
from farhorizon.envs.textcraft.game import Game
from farhorizon.envs.textcraft.goals import tree
from farhorizon.envs.textcraft.heuristics import HEURISTICS
from farhorizon.envs.textcraft.recipes import Recipe, RecipeBook

T = TypeVar("T")

GENERATOR = "1"
"""Raised when the same configuration would give other tasks."""
EVAL_SHARE = 5
"""One task in this many is held out."""
MOST_INPUTS = 3
"""Ingredients of a recipe."""
MOST_BASE = 6
"""Largest count of a base item in a recipe."""
MOST_CRAFTED = 2
"""Largest count of a crafted item in a recipe, and made by the recipe of an ingredient."""
MOST_GOAL = 4
"""Largest count that the goal's own recipe makes."""

_HEADS = tuple(f"{consonant}{vowel}" for consonant in "bdfgklmnprstvz" for vowel in "aeiou")
_TAILS = ("drux", "vork", "zilm", "gaz", "plov", "nusk", "threm", "quib", "yant", "wosp")


class TextCraftGenerated(World):
    """The world of a recipe's `[env] kind = "textcraft_generated"`."""

    name = "textcraft_generated"

    def __init__(self, config: Config) -> None:
        self._config = config
        self._names = sorted((head + tail for head in _HEADS for tail in _TAILS), key=lambda n: rank("name", n))
        self._names = self._names[: config.names]
        least, most = config.distractors
        depths = "-".join(map(str, config.depths))
        self.version = f"{GENERATOR}+depths={depths}+distractors={least}-{most}+names={config.names}+seed={config.seed}"
        self._tasks: dict[str, tuple[Task, ...]] | None = None

    def tasks(self, split: str) -> Sequence[Task]:
        """Tasks in the order of their indices; depths take turns."""
        if self._tasks is None:
            wanted = {"train": self._config.train, "eval": self._config.eval}
            found: dict[str, list[Task]] = {name: [] for name in wanted}
            for index in count():
                task = self._task(index)
                if len(found[task.split]) < wanted[task.split]:
                    found[task.split].append(task)
                if all(len(found[name]) == wanted[name] for name in wanted):
                    break
            self._tasks = {name: tuple(tasks) for name, tasks in found.items()}
        if split not in self._tasks:
            raise UserError(f'textcraft_generated has no split "{split}"; there are: {", ".join(self._tasks)}')
        return self._tasks[split]

    def make(self) -> Game:
        return Game(_book_of)

    def instructions(self) -> str:
        return phrases.INSTRUCTIONS

    def examples(self) -> Sequence[Example]:
        return examples()

    def oracle(self, task: Task) -> Sequence[str]:
        return tree(_book_of(task), task.data["goal"], task.id).actions

    def heuristics(self) -> Mapping[str, MakePlayer]:
        return HEURISTICS

    def texts(self) -> Iterator[str]:
        for example in self.examples():
            yield from (*example.observations, *example.actions)
        yield from phrases.all_phrases(self._names)
        yield phrases.follow(phrases.prompt(["craft 1 item using 1 item, 1 item"], "item"))

    def _task(self, index: int) -> Task:
        task_id = f"{self.name}/{index}"
        depth = self._config.depths[index % len(self._config.depths)]
        attempts = (_Draw((self.version, str(index), str(attempt)), self._names) for attempt in count())
        draw = next(draw for draw in attempts if draw.grow(depth))
        draw.distract(*self._config.distractors)
        texts = [recipe.text for recipe in draw.recipes]
        texts.sort(key=lambda text: rank("order", task_id, text))
        return Task(
            id=task_id,
            env=self.name,
            split="train" if rank("split", *sorted(texts)) % EVAL_SHARE else "eval",
            domain=f"depth {depth}",
            level=depth,
            data={"goal": draw.goal, "recipes": texts},
        )


class _Draw:
    """One task in the making."""

    def __init__(self, key: tuple[str, ...], names: Sequence[str]) -> None:
        self._key, self._drawn = key, 0
        self._fresh = self._shuffled(names)
        self._base: list[str] = []
        self.recipes: list[Recipe] = []
        self.goal = self._fresh.pop()

    def grow(self, depth: int) -> bool:
        """Make the goal's tree; False where names run out or it needs more of an item than can be carried."""
        if not self._craftable(self.goal, depth, self._between(1, MOST_GOAL)):
            return False
        solution = tree(_index(self.recipes), self.goal)
        carried = [times * recipe.count for recipe, times in solution.crafts]
        return max(*carried, *solution.gets.values()) <= MOST

    def distract(self, least: int, most: int) -> None:
        """Add recipes that make something nobody needs, out of what the task has and something new, while
        there are names."""
        for _ in range(min(self._between(least, most), len(self._fresh) // 2)):
            used = self._shuffled(self._base)[: self._between(1, 2)]
            if self._between(0, 1):
                used[0] = self._fresh.pop()
            inputs = tuple((name, self._between(1, MOST_BASE)) for name in used)
            self.recipes.append(Recipe(self._fresh.pop(), self._between(1, MOST_GOAL), inputs))

    def _craftable(self, name: str, depth: int, made: int) -> bool:
        """A recipe for `name`: one ingredient of depth `depth` - 1, the others mostly base items."""
        depths = [depth - 1, *(self._shallow(depth) for _ in range(self._between(0, MOST_INPUTS - 1)))]
        inputs: dict[str, int] = {}
        for below in depths:
            known = [item for item in self._base if item not in inputs]
            if below == 0 and known and not self._between(0, 2):
                inputs[self._shuffled(known)[0]] = self._between(1, MOST_BASE)
                continue
            if not self._fresh:
                return False
            item = self._fresh.pop()
            inputs[item] = self._between(1, MOST_CRAFTED if below else MOST_BASE)
            if not below:
                self._base.append(item)
            elif not self._craftable(item, below, self._between(1, MOST_CRAFTED)):
                return False
        self.recipes.append(Recipe(name, made, tuple(self._shuffled(tuple(inputs.items())))))
        return True

    def _shallow(self, depth: int) -> int:
        """Depth of a further ingredient, below `depth`: 0 three times in four, else any."""
        return 0 if self._between(0, 3) else self._between(0, depth - 1)

    def _between(self, least: int, most: int) -> int:
        return least + self._next() % (most - least + 1)

    def _shuffled(self, values: Sequence[T]) -> list[T]:
        return [value for _, _, value in sorted((self._next(), place, value) for place, value in enumerate(values))]

    def _next(self) -> int:
        self._drawn += 1
        return rank("generated", *self._key, str(self._drawn))


def _book_of(task: Task) -> RecipeBook:
    return _book(tuple(task.data["recipes"]))


@lru_cache(maxsize=1024)
def _book(texts: tuple[str, ...]) -> RecipeBook:
    crafts = [parse(text) for text in texts]
    return _index(
        [Recipe(craft.output, craft.count or 1, craft.inputs) for craft in crafts if isinstance(craft, Craft)]
    )


def _index(recipes: Sequence[Recipe]) -> RecipeBook:
    return RecipeBook(tuple(recipes), {}, tuple(sorted(recipe.output for recipe in recipes)))
