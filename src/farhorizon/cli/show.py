"""`farhorizon show`"""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from farhorizon.cli.commands import command
from farhorizon.core.errors import UserError
from farhorizon.core.index import Index
from farhorizon.core.record import Trajectory
from farhorizon.core.rundir import RunDirectory
from farhorizon.core.store import read_update, stored_updates, update_path
from farhorizon.viewer.text import as_text, as_tokens

_UPDATE_COLUMNS = {
    "horizon": "turns ≤",
    "success/rate": "success",
    "success/part_way": "part-way",
    "reward/mean": "reward",
    "actions/valid": "valid",
    "turns/mean": "turns",
    "truncated/mean": "truncated",
}


def show(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    trajectory: Annotated[
        str | None, typer.Argument(help="Trajectory id as listed, or UPDATE/GROUP/MEMBER of a training update.")
    ] = None,
    update: Annotated[int | None, typer.Option(help="List the trajectories of this update.")] = None,
    task: Annotated[str | None, typer.Option(help="List every trajectory of this task.")] = None,
    eval_: Annotated[bool, typer.Option("--eval", help="List evaluations instead of training updates.")] = False,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Every token with its origin, log-probabilities, version and advantage.")
    ] = False,
    story: Annotated[bool, typer.Option("--story", help="What it came to: what `train` prints at its end.")] = False,
) -> None:
    """Show what happened in a run: its updates, some trajectories, or one trajectory in full."""
    directory = RunDirectory.open(run)
    if story:
        from farhorizon.cli.story import tell

        if not directory.facts.exists():
            raise UserError(f"{run} is not a training run; what an evaluation came to is in {run / 'report.md'}")
        tell(directory)
        return
    console = Console()
    if trajectory is not None:
        found = _find(directory, trajectory)
        print(as_tokens(found, _tokenizer(directory)) if tokens else as_text(found))
        return
    folder = directory.evaluations if eval_ else directory.trajectories
    stored = stored_updates(folder)
    if not stored:
        print(f"No trajectories are stored in {folder} yet.")
        return
    if update is None and task is None:
        console.print(_updates(directory))
        update = stored[-1]
    if update is not None and update not in stored:
        raise UserError(f"update {update} is not stored in {folder}; there are {stored[0]} to {stored[-1]}")
    wanted = {"of_update": update, "task": task}
    given = {name: value for name, value in wanted.items() if value is not None}
    rows = Index(folder).rows(" AND ".join(f"{name} = ?" for name in given), tuple(given.values()))
    if not rows:
        raise UserError(f'no trajectory of task "{task}" is stored in {folder}')
    console.print(_listing(rows))
    print(f"Read one: {command('show', run, rows[0]['id'])}")


def _updates(directory: RunDirectory) -> Table:
    table = Table(title=f"Run {directory.path}")
    for column in ("update", *_UPDATE_COLUMNS.values(), "held-out success"):
        table.add_column(column, justify="right")
    lines = directory.read_metrics()
    held_out = {line["update"]: line.get("eval/success/rate") for line in lines if line["phase"] == "eval"}
    for line in lines:
        if line["phase"] == "train":
            values = [_number(line.get(name)) for name in _UPDATE_COLUMNS]
            table.add_row(str(line["update"]), *values, _number(held_out.pop(line["update"], None)))
    for update, rate in held_out.items():
        table.add_row(str(update), *("" for _ in _UPDATE_COLUMNS), _number(rate))
    return table


def _listing(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="Trajectories")
    table.add_column("id", no_wrap=True)
    table.add_column("task", overflow="fold")
    for column in ("start", "turns", "tokens", "reward", "solved", "ended"):
        table.add_column(column)
    for row in rows:
        solved = {None: "", 0: "no", 1: "yes"}[row["success"]]
        numbers = (row["start_depth"], row["turns"], row["sampled_tokens"], f"{row['reward']:g}")
        table.add_row(row["id"], row["task"], *map(str, numbers), solved, row["stop_reason"])
    return table


def _find(directory: RunDirectory, name: str) -> Trajectory:
    parts = name.split("/")
    parts = ["rollout", *parts] if len(parts) == 3 else parts
    if len(parts) != 4 or parts[0] not in ("rollout", "eval") or not all(part.isdigit() for part in parts[1:]):
        raise UserError(f'"{name}" is no trajectory id; write UPDATE/GROUP/MEMBER, or eval/UPDATE/GROUP/MEMBER')
    folder = directory.evaluations if parts[0] == "eval" else directory.trajectories
    path = update_path(folder, int(parts[1]))
    if not path.exists():
        raise UserError(f"update {parts[1]} is not stored in {folder}")
    for group in read_update(path):
        for trajectory in group.trajectories:
            if trajectory.id == "/".join(parts):
                return trajectory
    raise UserError(
        f"update {parts[1]} has no trajectory {name}; list them with: "
        f"farhorizon show {directory.path} --update {parts[1]}{' --eval' if parts[0] == 'eval' else ''}"
    )


def _tokenizer(directory: RunDirectory) -> Any:
    from farhorizon.cli.extras import require_torch
    from farhorizon.models.load import load_tokenizer

    require_torch()
    stored = directory.stored_checkpoints()
    return load_tokenizer(directory.checkpoint(stored[-1])) if stored else None


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
