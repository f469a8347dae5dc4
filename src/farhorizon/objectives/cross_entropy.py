"""Token cross-entropy: warm starts and supervised fine-tuning."""

import numpy as np
from numpy.typing import NDArray

from farhorizon.objectives.base import ActionTokens, Terms
from farhorizon.objectives.reducers import token_weights


class CrossEntropy:
    """-logp of each token, averaged over all trainable tokens of the step."""

    needs: frozenset[str] = frozenset()
    silent_without_advantage = False

    def weights(self, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """1/N for each of the step's N tokens."""
        return token_weights("token", lengths)

    def __call__(self, tokens: ActionTokens) -> Terms:
        """Terms of one micro-batch."""
        return Terms(-tokens.logp)
