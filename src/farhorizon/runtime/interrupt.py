"""Leaving on SIGTERM or Ctrl-C without losing a finished update."""

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any, TypeVar

from farhorizon.core.errors import Interrupted

Result = TypeVar("Result")


class StopSignal:
    """Remembers that the run was asked to stop; a second signal ends the process at once.

    Used as a context manager around the run; the previous handlers come back afterwards.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignal":
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                self._before[number] = signal.signal(number, self._handle)
            except ValueError:
                pass  # Not the main thread: whoever runs us there handles signals.
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise `Interrupted` once a stop was asked for."""
        if self.asked:
            raise Interrupted

    async def guard(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Await `work`, cancelling it as soon as a stop is asked for."""
        task = asyncio.ensure_future(work)
        while not task.done():
            await asyncio.wait({task}, timeout=0.2)
            if self.asked and not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                raise Interrupted
        return task.result()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
