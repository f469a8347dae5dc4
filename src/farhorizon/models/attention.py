"""One attention function for engine and learner, registered with Hugging Face transformers.

A model loaded with `attn_implementation = "farhorizon"` calls `attend` in every layer. The caller passes a
`layout` to the model's forward, and the layout alone knows what attends to what: packed trees when
training, cached sequences when sampling. No mask is built.
"""

from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface

IMPLEMENTATION = "farhorizon"


class Layout(Protocol):
    """Says what attends to what in one forward pass."""

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
        """Attention output of one layer.

        Args:
            layer: index of the layer, for caches.
            query: `[rows, heads, tokens, head size]`, positions already encoded.
            key: `[rows, key-value heads, tokens, head size]`.
            value: the same shape as `key`.
            scaling: factor of the dot products.

        Returns:
            `[rows, heads, tokens, head size]`.
        """
        ...


def attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    layout: Layout | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """The function transformers calls; returns `[rows, tokens, heads, head size]` as it expects."""
    if layout is None:
        raise ValueError("this model was loaded with farhorizon's attention and needs a `layout` in forward")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    out = layout.attend(module.layer_idx, query, key, value, scale)  # type: ignore[arg-type]
    return out.transpose(1, 2).contiguous(), None


def _no_mask(*_: Any, **__: Any) -> None:
    return None


AttentionInterface.register(IMPLEMENTATION, attend)
AttentionMaskInterface.register(IMPLEMENTATION, _no_mask)
