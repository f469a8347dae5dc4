"""Maximum turns of an episode, as a function of the update."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from farhorizon.config.base import Component

Turns = Annotated[int, Field(ge=1)]


class Fixed(Component):
    """The same horizon throughout."""

    kind: Literal["fixed"] = "fixed"
    builds: ClassVar[str] = "farhorizon.tasks.horizon:Fixed"

    turns: Turns = 10
    """Maximum turns."""


class Stages(Component):
    """ScalingInter-RL (Xi et al. 2025): few turns first, more as training goes on; stage = update // every."""

    kind: Literal["stages"] = "stages"
    builds: ClassVar[str] = "farhorizon.tasks.horizon:Stages"

    values: Annotated[tuple[Turns, ...], Field(min_length=1)]
    """Maximum turns of each stage; the last one stays."""
    every: int = Field(ge=1)
    """Updates per stage."""
