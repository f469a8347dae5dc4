"""Keys and values: of the sequences being sampled (`Rows`) and of sessions between their turns (`Sessions`).

`Prefill` and `Decode` are the layouts of the two kinds of forward pass. Both write the new tokens' keys and
values into `Rows` first and attend to them there. Query heads that share a key-value head are laid out
as further queries of it, so nothing is expanded.
"""

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from farhorizon.models.tokens import common_prefix

Ids = NDArray[np.int32]


class Rows:
    """Keys and values of running sequences, one a row, beginning at position 0.

    One tensor `kv`, `[layers, 2, rows, key-value heads, capacity, head size]`. It starts as zeros and holds
    finite values ever after: what lies behind the end of a row is masked, but is still multiplied by zero.
    """

    def __init__(
        self, layers: int, heads: int, size: int, queries: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        """`heads` counts key-value heads, `size` is theirs, and `queries` query heads share each."""
        self.queries = queries
        self._storage = torch.zeros(0, dtype=dtype, device=device)
        self.kv = self._storage.view(layers, 2, 0, heads, 0, size)

    @classmethod
    def of(cls, model: torch.nn.Module) -> "Rows":
        """Empty rows for a Hugging Face model, in the type of its weights."""
        config = model.config.get_text_config()  # type: ignore[union-attr, operator]
        heads = config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // heads
        weight = next(model.parameters())
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        return cls(config.num_hidden_layers, kv_heads, size, heads // kv_heads, weight.dtype, weight.device)

    def reserve(self, rows: int, tokens: int, used: int) -> None:
        """Make room for `rows` sequences of `tokens` tokens; the first `used` rows keep their contents.

        With none used the shape follows from the arguments alone and not from what was there before, so that
        a batch rounds alike wherever a run was resumed.
        """
        layers, _, have, heads, capacity, size = self.kv.shape
        if used and rows <= have and tokens <= capacity:
            return
        if used:
            rows = max(rows, have)
            tokens = max(tokens, capacity + capacity // 4) if tokens > capacity else capacity
        shape = layers, 2, rows, heads, (tokens + 63) // 64 * 64, size
        if used or math.prod(shape) > len(self._storage):
            self._storage = self._storage.new_zeros(math.prod(shape) * 5 // 4)
        old, self.kv = self.kv, self._storage[: math.prod(shape)].view(shape)
        if used:
            self.kv[:, :, :used, :, :capacity] = old[:, :, :used]

    def row(self, row: int, tokens: int) -> Tensor:
        """A view of the first tokens of a row, `[layers, 2, key-value heads, tokens, head size]`."""
        return self.kv[:, :, row, :, :tokens]

    def clear(self) -> None:
        """Forget everything and free the memory."""
        layers, _, _, heads, _, size = self.kv.shape
        self._storage = self._storage.new_zeros(0)
        self.kv = self._storage.view(layers, 2, 0, heads, 0, size)


@dataclass(frozen=True)
class Piece:
    """Tokens of one row computed in one forward pass."""

    row: int
    """Row of `Rows`."""
    start: int
    """Position of the first; everything before it is in the row already."""
    stop: int
    """One past the position of the last."""


def packed(pieces: Sequence[Piece], most: int) -> Iterator[list[Piece]]:
    """Pieces in batches of at most `most` tokens, cut where they must be."""
    batch: list[Piece] = []
    room = most
    for piece in pieces:
        start = piece.start
        while start < piece.stop:
            stop = min(piece.stop, start + room)
            batch.append(Piece(piece.row, start, stop))
            start, room = stop, room - (stop - start)
            if not room:
                yield batch
                batch, room = [], most
    if batch:
        yield batch


class Prefill:
    """Several pieces one behind the other along a single sequence; each attends to its own row alone."""

    def __init__(self, rows: Rows, pieces: Sequence[Piece]) -> None:
        self._rows, self._pieces = rows, pieces
        device = rows.kv.device
        self.positions = torch.cat([torch.arange(piece.start, piece.stop) for piece in pieces]).to(device)
        """Position of each token, `[tokens]`."""
        counts = torch.tensor([piece.stop - piece.start for piece in pieces])
        self._row_of = torch.tensor([piece.row for piece in pieces]).repeat_interleave(counts).to(device)
        self._masks = [_behind_a_past(piece, rows) for piece in pieces]

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
        """See `models.attention.Layout`; one row, `[1, heads, tokens, head size]`."""
        kv = self._rows.kv[layer]
        kv[0][self._row_of, :, self.positions] = key[0].transpose(0, 1)
        kv[1][self._row_of, :, self.positions] = value[0].transpose(0, 1)
        out, at = [], 0
        for piece, mask in zip(self._pieces, self._masks, strict=True):
            own = query[:, :, at : at + piece.stop - piece.start]
            keys, values = kv[:, piece.row : piece.row + 1, :, : piece.stop]
            if mask is None:
                here = F.scaled_dot_product_attention(
                    own, keys, values, is_causal=True, scale=scaling, enable_gqa=self._rows.queries > 1
                )
            else:
                shared = own.reshape(1, kv.shape[2], -1, own.shape[-1])
                here = F.scaled_dot_product_attention(shared, keys, values, attn_mask=mask, scale=scaling)
            out.append(here.reshape(own.shape))
            at += own.shape[2]
        return torch.cat(out, dim=2)


def _behind_a_past(piece: Piece, rows: Rows) -> Tensor | None:
    """What to add to a piece's dot products, `[query heads a key-value head * tokens, stop]`; None where plain
    causality says it all."""
    if piece.start == 0:
        return None
    shape = piece.stop - piece.start, piece.stop
    later = torch.full(shape, -torch.inf, dtype=rows.kv.dtype, device=rows.kv.device).triu_(piece.start + 1)
    return later.repeat(rows.queries, 1)


class Decode:
    """One new token behind each of the first rows."""

    def __init__(self, rows: Rows, lengths: NDArray[np.int64]) -> None:
        """`lengths`: tokens each row holds already, `[rows]`; the new token's position."""
        self._rows, device = rows, rows.kv.device
        self._count, self._longest = len(lengths), int(lengths.max()) + 1
        self.positions = torch.from_numpy(lengths.copy()).to(device)
        """Position of each token, `[rows]`."""
        self._row_of = torch.arange(self._count, device=device)
        unseen = torch.arange(self._longest, device=device) > self.positions[:, None]
        mask = torch.zeros(unseen.shape, dtype=rows.kv.dtype, device=device).masked_fill_(unseen, -torch.inf)
        self._mask = mask[:, None, None]

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
        """See `models.attention.Layout`; one token a row, `[rows, heads, 1, head size]`."""
        kv = self._rows.kv[layer]
        kv[0][self._row_of, :, self.positions] = key[:, :, 0]
        kv[1][self._row_of, :, self.positions] = value[:, :, 0]
        keys, values = kv[:, : self._count, :, : self._longest]
        shared = query.reshape(self._count, kv.shape[2], -1, query.shape[-1])
        out = F.scaled_dot_product_attention(shared, keys, values, attn_mask=self._mask, scale=scaling)
        return out.reshape(query.shape)


@dataclass(frozen=True, eq=False)
class Kept:
    """What a session's last generation left."""

    token_ids: Ids
    """Tokens whose keys and values are held, `[tokens]`."""
    kv: Tensor
    """`[layers, 2, key-value heads, capacity, head size]`; some room is left for the next turn."""


class Sessions:
    """Keys and values kept between turns, least recently used first."""

    def __init__(self, limit: int) -> None:
        """`limit`: most tokens that may be allocated."""
        self._limit = limit
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self.tokens = 0
        """Tokens allocated now."""

    def __contains__(self, session: str) -> bool:
        return session in self._kept

    def longest(self, token_ids: Ids, session: str | None) -> tuple[Kept | None, int]:
        """Where the longest prefix of some tokens is kept: with their own session if it has one, else anywhere.

        Returns:
            The place, or None, and the number of leading tokens it shares.
        """
        own = self._kept.get(session) if session is not None else None
        best, shared = own, common_prefix(own.token_ids, token_ids) if own is not None else 0
        if session is not None and own is not None:
            self._kept.move_to_end(session)
        if not shared:
            for kept in self._kept.values():
                if (length := common_prefix(kept.token_ids, token_ids)) > shared:
                    best, shared = kept, length
        return best, shared

    def keep(self, session: str, token_ids: Ids, kv: Tensor) -> None:
        """Copy a sequence, making room; one that could never fit is not kept.

        Args:
            session: whose it is; replaces what that session kept.
            token_ids: `[tokens]`.
            kv: `[layers, 2, key-value heads, tokens, head size]`.
        """
        old, length = self._kept.get(session), len(token_ids)
        if old is not None and old.kv.shape[3] >= length:
            shared = common_prefix(old.token_ids, token_ids)
            old.kv[:, :, :, shared:length] = kv[:, :, :, shared:]
            self._kept[session] = Kept(token_ids, old.kv)
            self._kept.move_to_end(session)
            return
        self.drop(session)
        if length > self._limit:
            return
        capacity = min(length + length // 4, self._limit)
        while self.tokens + capacity > self._limit:
            self.drop(next(iter(self._kept)))
        layers, two, heads, _, size = kv.shape
        fresh = kv.new_empty(layers, two, heads, capacity, size)
        fresh[:, :, :, :length] = kv
        self._kept[session] = Kept(token_ids, fresh)
        self.tokens += capacity

    def drop(self, session: str) -> None:
        """Forget one session, if known."""
        if (kept := self._kept.pop(session, None)) is not None:
            self.tokens -= kept.kv.shape[3]

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()
        self.tokens = 0
