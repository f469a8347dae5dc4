"""A study: one TOML file that says what is compared, over which seeds, and at equal what."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from farhorizon.config.base import Table
from farhorizon.config.registry import suggestion, validate
from farhorizon.core.errors import UserError

Axis = Literal["env_steps", "sampled_tokens", "updates"]
Overrides = dict[str, Any]
"""Laid over a recipe as `--set` does, key by key; a table with `kind` replaces the recipe's table."""

AXES: dict[Axis, str] = {"env_steps": "environment steps", "sampled_tokens": "sampled tokens", "updates": "updates"}
"""What a budget can be counted in, and how it is called."""

OURS = ("runtime.seed", "runtime.threads", "runtime.deterministic")
"""Settings that the runner makes for every cell."""

Name = Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
Seed = Annotated[int, Field(ge=0)]


class Tuning(Table):
    """Candidates tried for each arm before its cells, equally many for each, at the same budget."""

    seed: Seed = 1000
    """Seed of every try; none of the study's own."""
    candidates: dict[Name, tuple[Overrides, ...]] = Field(default_factory=dict)
    """Arm -> overrides tried on top of the arm's own. The best by the study's measure at the budget is used."""


class Study(Table):
    """A study as read."""

    title: str
    """One line."""
    question: str
    """What it is to answer."""
    recipe: str
    """Base recipe, relative to the study's file."""
    overrides: Overrides = Field(default_factory=dict)
    """Laid over the recipe in every arm."""
    arms: Annotated[dict[Name, Overrides], Field(min_length=1)]
    """Arm -> what it changes."""
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = (0, 1, 2, 3, 4)
    """Every arm runs with each; arms are compared seed by seed."""
    budget: Annotated[tuple[Axis, ...], Field(min_length=1)]
    """What is held equal; each axis gives a comparison of its own. Tuning goes by the first."""
    measure: str = "eval/success/rate"
    """Metric compared, the higher the better: of evaluations when it begins with `eval/`, of training otherwise."""
    comparisons: tuple[tuple[str, str], ...] = ()
    """Pairs of arms: is the first above the second?"""
    long: bool = False
    """Whether a cell may take more than 150 CPU-seconds and the study more than 60 minutes on two cores."""
    tuning: Tuning = Tuning()
    """Left out, nothing is tuned."""

    @model_validator(mode="after")
    def _arms_exist(self) -> "Study":
        for named, where in [
            *((arm, "comparisons") for pair in self.comparisons for arm in pair),
            *((arm, "tuning.candidates") for arm in self.tuning.candidates),
        ]:
            if named not in self.arms:
                raise ValueError(f'{where} names the arm "{named}"{suggestion(named, self.arms)}')
        return self

    @model_validator(mode="after")
    def _seeds_differ(self) -> "Study":
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds = {list(self.seeds)} holds one twice")
        if self.tuning.seed in self.seeds:
            raise ValueError(f"tuning.seed = {self.tuning.seed} is one of the seeds that arms are compared on")
        return self

    @model_validator(mode="after")
    def _same_tuning(self) -> "Study":
        tries = {arm: len(self.tuning.candidates.get(arm, ())) for arm in self.arms}
        if len(set(tries.values())) > 1:
            counts = ", ".join(f"{arm}: {count}" for arm, count in tries.items())
            raise ValueError(f"tuning.candidates gives the arms different numbers of tries ({counts}); make them equal")
        return self


@dataclass(frozen=True)
class Places:
    """Where a study's files are."""

    root: Path
    """Directory with `studies/`, `docs/` and `runs/`."""
    name: str
    """Name of the study."""

    @property
    def study(self) -> Path:
        """The study's file."""
        return self.root / "studies" / f"{self.name}.toml"

    @property
    def runs(self) -> Path:
        """Run directories of its cells, with their logs and costs."""
        return self.root / "runs" / "studies" / self.name

    @property
    def cells(self) -> Path:
        """Results of its cells."""
        return self.root / "docs" / "results" / "cells" / self.name

    @property
    def page(self) -> Path:
        """The result page."""
        return self.root / "docs" / "results" / f"{self.name}.md"

    @property
    def figure(self) -> Path:
        """The figure on it."""
        return self.page.with_suffix(".svg")


def names(root: Path) -> list[str]:
    """Studies there are, in alphabetical order."""
    return sorted(path.stem for path in (root / "studies").glob("*.toml"))


def read(places: Places) -> Study:
    """Read a study.

    Raises:
        UserError: one line naming the file, the key and the nearest known one.
    """
    known = names(places.root)
    if places.name not in known:
        raise UserError(f'there is no study "{places.name}"{suggestion(places.name, known)}')
    file = places.study.name
    try:
        tables = tomllib.loads(places.study.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"study {file}: not valid TOML: {error}") from None
    try:
        for key in tables:
            if key not in Study.model_fields:
                raise UserError(f'there is no key "{key}"{suggestion(key, Study.model_fields)}')
        return validate(Study, tables, "study")
    except UserError as error:
        raise UserError(f"study {file}: {error}") from None


def settings(overrides: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Overrides as `table.key=value`, the way `farhorizon train --set` takes them."""
    found = []
    for key, value in overrides.items():
        if isinstance(value, dict) and "kind" not in value:
            found += settings(value, f"{prefix}{key}.")
        else:
            found.append(f"{prefix}{key}={_toml(value)}")
    return found


def _toml(value: Any) -> str:
    """A value as it stands in TOML, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
