"""Engines."""

from typing import ClassVar, Literal

from pydantic import Field

from farhorizon.config.base import Component, DType


class Local(Component):
    """Generation in this process with a Hugging Face model."""

    kind: Literal["local"] = "local"
    builds: ClassVar[str] = "farhorizon.engines.local:LocalEngine"

    dtype: DType = "float32"
    """Type of the weights and of the cache."""
    max_batch: int = Field(default=64, ge=1)
    """Most requests decoded together."""
    cache_tokens: int = Field(default=131072, ge=0)
    """Most tokens of cached keys and values kept between turns; least recently used sessions are dropped
    first."""
