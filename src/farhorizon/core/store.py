"""Trajectories on disk: what training wrote is what replay, viewer and tests read.

Per update: `update-N.jsonl` (readable; lines tagged `group` or `trajectory`), `update-N.safetensors` (token arrays, all
contexts joined) and, once the learner is done, `update-N.learner.safetensors` (what it added, aligned with the
same tokens). The `.jsonl` is renamed into place last: a file that is there is whole.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from farhorizon.core.encoding import (
    branch_from_json,
    group_from_json,
    group_to_json,
    trajectory_from_json,
    trajectory_to_json,
)
from farhorizon.core.files import replace, replace_text
from farhorizon.core.record import Context, ContextKey, Group, Origin, Segment, Trajectory


def update_path(directory: Path, update: int) -> Path:
    """The `.jsonl` of an update."""
    return directory / f"update-{update:06d}.jsonl"


def write_update(
    directory: Path,
    update: int,
    groups: Iterable[Group],
    arrays: Mapping[ContextKey, Mapping[str, NDArray[Any]]] | None = None,
) -> Path:
    """Store an update's groups and what the learner added to their contexts; returns the `.jsonl`.

    Args:
        arrays: learner's arrays of each context, `[tokens]` float32, NaN where a token has none.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = update_path(directory, update)
    lines: list[dict[str, Any]] = []
    contexts: list[Context] = []
    learned: list[Mapping[str, NDArray[Any]]] = []
    offset = 0
    for g, group in enumerate(groups):
        lines.append(group_to_json(group))
        for m, trajectory in enumerate(group.trajectories):
            places = []
            for c, context in enumerate(trajectory.contexts):
                places.append(_place(context, offset))
                offset += len(context)
                contexts.append(context)
                learned.append({**context.arrays, **(arrays or {}).get((g, m, c), {})})
            lines.append(trajectory_to_json(trajectory, places))
    tokens = {
        "token_ids": _joined([context.token_ids for context in contexts], np.int32),
        "logp_behaviour": _joined([context.logp_behaviour for context in contexts], np.float32),
        "policy_version": _joined([context.policy_version for context in contexts], np.int32),
    }
    replace(path.with_suffix(".safetensors"), lambda target: save_file(tokens, target))
    names = sorted({name for each in learned for name in each})
    if names:
        added = {
            name: _joined(
                [_padded(each, name, context) for each, context in zip(learned, contexts, strict=True)],
                np.float32,
            )
            for name in names
        }
        replace(path.with_suffix(".learner.safetensors"), lambda target: save_file(added, target))
    # ASCII: separators such as U+2028 would otherwise end a line for some readers.
    replace_text(path, "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines))
    return path


def read_update(path: Path) -> list[Group]:
    """The groups of a stored update, learner's arrays included."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    tokens = load_file(path.with_suffix(".safetensors"))
    learner = path.with_suffix(".learner.safetensors")
    added = load_file(learner) if learner.exists() else {}
    trajectories: dict[str, Trajectory] = {}
    for line in lines:
        if line["type"] == "trajectory":
            contexts = tuple(_context(place, tokens, added) for place in line["contexts"])
            trajectories[line["id"]] = trajectory_from_json(line, contexts)
    return [group_from_json(line, trajectories) for line in lines if line["type"] == "group"]


def stored_updates(directory: Path) -> list[int]:
    """Numbers of the stored updates, in order."""
    return numbered(directory, ".jsonl")


def numbered(directory: Path, ending: str = "") -> list[int]:
    """N of every `update-N` with that ending in a folder, in order; other files are none of ours."""
    names = (path.name.removeprefix("update-").removesuffix(ending) for path in directory.glob(f"update-*{ending}"))
    return sorted(int(name) for name in names if name.isdigit())


def _place(context: Context, offset: int) -> dict[str, Any]:
    parent = context.parent
    return {
        "tokens": [offset, offset + len(context)],
        "segments": [[segment.origin.value, len(segment)] for segment in context.segments],
        "parent": None if parent is None else vars(parent),
    }


def _context(place: dict[str, Any], tokens: Mapping[str, NDArray[Any]], added: Mapping[str, NDArray[Any]]) -> Context:
    start, stop = place["tokens"]
    segments, at = [], start
    for name, length in place["segments"]:
        cut, origin = slice(at, at + length), Origin(name)
        sampled = (
            {key: tokens[key][cut] for key in ("logp_behaviour", "policy_version")} if origin is Origin.SAMPLED else {}
        )
        segments.append(Segment(origin, tokens["token_ids"][cut], **sampled))
        at += length
    arrays = {name: array[start:stop] for name, array in added.items()}
    return Context(tuple(segments), branch_from_json(place["parent"]), arrays)


def _joined(arrays: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype)


def _padded(arrays: Mapping[str, NDArray[Any]], name: str, context: Context) -> NDArray[Any]:
    return arrays[name] if name in arrays else np.full(len(context), np.nan, np.float32)
