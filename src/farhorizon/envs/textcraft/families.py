"""Train and eval split by family, so that a goal cannot be solved from a twin of another colour, wood or stone.

Two goals are twins when a recipe of one reads like a recipe of the other once words for wood, stone and
colour are replaced; a family is all goals connected by twins. Families are taken in the order of a hash of
their names; each goes to eval as a whole while every depth has room for its goals there, else to train.

Ours: the lists of words; `logs` and `stems`, `wood` and `hyphae` are the same word; nether, end stone and
purpur count as stones; `SHARES`, which gives eval more of depth 1, where small models are compared. Goals
are kept apart by how they are made, not by what they are made of: a goal of one split may be an ingredient,
or a distractor, in the other.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from farhorizon.envs.textcraft.draws import rank
from farhorizon.envs.textcraft.recipes import RecipeBook

SHARES = {1: 0.35, 2: 0.18, 3: 0.2, 4: 0.25}
"""Most of the goals of each depth that eval may hold."""

WOODS = ("dark oak", "oak", "spruce", "birch", "jungle", "acacia", "crimson", "warped")
COLOURS = (
    "light blue", "light gray", "white", "orange", "magenta", "yellow", "lime", "pink",
    "gray", "cyan", "purple", "blue", "brown", "green", "red", "black",
)  # fmt: skip
STONES = (
    "red sandstone", "red nether", "end stone", "cobblestone", "sandstone", "blackstone", "stone", "granite",
    "diorite", "andesite", "prismarine", "quartz", "basalt", "nether", "purpur",
)  # fmt: skip
_CLASSES = (
    *((word, "WOOD") for word in WOODS),
    *((word, "STONE") for word in STONES),
    *((word, "COLOUR") for word in COLOURS),
    ("stems", "logs"),
    ("stem", "log"),
    ("hyphae", "wood"),
)
_REPLACED = dict(_CLASSES)
_WORDS = re.compile(r"\b(?:" + "|".join(sorted(_REPLACED, key=len, reverse=True)) + r")\b")


@dataclass(frozen=True)
class Family:
    """Goals that are the same but for wood, stone and colour."""

    name: str
    """The first of its recipes with those words replaced, in alphabetical order."""
    goals: tuple[str, ...]
    """Members, sorted."""
    split: str
    """`train` or `eval`."""


def signature(text: str) -> str:
    """A recipe's text with wood, stone and colour words replaced: `craft 3 WOOD door using 6 WOOD planks`."""
    return _WORDS.sub(lambda match: _REPLACED[match.group()], text)


@cache
def families(book: RecipeBook) -> tuple[Family, ...]:
    """All families, sorted by name, with the split each was assigned to."""
    grouped = _connected({g: [signature(r.text) for r in recipes] for g, recipes in book.by_output.items()})
    goals = Counter(book.depth[goal] for goal in book.by_output)
    room = {depth: round(SHARES[depth] * goals[depth]) if depth in SHARES else 0 for depth in goals}
    chosen: set[str] = set()
    for name in sorted(grouped, key=lambda name: rank("family", name)):
        taken = Counter(book.depth[goal] for goal in grouped[name])
        if all(count <= room[depth] for depth, count in taken.items()):
            chosen.add(name)
            room = {depth: left - taken[depth] for depth, left in room.items()}
    return tuple(Family(name, grouped[name], "eval" if name in chosen else "train") for name in sorted(grouped))


@cache
def split_of(book: RecipeBook) -> Mapping[str, str]:
    """The split of each goal."""
    return {goal: family.split for family in families(book) for goal in family.goals}


def _connected(signatures: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    """Goals joined by shared signatures: name of each component (its first signature) and its goals."""
    users: dict[str, list[str]] = {}
    for goal, texts in signatures.items():
        for text in texts:
            users.setdefault(text, []).append(goal)
    components: dict[str, tuple[str, ...]] = {}
    seen: set[str] = set()
    for start in signatures:
        if start in seen:
            continue
        seen.add(start)
        members = [start]
        for goal in members:
            for twin in (twin for text in signatures[goal] for twin in users[text] if twin not in seen):
                seen.add(twin)
                members.append(twin)
        components[min(text for goal in members for text in signatures[goal])] = tuple(sorted(members))
    return components
