"""Evaluating a model: driver, agent and engine of training, stepped deterministically (laws 7 and 8)."""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers.utils import cached_file

from farhorizon.config.recipe import Recipe
from farhorizon.core.files import sha256
from farhorizon.core.record import Group, Task, Trajectory
from farhorizon.core.rundir import MARKER
from farhorizon.engines.base import Sampling
from farhorizon.envs.base import World
from farhorizon.evaluation.evaluate import evaluate
from farhorizon.evaluation.subject import STREAM, UPDATE
from farhorizon.models.load import load_tokenizer
from farhorizon.rollout.driver import Circumstances
from farhorizon.runtime.assemble import play_with


class ModelSubject:
    """A model as the subject of an evaluation, with agent and limits of a recipe; close it after use.

    Args:
        recipe: its runtime says the seed; it is stepped deterministically whatever the recipe says.
        source: the model's directory, or a hub id.
        name: what the model is called.
        finished: updates behind it, where it is a checkpoint.
        temperature: 0 for greedy.
        turns: horizon.
    """

    def __init__(
        self,
        recipe: Recipe,
        source: str | Path,
        *,
        name: str,
        finished: int | None,
        world: World,
        temperature: float,
        turns: int,
    ) -> None:
        runtime = recipe.runtime.model_copy(update={"deterministic": True})
        recipe = recipe.model_copy(update={"runtime": runtime})
        torch.set_num_threads(recipe.runtime.threads or os.cpu_count() or 1)
        self._driver, self._engine = play_with(recipe, world, load_tokenizer(source), source)
        self._given = Circumstances(STREAM, UPDATE, turns, Sampling(temperature), training=False)
        parts = {"agent": recipe.agent, "rollout": recipe.rollout}
        self.tasks_at_once = 2 * recipe.rollout.concurrency
        self.facts: dict[str, Any] = {
            "kind": "model",
            "name": name,
            "finished": finished,
            "sha256": weights_sha256(source),
            "temperature": temperature,
            **{part: table.model_dump(mode="json", serialize_as_any=True) for part, table in parts.items()},
        }

    async def play(
        self, tasks: Sequence[Task], samples: int, first: int, on_done: Callable[[Trajectory], None] | None = None
    ) -> Sequence[Group]:
        """See `Subject.play`; raises what the driver raises."""
        given = replace(self._given, first_group=first)
        return (await evaluate(self._driver, tasks, samples, given, on_done)).groups

    def close(self) -> None:
        """Stop the engine."""
        self._engine.close()


def weights_sha256(source: str | Path) -> str:
    """Digest of a model's files: the top level of its directory, names and contents.

    Args:
        source: a directory, or the hub id of a model that is in the cache.
    """
    directory = source if isinstance(source, Path) else Path(cached_file(source, "config.json")).parent
    digest = hashlib.sha256()
    for file in sorted(path for path in directory.iterdir() if path.is_file() and path.name != MARKER):
        digest.update(f"{file.name} {sha256(file)}\n".encode())
    return digest.hexdigest()
