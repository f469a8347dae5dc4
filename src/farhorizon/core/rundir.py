"""A run on disk, and checkpoints that are whole or not there.

RUN/recipe.toml        every value of the recipe, written out
RUN/run.json           versions, machine, model
RUN/metrics.jsonl      one line per update and per evaluation
RUN/trajectories/      what happened in training (core/store.py)
RUN/evaluations/       the same for evaluation
RUN/checkpoints/       Hugging Face directories with `state/` and a completion marker
RUN/set_aside/         what a resumed run found newer than its checkpoint
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from farhorizon.core.errors import UserError
from farhorizon.core.store import stored_updates, update_path

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
        if run.recipe.exists():
            raise UserError(f"{path} already holds a run; resume it with --resume {path}, or name another directory")
        path.mkdir(parents=True, exist_ok=True)
        (path / "run.json").write_text(json.dumps(facts, indent=2) + "\n")
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
        """Move what is newer than the first `finished` updates out of the way: metrics lines, stored updates."""
        lines = self.read_metrics()
        newer = [line for line in lines if line["update"] >= finished]
        if newer:
            aside = self.path / "set_aside"
            aside.mkdir(exist_ok=True)
            with (aside / "metrics.jsonl").open("a") as lines_aside:
                lines_aside.writelines(json.dumps(line) + "\n" for line in newer)
        if self.metrics_file.exists():
            kept = [line for line in lines if line["update"] < finished]
            replace_text(self.metrics_file, "".join(json.dumps(line) + "\n" for line in kept))
        for directory in (self.trajectories, self.evaluations):
            for update in (u for u in stored_updates(directory) if u >= finished):
                aside = self.path / "set_aside" / directory.name
                aside.mkdir(parents=True, exist_ok=True)
                stem = update_path(directory, update).stem
                for file in directory.glob(f"{stem}.*"):
                    os.replace(file, aside / file.name)

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
                "files": {str(f.relative_to(aside)): _digest(f) for f in _files(aside)},
            }
            (aside / MARKER).write_text(json.dumps(marker, indent=1))
            for file in _files(aside):
                _sync(file)
            shutil.rmtree(final, ignore_errors=True)
            os.replace(aside, final)
            _sync(self.checkpoints)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        return final

    def checkpoint(self, finished: int) -> Path:
        """Where the checkpoint after `finished` updates is or would be."""
        return self.checkpoints / f"update-{finished:06d}"

    def stored_checkpoints(self) -> list[int]:
        """Finished updates of the checkpoints in place, oldest first, whole or not."""
        return sorted(int(path.name.removeprefix("update-")) for path in self.checkpoints.glob("update-*"))

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


def disk_is_full(error: BaseException) -> bool:
    """Whether a write failed for want of space; libraries wrap the system's error in their own."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return "os error 28" in str(error) or "No space left on device" in str(error)


def checkpoint_problem(path: Path) -> str | None:
    """What is wrong with a checkpoint, or None when every file has the recorded size and digest."""
    try:
        marker = json.loads((path / MARKER).read_text())
    except (OSError, json.JSONDecodeError):
        return "it has no completion marker"
    for name, recorded in marker["files"].items():
        file = path / name
        if not file.exists():
            return f"{name} is missing"
        if _digest(file) != recorded:
            return f"{name} is damaged"
    return None


def replace_text(path: Path, text: str) -> None:
    """Write aside, then rename."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(text)
    os.replace(aside, path)


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
