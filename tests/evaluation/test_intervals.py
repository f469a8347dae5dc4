"""Intervals and tests say what they promise; the numbers come from enumeration, exact sums or simulation."""

from itertools import combinations, product
from math import comb, inf, isclose

import numpy as np
import pytest

from farhorizon.core import stats
from farhorizon.core.stats import bootstrap_mean, mean_interval, paired_sign_flip, success_at_k, wilson

TASKS, SAMPLES = 40, 4


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_success_at_k_is_the_share_of_all_choices_of_k_attempts_with_a_success(k):
    for outcomes in product([0, 1], repeat=5):
        choices = list(combinations(outcomes, k))
        assert success_at_k(5, sum(outcomes), k) == pytest.approx(sum(map(any, choices)) / len(choices))


def test_success_at_k_is_unbiased():
    p, n, k = 0.3, 8, 4
    expected = sum(comb(n, c) * p**c * (1 - p) ** (n - c) * success_at_k(n, c, k) for c in range(n + 1))
    assert expected == pytest.approx(1 - (1 - p) ** k)


def test_success_at_k_refuses_more_attempts_than_there_were():
    with pytest.raises(ValueError, match="success@3 cannot be estimated from 2 attempts"):
        success_at_k(2, 1, 3)


@pytest.mark.parametrize(("trials", "at_worst"), [(40, 0.025), (200, 0.02)])
def test_wilson_interval_covers_the_rate_as_often_as_it_says(trials, at_worst):
    """Exactly, by summing over outcomes: two points on the mean; a single rate swings more, as outcomes are few."""
    low, high = np.transpose([wilson(c, trials) for c in range(trials + 1)])
    coverage = []
    for p in np.arange(0.05, 0.951, 0.01):
        chances = [comb(trials, c) * p**c * (1 - p) ** (trials - c) for c in range(trials + 1)]
        coverage.append(sum(np.array(chances)[(low <= p) & (p <= high)]))
    assert abs(np.mean(coverage) - 0.95) < 0.02
    assert np.max(np.abs(np.array(coverage) - 0.95)) < at_worst


@pytest.mark.parametrize(
    ("confidence", "tables"), [(0.95, {1: 12.7062, 2: 4.3027, 4: 2.7764, 39: 2.0227}), (0.99, {7: 3.4995})]
)
def test_t_interval_uses_the_quantiles_of_the_tables(confidence, tables):
    for freedom, quantile in tables.items():
        values = np.arange(freedom + 1.0)
        low, high = mean_interval(values, confidence)
        standard_error = values.std(ddof=1) / np.sqrt(len(values))
        assert (high - low) / 2 / standard_error == pytest.approx(quantile, abs=1e-4)
        assert isclose((low + high) / 2, values.mean())


def test_t_interval_of_few_seeds_covers_the_mean_as_often_as_it_says():
    drawn = np.random.default_rng(0).normal(3.0, 2.0, size=(5000, 3))
    low, high = np.transpose([mean_interval(values) for values in drawn])
    assert abs(np.mean((low <= 3.0) & (high >= 3.0)) - 0.95) < 0.02


def test_one_value_leaves_the_mean_open_and_none_is_refused():
    assert mean_interval([0.5]) == bootstrap_mean([[0.5, 0.7]]) == (-inf, inf)
    with pytest.raises(ValueError, match="no values"):
        mean_interval([])
    with pytest.raises(ValueError, match="at least one value"):
        bootstrap_mean([[1.0], []])


@pytest.mark.parametrize("shape", [(0.5, 0.5), (0.5, 2.0)])
def test_bootstrap_over_tasks_covers_the_mean_as_often_as_it_says(shape, monkeypatch):
    """Tasks differ in difficulty, so that samples of one task depend on each other."""
    monkeypatch.setattr(stats, "RESAMPLES", 600)
    noise, truth = np.random.default_rng(1), shape[0] / sum(shape)
    rates = noise.beta(*shape, size=(1000, TASKS))
    outcomes = noise.random((1000, TASKS, SAMPLES)) < rates[:, :, None]
    low, high = np.transpose([bootstrap_mean(each.mean(axis=1, keepdims=True)) for each in outcomes])
    covered = np.mean((low <= truth) & (high >= truth))
    assert abs(covered - 0.95) < 0.02


def test_bootstrap_draws_tasks_and_not_episodes():
    """Copies of an episode say nothing new."""
    once = [[0.0], [1.0], [1.0], [0.0], [1.0]]
    assert bootstrap_mean([values * 50 for values in once]) == bootstrap_mean(once)


def test_sign_flip_test_of_few_differences_counts_all_flips():
    differences = [1.0, 2.0, -0.5, 3.0, 0.0]
    sums = [abs(np.dot(signs, differences[:4])) for signs in product([-1, 1], repeat=4)]
    assert paired_sign_flip(differences) == np.mean(np.array(sums) >= 5.5)
    assert paired_sign_flip([0.0, 0.0]) == 1.0


def test_sign_flip_test_by_drawing_agrees_with_counting(monkeypatch):
    differences = np.random.default_rng(2).normal(0.5, 1.0, size=12)
    exact = paired_sign_flip(differences)
    monkeypatch.setattr(stats, "EXACT_BELOW", 0)
    assert paired_sign_flip(differences) == pytest.approx(exact, abs=0.01)


def test_sign_flip_test_finds_a_difference_and_is_fooled_one_time_in_twenty(monkeypatch):
    monkeypatch.setattr(stats, "FLIPS", 999)
    noise = np.random.default_rng(3)
    rates = noise.beta(1, 1, size=(1500, TASKS, 1))
    a, b = (noise.binomial(SAMPLES, rates)[:, :, 0] / SAMPLES for _ in range(2))
    better = noise.binomial(SAMPLES, np.minimum(rates + 0.25, 1.0))[:, :, 0] / SAMPLES
    fooled = np.mean([paired_sign_flip(each) <= 0.05 for each in a - b])
    assert abs(fooled - 0.05) < 0.02
    assert np.mean([paired_sign_flip(each) <= 0.05 for each in (better - b)[:200]]) > 0.95
