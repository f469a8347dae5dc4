"""Kinds of each slot, from the entry points of what is installed, and how a bad table is explained."""

import json
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from farhorizon.config.base import Component
from farhorizon.core.errors import UserError

Model = TypeVar("Model", bound=BaseModel)


@cache
def kinds(slot: str) -> dict[str, EntryPoint]:
    """Entry points of the slot by kind, unloaded, in alphabetical order."""
    return {point.name: point for point in sorted(entry_points(group=f"farhorizon.{slot}"), key=lambda p: p.name)}


def load_kind(slot: str, kind: str, where: str | None = None) -> Any:
    """What a kind's entry point names: a configuration class, or a method's recipe.

    Raises:
        UserError: no such kind; names the nearest one.
    """
    if not isinstance(kind, str):
        raise UserError(f"[{where or slot}] kind = {kind!r} is no name; there are: {', '.join(kinds(slot))}")
    if kind not in kinds(slot):
        raise UserError(f'[{where or slot}] has no kind "{kind}"{suggestion(kind, kinds(slot))}')
    point = kinds(slot)[kind]
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        source = f"{point.dist.name} {point.dist.version}" if point.dist else "a package"
        raise UserError(
            f'[{where or slot}] kind "{kind}" is registered by {source}, but {point.value} cannot be imported: '
            f"{error}; install that package again"
        ) from error


def resolve(slot: str, value: Any, default: str | None = None, where: str | None = None) -> Component:
    """A component's configuration from what a recipe holds: a table with `kind`, a bare kind, or a configuration.

    Raises:
        UserError: one line that names the table, the key and the nearest known one.
    """
    if isinstance(value, Component):
        return value
    where = where or slot
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, dict):
        raise UserError(f"[{where}] is {value!r}; it is a table")
    kind = value.get("kind", default)
    if kind is None:
        raise UserError(f'[{where}] needs the key "kind"; there are: {", ".join(kinds(slot))}')
    return validate(load_kind(slot, kind, where), {**value, "kind": kind}, where)


def validate(model: type[Model], value: Any, where: str) -> Model:
    """Read one table, with errors a person can act on.

    Raises:
        UserError: one line about the first thing wrong.
    """
    try:
        # As JSON, and strictly: a list may stand for a tuple and 1 for 1.0, but true is no number and "8" neither.
        return model.model_validate_json(json.dumps(value, allow_nan=False), strict=True)
    except (TypeError, ValueError) as error:
        if not isinstance(error, ValidationError):
            raise UserError(f"[{where}] holds a value that is neither text, number, list nor table: {error}") from None
        raise UserError(_explain(model, error, where)) from None


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean "…"?` with the nearest known name, or the list of names where none is near."""
    known = list(known)
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f'; did you mean "{near[0]}"?'
    return f"; there are: {', '.join(known)}" if known else ""


def _explain(model: type[BaseModel], error: ValidationError, where: str) -> str:
    first = error.errors()[0]
    *path, key = [str(part) for part in first["loc"]] or [""]
    table = ".".join([where, *path])
    if first["type"] == "extra_forbidden":
        return f'[{table}] has no key "{key}"{suggestion(key, _fields(model, path))}'
    if first["type"] == "missing":
        return f'[{table}] needs the key "{key}"'
    message = first["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if not key:
        return f"[{where}] {message}"
    return f"[{table}] {key} = {first['input']!r}: {message}"


def _fields(model: type[BaseModel], path: list[str]) -> list[str]:
    for part in path:
        field = model.model_fields.get(part)
        if field is None or not isinstance(field.annotation, type) or not issubclass(field.annotation, BaseModel):
            return []
        model = field.annotation
    return list(model.model_fields)
