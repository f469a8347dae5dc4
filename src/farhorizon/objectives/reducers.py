"""Denominators: what each action token of an optimizer step counts for, fixed before any forward (law 6).

A loss is the sum over the step's action tokens of weight times term. The weights follow from the lengths
of all trajectories of the step, on all ranks, so no micro-batch split, order or filter can change them.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Denominator = Literal["token", "sequence", "constant"]


def token_weights(
    denominator: Denominator, lengths: NDArray[np.integer], constant: int | None = None
) -> NDArray[np.float64]:
    """Weight of every action token of each trajectory.

    With n trajectories that have at least one action token, and N action tokens in all:

    * `token`: 1/N (DAPO, Yu et al. 2025, over the whole step);
    * `sequence`: 1/(n L), L the trajectory's own action tokens over all its contexts (GRPO, Shao et al. 2024);
    * `constant`: 1/(n C) (Dr. GRPO, Liu et al. 2025).

    A trajectory without action tokens does not count: adding one changes nothing.

    Args:
        denominator: which of the three.
        lengths: action tokens of each trajectory of the step, `[trajectories]`.
        constant: C, with `constant` alone.

    Returns:
        Weights `[trajectories]`; zero where there is no token to carry it.
    """
    lengths = np.asarray(lengths, dtype=np.float64)
    filled = lengths > 0
    trajectories = max(int(filled.sum()), 1)
    if denominator == "token":
        per_token = np.full(lengths.shape, 1.0 / max(lengths.sum(), 1.0))
    elif denominator == "sequence":
        per_token = 1.0 / (trajectories * np.maximum(lengths, 1.0))
    else:
        if constant is None:
            raise ValueError('denominator "constant" needs its constant')
        per_token = np.full(lengths.shape, 1.0 / (trajectories * constant))
    return np.where(filled, per_token, 0.0)
