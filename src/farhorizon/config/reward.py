"""Rewards."""

from typing import ClassVar, Literal

from farhorizon.config.base import Component


class EnvironmentReward(Component):
    """What the environment gave, unchanged."""

    kind: Literal["environment"] = "environment"
    builds: ClassVar[str] = "farhorizon.rewards.environment:EnvironmentReward"
