"""Rewards."""

from typing import ClassVar, Literal

from farhorizon.config.base import Component


class EnvironmentReward(Component):
    """What the environment gave, unchanged."""

    kind: Literal["environment"] = "environment"
    builds: ClassVar[str] = "farhorizon.rewards.environment:EnvironmentReward"


class ShuffledReward(Component):
    """The environment's rewards dealt out at random within each group: a control."""

    kind: Literal["shuffled"] = "shuffled"
    builds: ClassVar[str] = "farhorizon.rewards.shuffled:ShuffledReward"
