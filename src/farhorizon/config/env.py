"""Environments."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from farhorizon.config.base import Component


class _Crafting(Component):
    """What both kinds of TextCraft share."""

    distractors: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] = (0, 10)
    """Least and most recipes shown that the goal does not need; the number is drawn by task id."""

    @field_validator("distractors")
    @classmethod
    def _ordered(cls, value: tuple[int, int]) -> tuple[int, int]:
        if value[0] > value[1]:
            raise ValueError(f"distractors = [{value[0]}, {value[1]}]: the least is above the most")
        return value


class TextCraft(_Crafting):
    """Crafting from Minecraft recipes in text."""

    kind: Literal["textcraft"] = "textcraft"
    builds: ClassVar[str] = "farhorizon.envs.textcraft:TextCraft"

    depths: Annotated[tuple[Annotated[int, Field(ge=1, le=4)], ...], Field(min_length=1)] = (1, 2, 3, 4)
    """Depths of the goals' crafting trees."""


class TextCraftGenerated(_Crafting):
    """Crafting from recipes made up for each task."""

    kind: Literal["textcraft_generated"] = "textcraft_generated"
    builds: ClassVar[str] = "farhorizon.envs.textcraft:TextCraftGenerated"

    depths: Annotated[tuple[Annotated[int, Field(ge=1, le=8)], ...], Field(min_length=1)] = (1, 2, 3, 4)
    """Depths of the goals' crafting trees; tasks take turns through them."""
    names: int = Field(default=300, ge=16, le=700)
    """Invented names to draw from."""
    train: int = Field(default=1000, ge=1)
    """Training tasks."""
    eval: int = Field(default=200, ge=1)
    """Held-out tasks."""
    seed: int = 0
    """Of all draws."""
