"""Everything the world says, in one place, so that a vocabulary can be made of it."""

from collections.abc import Iterable, Iterator

from farhorizon.envs.textcraft.actions import COMPLAINTS, MOST
from farhorizon.envs.textcraft.recipes import amounts_text

INSTRUCTIONS = """\
Craft the goal item. Write one action per turn:
get N ITEM
craft N ITEM using N ITEM, N ITEM
inventory
Get items that no command crafts. Craft with exactly the amounts of a command."""

OVER = "The episode is over."
NO_SUCH_ITEM = "No such item."


def prompt(recipes: Iterable[str], goal: str) -> str:
    """The opening observation, as the published package writes it."""
    return "Crafting commands:\n" + "\n".join(recipes) + f"\n\nGoal: craft {goal}."


def got(count: int, item: str) -> str:
    """After `get`."""
    return f"Got {count} {item}."


def crafted(count: int, item: str) -> str:
    """After `craft`."""
    return f"Crafted {count} {item}."


def inventory(amounts: Iterable[tuple[str, int]]) -> str:
    """After `inventory`."""
    return f"Inventory: {amounts_text(amounts) or 'nothing'}."


def must_craft(item: str) -> str:
    """`get` of something that has a recipe."""
    return f"{item} must be crafted."


def must_get(item: str) -> str:
    """`craft` of something that has none."""
    return f"{item} cannot be crafted. Get it."


def name_one(tag: str, item: str) -> str:
    """A tag where an item is wanted."""
    return f"Name one kind of {tag}, such as {item}."


def did_you_mean(item: str) -> str:
    """An item that does not exist but looks like one that the task shows."""
    return f"{NO_SUCH_ITEM} Did you mean {item}?"


def follow(recipe: str) -> str:
    """Wrong ingredients for an item whose recipe the task shows."""
    return f"Use: {recipe}"


def wrong_ingredients(item: str) -> str:
    """Wrong ingredients for an item whose recipe the task does not show."""
    return f"Those ingredients do not make {item}."


def missing(amounts: Iterable[tuple[str, int]]) -> str:
    """The right recipe, but not everything it needs."""
    return f"Missing {amounts_text(amounts)}."


def full(item: str) -> str:
    """More than can be carried."""
    return f"You can carry at most {MOST} {item}."


def all_phrases(items: Iterable[str]) -> Iterator[str]:
    """Every phrase with every item, every count, and every complaint; prompts and recipes aside."""
    yield from (INSTRUCTIONS, OVER, NO_SUCH_ITEM, inventory([]), *COMPLAINTS)
    yield " ".join(str(count) for count in range(1, MOST + 1))
    for item in items:
        yield got(1, item)
        yield crafted(1, item)
        yield inventory([(item, 1), (item, 2)])
        yield missing([(item, 1), (item, 2)])
        for phrase in (must_craft, must_get, did_you_mean, wrong_ingredients, full):
            yield phrase(item)
        yield name_one(item, item)
