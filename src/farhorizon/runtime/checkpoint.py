"""Checkpoints of a run: what is saved, what is kept, and how a run continues."""

import json
from pathlib import Path
from typing import Any

from farhorizon.core.files import replace_text
from farhorizon.core.rundir import RunDirectory
from farhorizon.core.stateful import Stateful
from farhorizon.models.load import save_model
from farhorizon.runtime.assemble import Parts
from farhorizon.runtime.report import Reporter

STATE = "state"
"""Folder of a checkpoint beside the Hugging Face files."""


class Checkpoints:
    """Saves the parts of a run that have state, keeps the last two checkpoints and the best one."""

    def __init__(self, run: RunDirectory, parts: Parts, report: Reporter) -> None:
        self._run, self._parts, self._report = run, parts, report
        self._best: dict[str, Any] | None = None

    def restore(self) -> int:
        """Load the state of the last whole checkpoint, set aside what is newer; returns the updates finished.

        The policy's weights were loaded from the same checkpoint when the parts were assembled.
        """
        path = self._run.last_checkpoint(lambda _: None)
        finished = 0
        self._best = None
        if path is not None:
            state = json.loads((path / STATE / "run.json").read_text())
            finished, self._best = state["finished"], state["best"]
            for name, part in self._stateful().items():
                part.load_state_dict(state[name])
            self._parts.learner.load(path / STATE)
        self._write_best()
        self._parts.engine.load_weights(self._parts.learner.weights(), finished)
        self._run.set_aside(finished)
        return finished

    def save(self, finished: int) -> None:
        """Save unless this moment is saved already."""
        if finished in self._run.stored_checkpoints():
            return
        self._run.save_checkpoint(finished, lambda directory: self._write(directory, finished))
        self._run.prune({self._best["finished"]} if self._best else set())

    def keep_if_best(self, finished: int, success: float) -> None:
        """Save and mark as best when no earlier evaluation did as well."""
        if self._best is not None and success <= self._best["success"]:
            return
        self._best = {"finished": finished, "success": success}
        self.save(finished)
        self._write_best()

    def _stateful(self) -> dict[str, Stateful]:
        """Parts whose state is not in the learner's files."""
        parts = self._parts
        named = {
            "stats": parts.stats, "ledger": parts.ledger, "tasks": parts.tasks, "horizon": parts.horizon,
            "reward": parts.reward,
        }  # fmt: skip
        return {name: part for name, part in named.items() if isinstance(part, Stateful)}

    def _write_best(self) -> None:
        path = self._run.path / "best.json"
        if self._best is None:
            path.unlink(missing_ok=True)
        else:
            replace_text(path, json.dumps(self._best) + "\n")

    def _write(self, directory: Path, finished: int) -> None:
        parts = self._parts
        save_model(parts.learner.model, parts.tokenizer, directory)
        state = directory / STATE
        state.mkdir()
        parts.learner.save(state)
        facts: dict[str, Any] = {name: part.state_dict() for name, part in self._stateful().items()}
        facts |= {"finished": finished, "best": self._best}
        (state / "run.json").write_text(json.dumps(facts))
