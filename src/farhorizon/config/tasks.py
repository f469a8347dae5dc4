"""Which task next."""

from typing import ClassVar, Literal

from pydantic import Field

from farhorizon.config.base import Component


class Uniform(Component):
    """Training tasks in shuffled passes, each as likely as the next; groups of one size."""

    kind: Literal["uniform"] = "uniform"
    builds: ClassVar[str] = "farhorizon.tasks.uniform:Uniform"

    groups: int = Field(default=8, ge=1)
    """Groups per update."""
    size: int = Field(default=8, ge=1)
    """Trajectories per group."""
    part_way: float = Field(default=0.0, ge=0, le=1)
    """Probability that a group starts part-way along the oracle's path, at a depth drawn uniformly from 1 to its
    length - 1; tasks without an oracle or with a one-action solution start at the beginning."""
