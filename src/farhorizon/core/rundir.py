"""A run on disk, and checkpoints that are whole or not there.

RUN/recipe.toml        every value of the recipe, written out
RUN/run.json           versions, machine, model
RUN/metrics.jsonl      one line per update and per evaluation
RUN/trajectories/      what happened in training (core/store.py)
RUN/evaluations/       the same for evaluation
RUN/checkpoints/       Hugging Face directories with `state/` and a completion marker
RUN/set_aside/         what a resumed run found newer than its checkpoint
"""

import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from farhorizon.core.errors import UserError
from farhorizon.core.files import replace_text, sha256, sync
from farhorizon.core.store import numbered, stored_updates, update_path

MARKER = "COMPLETE.json"


class RunDirectory:
    """Paths of a run, its metrics file, its checkpoints."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trajectories = path / "trajectories"
        self.evaluations = path / "evaluations"
        self.checkpoints = path / "checkpoints"
        self.tensorboard = path / "tensorboard"

    @property
    def recipe(self) -> Path:
        """The resolved recipe."""
        return self.path / "recipe.toml"

    @property
    def facts(self) -> Path:
        """Versions, machine, model; an evaluation's directory has none."""
        return self.path / "run.json"

    @property
    def metrics_file(self) -> Path:
        """One JSON object a line."""
        return self.path / "metrics.jsonl"

    @classmethod
    def create(cls, path: Path, recipe: str, facts: dict[str, Any]) -> "RunDirectory":
        """Start a run in a new directory.

        Raises:
            UserError: the directory already holds a run.
        """
        run = cls(path)
        if path.exists() and not path.is_dir():
            raise UserError(f"{path} is a file, not a directory for a run")
        if run.recipe.exists():
            raise UserError(f"{path} already holds a run; resume it with --resume {path}, or name another directory")
        path.mkdir(parents=True, exist_ok=True)
        run.facts.write_text(json.dumps(facts, indent=2) + "\n")
        replace_text(run.recipe, recipe)
        return run

    @classmethod
    def open(cls, path: Path) -> "RunDirectory":
        """An existing run.

        Raises:
            UserError: there is none.
        """
        run = cls(path)
        if not run.recipe.exists():
            raise UserError(f"{path} is not a run: it has no recipe.toml")
        return run

    def append_metrics(self, line: dict[str, Any]) -> None:
        """Add a line to the metrics file."""
        with self.metrics_file.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def read_metrics(self) -> list[dict[str, Any]]:
        """All whole lines of the metrics file; a last line cut off by a crash is left out."""
        if not self.metrics_file.exists():
            return []
        lines = []
        for line in self.metrics_file.read_text().splitlines():
            try:
                lines.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        return lines

    def set_aside(self, finished: int) -> None:
        """Move what is newer than the first `finished` updates out of the way, and what a crash left half-written.

        Metrics lines, stored updates and damaged checkpoints go to a folder of their own under `set_aside/`.
        """
        aside = self.path / "set_aside" / str(len(list(self.path.glob("set_aside/*"))))
        lines = self.read_metrics()
        newer = [line for line in lines if line["update"] >= finished]
        if newer:
            aside.mkdir(parents=True, exist_ok=True)
            (aside / "metrics.jsonl").write_text(_lines(newer))
        if self.metrics_file.exists():
            replace_text(self.metrics_file, _lines(line for line in lines if line["update"] < finished))
        for directory in (self.trajectories, self.evaluations):
            for update in (u for u in stored_updates(directory) if u >= finished):
                stem = update_path(directory, update).stem
                self._move(directory.glob(f"{stem}.*"), aside / directory.name)
            for leftover in directory.glob(".update-*"):
                leftover.unlink()
        for leftover in self.checkpoints.glob(".update-*"):
            shutil.rmtree(leftover)
        newer_checkpoints = [self.checkpoint(n) for n in self.stored_checkpoints() if n > finished]
        self._move(newer_checkpoints, aside / "checkpoints")

    def _move(self, paths: Iterable[Path], folder: Path) -> None:
        for path in paths:
            folder.mkdir(parents=True, exist_ok=True)
            os.replace(path, folder / path.name)

    def save_checkpoint(self, finished: int, write: Callable[[Path], None]) -> Path:
        """Write a checkpoint aside, mark it complete, rename it into place.

        Args:
            finished: updates finished so far.
            write: fills the directory it is given. When it raises, nothing of the checkpoint is left behind and
                earlier ones are untouched.
        """
        final = self.checkpoint(finished)
        aside = final.with_name(f".{final.name}.partial")
        try:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            write(aside)
            marker = {
                "finished": finished,
                "files": {str(f.relative_to(aside)): sha256(f) for f in _files(aside)},
            }
            (aside / MARKER).write_text(json.dumps(marker, indent=1))
            for file in _files(aside):
                sync(file)
            shutil.rmtree(final, ignore_errors=True)
            os.replace(aside, final)
            sync(self.checkpoints)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        return final

    def checkpoint(self, finished: int) -> Path:
        """Where the checkpoint after `finished` updates is or would be."""
        return self.checkpoints / f"update-{finished:06d}"

    def stored_checkpoints(self) -> list[int]:
        """Finished updates of the checkpoints in place, oldest first, whole or not."""
        return numbered(self.checkpoints)

    def last_checkpoint(self, warn: Callable[[str], None]) -> Path | None:
        """The newest whole checkpoint; torn ones are named in a warning and skipped."""
        for finished in reversed(self.stored_checkpoints()):
            path = self.checkpoint(finished)
            problem = checkpoint_problem(path)
            if problem is None:
                return path
            warn(f"checkpoint {path} is skipped: {problem}")
        return None

    def prune(self, keep: set[int], last: int = 2) -> None:
        """Delete all but the newest `last` checkpoints and those of the updates in `keep`."""
        stored = self.stored_checkpoints()
        for finished in stored[:-last]:
            if finished not in keep:
                shutil.rmtree(self.checkpoint(finished))


def checkpoint_problem(path: Path) -> str | None:
    """What is wrong with a checkpoint, or None when every file has the recorded size and digest."""
    try:
        recorded_files = json.loads((path / MARKER).read_text())["files"].items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "it has no completion marker"
    for name, recorded in recorded_files:
        file = path / name
        if not file.exists():
            return f"{name} is missing"
        if sha256(file) != recorded:
            return f"{name} is damaged"
    return None


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def _lines(lines: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)
