"""`farhorizon train`"""

import time
from pathlib import Path
from typing import Annotated

import typer

from farhorizon.cli.commands import command
from farhorizon.cli.extras import require_torch
from farhorizon.config.recipe import dump, read
from farhorizon.core.errors import Interrupted, UserError
from farhorizon.core.ledger import Meter


def train(
    recipe: Annotated[Path | None, typer.Argument(help="Recipe file (TOML).")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="TABLE.KEY=VALUE", help="Override a value; may be repeated."),
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Continue this run from its last checkpoint.")] = None,
    run: Annotated[Path | None, typer.Option(help="Directory of the new run. Default: runs/RECIPE-DATE.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the recipe, print every value, do nothing.")
    ] = False,
) -> None:
    """Train a recipe, or continue a run."""
    meter = Meter.of_process()  # before the imports below, which take seconds
    if (recipe is None) == (resume is None):
        raise UserError("train takes a recipe file, or --resume RUN")
    if resume is not None and (set_ or dry_run or run):
        raise UserError("--resume continues a run as it is; --set, --run and --dry-run do not go with it")
    if recipe is not None:
        resolved = read(recipe, set_)
        if dry_run:
            print(dump(resolved), end="")
            return
    require_torch()
    from farhorizon.cli.progress import Progress
    from farhorizon.cli.story import tell
    from farhorizon.runtime import train as runtime

    with Progress() as report:
        try:
            if resume is not None:
                directory = runtime.resume(resume, report, meter)
            else:
                assert recipe is not None
                path = run or Path("runs") / f"{recipe.stem}-{time.strftime('%Y%m%d-%H%M%S')}"
                report.run = path
                directory = runtime.start(resolved, path, report, meter)
        except Interrupted:
            left = resume or report.run
            again = command("train", "--resume", left)
            raise Interrupted(f"stopped after the last finished update; continue with: {again}") from None
    tell(directory)
