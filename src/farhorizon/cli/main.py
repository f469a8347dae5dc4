"""The `farhorizon` command."""

import io
import os
import sys

import typer

from farhorizon import __version__
from farhorizon.cli import doctor, env, model, play, show, train
from farhorizon.cli.eval import eval_
from farhorizon.core.errors import Interrupted, UserError

app = typer.Typer(
    help="Reinforcement learning for agents that act over many turns.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(train.train)
app.command(name="eval")(eval_)
app.command()(play.play)
app.command()(show.show)
app.command()(doctor.doctor)
app.add_typer(env.app, name="env", help="Environments: list them, check one.")
app.add_typer(model.app, name="model", help="Models: fetch, make, list.")


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Print the version and leave.")) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit status 2."""
    # Spinning OpenMP threads beside a busy process run several times slower than sleeping ones.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # progress in a log file, too, as it happens
    try:
        app()
    except UserError as error:
        print(f"farhorizon: {error}", file=sys.stderr)
        sys.exit(2)
    except Interrupted as stopped:
        print(f"farhorizon: {stopped}", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
