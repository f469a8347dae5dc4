"""A cell: one arm with one seed, its resolved recipe, and the hash that says whether a result still belongs to it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from farhorizon.config import recipe as recipes
from farhorizon.core.errors import UserError
from studies.runner.study import OURS, Overrides, Places, Study, settings


@dataclass(frozen=True, eq=False)
class Cell:
    """One run to be made."""

    arm: str
    seed: int
    candidate: int | None
    """Place of the try among the arm's candidates; None for a cell that counts."""
    recipe_file: Path
    """The study's base recipe."""
    settings: tuple[str, ...]
    """What is set on top of it, the runner's own settings included."""
    recipe: recipes.Recipe
    """The two together."""

    @property
    def name(self) -> str:
        """Of its run directory and its result."""
        return cell_name(self.arm, self.seed, self.candidate)

    @property
    def hash(self) -> str:
        """Of its recipe."""
        return recipe_hash(self.recipe)


def cell_name(arm: str, seed: int, candidate: int | None) -> str:
    """Name of a cell's run directory and result."""
    return f"{arm}{'' if candidate is None else f'-try{candidate}'}-s{seed}"


def recipe_hash(recipe: recipes.Recipe) -> str:
    """16 hexadecimal digits over every value that the resolved recipe sets beyond the defaults, and every kind.

    Ours: a key added to recipes later leaves results valid, because it stands at its default. What the code makes of
    a recipe is not in the hash; results carry the code's version for that.
    """
    return hashlib.sha256(json.dumps(_said(recipe), sort_keys=True).encode()).hexdigest()[:16]


def main_cells(places: Places, study: Study, winners: Mapping[str, int]) -> list[Cell]:
    """The cells that count: every arm, with its winning candidate where it was tuned, and every seed; seed by seed, so
    that what is finished early can be compared.

    Raises:
        UserError: a cell's recipe cannot be read.
    """
    found = []
    for seed in study.seeds:
        for arm in study.arms:
            tuned = study.tuning.candidates[arm][winners[arm]] if arm in winners else {}
            found.append(_cell(places, study, arm, seed, None, tuned))
    return found


def tuning_cells(places: Places, study: Study) -> list[Cell]:
    """Every candidate of every arm; none when nothing is tuned."""
    return [
        _cell(places, study, arm, study.tuning.seed, index, candidate)
        for arm, candidates in study.tuning.candidates.items()
        for index, candidate in enumerate(candidates)
    ]


def _cell(places: Places, study: Study, arm: str, seed: int, candidate: int | None, tuned: Overrides) -> Cell:
    chosen = [line for overrides in (study.overrides, study.arms[arm], tuned) for line in settings(overrides)]
    where = f"study {places.study.name}, arm {arm}"
    for line in chosen:
        key = line.partition("=")[0]
        if key in OURS:
            raise UserError(f"{where}: {key} is set by the runner, for every cell; take it out")
    ours = zip(OURS, (str(seed), "1", "true"), strict=True)
    lines = (*chosen, *(f"{key}={value}" for key, value in ours))
    file = places.study.parent / study.recipe
    try:
        recipe = recipes.read(file, list(lines))
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    return Cell(arm, seed, candidate, file, lines, recipe)


def _said(value: Any) -> Any:
    """What a table says beyond its defaults; JSON values."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields.items()
        values = {name: (getattr(value, name), field.get_default(call_default_factory=True)) for name, field in fields}
        return {name: _said(own) for name, (own, default) in values.items() if name == "kind" or own != default}
    return [_said(item) for item in value] if isinstance(value, tuple | list) else value
