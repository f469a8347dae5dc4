"""The command line: studies/run."""

import argparse
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from farhorizon.config.registry import suggestion
from farhorizon.core.errors import Interrupted, UserError
from farhorizon.core.rundir import RunDirectory
from studies.runner import limits, page, result
from studies.runner.cells import Cell, cell_name, main_cells, tuning_cells
from studies.runner.compare import best_candidates
from studies.runner.pool import run_all
from studies.runner.result import Result
from studies.runner.session import Session
from studies.runner.study import Places, Study, names, read

FAILED, MISTAKE, LEFT, STOPPED = 1, 2, 3, 130
"""Exit statuses."""


def main(root: Path, arguments: Sequence[str]) -> int:
    """Run the command; returns its exit status.

    Args:
        root: directory with `studies/`, `docs/` and `runs/`.
    """
    asked = _parser().parse_args(arguments)
    try:
        if asked.list:
            return _list(root)
        if asked.name is None:
            raise UserError("name a study, or --list them")
        places = Places(root, asked.name)
        study = read(places)
        if asked.check:
            return _check(places, study, asked.check)
        _require_matplotlib()
        if asked.report:
            return _report(places, study)
        deadline = time.monotonic() + (_seconds(asked.budget) if asked.budget else float("inf"))
        return _run(places, study, asked.jobs, deadline)
    except UserError as error:
        print(f"studies/run: {error}", file=sys.stderr)
        return MISTAKE
    except (Interrupted, KeyboardInterrupt):
        print("studies/run: stopped; the same command goes on from here", file=sys.stderr)
        return STOPPED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="studies/run", description="Run a study, or what is left of it.")
    parser.add_argument("name", nargs="?", metavar="NAME", help="the study: studies/NAME.toml")
    parser.add_argument("--budget", metavar="60m", help="start no cell once this much time is spent (s, m or h)")
    cores = os.cpu_count() or 1
    parser.add_argument("--jobs", type=_count, default=cores, metavar="N", help="cells at a time; default: every core")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--check", metavar="ARM-sSEED", help="run a stored cell again and compare bit for bit")
    instead.add_argument("--report", action="store_true", help="only write the page again, from the stored results")
    instead.add_argument("--list", action="store_true", help="studies, and how far they are")
    return parser


@dataclass
class _Work:
    """What a command works on, and what came of it."""

    places: Places
    study: Study
    jobs: int
    deadline: float
    failed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def do(self, cells: Sequence[Cell]) -> list[Result]:
        """Run the cells that have no result yet; returns the results there are."""
        todo = [cell for cell in cells if _current(self.places, self.study, cell) is None]
        if todo and time.monotonic() < self.deadline:
            from studies.runner import starts  # brings PyTorch, which all else does without

            _say(f"cells to run: {len(todo)} of {len(cells)}")
            starts.make([cell.recipe for cell in todo], _say)
        if todo:
            outcome = run_all(todo, self.places.runs, self.jobs, self.deadline, self._finished, _say)
            self.failed += outcome.failed
            self.left += outcome.left
        return [found for cell in cells if (found := _current(self.places, self.study, cell)) is not None]

    def _finished(self, session: Session) -> None:
        run = RunDirectory.open(session.run)
        made = result.of_run(self.places, self.study, session.cell, run, session.code, session.cost)
        result.write(self.places, made)


def _run(places: Places, study: Study, jobs: int, deadline: float) -> int:
    work = _Work(places, study, jobs, deadline)
    candidates = tuning_cells(places, study)
    main_cells(places, study, {})  # A mistake in an arm's recipe should be found before its tries run.
    tries = work.do(candidates)
    results: list[Result] = []
    if len(tries) == len(candidates):
        results = work.do(main_cells(places, study, best_candidates(tries, study.budget[0]) if tries else {}))
    else:
        work.left += [cell_name(arm, seed, None) for seed in study.seeds for arm in study.arms]
    if results:
        page.write(places, study, results, tries, stale=set())
        _say(f"{limits.summary([*results, *tries])} Page: {places.page}")
    for line in (broken := limits.broken(study, [*results, *tries])):
        _say(line)
    if work.failed:
        _say(f"{len(work.failed)} cells failed")
        return FAILED
    if work.left:
        _say(f"the time is spent; {len(work.left)} cells are left: {', '.join(work.left)}")
        return LEFT
    return FAILED if broken else 0


