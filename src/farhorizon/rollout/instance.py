"""One environment behind a deadline, so that it can neither block nor hang the run."""

import asyncio
import inspect
import queue
import threading
from collections.abc import Callable
from typing import Any

from farhorizon.core.record import StopReason, Task
from farhorizon.envs.base import Environment, Episode, StepResult


class EnvironmentFault(Exception):
    """The environment raised or did not answer; the trajectory is retried or set aside, never scored (law 4)."""

    def __init__(self, reason: StopReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        """`env_fault` or `timeout`."""


class Instance:
    """Runs an environment's plain methods in a daemon thread of its own and awaits its `async` ones.

    After a fault the thread, perhaps stuck, is abandoned: it belongs to this instance alone.
    """

    def __init__(self, make: Callable[[], Environment], timeout: float) -> None:
        self._make, self._timeout = make, timeout
        self._env: Environment | None = None
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._broken = False

    async def reset(self, task: Task, episode: Episode) -> tuple[str, str | None]:
        """Make the environment and begin; returns the opening observation and the state's key."""
        self._env = await self._in_thread("make", self._make)
        observation = await self._call("reset", task, episode)
        if not isinstance(observation, str):
            raise EnvironmentFault(StopReason.ENV_FAULT, f"reset returned a {type(observation).__name__}, not a str")
        return observation, self._env.state_key()

    async def step(self, action: str) -> tuple[StepResult, str | None]:
        """Act; returns the result and the key of the state that follows."""
        result = await self._call("step", action)
        if not isinstance(result, StepResult):
            raise EnvironmentFault(StopReason.ENV_FAULT, f"step returned a {type(result).__name__}, not a StepResult")
        assert self._env is not None
        return result, self._env.state_key()

    async def close(self) -> None:
        """Close the environment within the deadline; faults while closing are not the episode's."""
        if self._env is not None and not self._broken:
            try:
                await self._call("close")
            except EnvironmentFault:
                pass
        self._calls.put(None)

    async def _call(self, name: str, *arguments: Any) -> Any:
        method = getattr(self._env, name)
        if not inspect.iscoroutinefunction(method):
            return await self._in_thread(name, lambda: method(*arguments))
        return await self._guarded(name, method(*arguments))

    async def _in_thread(self, name: str, function: Callable[[], Any]) -> Any:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="farhorizon-env", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def run() -> None:
            try:
                value, error = function(), None
            except BaseException as raised:
                value, error = None, raised
            try:
                loop.call_soon_threadsafe(_settle, future, value, error)
            except RuntimeError:
                pass  # The loop closed while the environment was still at work: nobody waits for this any more.

        self._calls.put(run)
        return await self._guarded(name, future)

    async def _guarded(self, name: str, awaitable: Any) -> Any:
        try:
            return await asyncio.wait_for(awaitable, self._timeout)
        except TimeoutError:
            self._broken = True
            message = f"{name} did not answer within {self._timeout:g} s"
            raise EnvironmentFault(StopReason.TIMEOUT, message) from None
        except Exception as error:
            self._broken = name != "close"
            message = f"{name} raised {type(error).__name__}: {error}"
            raise EnvironmentFault(StopReason.ENV_FAULT, message) from error

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _settle(future: "asyncio.Future[Any]", value: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
