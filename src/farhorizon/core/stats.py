"""Rates, intervals and tests, on NumPy alone."""

from collections.abc import Callable, Sequence
from functools import cache
from math import atan, comb, cos, inf, pi, sin, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from farhorizon.core.seeds import Key

RESAMPLES = 10_000
"""Bootstrap resamples."""
FLIPS = 20_000
"""Random sign flips, where there are too many to take all: a standard error of 0.0015 at p = 0.05."""
EXACT_BELOW = 14
"""Differences up to which all 2^n sign flips are taken."""
_BLOCK = 2_000_000
"""Most numbers drawn at once."""


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


def success_at_k(trials: int, successes: int, k: int) -> float:
    """Unbiased estimate of the chance that at least one of `k` attempts succeeds: 1 - C(n - c, k) / C(n, k)
    (Chen et al. 2021, eq. 1).

    Raises:
        ValueError: `k` is not between 1 and `trials`.
    """
    if not 1 <= k <= trials:
        raise ValueError(f"success@{k} cannot be estimated from {trials} attempts")
    return 1.0 - comb(trials - successes, k) / comb(trials, k)


def mean_interval(values: Sequence[float] | NDArray[np.float64], confidence: float = 0.95) -> tuple[float, float]:
    """Student's t interval for the mean of independent values, one a seed say.

    Returns:
        Lower and upper bound: mean ± t · s / √n, with the unbiased standard deviation s. A single value
        says nothing about spread: the interval is (-inf, inf).

    Raises:
        ValueError: no values.
    """
    sample = np.asarray(values, dtype=np.float64)
    if not len(sample):
        raise ValueError("the mean of no values has no interval")
    if len(sample) == 1:
        return -inf, inf
    spread = _student_quantile(0.5 + confidence / 2, len(sample) - 1) * float(sample.std(ddof=1)) / sqrt(len(sample))
    return float(sample.mean()) - spread, float(sample.mean()) + spread


def bootstrap_mean(
    values_by_cluster: Sequence[Sequence[float] | NDArray[np.float64]], confidence: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Interval for the mean over clusters (tasks) of the means within them (samples): clusters are drawn with
    replacement `RESAMPLES` times, each with all its values, so that values of one cluster may depend on each other.

    The bounds are expanded percentiles (Hesterberg 2015, "What teachers should know about the bootstrap", section
    5.1.1): percentiles of the resampled means, moved outwards by √(n / (n - 1)) and from the normal to Student's t,
    because plain percentiles are too narrow at a few dozen clusters.

    Args:
        values_by_cluster: values of each cluster, none empty.
        confidence: nominal coverage.
        seed: of the resampling.

    Returns:
        Lower and upper bound; (-inf, inf) for a single cluster. Clusters that all have the same mean
        give an interval of no width.

    Raises:
        ValueError: no clusters, or an empty one.
    """
    if not len(values_by_cluster) or any(len(values) == 0 for values in values_by_cluster):
        raise ValueError("the bootstrap needs clusters, each with at least one value")
    means = np.array([np.mean(values) for values in values_by_cluster])
    n = len(means)
    if n == 1:
        return -inf, inf
    t = _student_quantile(0.5 + confidence / 2, n - 1)
    tail = NormalDist().cdf(-sqrt(n / (n - 1)) * t)
    noise = Key(seed, "bootstrap").generator()
    blocks = [means[noise.integers(n, size=(size, n))].mean(axis=1) for size in _blocks(RESAMPLES, n)]
    low, high = np.quantile(np.concatenate(blocks), [tail, 1 - tail])
    return float(low), float(high)


def paired_sign_flip(differences: Sequence[float] | NDArray[np.float64], seed: int = 0) -> float:
    """Two-sided p-value of the sign-flip permutation test that paired differences are symmetric about zero
    (Fisher 1935, section 21): how often flipping signs at random moves the mean at least as far from zero.

    Zero differences have no sign and change nothing. Up to `EXACT_BELOW` others all flips are counted; beyond that
    `FLIPS` random ones, and the observed one with them (Phipson and Smyth 2010).

    Args:
        differences: one of each pair, `[pairs]`.
        seed: of the random flips.
    """
    sizes = np.asarray(differences, dtype=np.float64)
    sizes = sizes[sizes != 0]
    if not len(sizes):
        return 1.0
    # Sums of the same differences in another order may differ by rounding; they are as far from zero.
    least = abs(sizes.sum()) - 1e-9 * np.abs(sizes).sum()
    if len(sizes) <= EXACT_BELOW:
        flips = (np.arange(2 ** len(sizes))[:, None] >> np.arange(len(sizes))) & 1
        return float(np.mean(np.abs((1 - 2 * flips) @ sizes) >= least))
    noise = Key(seed, "sign flips").generator()
    as_far = 0
    for size in _blocks(FLIPS, len(sizes)):
        flips = noise.integers(2, size=(size, len(sizes)), dtype=np.int8)
        as_far += int(np.count_nonzero(np.abs((1 - 2 * flips) @ sizes) >= least))
    return (1 + as_far) / (1 + FLIPS)


def _blocks(rows: int, columns: int) -> list[int]:
    """Rows in blocks of at most `_BLOCK` numbers."""
    most = max(1, _BLOCK // columns)
    return [min(most, rows - start) for start in range(0, rows, most)]


@cache
def _student_quantile(probability: float, freedom: int) -> float:
    """Quantile of Student's t above the median, by bisection on its distribution function."""
    low, high = 0.0, 1.0
    inside = 2 * probability - 1
    while _student_inside(high, freedom) < inside:
        high *= 2
    return _bisect(lambda t: _student_inside(t, freedom) < inside, low, high)


def _student_inside(t: float, freedom: int) -> float:
    """P(|T| <= t) for a whole number of degrees of freedom: a finite series (Abramowitz and Stegun 26.7.3-4)."""
    angle = atan(t / sqrt(freedom))
    c2 = cos(angle) ** 2
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for step in range(3 if odd else 2, freedom - 1, 2):
        term *= c2 * (step - 1) / step
        total += term
    return (angle + sin(angle) * total) * 2 / pi if odd else sin(angle) * total


def _bisect(below: Callable[[float], bool], low: float, high: float) -> float:
    """Where `below` turns false, to the last bit."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if below(middle) else (low, middle)
    return high
