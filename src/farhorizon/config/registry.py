"""Kinds of each slot, from the entry points of what is installed."""

from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from farhorizon.config.base import Component
from farhorizon.core.errors import UserError


@cache
def kinds(slot: str) -> dict[str, Any]:
    """Entry points of the slot by kind, unloaded, in alphabetical order."""
    return {point.name: point for point in sorted(entry_points(group=f"farhorizon.{slot}"), key=lambda p: p.name)}


def kind_class(slot: str, kind: str) -> type[Component]:
    """The configuration class of a kind.

    Raises:
        UserError: naming the nearest kind there is.
    """
    if kind not in kinds(slot):
        raise UserError(f'[{slot}] has no kind "{kind}"{suggestion(kind, kinds(slot))}')
    loaded: type[Component] = kinds(slot)[kind].load()
    return loaded


def resolve(slot: str, value: Any, default: str | None = None) -> Component:
    """A component's configuration from what a recipe holds: a table with `kind`, a bare kind, or a configuration."""
    if isinstance(value, Component):
        return value
    table = {"kind": value} if isinstance(value, str) else dict(value)
    kind = table.get("kind", default)
    if kind is None:
        raise UserError(f'[{slot}] needs a kind: {", ".join(kinds(slot))}')
    return kind_class(slot, kind).model_validate({**table, "kind": kind})


def suggestion(name: str, known: Any) -> str:
    """`; did you mean …?` with the nearest known name, or the list of names where none is near."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.5)
    if near:
        return f'; did you mean "{near[0]}"?'
    return f"; there are: {', '.join(known)}" if known else ""
