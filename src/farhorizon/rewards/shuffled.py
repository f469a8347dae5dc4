"""Rewards dealt out at random within each group: a control, with which nothing about the task can be learned.

A method that does as well with it owes nothing to its rewards. Numbers and spread of the rewards stay what
they were in every group; which trajectory earned which is lost. Ours; random rewards as a control: Shao et al. 2025
("Spurious Rewards", which draws them anew).
"""

from dataclasses import replace

from farhorizon.config import reward as config
from farhorizon.core.record import Group, Reward
from farhorizon.core.seeds import Key


class ShuffledReward:
    """Gives each scored trajectory the total reward of a random one of its group; `success` stays the true one."""

    def __init__(self, config: config.ShuffledReward) -> None:
        pass

    def __call__(self, groups: list[Group]) -> list[Group]:
        return [_shuffled(group) for group in groups]


def _shuffled(group: Group) -> Group:
    totals = [trajectory.total_reward for trajectory in group.scored]
    order = iter(Key(group.seed, "shuffled").generator().permutation(len(totals)))
    return replace(
        group,
        trajectories=tuple(
            replace(trajectory, rewards=(Reward("shuffled", totals[next(order)]),)) if trajectory.scored else trajectory
            for trajectory in group.trajectories
        ),
    )
