"""Lessons in which names are shuffled, so that a model must read its prompt instead of knowing it by heart.

An environment with a few hundred tasks is learned by heart long before a small model finds out that the answer stands
in the prompt. A name is a word that most lessons do without; which name stands for what is arbitrary, so lessons
stay true when names trade places. Ours.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farhorizon.core.record import Context, Segment
from farhorizon.core.seeds import Key

RARE = 0.5
"""A word of letters that fewer than this share of the lessons contain is a name."""


class Renaming:
    """Trades the names of a word-level vocabulary, the forms with and without a leading space together."""

    def __init__(self, tokenizer: Any, lessons: Sequence[Context]) -> None:
        self._size = len(tokenizer)
        vocabulary = tokenizer.get_vocab()
        counts = np.zeros(self._size)
        for lesson in lessons:
            counts[np.unique(lesson.token_ids)] += 1
        self._plain, self._spaced = [], []
        for word, plain in sorted(vocabulary.items()):
            spaced = vocabulary.get(f" {word}")
            if spaced is not None and word.isalpha() and counts[[plain, spaced]].max() < RARE * len(lessons):
                self._plain.append(plain)
                self._spaced.append(spaced)

    def __call__(self, lesson: Context, key: Key) -> Context:
        """The lesson with names traded by a permutation that follows from the key."""
        new: NDArray[np.int32] = np.arange(self._size, dtype=np.int32)
        order = key.generator().permutation(len(self._plain))
        for ids in (np.array(self._plain, np.int32), np.array(self._spaced, np.int32)):
            new[ids] = ids[order]
        return Context(tuple(Segment(segment.origin, new[segment.token_ids]) for segment in lesson.segments))
