"""Drawing: the right distribution, at the right temperature, from the noise given and nothing else."""

import numpy as np
import pytest
import torch

from farhorizon.core.seeds import Key, uniforms
from farhorizon.engines.sampling import draw

ALMOST_ONE = 1 - 2.0**-53


def one(logits, temperature, uniform):
    ids, logps = draw(torch.tensor([logits]), np.array([temperature]), np.array([uniform]))
    return int(ids[0]), float(logps[0])


def test_frequencies_follow_the_softmax():
    logits, count = torch.tensor([1.0, 0.0, -1.0, 2.0, -torch.inf, 0.5]), 20_000
    noise = uniforms(np.full(count, Key(3, "rollout").digest(), np.uint64), np.arange(count))
    ids, _ = draw(logits.expand(count, -1), np.full(count, 0.7), noise)
    expected = (logits / 0.7).softmax(-1).double().numpy() * count
    seen = np.bincount(ids, minlength=6)
    assert seen[4] == 0
    possible = expected > 0
    statistic = ((seen - expected)[possible] ** 2 / expected[possible]).sum()
    assert statistic < 18.5  # the 99.9 % point of chi-square with four degrees of freedom


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_logps_are_those_at_the_temperature(temperature):
    logits = [0.3, -1.2, 2.0]
    token, logp = one(logits, temperature, 0.99)
    expected = (torch.tensor(logits).double() / temperature).log_softmax(-1)[token]
    assert logp == pytest.approx(float(expected), abs=1e-6)


def test_temperature_zero_takes_the_most_likely_token_with_its_logp_at_temperature_one():
    logits = [0.3, 2.5, 2.0]
    token, logp = one(logits, 0.0, 0.999)
    assert token == 1
    assert logp == pytest.approx(float(torch.tensor(logits).log_softmax(-1)[1]), abs=1e-6)


def test_greedy_and_sampled_rows_share_a_batch():
    logits = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    ids, _ = draw(logits, np.array([0.0, 1.0]), np.array([0.1, 0.1]))
    assert ids.tolist() == [1, 0]


@pytest.mark.parametrize("uniform", [0.0, ALMOST_ONE])
def test_impossible_tokens_at_either_end_are_never_drawn(uniform):
    infinite = torch.inf
    token, _ = one([-infinite, 1.0, -infinite, 1.0, -infinite], 1.0, uniform)
    assert token == (1 if uniform == 0.0 else 3)


def test_noise_decides_by_the_inverse_of_the_cumulative_distribution():
    logits = np.log([0.1, 0.2, 0.7]).tolist()
    noise = (0.0, 0.0999, 0.1001, 0.2999, 0.3001, ALMOST_ONE)
    assert [one(logits, 1.0, uniform)[0] for uniform in noise] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_not_finite_are_an_error(temperature):
    logits = torch.tensor([[0.0, 1.0], [0.0, torch.nan]])
    with pytest.raises(FloatingPointError, match=r"rows \[1\] of 2"):
        draw(logits, np.full(2, temperature), np.full(2, 0.5))


def test_bfloat16_logits_are_normalised_in_float32():
    logits = torch.randn(4, 1000).bfloat16()
    ids, logps = draw(logits, np.ones(4), np.full(4, 0.5))
    expected = logits.double().log_softmax(-1).gather(1, torch.from_numpy(ids)[:, None])[:, 0]
    np.testing.assert_allclose(logps, expected.numpy(), atol=1e-5)
