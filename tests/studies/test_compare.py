"""The arithmetic of equal budgets, and what it allows to be said. Numbers worked out by hand."""

import pytest
from hand_made import curve, result

from farhorizon.core.stats import mean_interval
from studies.runner.compare import (
    best_candidates,
    common_budget,
    compare,
    mean_up_to,
    value_at,
    verdict,
)

LINE = curve((0, 0.0), (100, 0.4), (300, 0.2))


@pytest.mark.parametrize(("budget", "value"), [(0, 0.0), (50, 0.2), (100, 0.4), (200, 0.3), (300, 0.2)])
def test_value_at_a_budget_is_interpolated_between_measurements(budget, value):
    assert value_at(LINE, "env_steps", budget) == pytest.approx(value)
    assert value_at(LINE, "sampled_tokens", 10 * budget) == pytest.approx(value)


def test_value_along_updates_is_that_after_so_many_updates():
    assert value_at(LINE, "updates", 1.5) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("budget", "mean"), [(0, 0.0), (50, 0.1), (100, 0.2), (200, (20 + 35) / 200), (300, (20 + 60) / 300)]
)
def test_mean_up_to_a_budget_is_the_area_under_the_lines(budget, mean):
    assert mean_up_to(LINE, "env_steps", budget) == pytest.approx(mean)


def test_common_budget_is_what_the_shortest_cell_reached():
    cells = [result("a", 0, (0, 0), (90, 1)), result("b", 0, (0, 0), (50, 1), (70, 1))]
    assert common_budget(cells, "env_steps") == 70
    assert common_budget(cells, "sampled_tokens") == 700
    assert common_budget(cells, "updates") == 1


def ends(arm, *values, first_seed=0):
    return [result(arm, first_seed + i, (0, 0), (100, value)) for i, value in enumerate(values)]


def test_difference_is_paired_by_seed_whatever_the_order_of_the_cells():
    # The seeds differ by far more than the arms do; paired, the arms differ by 0.1 exactly, give or take 0.01.
    first, second = ends("a", 0.2, 0.51, 0.79), ends("b", 0.1, 0.4, 0.7)
    found = compare([*first[::-1], *second], "a", "b", "env_steps", 100)
    assert found.at_budget.mean == pytest.approx(0.1)
    assert (found.at_budget.low, found.at_budget.high) == pytest.approx(mean_interval([0.1, 0.11, 0.09]))
    assert found.at_budget.low > 0.05
    assert found.over_curve.mean == pytest.approx(0.05)


def test_seeds_that_only_one_arm_has_are_left_out():
    found = compare([*ends("a", 0.9, 0.2, 0.3), *ends("b", 0.1, 0.1, first_seed=1)], "a", "b", "env_steps", 100)
    assert found.at_budget.seeds == 2
    assert found.at_budget.mean == pytest.approx(0.15)


def said(first, second):
    return verdict(compare([*first, *second], "a", "b", "env_steps", 100))


def test_verdict_says_above_when_the_whole_interval_is():
    assert said(ends("a", 0.3, 0.31, 0.29), ends("b", 0.1, 0.1, 0.1)) == (
        "At equal environment steps (B = 100), `a` is above `b` by 0.200 [0.175, 0.225] over 3 seeds."
    )


def test_verdict_says_below_with_the_sizes_turned_round():
    assert said(ends("a", 0.1, 0.1, 0.1), ends("b", 0.3, 0.31, 0.29)) == (
        "At equal environment steps (B = 100), `a` is below `b` by 0.200 [0.175, 0.225] over 3 seeds."
    )


def test_verdict_tells_no_difference_when_the_interval_holds_zero():
    text = said(ends("a", 0.3, 0.1, 0.5), ends("b", 0.2, 0.2, 0.2))
    assert "no difference between `a` and `b` can be told over 3 seeds: +0.100 [−0.397, +0.597]" in text
    assert "above" not in text
    assert "no difference" in said(ends("a", 0.3, 0.3), ends("b", 0.3, 0.3))


def test_verdict_of_one_seed_or_none_says_nothing():
    assert "nothing can be said about `a` and `b` from one seed (+0.200 in favour of `a` on it)" in said(
        ends("a", 0.3), ends("b", 0.1)
    )
    assert "no seed of both is finished" in said(ends("a", 0.3), ends("b", 0.1, first_seed=1))


def test_best_try_is_taken_at_the_budget_that_all_tries_reached():
    tries = [
        result("a", 9, (0, 0), (100, 0.2), (200, 0.9), candidate=0),
        result("a", 9, (0, 0), (100, 0.3), candidate=1),
        result("b", 9, (0, 0), (100, 0.1), candidate=0),
        result("b", 9, (0, 0), (100, 0.1), candidate=1),
    ]
    assert best_candidates(tries, "env_steps") == {"a": 1, "b": 0}
