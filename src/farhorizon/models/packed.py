"""The training layout: contexts packed without padding as a forest whose shared trunks are computed once.

Contexts that begin with the same tokens share the work on them, forward and backward: the packed tokens are
the nodes of a radix tree, and each node attends to its ancestors and causally to itself. Action tokens are
shared like any others, which is where a group that begins to agree saves most: equal tokens after equal tokens
have one log-probability, and each context's loss adds to its gradient. Exact: log-probabilities and gradients
are those of separate forward passes, up to rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from farhorizon.models.tokens import common_prefix

SIMILAR = 0.75
"""Siblings are attended in one call while the shortest has at least this share of the longest one's tokens."""

Packable = tuple[NDArray[np.int32], NDArray[np.bool_]]
"""Token ids `[tokens]` and which of them are trainable `[tokens]`."""


@dataclass(frozen=True)
class _Node:
    """A run of packed tokens with one parent."""

    parent: int
    """Index of the parent node, -1 for a root."""
    start: int
    """Packed index of its first token."""
    position: int
    """Position of its first token in the contexts it belongs to."""
    length: int
    """Tokens."""
    context: int
    """A context it belongs to."""


@dataclass(frozen=True, eq=False)
class _Block:
    """Siblings attended in one call, padded to the longest at their end, where causality hides the padding."""

    siblings: int
    """How many."""
    tokens: int
    """Of the longest."""
    mask: Tensor | None
    """Who sees whom, `[tokens, ancestors' tokens + tokens]`; None for roots, which are simply causal."""


class PackedTree:
    """The forest of some contexts; a `Layout` of farhorizon's attention.

    Attributes:
        input_ids: token ids, `[1, packed]`.
        position_ids: position of each token in its own context, `[1, packed]`.
        predecessors: packed index of the token whose hidden state predicts a trainable one, `[predictions]`.
        targets: the token predicted there, `[predictions]`; each pair of the two occurs once.
        places: which prediction each trainable token is, `[trainable tokens]`; context by context in the order
            given, token by token.
    """

    def __init__(self, contexts: Sequence[Packable], device: torch.device | str = "cpu") -> None:
        """
        Raises:
            ValueError: a context's first token is trainable; nothing predicts it.
        """
        for index, (_, trainable) in enumerate(contexts):
            if trainable[:1].any():
                raise ValueError(f"the first token of context {index} is trainable, but nothing predicts it")
        nodes, leaves = _radix(contexts)
        rows = _rows(nodes)
        ids = [contexts[node.context][0][node.position : node.position + node.length] for node in nodes]
        positions = [np.arange(node.position, node.position + node.length) for node in nodes]
        ends = [(rows[leaf], mask) for leaf, (_, mask) in zip(leaves, contexts, strict=True) if mask.any()]
        before = [path[np.flatnonzero(mask) - 1] for path, mask in ends]
        self.input_ids = _index(ids, device)[None]
        self.position_ids = _index(positions, device)[None]
        targets = [tokens[mask] for tokens, mask in contexts]
        asked = torch.stack([_index(before, device), _index(targets, device)])
        predictions, self.places = torch.unique(asked, dim=1, return_inverse=True)
        self.predecessors, self.targets = predictions[0], predictions[1]
        self._blocks, queries, keys = _blocks(nodes, rows, device)
        self._queries, self._keys = _index(queries, device), _index(keys, device)
        answers = np.zeros(len(self), dtype=np.int64)
        padded = np.concatenate(queries)
        answers[padded[::-1]] = np.arange(len(padded))[::-1]
        self._answers = _index([answers], device)

    def __len__(self) -> int:
        """Computed tokens."""
        return self.input_ids.shape[1]

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
        """See `Layout`. Computed in fp32 at least: on CPU half precision is slower here, and less exact."""
        del layer
        dtype = query.dtype
        with torch.autocast(query.device.type, enabled=False):
            queries = _gather(query, self._queries).split([b.siblings * b.tokens for b in self._blocks])
            keys, values = _gather(key, self._keys), _gather(value, self._keys)
            outputs, seen = [], 0
            for block, packed in zip(self._blocks, queries, strict=True):
                width = block.tokens if block.mask is None else block.mask.shape[1]
                span = slice(seen, seen := seen + block.siblings * width)
                q, k, v = (_rowwise(part, block.siblings) for part in (packed, keys[span], values[span]))
                out = scaled_dot_product_attention(
                    q, k, v, attn_mask=block.mask, is_causal=block.mask is None, scale=scaling, enable_gqa=True
                )
                outputs.append(out.transpose(1, 2).flatten(0, 1))
            return torch.cat(outputs).index_select(0, self._answers).to(dtype).transpose(0, 1)[None]


