"""Log-probabilities of action tokens: a forward pass over a packed tree, the head on action positions alone."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from farhorizon.models.packed import PackedTree

CHUNK = 512
"""Action positions whose logits exist at the same time; recomputed in the backward pass."""


def action_logps(model: nn.Module, tree: PackedTree, temperature: float) -> Tensor:
    """Log-probability of each trainable token under softmax(logits / temperature), in fp32 at least.

    Args:
        model: a Hugging Face causal language model with farhorizon's attention.
        tree: the packed contexts.
        temperature: the sampling temperature.

    Returns:
        `[trainable tokens]`, in the order of `tree.places`. Logits do not outlive their chunk.
    """
    outputs = model.base_model(  # type: ignore[operator]
        input_ids=tree.input_ids, position_ids=tree.position_ids, layout=tree, use_cache=False
    )
    hidden = outputs.last_hidden_state[0].index_select(0, tree.predecessors)
    head = model.get_output_embeddings()  # type: ignore[operator]

    def logps(hidden: Tensor, targets: Tensor) -> Tensor:
        logits = head(hidden)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature
        return -cross_entropy(logits, targets, reduction="none")

    chunks = zip(hidden.split(CHUNK), tree.targets.split(CHUNK), strict=True)
    if torch.is_grad_enabled():
        predicted = [checkpoint(logps, *chunk, use_reentrant=False) for chunk in chunks]
    else:
        predicted = [logps(*chunk) for chunk in chunks]
    return torch.cat(predicted).index_select(0, tree.places)
