"""Which player or model a name stands for, and by which recipe it plays."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from farhorizon.cli.extras import require_torch
from farhorizon.config.recipe import Recipe, parse
from farhorizon.core.errors import UserError
from farhorizon.core.rundir import RunDirectory, checkpoint_problem
from farhorizon.envs.base import World
from farhorizon.envs.players import players
from farhorizon.models.fetch import CATALOGUE
from farhorizon.runtime.report import Reporter


@dataclass(frozen=True)
class Weights:
    """A model found."""

    source: str | Path
    """Its directory, or a hub id."""
    finished: int | None
    """Updates behind it, where it is a checkpoint of a run."""


def run_directory(name: str) -> Path | None:
    """The path when `name` is a run."""
    path = Path(name)
    return path if (path / "recipe.toml").exists() else None


def recipe_on(env: str, overrides: Sequence[str] = ()) -> Recipe:
    """The defaults on an environment, under `table.key=value` overrides."""
    return parse({"env": {"kind": env}}, [*overrides])


def find_weights(name: str, world: World, recipe: Recipe, checkpoint: str, report: Reporter) -> Weights:
    """The weights that a name stands for: a run (its checkpoint), a catalogue name, a directory or a hub id.

    Args:
        recipe: the run's own, where it is one.
        checkpoint: of a run: `last`, `best`, `start` or the number of updates finished.

    Raises:
        UserError: there is no such model, run or checkpoint; names the nearest players and models.
    """
    path = run_directory(name)
    if path is None and not _may_be_model(name):
        known = [*players(world), *CATALOGUE]
        near = get_close_matches(name, known, n=3, cutoff=0.5) or known
        raise UserError(
            f'there is no player or model "{name}"; the nearest: {", ".join(near)}; '
            "a run directory, a Hugging Face directory or a hub id (organisation/name) will do, too"
        )
    require_torch()
    from farhorizon.models.load import resolve
    from farhorizon.runtime.assemble import starting_model

    if path is None:
        return Weights(resolve(name, report.say), None)
    if checkpoint == "start":
        return Weights(starting_model(recipe, report), 0)
    found = _checkpoint(RunDirectory.open(path), checkpoint, report)
    return Weights(found, int(found.name.removeprefix("update-")))


def _may_be_model(name: str) -> bool:
    return name in CATALOGUE or Path(name).expanduser().is_dir() or re.fullmatch(r"[^/\s]+/[^/\s]+", name) is not None


def _checkpoint(run: RunDirectory, which: str, report: Reporter) -> Path:
    if which == "last":
        last = run.last_checkpoint(report.say)
        if last is None:
            raise UserError(f"run {run.path} has no whole checkpoint yet")
        return last
    best = run.path / "best.json"
    if which == "best" and not best.exists():
        raise UserError(f"run {run.path} has no best checkpoint: it was not evaluated yet")
    if which == "best":
        which = str(json.loads(best.read_text())["finished"])
    stored = run.stored_checkpoints()
    if not which.isdecimal() or int(which) not in stored:
        raise UserError(
            f"run {run.path} has no checkpoint {which}; there are: last, best, start, {', '.join(map(str, stored))}"
        )
    problem = checkpoint_problem(run.checkpoint(int(which)))
    if problem is not None:
        raise UserError(f"checkpoint {run.checkpoint(int(which))} cannot be used: {problem}")
    return run.checkpoint(int(which))
