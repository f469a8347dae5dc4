"""Tables of a recipe that choose no component."""

from typing import Any

from pydantic import Field, field_validator

from farhorizon.config.base import Table
from farhorizon.config.engine import Local


class Sampling(Table):
    """How training episodes are sampled; the learner applies the same temperature."""

    temperature: float = Field(default=1.0, gt=0)
    """Logits are divided by it when sampling and in the loss."""


class Rollout(Table):
    """Episodes: their limits, and what happens when an environment breaks."""

    engine: Any = Local()
    """A table of the `engine` slot, or just its kind."""
    concurrency: int = Field(default=64, ge=1)
    """Most episodes in flight."""
    max_turn_tokens: int = Field(default=256, ge=1)
    """Most tokens sampled in one turn; a turn cut here is taken as written."""
    max_trajectory_tokens: int = Field(default=8192, ge=1)
    """Most tokens sampled in one trajectory; reaching it ends the trajectory."""
    context_tokens: int = Field(default=4096, ge=2)
    """Most tokens of a context, observations included; reaching it ends the trajectory."""
    env_timeout: float = Field(default=60.0, gt=0)
    """Seconds an environment may take over one call."""
    retries: int = Field(default=2, ge=0)
    """Fresh instances tried after an environment fault before the trajectory is set aside."""
    max_consecutive_faults: int = Field(default=8, ge=1)
    """Environment faults in a row, over all episodes, after which the run stops."""
    max_attempts: int = Field(default=3, ge=1)
    """Times the task source is asked per update until enough groups can be used."""

    @field_validator("engine", mode="before")
    @classmethod
    def _engine(cls, value: Any) -> Any:
        from farhorizon.config.registry import resolve

        return resolve("engine", value, where="rollout.engine")


class Eval(Table):
    """Periodic evaluation on held-out tasks, by the same code as training with every training aid off (law 8)."""

    every: int = Field(default=0, ge=0)
    """Updates between evaluations, the first before training; 0 evaluates only before and after."""
    split: str = "eval"
    """Split of the environment."""
    tasks: int = Field(default=64, ge=1)
    """Tasks, spread evenly over the split's categories; all of them when there are fewer."""
    samples: int = Field(default=1, ge=1)
    """Episodes per task."""
    temperature: float | None = Field(default=None, ge=0)
    """None: the training temperature; 0: greedy."""
    horizon: int | None = Field(default=None, ge=1)
    """Maximum turns; None: the longest of the training schedule."""
