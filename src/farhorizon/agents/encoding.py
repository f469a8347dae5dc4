"""The only places where text becomes tokens and token ids are looked up by their text."""

from functools import lru_cache
from typing import Any

from farhorizon.agents.base import Piece
from farhorizon.core.record import Origin


def encode(tokenizer: Any, text: str) -> tuple[int, ...]:
    """Ids of a text on its own, without special tokens being added."""
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def encode_marked(tokenizer: Any, text: str, marks: list[tuple[int, int, Origin]]) -> tuple[Piece, ...]:
    """Ids of a text encoded in one go, as pieces by origin.

    Args:
        marks: character ranges `(start, stop, origin)`; what none covers is template. A token belongs to the range
            its first character lies in.
    """
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    pieces: list[tuple[Origin, list[int]]] = []
    for token, (start, _) in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
        origin = next((o for first, last, o in marks if first <= start < last), Origin.TEMPLATE)
        if not pieces or pieces[-1][0] is not origin:
            pieces.append((origin, []))
        pieces[-1][1].append(token)
    return tuple(Piece(origin, tuple(ids)) for origin, ids in pieces)


@lru_cache(maxsize=8)
def ids_containing(tokenizer: Any, text: str) -> frozenset[int]:
    """Every id whose text contains `text`: membership replaces decoding."""
    return frozenset(token for token in range(len(tokenizer)) if text in tokenizer.decode([token]))


def end_ids(tokenizer: Any) -> frozenset[int]:
    """Ids that end a message or a text."""
    return frozenset({tokenizer.eos_token_id} - {None})
