"""What an agent may write: `get`, `craft` and `inventory`, read from text without knowing any recipe.

Text is normalised and nothing is thrown away: case, surrounding whitespace and backticks, a final full stop,
underscores for spaces, repeated spaces and those before a comma. What is then not an action is told so.
"""

import re
from dataclasses import dataclass

from farhorizon.envs.textcraft.recipes import amounts_text

MOST = 64
"""Largest count that can be written, and most that can be carried of one item: a stack, as in the game the
recipes come from. Ours; the published package has no limit."""

LONGEST = 1000
"""Most characters of an action that are looked at."""

NOT_AN_ACTION = "Not an action. Write get, craft or inventory."
ONE_LINE = "Write one action on one line."
TOO_LONG = "That action is too long."
GET_FORMAT = "Write: get 2 ITEM"
CRAFT_FORMAT = "Write: craft 1 ITEM using 2 ITEM, 1 ITEM"
NO_COUNT = f"Counts are whole numbers from 1 to {MOST}."

COMPLAINTS = (NOT_AN_ACTION, ONE_LINE, TOO_LONG, GET_FORMAT, CRAFT_FORMAT, NO_COUNT)
"""All that can be said about text alone."""

_COUNTED = re.compile(r"([0-9]+) (.+)")
_COUNTS = {str(count): count for count in range(1, MOST + 1)}


@dataclass(frozen=True)
class Get:
    """Take base items from the world."""

    count: int
    """How many."""
    item: str
    """Which."""

    @property
    def text(self) -> str:
        """Canonical form."""
        return f"get {self.count} {self.item}"


@dataclass(frozen=True)
class Craft:
    """Apply a recipe once."""

    count: int | None
    """How many are said to be made, if anything is said."""
    output: str
    """Item to make."""
    inputs: tuple[tuple[str, int], ...]
    """Items to use up, in the order written."""

    @property
    def text(self) -> str:
        """Canonical form."""
        said = "" if self.count is None else f"{self.count} "
        return f"craft {said}{self.output} using {amounts_text(self.inputs)}"


@dataclass(frozen=True)
class Inventory:
    """Look at what is carried."""

    text = "inventory"


def parse(text: str) -> Get | Craft | Inventory | str:
    """The action a text stands for, or what is wrong with it."""
    if len(text) > LONGEST:
        return TOO_LONG
    stripped = text.strip().strip("`").strip()
    if len(stripped.splitlines()) > 1:
        return ONE_LINE
    words = stripped.removesuffix(".").rstrip("` ").lower().replace("_", " ").split()
    line = " ".join(words).replace(" ,", ",")
    verb, _, rest = line.partition(" ")
    if verb == "get":
        return _get(rest)
    if verb == "craft":
        return _craft(rest)
    return Inventory() if line == "inventory" else NOT_AN_ACTION


def _get(rest: str) -> Get | str:
    match = _COUNTED.fullmatch(rest)
    if match is None:
        return GET_FORMAT
    count = _COUNTS.get(match[1])
    return NO_COUNT if count is None else Get(count, match[2])


def _craft(rest: str) -> Craft | str:
    made, using, used = rest.partition(" using ")
    if not using or not made:
        return CRAFT_FORMAT
    inputs: list[tuple[str, int]] = []
    for part in used.split(","):
        match = _COUNTED.fullmatch(part.strip())
        if match is None:
            return CRAFT_FORMAT
        count = _COUNTS.get(match[1])
        if count is None:
            return NO_COUNT
        inputs.append((match[2], count))
    match = _COUNTED.fullmatch(made)
    if match is None:
        return Craft(None, made, tuple(inputs))
    count = _COUNTS.get(match[1])
    return NO_COUNT if count is None else Craft(count, match[2], tuple(inputs))
