"""Many episodes at once: each runs at its own pace, broken environments are retried or set aside."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from farhorizon.agents.base import AgentFactory
from farhorizon.config.tables import Rollout
from farhorizon.core.record import Group, PolicyRef, Trajectory
from farhorizon.core.seeds import Key
from farhorizon.engines.base import Engine, Sampling
from farhorizon.envs.base import Episode, World
from farhorizon.rollout.episode import EpisodePlayer
from farhorizon.rollout.instance import EnvironmentFault, Instance
from farhorizon.rollout.setting_aside import FaultsInARow, short_reason, unplayed
from farhorizon.tasks.base import Assignment


@dataclass(frozen=True)
class Circumstances:
    """What a batch of episodes has in common."""

    stream: str
    """Noise stream: `rollout` or `eval`."""
    update: int
    """Update they belong to."""
    horizon: int
    """Maximum turns, fixed when they start (law 5)."""
    sampling: Sampling
    """How tokens are drawn."""
    version: int = 0
    """Policy version when they start."""
    training: bool = True
    """False in evaluation."""
    first_group: int = 0
    """Index of the first group, for groups asked for again within an update."""


class Driver:
    """Rolls out groups of episodes on one world, agent and engine."""

    def __init__(self, *, world: World, agent: AgentFactory, engine: Engine, limits: Rollout, seed: int) -> None:
        self._world, self._agent, self._engine, self._limits, self._seed = world, agent, engine, limits, seed
        self._faults = FaultsInARow(world.name, limits.max_consecutive_faults)

    async def groups(
        self,
        assignments: Sequence[Assignment],
        given: Circumstances,
        on_done: Callable[[Trajectory], None] | None = None,
    ) -> list[Group]:
        """Play every member of every assignment; groups come back in order, whole or saying why not.

        Args:
            on_done: called as each trajectory ends, in no particular order.

        Raises:
            UserError: `max_consecutive_faults` environment faults in a row; names the environment and the last fault.
        """
        order = [(g, m) for g, assignment in enumerate(assignments) for m in range(assignment.size)]
        waiting = iter(order)
        played: dict[tuple[int, int], Trajectory] = {}

        async def worker() -> None:
            for g, m in waiting:
                played[g, m] = await self._trajectory(assignments[g], given, given.first_group + g, m)
                if on_done is not None:
                    on_done(played[g, m])

        tasks = []
        for _ in range(min(self._limits.concurrency, len(order))):
            # A worker takes its seat before any of them starts, and keeps it: a lockstep engine must never
            # begin a batch while an episode is between two workers' hands.
            seat = self._engine.participant()
            seat.__enter__()
            task = asyncio.ensure_future(worker())
            task.add_done_callback(partial(_leave, seat))
            tasks.append(task)
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        return [
            self._group(assignment, given, g, [played[g, m] for m in range(assignment.size)])
            for g, assignment in enumerate(assignments)
        ]

    def _group(self, assignment: Assignment, given: Circumstances, g: int, members: list[Trajectory]) -> Group:
        index = given.first_group + g
        return Group(
            id=f"{given.stream}/{given.update}/{index}",
            task=assignment.task,
            trajectories=tuple(members),
            start_depth=assignment.start.depth,
            seed=self._key(given, index, -1).digest(),
            requested=assignment.size,
            short_reason=short_reason(members),
            weight=assignment.weight,
        )

    async def _trajectory(self, assignment: Assignment, given: Circumstances, group: int, member: int) -> Trajectory:
        key = self._key(given, group, member)
        episode = Episode(
            seed=key.digest(),
            group_seed=self._key(given, group, -1).digest(),
            update=given.update,
            horizon=given.horizon,
            start=assignment.start,
            training=given.training,
        )
        name = f"{given.stream}/{given.update}/{group}/{member}"
        blank = unplayed(name, assignment.task, episode, group, PolicyRef(version=given.version))
        faults: list[str] = []
        for retry in range(self._limits.retries + 1):
            instance = Instance(self._world.make, self._limits.env_timeout)
            player = EpisodePlayer(
                agent=self._agent.begin(episode),
                instance=instance,
                engine=self._engine,
                limits=self._limits,
                sampling=given.sampling,
                key=key.at(retry=retry),
                on_step=self._faults.stepped,
            )
            try:
                done = await player.play(assignment.task, episode)
            except EnvironmentFault as fault:
                faults.append(str(fault))
                blank = replace(blank, stop_reason=fault.reason)
                self._faults.add(fault)
                continue
            finally:
                await instance.close()
            return replace(
                blank,
                contexts=done.contexts,
                turns=done.turns,
                rewards=done.rewards,
                status=done.status,
                stop_reason=done.stop_reason,
                success=done.success,
                retries=retry,
                faults=tuple(faults),
                forks=done.forks,
            )
        return replace(blank, retries=self._limits.retries, faults=tuple(faults))

    def _key(self, given: Circumstances, group: int, member: int) -> Key:
        return Key(self._seed, given.stream, update=given.update, group=group, member=member)


def _leave(seat: AbstractContextManager[None], _: Any) -> None:
    seat.__exit__(None, None, None)
