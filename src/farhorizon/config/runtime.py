"""The loop."""

from typing import ClassVar, Literal

from pydantic import Field

from farhorizon.config.base import Component


class Synchronous(Component):
    """Roll out, learn, repeat, in one process."""

    kind: Literal["synchronous"] = "synchronous"
    builds: ClassVar[str] = "farhorizon.runtime.synchronous:Synchronous"

    seed: int = 0
    """Every random draw of the run follows from it."""
    max_updates: int = Field(default=100, ge=1)
    """Updates performed."""
    deterministic: bool = False
    """Step the engine in lockstep, so that a resumed run repeats an uninterrupted one exactly (law 7)."""
    checkpoint_every: int = Field(default=10, ge=1)
    """Updates between checkpoints; the last two and the best are kept."""
    threads: int = Field(default=0, ge=0)
    """Compute threads; 0 takes every core."""
