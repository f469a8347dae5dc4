"""What every slot's configuration shares.

A configuration is a frozen pydantic model without torch. It says which `kind` it is, where the component
it configures lives (`builds`, imported only when built) and what it needs of the rest of a recipe.
Third-party kinds register a subclass through the entry point group `farhorizon.<slot>`.
"""

from importlib import import_module
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

DType = Literal["auto", "float32", "bfloat16"]
"""Type to compute in; `auto` is bfloat16 where the hardware multiplies it natively."""


class Table(BaseModel):
    """A table of a recipe: unknown keys are errors, values do not change once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class Component(Table):
    """A table that chooses and configures one component of a slot."""

    kind: str
    """Name within the slot."""
    builds: ClassVar[str]
    """`module:callable`, called as `callable(config, **resources)`."""
    max_steps_per_update: ClassVar[int | None] = None
    """Most optimizer steps an update may have with this component; None for any."""

    @property
    def needs(self) -> frozenset[str]:
        """Per-token inputs the component reads beyond log-probabilities and advantages: `logp_ref`, `values`."""
        return frozenset()

    def build(self, **resources: Any) -> Any:
        """Import the component and build it from this configuration."""
        module, _, attribute = self.builds.partition(":")
        return getattr(import_module(module), attribute)(self, **resources)
