"""Learners: from groups to new weights."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from farhorizon.config.base import Component, DType

Beta = Annotated[float, Field(ge=0, lt=1)]


class AdamW(Component):
    """Gradient descent with AdamW on one device, or data-parallel over the ranks of `torch.distributed`."""

    kind: Literal["adamw"] = "adamw"
    builds: ClassVar[str] = "farhorizon.learners.torch_learner:TorchLearner"

    learning_rate: float = Field(default=1e-6, gt=0)
    warmup_updates: int = Field(default=0, ge=0)
    """Updates over which the learning rate rises linearly: update u has (u + 1) / (warmup_updates + 1) of it."""
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    eps: float = Field(default=1e-8, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Global gradient norm is clipped to this."""
    steps_per_update: int = Field(default=1, ge=1)
    """Optimizer steps an update's trajectories are split into, whole groups at a time."""
    tokens_per_microbatch: int = Field(default=4096, ge=1)
    """Computed tokens of one forward and backward pass; does not change the gradient."""
    dtype: DType = "float32"
    """`bfloat16` computes under autocast; weights, gradients and optimizer state stay in fp32."""
