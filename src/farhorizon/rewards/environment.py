"""What the environment gave, unchanged."""

from farhorizon.config import reward as config
from farhorizon.core.record import Group


class EnvironmentReward:
    """The rewards the driver recorded, each on its turn."""

    def __init__(self, config: config.EnvironmentReward) -> None:
        pass

    def __call__(self, groups: list[Group]) -> list[Group]:
        return groups
