"""One episode: an agent, an environment, and the limits in force."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from farhorizon.agents.base import Agent
from farhorizon.config.tables import Rollout
from farhorizon.core.errors import UserError
from farhorizon.core.record import Call, Context, Origin, Reward, Status, StopReason, Task, Turn
from farhorizon.core.seeds import Key
from farhorizon.engines.base import Engine, Generation, Limits, Request, Sampling
from farhorizon.envs.base import Episode
from farhorizon.rollout.instance import Instance

_CUT = {StopReason.TRAJECTORY_TOKENS, StopReason.CONTEXT_OVERFLOW}


class OutOfTokens(Exception):
    """No room for a single token."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason = reason
        """Which limit binds."""


@dataclass(frozen=True, eq=False)
class Played:
    """What an episode came to."""

    contexts: tuple[Context, ...]
    turns: tuple[Turn, ...]
    rewards: tuple[Reward, ...]
    status: Status
    stop_reason: StopReason
    success: bool | None
    forks: int


class EpisodePlayer:
    """Plays one episode to its end.

    Args:
        key: names the episode's noise; turn and call are filled in.
        on_step: called whenever the environment has taken an action.
    """

    def __init__(
        self,
        *,
        agent: Agent,
        instance: Instance,
        engine: Engine,
        limits: Rollout,
        sampling: Sampling,
        key: Key,
        on_step: Callable[[], None],
    ) -> None:
        self._agent, self._instance, self._engine = agent, instance, engine
        self._limits, self._sampling, self._key, self._on_step = limits, sampling, key, on_step
        self._session = "/".join(map(str, (key.stream, key.update, key.group, key.member, key.retry)))
        self._sampled = 0
        self._turns: list[Turn] = []
        self._rewards: list[Reward] = []
        self._success: bool | None = None

    async def play(self, task: Task, episode: Episode) -> Played:
        """Replay the start, then let the agent act until something ends the episode.

        Raises:
            EnvironmentFault: the environment broke; nothing of this attempt is kept.
        """
        try:
            status, reason = await self._play(task, episode)
        finally:
            for context in range(max(1, len(self._agent.contexts()))):
                await self._engine.release(self._named(context))
        return Played(
            self._agent.contexts(),
            tuple(self._turns),
            tuple(self._rewards),
            status,
            reason,
            self._success,
            self._agent.forks,
        )

    async def _play(self, task: Task, episode: Episode) -> tuple[Status, StopReason]:
        observation, state_key = await self._instance.reset(task, episode)
        for action in episode.start.actions:
            turn = replace(self._agent.replay(observation, action, Origin.PREFIX), state_key=state_key)
            result, state_key = await self._instance.step(action)
            self._on_step()
            if result.terminated or result.truncated or result.info.get("valid") is False:
                raise UserError(
                    f"the start of task {task.id} cannot be reached: {action!r} is answered {result.observation!r}"
                )
            observation = result.observation
            self._turns.append(replace(turn, success=result.success, info=result.info))
        for _ in range(episode.horizon):
            try:
                turn = replace(await self._agent.act(observation, self._generate), state_key=state_key)
            except OutOfTokens as out:
                return Status.TRUNCATED, out.reason
            turn = self._with_sampling(turn)
            cut = turn.calls[-1].stop_reason
            if cut in _CUT:
                error = "The token limit cut the action off."
                self._turns.append(replace(turn, parsed=None, parse_error=error, info={"valid": False}))
                return Status.TRUNCATED, cut
            if turn.parsed is None:
                assert turn.parse_error is not None
                observation = turn.parse_error
                self._turns.append(replace(turn, info={"valid": False}))
                continue
            began = time.perf_counter()
            result, state_key = await self._instance.step(turn.parsed)
            self._on_step()
            timings = {**turn.timings, "env": time.perf_counter() - began}
            self._turns.append(
                replace(
                    turn,
                    info=result.info,
                    terminated=result.terminated,
                    truncated=result.truncated,
                    success=result.success,
                    timings=timings,
                )
            )
            if result.reward:
                self._rewards.append(Reward("environment", float(result.reward), len(self._turns) - 1))
            self._success = result.success if result.success is not None else self._success
            observation = result.observation
            if result.terminated:
                return Status.OK, StopReason.TERMINATED
            if result.truncated:
                return Status.TRUNCATED, StopReason.ENV_TRUNCATED
        return Status.TRUNCATED, StopReason.HORIZON

    async def _generate(self, prompt: NDArray[np.int32], context: int, call: int, stop: frozenset[int]) -> Generation:
        limits = Limits(
            turn=self._limits.max_turn_tokens,
            trajectory=self._limits.max_trajectory_tokens - self._sampled,
            context=self._limits.context_tokens,
        )
        room, reason = limits.binding(len(prompt))
        if room == 0:
            raise OutOfTokens(reason)
        key = self._key.at(turn=len(self._turns), call=call)
        generation = await self._engine.generate(
            Request(prompt, key, self._sampling, limits, stop, session=self._named(context))
        )
        self._sampled += len(generation.token_ids)
        return generation

    def _with_sampling(self, turn: Turn) -> Turn:
        sampling = {"temperature": self._sampling.temperature}
        calls: tuple[Call, ...] = tuple(replace(call, sampling=sampling) for call in turn.calls)
        return replace(turn, calls=calls)

    def _named(self, context: int) -> str:
        return f"{self._session}/{context}"
