"""`farhorizon model`: the models that recipes can name."""

import time

import typer
from rich.console import Console
from rich.table import Table

from farhorizon.cli.extras import require_torch
from farhorizon.core.errors import UserError
from farhorizon.models.fetch import CATALOGUE, cache_dir, cached, fetch

app = typer.Typer(help="Fetch and list models.", no_args_is_help=True)
console = Console()


@app.command("fetch")
def fetch_command(name: str = typer.Argument(help="A name that `farhorizon model list` shows.")) -> None:
    """Fetch a model and convert it once, or check the copy in the cache and mend it."""
    started = time.monotonic()
    with console.status(f"fetching {name}"):
        place = fetch(name, report=_say)
    _say(f"{name} is ready in {place} ({time.monotonic() - started:.0f} s)")


@app.command("make")
def make_command(
    what: str = typer.Argument(help="What to make: micro."),
    env: list[str] = typer.Option(help="Environment, as recipes name it; more names may follow."),
    more: list[str] | None = typer.Argument(None, hidden=True),
) -> None:
    """Make the micro start of one or several environments together, unless it is cached."""
    if what != "micro":
        raise UserError(f'"{what}" cannot be made; there is: micro')
    require_torch()
    from farhorizon.cli.progress import Progress
    from farhorizon.config.agent import AppendOnly, Transcript
    from farhorizon.config.models import MicroConfig
    from farhorizon.config.registry import resolve
    from farhorizon.runtime.warmstart import make_micro

    agent = AppendOnly(renderer=Transcript(examples=0, instructions=False))
    with Progress() as report:
        place = make_micro([resolve("env", name) for name in [*env, *(more or [])]], agent, MicroConfig(), report)
    _say(str(place))


@app.command("list")
def list_command() -> None:
    """List the catalogue, and what of it is in the cache."""
    table = Table(box=None, header_style="bold")
    for column in ("name", "source", "licence", "size", "where"):
        table.add_column(column, overflow="fold")
    for name, model in CATALOGUE.items():
        table.add_row(name, model.source, model.licence, f"{model.megabytes} MB", _state(name))
    console.print(table)
    micro = sorted(path for path in (cache_dir() / "micro").glob("[!.]*") if path.is_dir())
    if micro:
        _say("\nmicro models")
    for path in micro:
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        _say(f"{path}  {size / 1e6:.1f} MB")


def _state(name: str) -> str:
    try:
        place = cached(name)
    except UserError as error:
        return str(error)
    return str(place) if place else "not fetched"


def _say(line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
