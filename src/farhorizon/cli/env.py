"""`farhorizon env`"""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from farhorizon.config.registry import kinds, resolve
from farhorizon.core.errors import UserError

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """List the environments that are installed, with their tasks."""
    table = Table()
    for column in ("name", "version", "training tasks", "held-out tasks", "categories"):
        table.add_column(column, no_wrap=column == "name")
    for name in kinds("env"):
        try:
            world = resolve("env", name).build()
        except UserError as missing:
            table.add_row(name, "", "", "", Text(str(missing)))
            continue
        train, held_out = world.tasks("train"), world.tasks("eval")
        domains = sorted({task.domain for task in train})
        table.add_row(name, world.version, str(len(train)), str(len(held_out)), ", ".join(domains))
    Console().print(table)


@app.command()
def check(name: Annotated[str, typer.Argument(help="Environment, as recipes name it.")]) -> None:
    """Check that an environment keeps every promise the framework relies on."""
    from farhorizon.envs.check import check as run_checks

    results = run_checks(resolve("env", name).build())
    for result in results:
        print(f"{'ok  ' if result.ok else 'FAIL'}  {result.name}: {result.detail}")
    failed = sum(not result.ok for result in results)
    print(f"{len(results) - failed} of {len(results)} checks passed")
    if failed:
        raise typer.Exit(1)
