"""Randomness keyed by what it is for, never by when it is drawn (law 7).

A `Key` names one source of noise; the same key gives the same numbers on any machine, in any order and
with any batch composition. Uniforms come from SplitMix64 (Steele, Lea and Flood 2014) over a 64-bit
digest of the key, so a position's noise costs a few integer operations and needs no generator object.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, order=True)
class Key:
    """What a draw is for. Ordered, so that a deterministic engine can sort its batch by key."""

    seed: int
    """Seed of the run."""
    stream: str
    """What the noise decides: `rollout`, `tasks`, `eval`, …"""
    update: int = 0
    """Update the draw belongs to."""
    group: int = 0
    """Index of the group within the update."""
    member: int = 0
    """Index of the trajectory within its group; -1 for what a whole group shares."""
    retry: int = 0
    """How often the episode was begun anew after an infrastructure fault."""
    turn: int = 0
    """Turn within the episode."""
    call: int = 0
    """Model call within the turn."""

    def digest(self) -> int:
        """An unsigned 64-bit integer that depends on every field."""
        text = repr(astuple(self)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")

    def at(self, **fields: int) -> "Key":
        """The same key with some fields replaced."""
        return replace(self, **fields)  # type: ignore[arg-type]

    def generator(self) -> np.random.Generator:
        """A NumPy generator for draws that need more than uniforms."""
        return np.random.Generator(np.random.PCG64(self.digest()))


def uniforms(
    digests: Sequence[int] | NDArray[np.uint64], positions: Sequence[int] | NDArray[np.int64]
) -> NDArray[np.float64]:
    """A uniform in [0, 1) for each (digest, position).

    Args:
        digests: key digests, `[draws]`.
        positions: token position of each draw, `[draws]`.

    Returns:
        Uniforms `[draws]` with 53 random bits.
    """
    with np.errstate(over="ignore"):
        state = (
            np.asarray(digests, dtype=np.uint64) + (np.asarray(positions).astype(np.uint64) + np.uint64(1)) * _GOLDEN
        )
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53
