"""`farhorizon show`"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from farhorizon.core.errors import UserError
from farhorizon.core.record import Group, Trajectory
from farhorizon.core.rundir import RunDirectory
from farhorizon.core.store import read_update, stored_updates, update_path
from farhorizon.viewer.text import as_text, token_table


def show(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    trajectory: Annotated[
        str | None, typer.Argument(help="Trajectory id as listed, or UPDATE/GROUP/MEMBER of a training update.")
    ] = None,
    update: Annotated[int | None, typer.Option(help="List this update; default: the last.")] = None,
    eval_: Annotated[bool, typer.Option("--eval", help="List an evaluation instead of a training update.")] = False,
    tokens: Annotated[
        bool, typer.Option(help="Every token with its origin, log-probabilities, version and advantage.")
    ] = False,
) -> None:
    """Show what happened in a run: the updates, one update's trajectories, or one trajectory in full."""
    directory = RunDirectory.open(run)
    if trajectory is not None:
        stream, update, name = _parse(trajectory)
        found = _find(directory, stream, update, name)
        if tokens:
            Console().print(token_table(found, _tokenizer(directory)))
        else:
            print(as_text(found))
        return
    if update is None and not eval_:
        Console().print(_updates(directory))
    stream = "eval" if eval_ else "rollout"
    where = _folder(directory, stream)
    stored = stored_updates(where)
    if not stored:
        print("No trajectories are stored yet.")
        return
    if update is not None and update not in stored:
        raise UserError(f"update {update} is not stored in {where}; there are {stored[0]} to {stored[-1]}")
    number = stored[-1] if update is None else update
    Console().print(_listing(read_update(update_path(where, number)), f"{stream} {number}"))


def _updates(directory: RunDirectory) -> Table:
    table = Table(title=f"Run {directory.path}")
    columns = (
        "horizon",
        "success/rate",
        "success/part_way",
        "reward/mean",
        "actions/valid",
        "turns/mean",
        "truncated/mean",
    )
    table.add_column("update", justify="right")
    for column in columns:
        table.add_column(column, justify="right")
    table.add_column("held-out success", justify="right")
    evaluations = {line["update"]: line for line in directory.read_metrics() if line["phase"] == "eval"}
    lines = [line for line in directory.read_metrics() if line["phase"] == "train"]
    for line in lines:
        held_out = evaluations.pop(line["update"], {}).get("eval/success/rate")
        table.add_row(str(line["update"]), *(_number(line.get(column)) for column in columns), _number(held_out))
    for update, line in evaluations.items():
        table.add_row(str(update), *("" for _ in columns), _number(line.get("eval/success/rate")))
    return table


def _listing(groups: list[Group], title: str) -> Table:
    table = Table(title=f"Trajectories of {title}; look at one with `farhorizon show RUN ID`")
    for column in ("id", "task", "start", "turns", "tokens", "reward", "success", "stop"):
        table.add_column(column)
    for trajectory in (t for group in groups for t in group.trajectories):
        success = "" if trajectory.success is None else "yes" if trajectory.success else "no"
        table.add_row(
            trajectory.id,
            trajectory.task.id,
            str(trajectory.start_depth),
            str(len(trajectory.turns)),
            str(trajectory.sampled_tokens),
            f"{trajectory.total_reward:g}",
            success,
            trajectory.stop_reason.value,
        )
    return table


def _parse(name: str) -> tuple[str, int, str]:
    parts = name.split("/")
    if len(parts) == 3:
        parts = ["rollout", *parts]
    if len(parts) != 4 or not all(part.isdigit() for part in parts[1:]):
        raise UserError(f'"{name}" is no trajectory id; write UPDATE/GROUP/MEMBER, or eval/UPDATE/GROUP/MEMBER')
    return parts[0], int(parts[1]), "/".join(parts)


def _find(directory: RunDirectory, stream: str, update: int, name: str) -> Trajectory:
    path = update_path(_folder(directory, stream), update)
    if not path.exists():
        raise UserError(f"update {update} is not stored in {path.parent}")
    for group in read_update(path):
        for trajectory in group.trajectories:
            if trajectory.id == name:
                return trajectory
    raise UserError(
        f"update {update} has no trajectory {name}; list them with: farhorizon show {directory.path} --update {update}"
    )


def _folder(directory: RunDirectory, stream: str) -> Path:
    return directory.evaluations if stream == "eval" else directory.trajectories


def _tokenizer(directory: RunDirectory) -> object | None:
    from farhorizon.models.load import load_tokenizer

    stored = directory.stored_checkpoints()
    return load_tokenizer(directory.checkpoint(stored[-1])) if stored else None


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
