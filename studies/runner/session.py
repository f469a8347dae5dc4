"""One process of one cell: begun or resumed, its seconds written down, its result stored."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from pydantic import ValidationError

from farhorizon.config import recipe as recipes
from farhorizon.config.base import Table
from farhorizon.core.errors import UserError
from farhorizon.core.files import replace_text
from farhorizon.core.rundir import RunDirectory
from studies.runner.cells import Cell
from studies.runner.result import Cost
from studies.runner.versions import Code, code, machine

COMMAND = [sys.executable, "-c", "from farhorizon.cli.main import main; main()"]
"""The `farhorizon` command under the interpreter that runs this."""


class _State(Table):
    """What is known of a cell between its sessions."""

    hash: str
    """Of its recipe."""
    code: Code
    """That began it."""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    sessions: int = 0
    lost: int = 0
    running: bool = False
    """Whether a session's seconds are still to be added."""


class Session:
    """A running cell. It is resumed where its run directory holds the same recipe and the package is unchanged, else
    begun anew: half a cell under other code would be reproduced by neither."""

    def __init__(self, cell: Cell, runs: Path, keep_open: tuple[int, ...] = ()) -> None:
        """Start the process.

        Args:
            runs: folder of run directories, logs and states.
            keep_open: file descriptors that the process inherits.
        """
        self.cell = cell
        self.run = runs / cell.name
        self.log = runs / f"{cell.name}.log"
        self._state_file = runs / f"{cell.name}.json"
        runs.mkdir(parents=True, exist_ok=True)
        state, now = self._stored_state(), code()
        if state is None or state.hash != cell.hash or state.code.source != now.source:
            shutil.rmtree(self.run, ignore_errors=True)
            self.log.unlink(missing_ok=True)
            state = _State(hash=cell.hash, code=now)
        resumed = RunDirectory(self.run).recipe.exists()
        self._state = state.model_copy(
            update={"sessions": state.sessions + 1, "lost": state.lost + state.running, "running": True}
        )
        self._save()
        # The recipe as it was resolved: its file may change while earlier cells run.
        resolved = runs / f"{cell.name}.toml"
        resolved.write_text(recipes.dump(cell.recipe))
        fresh = ["train", str(resolved), "--run", str(self.run)]
        self._began = time.monotonic()
        with self.log.open("a") as log:
            # A session of its own: Ctrl-C reaches the runner alone, which then stops it in its own way.
            self._process = subprocess.Popen(
                [*COMMAND, *(["train", "--resume", str(self.run)] if resumed else fresh)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                start_new_session=True,
                pass_fds=keep_open,
            )

    def poll(self) -> int | None:
        """Exit status once the process has ended."""
        return self._reap(os.WNOHANG)

    def stop(self) -> None:
        """Ask the process to leave at its last finished update."""
        if self._process.returncode is None:
            self._process.terminate()

    def wait(self) -> int:
        """Exit status, once the process has ended."""
        status = self._reap(0)
        assert status is not None
        return status

    def kill(self) -> None:
        """End the process at once; what it did since its last checkpoint is done again."""
        if self._process.returncode is None:
            self._process.kill()
            self.wait()

    @property
    def code(self) -> Code:
        """What began the cell."""
        return self._state.code

    @property
    def cost(self) -> Cost:
        """Of all its sessions that ended."""
        state = self._state
        return Cost(
            cpu_seconds=round(state.cpu_seconds, 2),
            wall_seconds=round(state.wall_seconds, 2),
            sessions=state.sessions,
            sessions_lost=state.lost,
            machine=machine(),
        )

    @property
    def last_words(self) -> str:
        """Last line of the log."""
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else "it said nothing"

    def _reap(self, options: int) -> int | None:
        if self._process.returncode is None:
            process, status, used = os.wait4(self._process.pid, options)
            if process == 0:
                return None
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self._state = self._state.model_copy(
                update={
                    "cpu_seconds": self._state.cpu_seconds + used.ru_utime + used.ru_stime,
                    "wall_seconds": self._state.wall_seconds + time.monotonic() - self._began,
                    "running": False,
                }
            )
            self._save()
        return self._process.returncode

    def _stored_state(self) -> _State | None:
        if not self._state_file.exists():
            return None
        try:
            return _State.model_validate_json(self._state_file.read_text(), strict=True)
        except ValidationError:
            raise UserError(f"{self._state_file} cannot be read; delete it, and the cell begins anew") from None

    def _save(self) -> None:
        replace_text(self._state_file, self._state.model_dump_json() + "\n")
