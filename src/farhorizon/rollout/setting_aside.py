"""What becomes of episodes that an environment broke, whoever played them (law 4)."""

from collections.abc import Sequence

from farhorizon.core.errors import UserError
from farhorizon.core.record import PolicyRef, Status, StopReason, Task, Trajectory
from farhorizon.envs.base import Episode
from farhorizon.rollout.instance import EnvironmentFault


class FaultsInARow:
    """Counts environment faults with no step taken between them, over all episodes of one world."""

    def __init__(self, world: str, most: int) -> None:
        self._world, self._most, self._count = world, most, 0

    def stepped(self) -> None:
        """An environment took an action: the row is broken."""
        self._count = 0

    def add(self, fault: EnvironmentFault) -> None:
        """One more.

        Raises:
            UserError: the most that may come in a row have; names the environment and the fault.
        """
        self._count += 1
        if self._count >= self._most:  # other episodes may fault once more before they are cancelled
            raise UserError(
                f'environment "{self._world}" failed {self._most} times in a row, last: {fault}; '
                "mend it, or raise [rollout] max_consecutive_faults"
            ) from fault


def unplayed(name: str, task: Task, episode: Episode, group: int, policy: PolicyRef) -> Trajectory:
    """The trajectory of an episode of which nothing is known yet: set aside, until it was played."""
    return Trajectory(
        id=name,
        task=task,
        contexts=(),
        turns=(),
        rewards=(),
        status=Status.INFRA_FAULT,
        stop_reason=StopReason.ENV_FAULT,
        success=None,
        seed=episode.seed,
        group_seed=episode.group_seed,
        horizon=episode.horizon,
        start_depth=episode.start.depth,
        group=group,
        episode_id=name,
        policy=policy,
    )


def short_reason(members: Sequence[Trajectory]) -> str | None:
    """Why a group has fewer usable members than asked for; None where it has all."""
    broken = [trajectory for trajectory in members if not trajectory.scored]
    return f"{len(broken)} set aside: {broken[-1].faults[-1]}" if broken else None
