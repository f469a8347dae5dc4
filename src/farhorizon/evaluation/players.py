"""Evaluating players that are not models: oracle, random, a world's heuristics."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from farhorizon.config.tables import Rollout
from farhorizon.core.record import Group, PolicyRef, Reward, Status, StopReason, Task, Trajectory, Turn
from farhorizon.core.seeds import Key
from farhorizon.envs.base import Environment, Episode, StepResult, World
from farhorizon.envs.players import MakePlayer, Played, play
from farhorizon.evaluation.subject import STREAM, UPDATE
from farhorizon.rollout.instance import EnvironmentFault, Instance
from farhorizon.rollout.setting_aside import FaultsInARow, short_reason, unplayed

TASKS_AT_ONCE = 64
"""Tasks between two writes to disk; players take their turns one after the other."""


class PlayerSubject:
    """A player as the subject of an evaluation; retries and deadlines are those of `[rollout]`."""

    tasks_at_once = TASKS_AT_ONCE

    def __init__(
        self,
        name: str,
        make: MakePlayer,
        *,
        world: World,
        limits: Rollout,
        turns: int,
        seed: int,
    ) -> None:
        self.facts: dict[str, Any] = {"kind": "player", "name": name}
        self._make, self._world, self._limits = make, world, limits
        self._turns, self._seed = turns, seed
        self._faults = FaultsInARow(world.name, limits.max_consecutive_faults)

    async def play(
        self, tasks: Sequence[Task], samples: int, first: int, on_done: Callable[[Trajectory], None] | None = None
    ) -> list[Group]:
        """See `Subject.play`.

        Raises:
            UserError: `max_consecutive_faults` environment faults in a row, or nobody knows a task's solution.
        """
        groups = []
        for place, task in enumerate(tasks, start=first):
            members = []
            for sample in range(samples):
                members.append(await self._trajectory(task, place, sample))
                if on_done is not None:
                    on_done(members[-1])
            groups.append(
                Group(
                    id=f"{STREAM}/{UPDATE}/{place}",
                    task=task,
                    trajectories=tuple(members),
                    start_depth=0,
                    seed=self._key(place, -1).digest(),
                    requested=samples,
                    short_reason=short_reason(members),
                )
            )
        return groups

    def close(self) -> None:
        """Nothing is held between episodes."""

    async def _trajectory(self, task: Task, place: int, sample: int) -> Trajectory:
        name = f"{STREAM}/{UPDATE}/{place}/{sample}"
        episode = Episode(
            seed=self._key(place, sample).digest(),
            group_seed=self._key(place, -1).digest(),
            update=UPDATE,
            horizon=self._turns,
            training=False,
        )
        blank = unplayed(name, task, episode, place, PolicyRef(name=self.facts["name"]))
        faults: list[str] = []
        for retry in range(self._limits.retries + 1):
            environment = _Guarded(self._world.make, self._limits.env_timeout)
            player = self._make(task, Key(self._seed, "player", UPDATE, place, sample))
            try:
                played = await play(environment, task, player, episode)
            except EnvironmentFault as fault:
                faults.append(str(fault))
                blank = replace(blank, stop_reason=fault.reason)
                self._faults.add(fault)
                continue
            finally:
                await environment.close()
            self._faults.stepped()
            return replace(_filled(blank, played), retries=retry, faults=tuple(faults))
        return replace(blank, retries=self._limits.retries, faults=tuple(faults))

    def _key(self, place: int, sample: int) -> Key:
        return Key(self._seed, STREAM, UPDATE, place, sample)


class _Guarded(Environment):
    """An environment behind a deadline, so that its faults are told from the player's: those raise as they are."""

    def __init__(self, make: Callable[[], Environment], timeout: float) -> None:
        self._make = make
        self._inner: Environment | None = None
        self._instance = Instance(self._made, timeout)

    async def reset(self, task: Task, episode: Episode) -> str:
        return (await self._instance.reset(task, episode))[0]

    async def step(self, action: str) -> StepResult:
        return (await self._instance.step(action))[0]

    async def close(self) -> None:
        await self._instance.close()

    def available_actions(self) -> Sequence[str] | None:
        assert self._inner is not None, "the player acts after reset"
        return self._inner.available_actions()

    def _made(self) -> Environment:
        self._inner = self._make()
        return self._inner


def _filled(blank: Trajectory, played: Played) -> Trajectory:
    """The trajectory of an episode that was played to its end."""
    observation, turns, rewards = played.opening, [], []
    success: bool | None = None
    for place, (action, result) in enumerate(played.steps):
        turns.append(
            Turn(
                observation,
                action,
                parsed=action,
                terminated=result.terminated,
                truncated=result.truncated,
                success=result.success,
                info=result.info,
            )
        )
        if result.reward:
            rewards.append(Reward("environment", result.reward, place))
        success = success if result.success is None else result.success
        observation = result.observation
    status, reason = Status.TRUNCATED, StopReason.HORIZON
    if turns[-1].terminated:
        status, reason = Status.OK, StopReason.TERMINATED
    elif turns[-1].truncated:
        reason = StopReason.ENV_TRUNCATED
    return replace(
        blank, turns=tuple(turns), rewards=tuple(rewards), status=status, stop_reason=reason, success=success
    )
