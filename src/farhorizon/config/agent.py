"""Agents and the renderers that turn messages into tokens."""

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from farhorizon.config.base import Component


class Transcript(Component):
    """Plain text: instructions, worked examples, `>` before each action, a newline ends it."""

    kind: Literal["transcript"] = "transcript"
    builds: ClassVar[str] = "farhorizon.agents.transcript:TranscriptRenderer"

    examples: int = Field(default=1, ge=0)
    """Worked episodes shown before the task."""
    instructions: bool = True
    """Whether the environment's rules stand at the head."""


class Chat(Component):
    """The model's own chat template."""

    kind: Literal["chat"] = "chat"
    builds: ClassVar[str] = "farhorizon.agents.chat:ChatRenderer"

    style: Literal["react", "action"] = "react"
    """`react`: a thought, then one line `Action: …`; `action`: the action alone."""
    examples: int = Field(default=0, ge=0)
    """Worked episodes shown as turns."""


class AppendOnly(Component):
    """One growing context per episode."""

    kind: Literal["append_only"] = "append_only"
    builds: ClassVar[str] = "farhorizon.agents.append_only:AppendOnlyAgent"

    renderer: Any = Transcript()
    """A table of the `renderer` slot, or just its kind."""

    @field_validator("renderer", mode="before")
    @classmethod
    def _renderer(cls, value: Any) -> Any:
        from farhorizon.config.registry import resolve

        return resolve("renderer", value, where="agent.renderer")