def _gather(states: Tensor, rows: Tensor) -> Tensor:
    """Rows of `[1, heads, packed, head size]` as `[rows, heads, head size]`, in fp32 at least."""
    states = states.to(torch.promote_types(states.dtype, torch.float32))
    return states[0].transpose(0, 1).index_select(0, rows)


def _rowwise(states: Tensor, rows: int) -> Tensor:
    """`[rows · tokens, heads, head size]` as `[rows, heads, tokens, head size]`."""
    return states.unflatten(0, (rows, -1)).transpose(1, 2)


def _index(arrays: Sequence[NDArray[np.integer]], device: torch.device | str) -> Tensor:
    joined = np.concatenate([np.zeros(0, np.int64), *arrays]).astype(np.int64)
    return torch.from_numpy(joined).to(device)


def _radix(contexts: Sequence[Packable]) -> tuple[list[_Node], list[int]]:
    """The radix tree of the contexts, parents before children, and the node each context ends in."""
    nodes: list[_Node] = []
    leaves = [-1] * len(contexts)
    limits = [len(tokens) for tokens, _ in contexts]

    def add(parent: int, position: int, stop: int, context: int) -> int:
        if stop == position:
            return parent
        start = nodes[-1].start + nodes[-1].length if nodes else 0
        nodes.append(_Node(parent, start, position, stop - position, context))
        return len(nodes) - 1

    pending = [(-1, 0, list(range(len(contexts))))]
    while pending:
        parent, position, members = pending.pop()
        branches: dict[object, list[int]] = {}
        for member in members:
            more = position < limits[member]
            branches.setdefault(int(contexts[member][0][position]) if more else (member,), []).append(member)
        for branch in branches.values():
            first = branch[0]
            if len(branch) == 1:
                leaves[first] = add(parent, position, len(contexts[first][0]), first)
            else:
                stop = min(common_prefix(contexts[first][0], contexts[other][0]) for other in branch[1:])
                pending.append((add(parent, position, stop, first), stop, branch))
    return nodes, leaves


def _rows(nodes: Sequence[_Node]) -> list[NDArray[np.int64]]:
    """Packed indices from the root to the end of each node, `[tokens so far]` each."""
    rows: list[NDArray[np.int64]] = []
    for node in nodes:
        own = np.arange(node.start, node.start + node.length)
        rows.append(np.concatenate([rows[node.parent], own]) if node.parent >= 0 else own)
    return rows


def _blocks(
    nodes: Sequence[_Node], rows: Sequence[NDArray[np.int64]], device: torch.device | str
) -> tuple[list[_Block], list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Siblings of similar length as blocks, and for all blocks in turn the packed indices of their queries
    (padded) and of their keys (ancestors, then own, padded), sibling by sibling."""
    families: dict[int, list[int]] = {}
    for index in sorted(range(len(nodes)), key=lambda index: -nodes[index].length):
        families.setdefault(nodes[index].parent, []).append(index)
    blocks, queries, keys = [], [], []
    for parent, children in families.items():
        trunk = rows[parent] if parent >= 0 else np.zeros(0, np.int64)
        while children:
            longest = nodes[children[0]].length
            block = [child for child in children if nodes[child].length >= SIMILAR * longest]
            children = children[len(block) :]
            for child in block:
                start, length = nodes[child].start, nodes[child].length
                own = np.minimum(np.arange(start, start + longest), start + length - 1)
                queries.append(own)
                keys.append(np.concatenate([trunk, own]))
            mask = None
            if parent >= 0:
                size = (longest, len(trunk) + longest)
                mask = torch.ones(size, dtype=torch.bool, device=device).tril(len(trunk))
            blocks.append(_Block(len(block), longest, mask))
    return blocks, queries, keys
