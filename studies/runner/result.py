"""What a finished cell leaves: its measured curve, what it spent, and what made it. One JSON file."""

import json
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from farhorizon.config.base import Table
from farhorizon.core.errors import UserError
from farhorizon.core.files import replace_text
from farhorizon.core.rundir import RunDirectory
from studies.runner.cells import Cell, cell_name
from studies.runner.study import Axis, Places, Study
from studies.runner.versions import Code, Machine


class Point(Table):
    """One measurement, and what training had spent before it."""

    update: int
    """Updates finished."""
    env_steps: float
    sampled_tokens: float
    value: float
    """The study's measure."""
    training_success: float | None
    """Success in training over the last update finished; None before the first, or where no episode counted."""

    def at(self, axis: Axis) -> float:
        """Where it lies along a budget axis."""
        return {"updates": float(self.update), "env_steps": self.env_steps, "sampled_tokens": self.sampled_tokens}[axis]


class Made(Table):
    """The recipe of a cell."""

    base: str
    """Base recipe, relative to the study's file."""
    settings: tuple[str, ...]
    """Set on top of it, as `farhorizon train --set` takes them."""
    hash: str
    """Of the recipe that results (cells.recipe_hash)."""
    start: str
    """Where the policy started: name of a cached start, of a directory or of a model."""


class Cost(Table):
    """What a cell took; never compared."""

    cpu_seconds: float
    """Of its processes, all sessions together."""
    wall_seconds: float
    sessions: int
    """Times it was begun or resumed."""
    sessions_lost: int
    """Sessions whose seconds nobody could write down, because the runner was killed with them."""
    machine: Machine


class Result(Table):
    """A finished cell."""

    study: str
    arm: str
    seed: int
    candidate: int | None
    """Place among the arm's candidates, for a try of the tuning."""
    measure: str
    recipe: Made
    curve: tuple[Point, ...]
    totals: dict[str, float]
    """Everything training spent: the run's last `total/…`, and its updates."""
    code: Code
    cost: Cost

    @property
    def cell(self) -> str:
        """Name of the cell."""
        return cell_name(self.arm, self.seed, self.candidate)


def of_run(places: Places, study: Study, cell: Cell, run: RunDirectory, code: Code, cost: Cost) -> Result:
    """The result of a finished run.

    Raises:
        UserError: the run's metrics hold no value of the study's measure.
    """
    lines = run.read_metrics()
    return Result(
        study=places.name,
        arm=cell.arm,
        seed=cell.seed,
        candidate=cell.candidate,
        measure=study.measure,
        recipe=Made(
            base=study.recipe,
            settings=cell.settings,
            hash=cell.hash,
            start=json.loads((run.path / "run.json").read_text())["source"],
        ),
        curve=curve(lines, study.measure),
        totals=_totals(lines),
        code=code,
        cost=cost,
    )


def curve(lines: Iterable[dict[str, Any]], measure: str) -> tuple[Point, ...]:
    """Every value of a measure, in the order of updates.

    Args:
        lines: of a metrics file. A value in the line of update u, of training or of an evaluation, is that of the
            policy after u updates, so it stands at what was spent by the end of update u - 1.

    Raises:
        UserError: there is none.
    """
    trained = {line["update"]: line for line in lines if line["phase"] == "train"}
    phase = "eval" if measure.startswith("eval/") else "train"
    points = []
    for line in sorted((line for line in lines if line["phase"] == phase), key=lambda line: line["update"]):
        if measure in line:
            before = trained.get(line["update"] - 1, {})
            points.append(
                Point(
                    update=line["update"],
                    env_steps=before.get("total/env_steps", 0.0),
                    sampled_tokens=before.get("total/sampled_tokens", 0.0),
                    value=line[measure],
                    training_success=before.get("success/rate"),
                )
            )
    if not points:
        raise UserError(f'the run has no metric "{measure}"; docs/metrics.md lists what there is')
    return tuple(points)


def _totals(lines: Iterable[dict[str, Any]]) -> dict[str, float]:
    last = max((line for line in lines if line["phase"] == "train"), key=lambda line: line["update"])
    spent = {name.removeprefix("total/"): value for name, value in last.items() if name.startswith("total/")}
    return {"updates": last["update"] + 1, **spent}


def write(places: Places, result: Result) -> None:
    """Put a result in its place, whole or not at all."""
    places.cells.mkdir(parents=True, exist_ok=True)
    replace_text(places.cells / f"{result.cell}.json", text(result))


def text(result: Result) -> str:
    """JSON with a line per key and per point."""
    values = result.model_dump(mode="json")
    points = ",\n  ".join(json.dumps(point) for point in values["curve"])
    lines = [f'"{key}": {json.dumps(value)}' for key, value in values.items()]
    lines[list(values).index("curve")] = f'"curve": [\n  {points}]'
    return "{" + ",\n ".join(lines) + "}\n"


def load(places: Places, name: str) -> Result | None:
    """The stored result of a cell, or None.

    Raises:
        UserError: it cannot be read.
    """
    path = places.cells / f"{name}.json"
    if not path.exists():
        return None
    try:
        return Result.model_validate_json(path.read_text(encoding="utf-8"), strict=True)
    except (ValidationError, UnicodeDecodeError):
        raise UserError(f"{path} is no result of this version; delete it and run the study again") from None


def difference(stored: Result, now: Result) -> str | None:
    """The first thing in which two results differ, `code` and `cost` aside; None when they are identical."""
    values = [result.model_dump(mode="json", exclude={"code", "cost"}) for result in (stored, now)]
    return _difference("", *values)


def _difference(where: str, stored: Any, now: Any) -> str | None:
    if isinstance(stored, dict) and isinstance(now, dict):
        for key in [*stored, *(key for key in now if key not in stored)]:
            if key not in stored or key not in now:
                return f"{where}{key} is only in {'this one' if key in now else 'the stored result'}"
            if (found := _difference(f"{where}{key}.", stored[key], now[key])) is not None:
                return found
        return None
    if isinstance(stored, list) and isinstance(now, list) and len(stored) == len(now):
        pairs = enumerate(zip(stored, now, strict=True))
        return next((f for i, (a, b) in pairs if (f := _difference(f"{where}{i}.", a, b)) is not None), None)
    # Compared as written, so that no two spellings of a number pass for one.
    if json.dumps(stored) == json.dumps(now):
        return None
    return f"{where.removesuffix('.')}: stored {json.dumps(stored)}, now {json.dumps(now)}"