def _report(places: Places, study: Study) -> int:
    """The page from what is stored, whether or not the recipe has changed since; where it has, the page says so."""
    candidates = tuning_cells(places, study)
    tries = [found for cell in candidates if (found := result.load(places, cell.name))]
    winners = best_candidates(tries, study.budget[0]) if len(tries) == len(candidates) and tries else {}
    cells = main_cells(places, study, winners)
    results = [found for cell in cells if (found := result.load(places, cell.name))]
    if not results:
        raise UserError(f"{places.cells} holds no result of this study; run it: studies/run {places.name}")
    hashes = {cell.name: cell.hash for cell in [*candidates, *cells]}
    stale = {found.cell for found in [*tries, *results] if found.recipe.hash != hashes[found.cell]}
    page.write(places, study, results, tries, stale)
    _say(f"{len(results)} of {len(cells)} cells. Page: {places.page}")
    return 0


def _check(places: Places, study: Study, name: str) -> int:
    """Run one stored cell again."""
    candidates = tuning_cells(places, study)
    tries = [found for cell in candidates if (found := result.load(places, cell.name))]
    if len(tries) < len(candidates):
        raise UserError("the tuning is not finished, so what its winners are is not known; run the study first")
    winners = best_candidates(tries, study.budget[0]) if tries else {}
    cells = {cell.name: cell for cell in [*candidates, *main_cells(places, study, winners)]}
    if name not in cells:
        raise UserError(f'study {places.name} has no cell "{name}"{suggestion(name, cells)}')
    stored = result.load(places, name)
    if stored is None:
        raise UserError(f"cell {name} has no stored result to compare with; run the study first")
    folder = Path(tempfile.mkdtemp(prefix="study-check-"))
    work = _Work(Places(folder, places.name), study, 1, float("inf"))
    try:
        made = work.do([cells[name]])
    finally:
        if not work.failed:
            shutil.rmtree(folder)
    if work.failed:
        raise UserError(work.failed[0])
    differs = result.difference(stored, made[0])
    if stored.cost.machine != made[0].cost.machine:
        _say(f"measured on another type of machine: {stored.cost.machine.cpu}, {stored.cost.machine.cores} cores")
    _say(f"{name}: identical" if differs is None else f"{name} differs: {differs}")
    return 0 if differs is None else FAILED


def _list(root: Path) -> int:
    for name in names(root):
        places = Places(root, name)
        try:
            study = read(places)
            candidates = tuning_cells(places, study)
            tries = [found for cell in candidates if (found := _current(places, study, cell))]
            tuned = len(tries) == len(candidates)
            winners = best_candidates(tries, study.budget[0]) if tuned and tries else {}
            cells = main_cells(places, study, winners)
            done = sum(_current(places, study, cell) is not None for cell in cells) if tuned else 0
        except UserError as error:
            _say(f"{name}: {error}")
            continue
        tuning = f", tuning {len(tries)} of {len(candidates)}" if candidates else ""
        _say(f"{name}: {done} of {len(cells)} cells{tuning}{', long' if study.long else ''}. {study.title}")
    return 0


def _current(places: Places, study: Study, cell: Cell) -> Result | None:
    """The stored result of a cell, if it holds the study's measure on the recipe that the cell has now."""
    found = result.load(places, cell.name)
    if found is None or (found.recipe.hash, found.measure) != (cell.hash, study.measure):
        return None
    return found


def _seconds(text: str) -> float:
    matched = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if matched is None:
        raise UserError(f"--budget {text}: write it as 90s, 60m or 2h")
    return float(matched[1]) * {"s": 1, "m": 60, "h": 3600}[matched[2]]


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of cells")
    return int(text)


def _require_matplotlib() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError('figures need matplotlib, not installed here: pip install "farhorizon[studies]"')


def _say(line: str) -> None:
    print(line, flush=True)
