"""Many cells, as many at once as there are cores, until they are done, time is up or someone stops them."""

import fcntl
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from farhorizon.core.errors import UserError
from farhorizon.runtime.interrupt import StopSignal
from studies.runner.cells import Cell
from studies.runner.session import Session

PERIOD = 0.1
"""Seconds between two looks at the processes."""


@dataclass
class Outcome:
    """What became of cells."""

    failed: list[str] = field(default_factory=list)
    """A line for each that failed."""
    left: list[str] = field(default_factory=list)
    """Names of those that were never started."""


def run_all(
    cells: Sequence[Cell],
    runs: Path,
    jobs: int,
    deadline: float,
    finished: Callable[[Session], None],
    say: Callable[[str], None],
) -> Outcome:
    """Run cells, `jobs` at a time.

    Args:
        runs: folder of run directories.
        deadline: moment of `time.monotonic` after which none is started; those under way are finished.
        finished: called with each session that ended well.

    Raises:
        Interrupted: a stop was asked for; every process has left, and the next call resumes them.
        UserError: the study is being run already.
    """
    outcome, waiting = Outcome(), deque(cells)
    running: list[Session] = []
    with _alone(runs) as lock, StopSignal() as stop:
        try:
            while running or (waiting and time.monotonic() < deadline):
                stop.check()
                while waiting and len(running) < jobs and time.monotonic() < deadline:
                    running.append(Session(waiting.popleft(), runs, (lock,)))
                time.sleep(PERIOD)
                for session in [session for session in running if session.poll() is not None]:
                    running.remove(session)
                    _ended(session, outcome, finished, say)
        finally:
            _stop(running)
    outcome.left = [cell.name for cell in waiting]
    return outcome


def _ended(session: Session, outcome: Outcome, finished: Callable[[Session], None], say: Callable[[str], None]) -> None:
    name, problem = session.cell.name, None
    if (status := session.poll()) != 0:
        problem = f"exit status {status}: {session.last_words} (all of it: {session.log})"
    else:
        try:
            finished(session)
        except UserError as error:
            problem = str(error)
    if problem is None:
        say(f"{name}: done, {session.cost.cpu_seconds:.0f} CPU-seconds")
    else:
        outcome.failed.append(f"cell {name} failed: {problem}")
        say(outcome.failed[-1])


def _stop(running: Sequence[Session]) -> None:
    """Stop what runs, all at once; on a second Ctrl-C kill it."""
    for session in running:
        session.stop()
    try:
        for session in running:
            session.wait()
    except BaseException:
        for session in running:
            session.kill()
        raise


@contextmanager
def _alone(runs: Path) -> Iterator[int]:
    """Hold the study's lock, which its processes inherit: two commands never write the same run directories, nor does
    one that follows a runner killed without its processes. Gives the lock's descriptor."""
    runs.mkdir(parents=True, exist_ok=True)
    with (runs / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                f"{runs} is in use: the study is being run, or processes of a runner that was killed are still at it"
            ) from None
        yield file.fileno()
