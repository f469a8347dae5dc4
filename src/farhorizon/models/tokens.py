"""Token streams compared."""

import numpy as np
from numpy.typing import NDArray


def common_prefix(first: NDArray[np.integer], second: NDArray[np.integer]) -> int:
    """How many leading ids two streams share."""
    length = min(len(first), len(second))
    differ = first[:length] != second[:length]
    return int(differ.argmax()) if differ.any() else length
