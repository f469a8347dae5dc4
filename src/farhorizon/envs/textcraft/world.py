"""TextCraft as a world: 544 goals from Minecraft's recipes, split by family, each one task.

The game and its recipes are those of the `textcraft` package (Prasad et al. 2024, ADaPT), rebuilt so that a
task is the same everywhere: nothing depends on directory order, hash seed or a global generator, and no goal
hangs. A task is a pure function of `version` and its id; the version names the range of distractors because
they are part of what is shown.
"""

from collections.abc import Iterator, Mapping, Sequence

from farhorizon.config.env import TextCraft as Config
from farhorizon.core.errors import UserError
from farhorizon.core.record import Task
from farhorizon.envs.base import Example, World
from farhorizon.envs.players import MakePlayer
from farhorizon.envs.textcraft import phrases
from farhorizon.envs.textcraft.draws import VERSION, rank
from farhorizon.envs.textcraft.examples import examples
from farhorizon.envs.textcraft.families import split_of
from farhorizon.envs.textcraft.game import Game
from farhorizon.envs.textcraft.goals import distractors, tree
from farhorizon.envs.textcraft.heuristics import HEURISTICS
from farhorizon.envs.textcraft.recipes import installed, recipe_directory

SPLITS = ("train", "eval")


class TextCraft(World):
    """The world of a recipe's `[env] kind = "textcraft"`."""

    name = "textcraft"

    def __init__(self, config: Config) -> None:
        recipe_directory()
        self._depths = config.depths
        self._distractors = config.distractors
        self._tasks: dict[str, tuple[Task, ...]] = {}
        self.version = f"{VERSION}+distractors={config.distractors[0]}-{config.distractors[1]}"

    def tasks(self, split: str) -> Sequence[Task]:
        """Tasks of the chosen depths, easiest first, then in alphabetical order of their goals."""
        if split not in SPLITS:
            raise UserError(f'textcraft has no split "{split}"; there are: {", ".join(SPLITS)}')
        if split not in self._tasks:
            depth, splits = installed().depth, split_of(installed())
            goals = [goal for goal in splits if splits[goal] == split and depth[goal] in self._depths]
            self._tasks[split] = tuple(self._task(g) for g in sorted(goals, key=lambda g: (depth[g], g)))
        return self._tasks[split]

    def make(self) -> Game:
        return Game(lambda task: installed())

    def instructions(self) -> str:
        return phrases.INSTRUCTIONS

    def examples(self) -> Sequence[Example]:
        return examples()

    def oracle(self, task: Task) -> Sequence[str]:
        """Follows the tree the task shows: each base item got once, as far as it can be carried."""
        return tree(installed(), task.data["goal"], task.id).actions

    def heuristics(self) -> Mapping[str, MakePlayer]:
        return HEURISTICS

    def texts(self) -> Iterator[str]:
        for split in SPLITS:
            for task in self.tasks(split):
                yield phrases.prompt(task.data["recipes"], task.data["goal"])
                yield from self.oracle(task)
        for example in self.examples():
            yield from (*example.observations, *example.actions)
        book = installed()
        yield from phrases.all_phrases((*book.items, *book.kinds))
        yield from (phrases.follow(recipe.text) for recipe in book.recipes)

    def _task(self, goal: str) -> Task:
        book = installed()
        task_id = f"{self.name}/{goal.replace(' ', '_')}"
        needed = tuple(recipe for recipe, _ in tree(book, goal, task_id).crafts)
        shown = [*needed, *distractors(book, task_id, needed, *self._distractors)]
        texts = sorted((recipe.text for recipe in shown), key=lambda text: rank("order", task_id, text))
        depth = book.depth[goal]
        return Task(
            id=task_id,
            env=self.name,
            split=split_of(book)[goal],
            domain=f"depth {depth}",
            level=depth,
            data={"goal": goal, "recipes": texts},
        )
