"""One environment behind a deadline, so that it can neither block nor hang the run."""

import asyncio
import inspect
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
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
    """Runs an environment's plain methods in a daemon thread of its own and awaits what they return if need be.

    An instance that missed its deadline, or was abandoned in the middle of a call, is stuck: its thread may never
    come back, so nothing waits for it any more.
    """

    def __init__(self, make: Callable[[], Environment], timeout: float) -> None:
        self._make, self._timeout = make, timeout
        self._env: Environment | None = None
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._stuck = False

    async def reset(self, task: Task, episode: Episode) -> tuple[str, str | None]:
        """Make the environment and begin; returns the opening observation and the state's key."""
        self._env = await self._call("make", self._make)
        observation = await self._call("reset", self._env.reset, task, episode)
        if not isinstance(observation, str):
            raise EnvironmentFault(StopReason.ENV_FAULT, f"reset returned a {type(observation).__name__}, not a str")
        return observation, await self._state_key()

    async def step(self, action: str) -> tuple[StepResult, str | None]:
        """Act; returns the result and the key of the state that follows."""
        assert self._env is not None
        result = await self._call("step", self._env.step, action)
        if not isinstance(result, StepResult):
            raise EnvironmentFault(StopReason.ENV_FAULT, f"step returned a {type(result).__name__}, not a StepResult")
        return result, await self._state_key()

    async def close(self) -> None:
        """Close the environment, also after a fault; faults while closing are not the episode's.

        A stuck instance is closed by its own thread if that ever comes back.
        """
        if self._env is not None:
            close = self._env.close
            if self._stuck:
                self._calls.put(lambda: _ignoring(close))
            else:
                with suppress(EnvironmentFault):
                    await self._call("close", close)
        self._calls.put(None)

    async def _state_key(self) -> str | None:
        assert self._env is not None
        key = await self._call("state_key", self._env.state_key)
        if key is not None and not isinstance(key, str):
            raise EnvironmentFault(StopReason.ENV_FAULT, f"state_key returned a {type(key).__name__}, not a str")
        return key

    async def _call(self, name: str, method: Callable[..., Any], *arguments: Any) -> Any:
        if inspect.iscoroutinefunction(method):
            return await self._answered(name, asyncio.ensure_future(method(*arguments)))
        value = await self._answered(name, self._in_thread(lambda: method(*arguments)))
        if inspect.isawaitable(value):
            return await self._answered(name, asyncio.ensure_future(value))
        return value

    def _in_thread(self, function: Callable[[], Any]) -> "asyncio.Future[Any]":
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="farhorizon-env", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def run() -> None:
            value, error = None, None
            try:
                value = function()
            except Exception as raised:
                error = raised
            except BaseException as raised:  # sys.exit() in an environment ends the environment, not the run
                error = RuntimeError(f"{type(raised).__name__}: {raised}")
            # The loop may have closed while the environment was still at work: nobody waits for this then.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, future, value, error)

        self._calls.put(run)
        return future

    async def _answered(self, name: str, future: "asyncio.Future[Any]") -> Any:
        try:
            done, _ = await asyncio.wait({future}, timeout=self._timeout)
        except asyncio.CancelledError:
            self._stuck = True
            future.cancel()
            raise
        if not done:
            self._stuck = True
            future.cancel()
            raise EnvironmentFault(StopReason.TIMEOUT, f"{name} did not answer within {self._timeout:g} s")
        try:
            return future.result()
        except (Exception, asyncio.CancelledError) as error:
            raise EnvironmentFault(StopReason.ENV_FAULT, f"{name} raised {type(error).__name__}: {error}") from error

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _settle(future: "asyncio.Future[Any]", value: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    else:
        # A future refuses StopIteration, which would end whoever awaits it.
        future.set_exception(RuntimeError("StopIteration") if isinstance(error, StopIteration) else error)


def _ignoring(close: Callable[[], Any]) -> None:
    with suppress(Exception):
        closing = close()
        if inspect.iscoroutine(closing):
            closing.close()
