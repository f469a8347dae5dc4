"""A published method: what it composes."""

from dataclasses import dataclass
from typing import Any

from farhorizon.config.base import Component


@dataclass(frozen=True)
class Method:
    """Components a method fixes; everything it leaves out keeps the recipe's or the default value."""

    name: str
    """As recipes name it."""
    tasks: Component | None = None
    horizon: Component | None = None
    agent: Component | None = None
    reward: Component | None = None
    credit: Component | None = None
    objective: Component | None = None
    learner: Component | None = None
    runtime: Component | None = None

    def tables(self) -> dict[str, dict[str, Any]]:
        """The method as tables of a recipe; a recipe's own keys are laid over them."""
        slots = (name for name in self.__dataclass_fields__ if name != "name")
        chosen = {slot: getattr(self, slot) for slot in slots}
        return {
            slot: {"kind": component.kind, **component.model_dump(exclude_unset=True)}
            for slot, component in chosen.items()
            if component is not None
        }
