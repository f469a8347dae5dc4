"""AdamW's state as named tensors, and on disk as `learner.json` and `learner.safetensors`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from farhorizon.core.errors import UserError

FIELDS = ("exp_avg", "exp_avg_sq", "step")


def optimizer_tensors(optimizer: torch.optim.Optimizer, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """`parameter.field` -> tensor; empty before the first step. Not copies."""
    return {
        f"{name}.{field}": optimizer.state[parameter][field]
        for name, parameter in parameters.items()
        if parameter in optimizer.state
        for field in FIELDS
    }


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, parameters: Mapping[str, Tensor], tensors: Mapping[str, Tensor]
) -> None:
    """Put back what `optimizer_tensors` returned.

    Raises:
        UserError: the tensors belong to another model.
    """
    known = {f"{name}.{field}" for name in parameters for field in FIELDS}
    if tensors and set(tensors) != known:
        odd = sorted(set(tensors) ^ known)[0]
        raise UserError(f"the optimizer state is not this model's: {odd} is in one and not in the other")
    optimizer.state.clear()
    if not tensors:
        return
    for name, parameter in parameters.items():
        state = {field: tensors[f"{name}.{field}"].clone() for field in FIELDS}
        if state["exp_avg"].shape != parameter.shape:
            raise UserError(
                f"the optimizer state is not this model's: {name} has shape {tuple(parameter.shape)}, "
                f"its state {tuple(state['exp_avg'].shape)}"
            )
        optimizer.state[parameter] = {field: tensor.to(parameter.device) for field, tensor in state.items()}


def save(directory: Path, state: Mapping[str, Any]) -> None:
    """Write a learner's state into an existing directory."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state["tensors"].items()}
    save_file(tensors, directory / "learner.safetensors")
    (directory / "learner.json").write_text(json.dumps({"steps": state["steps"]}) + "\n")


def load(directory: Path) -> dict[str, Any]:
    """Read what `save` wrote."""
    state = json.loads((directory / "learner.json").read_text())
    return {**state, "tensors": load_file(directory / "learner.safetensors")}
