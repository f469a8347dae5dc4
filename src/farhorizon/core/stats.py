"""Intervals."""

from math import sqrt
from statistics import NormalDist


def wilson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a rate (Wilson 1927).

    Args:
        successes: how many of the trials succeeded.
        trials: how many there were; with none the interval is [0, 1].
        confidence: nominal coverage.
    """
    if trials == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rate = successes / trials
    centre = rate + z * z / (2 * trials)
    spread = z * sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low = (centre - spread) / scale if successes > 0 else 0.0
    high = (centre + spread) / scale if successes < trials else 1.0
    return low, high
