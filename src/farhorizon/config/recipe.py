"""A recipe: one TOML file that says everything about a run.

Reading checks everything that can be checked without loading a model: unknown keys, types, kinds, and
combinations that make no sense, each refused with the reason.
"""

import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import model_validator

from farhorizon.config.base import Table
from farhorizon.config.models import Models
from farhorizon.config.registry import load_kind, resolve, suggestion, validate
from farhorizon.config.tables import Eval, Rollout, Sampling
from farhorizon.core.errors import UserError

SLOTS = {
    "env": None,
    "tasks": "uniform",
    "horizon": "fixed",
    "agent": "append_only",
    "reward": "environment",
    "credit": "group_standardised",
    "objective": "clipped_ratio",
    "learner": "adamw",
    "runtime": "synchronous",
}
"""Tables that choose a component, with the default kind; `env` has none."""

TABLES: dict[str, type[Table]] = {"models": Models, "sampling": Sampling, "rollout": Rollout, "eval": Eval}
"""Tables that only hold values."""


class Recipe(Table):
    """A recipe as read: every table present, every value checked."""

    method: str | None = None
    """The published method it builds on."""
    models: Models
    env: Any
    tasks: Any
    horizon: Any
    agent: Any
    sampling: Sampling
    rollout: Rollout
    reward: Any
    credit: Any
    objective: Any
    learner: Any
    runtime: Any
    eval: Eval

    @model_validator(mode="after")
    def _combinations(self) -> "Recipe":
        limit, steps = self.objective.max_steps_per_update, self.learner.steps_per_update
        if limit is not None and steps > limit:
            raise UserError(
                f'[learner] steps_per_update = {steps}: objective "{self.objective.kind}" allows at most {limit}'
            )
        if steps > self.tasks.groups:
            raise UserError(
                f"[learner] steps_per_update = {steps} splits an update by whole groups, "
                f"but [tasks] groups = {self.tasks.groups}"
            )
        if self.credit.kind.startswith("group_") and self.tasks.size < 2:
            raise UserError(
                f'[tasks] size = {self.tasks.size}: credit "{self.credit.kind}" compares the members of a group '
                "and gives a lone one zero advantage; use at least 2"
            )
        if self.rollout.max_turn_tokens >= self.rollout.context_tokens:
            raise UserError(
                f"[rollout] max_turn_tokens = {self.rollout.max_turn_tokens} leaves no room for a prompt in "
                f"context_tokens = {self.rollout.context_tokens}"
            )
        return self


def read(path: Path, overrides: list[str] | None = None) -> Recipe:
    """Read a recipe file and lay `table.key=value` overrides over it.

    Raises:
        UserError: one line naming the file, the table, the key and the nearest known one.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"recipe {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UserError(f"recipe {path}: not UTF-8 text, as TOML has to be") from None
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"recipe {path}: not valid TOML: {error}") from None
    try:
        return parse(tables, overrides)
    except UserError as error:
        raise UserError(f"recipe {path.name}: {error}") from None


def parse(tables: dict[str, Any], overrides: list[str] | None = None) -> Recipe:
    """A recipe from its tables as TOML or Python give them, under `table.key=value` overrides."""
    tables = deepcopy(tables)
    for override in overrides or []:
        _override(tables, override)
    known = ["method", *Recipe.model_fields]
    for name in tables:
        if name not in known:
            raise UserError(f"there is no table [{name}]{suggestion(name, known)}")
    method = tables.get("method")
    base = load_kind("method", method).tables() if method is not None else {}
    read_tables: dict[str, Any] = {"method": method}
    for name, default in SLOTS.items():
        table = _laid_over(base.get(name, {}), tables.get(name, {}))
        if name == "env" and not table:
            raise UserError('the table [env] is missing; write [env] and kind = "…"')
        read_tables[name] = resolve(name, table, default)
    for name, model in TABLES.items():
        read_tables[name] = validate(model, tables.get(name, {}), name)
    return Recipe.model_validate(read_tables)


def dump(recipe: Recipe) -> str:
    """The recipe with every value written out, as TOML that `read` accepts."""
    tables = {"method": recipe.method}
    for name in Recipe.model_fields:
        if name != "method":
            tables[name] = getattr(recipe, name).model_dump(mode="json", serialize_as_any=True)
    return tomli_w.dumps(_without_none(tables))


def _laid_over(base: dict[str, Any], top: Any) -> Any:
    """`top` over `base`, table by table; another kind replaces the base altogether."""
    if isinstance(top, str):
        top = {"kind": top}
    if not isinstance(top, dict) or top.get("kind", base.get("kind")) != base.get("kind"):
        return top
    merged = dict(base)
    for key, value in top.items():
        inner = merged.get(key)
        merged[key] = _laid_over(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return merged


def _override(tables: dict[str, Any], text: str) -> None:
    path, equals, value = text.partition("=")
    *parents, key = path.strip().split(".")
    if not equals or not key:
        raise UserError(f"--set {text}: write it as table.key=value")
    table = tables
    for parent in parents:
        if isinstance(table.get(parent), str):
            table[parent] = {"kind": table[parent]}
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise UserError(f"--set {text}: {parent} is a value, not a table")
    try:
        table[key] = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        table[key] = value.strip()


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return value
