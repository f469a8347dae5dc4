"""Environments."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from farhorizon.config.base import Component


class TextCraft(Component):
    """Crafting from Minecraft recipes in text."""

    kind: Literal["textcraft"] = "textcraft"
    builds: ClassVar[str] = "farhorizon.envs.textcraft:TextCraft"

    depths: Annotated[tuple[Annotated[int, Field(ge=1, le=4)], ...], Field(min_length=1)] = (1, 2, 3, 4)
    """Depths of the goals' crafting trees."""
    distractors: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] = (0, 10)
    """Least and most recipes shown that the goal does not need; the number is drawn by task id."""

    @field_validator("distractors")
    @classmethod
    def _ordered(cls, value: tuple[int, int]) -> tuple[int, int]:
        if value[0] > value[1]:
            raise ValueError(f"distractors = [{value[0]}, {value[1]}]: the least is above the most")
        return value
