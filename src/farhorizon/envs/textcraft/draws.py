"""Draws that decide what a task looks like: ranks by hash, the same on any machine and with any NumPy."""

import hashlib

VERSION = "1"
"""Version of the tasks; part of every draw."""


def rank(purpose: str, *names: str) -> int:
    """An unsigned 64-bit integer keyed by what it decides. Sorting by it shuffles."""
    text = "\0".join((VERSION, purpose, *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
