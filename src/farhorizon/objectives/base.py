"""The objective slot: packed log-probabilities in, one term per action token out.

Everything is compressed: padding and observations never exist here, so nothing needs a mask. An objective
does not divide; `weights` says beforehand what each token counts for (see `reducers`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, eq=False)
class ActionTokens:
    """What an objective may look at: the action tokens of a micro-batch, each array `[action tokens]`."""

    logp: Tensor
    """Log-probabilities under the weights being trained, at the sampling temperature; carries gradient."""
    logp_prox: Tensor
    """The learner's at the start of the update."""
    logp_behaviour: Tensor
    """The sampler's."""
    advantages: Tensor
    """From credit."""
    trajectory: Tensor
    """Index of the token's trajectory within the update, int64."""
    logp_ref: Tensor | None = None
    """The frozen reference's, where `needs` holds `logp_ref`."""


@dataclass(frozen=True, eq=False)
class Terms:
    """An objective's answer. Sums and maxima are reduced over micro-batches and ranks by the learner."""

    loss: Tensor
    """Per-token term before any division, `[action tokens]`."""
    means: Mapping[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """Metric -> (sum, count); reported as their quotient, left out while the count is zero."""
    maxima: Mapping[str, Tensor] = field(default_factory=dict)
    """Metric -> largest value."""


class Objective(Protocol):
    """A component of the slot."""

    needs: frozenset[str]
    """Inputs beyond the ones always there: `logp_ref`."""
    silent_without_advantage: bool
    """True when tokens of advantage zero contribute exactly nothing and need no forward pass."""

    def __call__(self, tokens: ActionTokens) -> Terms:
        """Terms of one micro-batch."""
        ...

    def weights(self, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """Weight of each trajectory's action tokens, from the number of action tokens of every trajectory of
        the optimizer step, `[trajectories]` both: the denominator, known before any forward (law 6)."""
        ...
