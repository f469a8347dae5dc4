"""The clipped ratio, its KL and mismatch terms and its denominators against published vectors (objectives.md
E.2, E.3)."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from farhorizon.config.objective import KL, ClippedRatio, Mismatch
from farhorizon.objectives.base import ActionTokens
from farhorizon.objectives.clipped_ratio import clipped_surrogate, kl_k2, kl_k3, truncated_weight
from farhorizon.objectives.cross_entropy import CrossEntropy
from farhorizon.objectives.reducers import token_weights

OLD = [-1.0, -2, -0.7, -1.5, -3]
NEW = [-0.8, -2.3, -0.2, -1.6, -2]
ADVANTAGES = [1.0, 1, -0.5, -0.5, -0.5]
TRAJECTORY = [0, 0, 1, 1, 1]
PPO = {"low": 0.8, "high": 1.28, "mismatch": Mismatch(kind="none")}


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def fixture(rows=slice(None), **fields) -> ActionTokens:
    """Fixture F: two trajectories of 2 and 3 action tokens."""
    defaults = {
        "logp": tensor(NEW)[rows].requires_grad_(),
        "logp_prox": tensor(OLD)[rows],
        "logp_behaviour": tensor(OLD)[rows],
        "advantages": tensor(ADVANTAGES)[rows],
        "trajectory": torch.tensor(TRAJECTORY)[rows],
    }
    return ActionTokens(**(defaults | fields))


def reduced(config: ClippedRatio, tokens: ActionTokens, lengths=(2, 3)):
    objective = config.build()
    weights = torch.from_numpy(objective.weights(np.array(lengths)))[tokens.trajectory]
    loss = (objective(tokens).loss * weights).sum()
    loss.backward()
    return loss.item(), tokens.logp.grad.tolist()


@pytest.mark.parametrize(
    ("advantage", "expected"),
    [
        (
            1.0,
            {
                0.5: (-0.5, -0.5),
                0.9: (-0.9, -0.9),
                1: (-1, -1),
                1.25: (-1.25, -1.25),
                1.5: (-1.28, 0),
                4: (-1.28, 0),
            },
        ),
        (-1.0, {0.5: (0.8, 0), 0.9: (0.9, 0.9), 1: (1, 1), 1.25: (1.25, 1.25), 1.5: (1.5, 1.5), 4: (4, 4)}),
    ],
)
def test_ppo_single_token_without_dual_clip(advantage, expected):
    for ratio, (loss, slope) in expected.items():
        logp = tensor([np.log(ratio)]).requires_grad_()
        value = clipped_surrogate(logp.exp(), tensor([advantage]), low=0.8, high=1.28)
        value.sum().backward()
        assert value.item() == pytest.approx(loss, abs=1e-6)
        assert logp.grad.item() == pytest.approx(slope, abs=1e-6)


def test_loss_1_ppo_token_mean():
    loss, gradient = reduced(ClippedRatio(**PPO), fixture())
    assert loss == pytest.approx(0.13473986, abs=1e-6)
    np.testing.assert_allclose(gradient, [-0.2442806, -0.1481636, 0.1648721, 0.0904837, 0.2718282], atol=1e-6)


def test_loss_13_micro_batches_add_up_to_the_whole():
    parts = [reduced(ClippedRatio(**PPO), fixture(rows)) for rows in (slice(0, 2), slice(2, 5))]
    assert sum(loss for loss, _ in parts) == pytest.approx(0.13473986, abs=1e-6)
    np.testing.assert_allclose(
        np.concatenate([gradient for _, gradient in parts]),
        [-0.2442806, -0.1481636, 0.1648721, 0.0904837, 0.2718282],
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("denominator", "constant", "expected"),
    [("token", None, 2.5), ("sequence", None, 2.0), ("constant", 8, 0.625)],
)
def test_loss_15_aggregation_and_a_fully_masked_row_changes_nothing(denominator, constant, expected):
    terms, rows = np.array([1.0, 2, 3, 4]), np.array([0, 1, 1, 1])
    weights = token_weights(denominator, np.array([1, 3]), constant)
    assert (terms * weights[rows]).sum() == pytest.approx(expected, abs=1e-12)
    with_empty = token_weights(denominator, np.array([1, 0, 3]), constant)
    assert with_empty[1] == 0
    np.testing.assert_array_equal(with_empty[[0, 2]], weights)


def test_weights_of_nothing_are_nothing():
    assert token_weights("token", np.zeros(0, dtype=int)).tolist() == []
    assert token_weights("sequence", np.zeros(2, dtype=int)).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("estimator", "difference", "value", "slope"),
    [
        (kl_k2, 0.5, 0.125, 0.5),
        (kl_k3, 0.5, 0.10653066, 0.39346934),
        (kl_k2, -2.0, 2.0, -2.0),
        (kl_k3, -2.0, 4.3890561, -6.3890561),
    ],
)
def test_kl_1_and_2_values_and_gradients(estimator, difference, value, slope):
    logp = tensor([difference]).requires_grad_()
    kl = estimator(logp, tensor([0.0]))
    kl.sum().backward()
    assert kl.item() == pytest.approx(value, abs=1e-6)
    assert logp.grad.item() == pytest.approx(slope, abs=1e-6)


def test_mm_1_token_truncation_at_2():
    prox = tensor([0.1, -0.5, 2, -0.2, 0.05, 0, -3]).requires_grad_()
    weights = truncated_weight(prox, torch.zeros_like(prox), 2.0)
    np.testing.assert_allclose(weights, [1.1051709, 0.6065307, 2, 0.8187308, 1.0512711, 1, 0.0497871], atol=1e-6)
    assert not weights.requires_grad


def test_mismatch_weights_the_policy_term_alone_and_leaves_the_denominator():
    behaviour, ref = tensor(OLD) - 0.1, tensor(NEW) + 0.5
    tokens = {"logp_behaviour": behaviour, "logp_ref": ref}
    kl = KL(coefficient=0.3, estimator="k3")
    _, policy = reduced(ClippedRatio(**PPO), fixture())
    _, penalty = reduced(
        ClippedRatio(**PPO | {"kl": kl}), fixture(advantages=torch.zeros(5, dtype=torch.float64), **tokens)
    )
    _, both = reduced(ClippedRatio(**PPO | {"kl": kl, "mismatch": Mismatch()}), fixture(**tokens))
    np.testing.assert_allclose(both, np.exp(0.1) * np.array(policy) + penalty, atol=1e-12)


def test_metrics_split_clipping_by_sign_and_count_capped_weights():
    terms = ClippedRatio(low=0.8, high=1.2, mismatch=Mismatch(cap=1.5)).build()(
        fixture(logp_behaviour=tensor(OLD) - tensor([0, 0.5, 0, 0, -0.3]))
    )
    values = {name: (total / count).item() for name, (total, count) in terms.means.items()}
    assert values["objective/clip_fraction_positive"] == 0.5  # 1.221 of (1.221, .741)
    assert values["objective/clip_fraction_negative"] == 0.0
    assert values["objective/mismatch_abs_mean"] == pytest.approx(0.16)
    assert values["objective/mismatch_capped_fraction"] == pytest.approx(0.2)
    assert terms.maxima["objective/mismatch_abs_max"].item() == pytest.approx(0.5)


def test_the_reference_is_needed_for_a_kl_alone():
    assert ClippedRatio().build().needs == frozenset()
    assert ClippedRatio().build().silent_without_advantage
    penalised = ClippedRatio(kl=KL(coefficient=0.1)).build()
    assert penalised.needs == {"logp_ref"}
    assert not penalised.silent_without_advantage
    with pytest.raises(ValueError, match="logp_ref"):
        penalised(fixture())


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6), st.sampled_from(["token", "sequence"]))
def test_at_ratio_one_the_gradient_is_reinforce(advantages, denominator):
    count = len(advantages)
    logp = tensor(np.linspace(-2, -1, count)).requires_grad_()
    tokens = ActionTokens(logp, logp.detach(), logp.detach(), tensor(advantages), torch.zeros(count, dtype=torch.long))
    _, gradient = reduced(ClippedRatio(denominator=denominator), tokens, lengths=(count,))
    np.testing.assert_allclose(gradient, -np.array(advantages) / count, atol=1e-12)


def test_gradients_agree_with_finite_differences():
    objective = ClippedRatio(**PPO | {"kl": KL(coefficient=0.2, estimator="k2"), "mismatch": Mismatch()}).build()
    ref = tensor(NEW) - 0.3
    assert torch.autograd.gradcheck(
        lambda logp: objective(fixture(logp=logp, logp_ref=ref)).loss, tensor(NEW).requires_grad_()
    )


def test_cross_entropy_is_the_mean_over_all_tokens():
    tokens = fixture()
    weights = torch.from_numpy(CrossEntropy().weights(np.array([2, 3])))[tokens.trajectory]
    loss = (CrossEntropy()(tokens).loss * weights).sum()
    loss.backward()
    assert loss.item() == pytest.approx(-np.mean(NEW))
    np.testing.assert_allclose(tokens.logp.grad, np.full(5, -0.2), atol=1e-12)
