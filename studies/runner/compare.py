"""Arms at equal budget: values of curves, differences paired by seed, and what may be said about them. Ours."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farhorizon.core.stats import mean_interval
from studies.runner.result import Point, Result
from studies.runner.study import AXES, Axis

Curve = Sequence[Point]


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds."""

    mean: float
    low: float
    """Lower bound of Student's 95% interval over seeds; -inf with one seed."""
    high: float
    """Upper bound; inf with one seed."""
    seeds: int


@dataclass(frozen=True)
class Comparison:
    """Two arms along one axis, over the seeds that both have."""

    axis: Axis
    budget: float
    first: str
    second: str
    at_budget: Estimate | None
    """First less second at the budget; None without a shared seed."""
    over_curve: Estimate | None
    """First less second, each the mean of its curve up to the budget."""


def common_budget(results: Iterable[Result], axis: Axis) -> float:
    """The smallest final budget of all cells: the largest that every one of them reached."""
    return min(result.curve[-1].at(axis) for result in results)


def value_at(curve: Curve, axis: Axis, budget: float) -> float:
    """The curve at a budget, by linear interpolation between its points; constant beyond its ends."""
    return float(np.interp(budget, *_arrays(curve, axis)))


def mean_up_to(curve: Curve, axis: Axis, budget: float) -> float:
    """Area under the curve from 0 to a budget over that budget, by the trapezoid rule, which is exact for lines
    between points; the value at 0 for a budget of 0."""
    if budget <= 0:
        return value_at(curve, axis, 0.0)
    places, _ = _arrays(curve, axis)
    ends = np.concatenate([[0.0], places[(places > 0) & (places < budget)], [budget]])
    values = np.array([value_at(curve, axis, place) for place in ends])
    return float(np.sum(np.diff(ends) * (values[1:] + values[:-1]) / 2) / budget)


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and interval of one value a seed.

    Raises:
        ValueError: no values.
    """
    low, high = mean_interval(values)
    return Estimate(float(np.mean(values)), low, high, len(values))


def compare(results: Sequence[Result], first: str, second: str, axis: Axis, budget: float) -> Comparison:
    """Two arms, seed by seed."""
    by_arm = {arm: {r.seed: r.curve for r in results if r.arm == arm} for arm in (first, second)}
    shared = sorted(by_arm[first].keys() & by_arm[second].keys())
    differences = [
        [measure(by_arm[first][seed], axis, budget) - measure(by_arm[second][seed], axis, budget) for seed in shared]
        for measure in (value_at, mean_up_to)
    ]
    at_budget, over_curve = (estimate(each) if shared else None for each in differences)
    return Comparison(axis, budget, first, second, at_budget, over_curve)


def verdict(comparison: Comparison) -> str:
    """What the interval of the difference at the budget allows to be said, and no more."""
    first, second, found = f"`{comparison.first}`", f"`{comparison.second}`", comparison.at_budget
    opening = f"At equal {AXES[comparison.axis]} (B = {comparison.budget:,.0f}),"
    if found is None:
        return f"{opening} nothing can be said about {first} and {second}: no seed of both is finished."
    if found.seeds == 1:
        return (
            f"{opening} nothing can be said about {first} and {second} from one seed ({signed(found.mean)} in favour "
            f"of {first if found.mean >= 0 else second} on it)."
        )
    over = f"over {found.seeds} seeds"
    if found.low > 0:
        return f"{opening} {first} is above {second} by {_sized(found.mean, found.low, found.high)} {over}."
    if found.high < 0:
        return f"{opening} {first} is below {second} by {_sized(-found.mean, -found.high, -found.low)} {over}."
    return (
        f"{opening} no difference between {first} and {second} can be told {over}: "
        f"{signed(found.mean)} [{signed(found.low)}, {signed(found.high)}]."
    )


def best_candidates(tries: Sequence[Result], axis: Axis) -> dict[str, int]:
    """Arm -> the try that is highest at the budget all tries of all arms reached; the one listed first among equals."""
    budget = common_budget(tries, axis)
    best: dict[str, tuple[float, int]] = {}
    for result in tries:
        assert result.candidate is not None
        score = (value_at(result.curve, axis, budget), -result.candidate)
        best[result.arm] = max(score, best.get(result.arm, score))
    return {arm: -place for arm, (_, place) in best.items()}


def signed(value: float) -> str:
    """With a sign, a real minus, and three decimals."""
    return f"{value:+.3f}".replace("-", "−")


def _sized(mean: float, low: float, high: float) -> str:
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"


def _arrays(curve: Curve, axis: Axis) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.array([point.at(axis) for point in curve]), np.array([point.value for point in curve])
