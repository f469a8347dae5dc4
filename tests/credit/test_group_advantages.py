"""Group-relative advantages against published vectors (objectives.md E.1)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhorizon.credit.group import centred, standardised

ONE_GROUP = np.zeros(4, dtype=int)


def test_adv_1_grpo_std():
    result = standardised(np.array([1.0, 0, 0, 1]), ONE_GROUP, eps=1e-6)
    np.testing.assert_allclose(result.advantages, np.array([1, -1, -1, 1]) * 0.8660239, atol=1e-6)
    assert result.degenerate == 0


@pytest.mark.parametrize(("eps", "winner", "others"), [(1e-6, 1.499997, -0.499999), (1e-4, 1.4997001, -0.4999000)])
def test_adv_2_unbiased_std_with_verl_and_trl_eps(eps, winner, others):
    result = standardised(np.array([1.0, 0, 0, 0]), ONE_GROUP, eps=eps)
    np.testing.assert_allclose(result.advantages, [winner, others, others, others], atol=1e-6)


def test_adv_3_mean_only():
    result = centred(np.array([1.0, 0, 0, 0]), ONE_GROUP)
    np.testing.assert_allclose(result.advantages, [0.75, -0.25, -0.25, -0.25], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("formula", [standardised, centred])
def test_adv_6_constant_returns_are_exactly_zero(formula, dtype):
    result = formula(np.full(8, 0.7, dtype=dtype), np.zeros(8, dtype=int))
    assert (result.advantages == 0).all()
    assert result.degenerate == 1


@pytest.mark.parametrize("formula", [standardised, centred])
def test_adv_7_a_group_of_one_is_exactly_zero(formula):
    result = formula(np.array([0.7]), np.zeros(1, dtype=int))
    assert result.advantages.tolist() == [0.0]
    assert result.degenerate == 1


def test_no_trajectories_at_all():
    assert len(standardised(np.zeros(0), np.zeros(0, dtype=int)).advantages) == 0


@given(st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 3)), min_size=1, max_size=20), st.randoms())
def test_advantages_sum_to_zero_per_group_and_follow_any_order(pairs, random):
    returns, group = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    order = list(range(len(pairs)))
    random.shuffle(order)
    for formula in (standardised, centred):
        advantages = formula(returns, group).advantages
        for index in set(group.tolist()):
            assert abs(advantages[group == index].sum()) < 1e-6
        np.testing.assert_allclose(formula(returns[order], group[order]).advantages, advantages[order], atol=1e-6)
