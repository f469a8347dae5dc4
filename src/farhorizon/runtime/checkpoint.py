"""Checkpoints of a run: what is saved, what is kept, and how a run continues."""

import json
from pathlib import Path
from typing import Any

from farhorizon.core.rundir import RunDirectory, replace_text
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
        if path is not None:
            state = json.loads((path / STATE / "run.json").read_text())
            finished, self._best = state["finished"], state["best"]
            self._parts.stats.load_state_dict(state["stats"])
            self._parts.ledger.load_state_dict(state["ledger"])
            self._parts.learner.load(path / STATE)
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
        replace_text(self._run.path / "best.json", json.dumps(self._best) + "\n")

    def _write(self, directory: Path, finished: int) -> None:
        parts = self._parts
        save_model(parts.learner.model, parts.tokenizer, directory)
        state = directory / STATE
        state.mkdir()
        parts.learner.save(state)
        facts = {
            "finished": finished,
            "best": self._best,
            "stats": parts.stats.state_dict(),
            "ledger": parts.ledger.state_dict(),
        }
        (state / "run.json").write_text(json.dumps(facts))
