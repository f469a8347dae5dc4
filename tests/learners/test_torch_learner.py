"""The gradient learner: the same gradient however the work is cut up, and nothing where there is nothing to
learn."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learners.episodes import batch, context, gradients, group, micro, trajectory
from learners.two_ranks import learner, one_item, two_updates

from farhorizon.config.learner import AdamW
from farhorizon.config.objective import KL, ClippedRatio
from farhorizon.core.errors import Interrupted, UserError
from farhorizon.core.metrics import METRICS
from farhorizon.core.record import Group, Status, StopReason
from farhorizon.learners.torch_learner import TorchLearner


def gradient(groups, **fields) -> torch.Tensor:
    """The gradient of one update in fp64, caught before the optimizer sees it, `[parameters]`."""
    model, caught = micro(dtype=torch.float64), []
    made = learner(model, **fields)
    made._optimizer.register_step_pre_hook(lambda *_: caught.append(gradients(model)))
    made.update(groups, 0)
    return caught[0]


def close(a, b):
    """Equal up to rounding: transformers' RMSNorm rounds to fp32 whatever the weights are."""
    assert (a - b).abs().max() <= 2e-6 * b.abs().max()


OBJECTIVES = [
    ClippedRatio(),
    ClippedRatio(denominator="sequence"),
    ClippedRatio(denominator="constant", constant=16),
    ClippedRatio(kl=KL(coefficient=0.1)),
]


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(OBJECTIVES), st.integers(1, 300), st.integers(0, 5), st.randoms())
def test_open_instruct_1161_gradient_is_the_same_for_any_order_and_micro_batch_split(objective, budget, seed, random):
    groups = batch(seed=seed)
    shuffled = [group(random.sample(g.trajectories, len(g.trajectories)), i) for i, g in enumerate(groups)]
    random.shuffle(shuffled)
    fields = {"objective": objective, "reference": micro(1, torch.float64)}
    whole = gradient(groups, tokens_per_microbatch=100_000, **fields)
    close(gradient(shuffled, tokens_per_microbatch=budget, **fields), whole)


def test_open_instruct_1161_two_gloo_ranks_have_the_gradient_of_one(tmp_path):
    command = [sys.executable, "-m", "learners.two_ranks", tmp_path]
    subprocess.run(command, cwd=Path(__file__).parents[1], check=True, timeout=300)
    alone, expected_norm = two_updates(), one_item()
    for rank in range(2):
        theirs = torch.load(tmp_path / f"{rank}.pt", weights_only=False)
        for a, b in zip(theirs["gradients"], alone["gradients"], strict=True):
            close(a, b)
        depends_on_ranks = {"learner/microbatches", "learner/computed_tokens", "perf/learner_tokens_per_second"}
        for name in set(alone["metrics"]) - depends_on_ranks:
            assert theirs["metrics"][name] == pytest.approx(alone["metrics"][name], rel=1e-5, abs=1e-6), name
        assert theirs["arrays"].keys() == alone["arrays"].keys()
        for key, arrays in alone["arrays"].items():
            for name, array in arrays.items():
                np.testing.assert_allclose(theirs["arrays"][key][name], array, rtol=1e-5)
        assert theirs["stopped"]
        assert theirs["one_item"] == pytest.approx(expected_norm)


def test_ragen_71_observation_logits_get_no_gradient():
    model, heads = micro(), []
    groups = [group([trajectory("ttooaaoohaaoo", reward=1.0), trajectory("tta")])]
    embeddings = model.get_output_embeddings()
    embeddings.register_forward_pre_hook(lambda _, inputs: heads.append(inputs[0]))
    inner = []

    def keep(module, inputs, outputs):
        inner.append(outputs.last_hidden_state)
        inner[0].retain_grad()

    model.base_model.register_forward_hook(keep)
    learner(model).update(groups, 0)
    assert all(hidden.shape[0] == 5 for hidden in heads)  # the head sees action positions alone
    touched = torch.nonzero(inner[0].grad[0].abs().sum(-1)).flatten().tolist()
    assert touched == [1, 3, 4, 8, 9]  # the tokens before the five actions (1 is the last of the shared two)


def test_nemo_rl_3201_infrastructure_faults_change_no_gradient():
    groups = batch(groups=2)
    broken = trajectory("ttttaaoaaa", status=Status.INFRA_FAULT, stop_reason=StopReason.ENV_FAULT)
    with_faults = [group([broken, *g.trajectories, broken], i) for i, g in enumerate(groups)]
    close(gradient(with_faults), gradient(groups))


def test_contexts_left_out_change_no_gradient():
    groups = [*batch(groups=2), group([trajectory("ttaaoa", seed=1), trajectory("ttaaaa", seed=2)], 2)]
    made = ClippedRatio().build()
    made.silent_without_advantage = False
    close(gradient(groups), gradient(groups, objective=_Built(made)))


class _Built:
    """A configuration that builds what it is given."""

    def __init__(self, built):
        self._built = built

    def build(self):
        return self._built


@pytest.mark.parametrize(
    "groups",
    [
        [group([trajectory("ttaa", reward=1.0)])],
        [group([trajectory("ttaa", reward=1.0, seed=s) for s in range(3)])],
    ],
)
def test_a_group_of_one_and_equal_rewards_leave_the_weights_exactly_alone(groups):
    model = micro()
    made = learner(model, weight_decay=0.1)
    made.update(batch(), 0)  # moments that would drift
    before = {name: tensor.clone() for name, tensor in made.weights().items()}
    metrics, arrays = made.update(groups, 1)
    assert metrics["learner/steps_skipped"] == 1
    assert metrics["learner/steps"] == 0
    assert metrics["learner/grad_norm"] == 0
    assert metrics["learner/contexts_skipped"] == len(groups[0].trajectories)
    assert np.nansum(np.abs(arrays[0, 0, 0]["advantage"])) == 0
    assert all(torch.equal(before[name], tensor) for name, tensor in made.weights().items())


def test_art_127_no_trainable_token_is_an_error_naming_the_first_trajectory():
    empty = trajectory("tto", id="7/0/0", status=Status.TRUNCATED, stop_reason=StopReason.CONTEXT_OVERFLOW)
    with pytest.raises(UserError, match=r"update 7: .*7/0/0, is truncated and stopped by context_overflow"):
        learner().update([group([empty])], 7)
    with pytest.raises(UserError, match="no trajectories"):
        learner().update([], 0)


def test_openrlhf_1243_response_length_counts_action_tokens_alone():
    metrics, _ = learner().update([group([trajectory("ttooooaaooo", reward=1.0), trajectory("toaaaaooo")])], 0)
    assert metrics["learner/action_tokens"] == 6
    assert metrics["learner/action_tokens_per_trajectory"] == 3


def test_arrays_hold_one_number_per_action_token_and_nan_elsewhere():
    groups = batch()
    made = learner(objective=ClippedRatio(kl=KL(coefficient=0.1)), reference=micro(1))
    expected = made.score([(c.token_ids, c.sampled) for g in groups for t in g.trajectories for c in t.contexts])
    _, arrays = made.update(groups, 0)
    keys = [
        (g, t, c)
        for g, gr in enumerate(groups)
        for t, tr in enumerate(gr.trajectories)
        for c in range(len(tr.contexts))
    ]
    assert list(arrays) == keys
    for key, logps in zip(keys, expected, strict=True):
        context = groups[key[0]].trajectories[key[1]].contexts[key[2]]
        assert arrays[key].keys() == {"advantage", "logp", "logp_ref"}
        for array in arrays[key].values():
            assert array.dtype == np.float32
            np.testing.assert_array_equal(np.isnan(array), ~context.sampled)
        np.testing.assert_allclose(arrays[key]["logp"][context.sampled], logps, atol=1e-5)


@pytest.mark.parametrize("steps", [1, 2])
def test_every_metric_is_registered_and_finite(steps):
    made = learner(objective=ClippedRatio(kl=KL(coefficient=0.1)), reference=micro(1), steps_per_update=steps)
    metrics, _ = made.update(batch(), 0)
    assert metrics.keys() <= METRICS.keys()
    assert all(np.isfinite(value) for value in metrics.values())
    assert metrics["learner/steps"] == steps
    if steps == 1:
        assert metrics["objective/ratio_mean"] == 1.0


def test_ratios_are_against_the_start_of_the_update():
    made = learner(steps_per_update=3, learning_rate=3e-2)
    metrics, arrays = made.update(batch(), 0)
    assert metrics["objective/ratio_mean"] != 1.0
    at_start = learner().score(
        [(batch()[2].trajectories[0].contexts[0].token_ids, batch()[2].trajectories[0].contexts[0].sampled)]
    )[0]
    logp = arrays[2, 0, 0]["logp"]
    np.testing.assert_allclose(logp[~np.isnan(logp)], at_start, atol=1e-5)


@pytest.mark.parametrize("polls", [0, 1, 4])
def test_a_stop_before_the_first_step_leaves_the_weights_untouched(polls):
    calls = []

    def check_stop():
        calls.append(None)
        if len(calls) > polls:
            raise Interrupted("stop")

    model = micro()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    made = learner(model, check_stop=check_stop, tokens_per_microbatch=40, steps_per_update=2 if polls == 4 else 1)
    with pytest.raises(Interrupted):
        made.update(batch(), 0)
    assert all(torch.equal(before[name], tensor) for name, tensor in made.weights().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert made.state_dict() == {"steps": 0, "tensors": {}}


def test_no_stop_once_the_first_step_is_applied():
    polled = []
    made = learner(tokens_per_microbatch=40, steps_per_update=3)
    made._check_stop = lambda: polled.append(made._steps)
    made.update(batch(), 0)
    assert set(polled) == {0}
    assert made.state_dict()["steps"] == 3


def test_a_broken_gradient_is_an_error_before_the_weights_change():
    model = micro()
    with torch.no_grad():
        model.lm_head.weight[0, 0] = float("inf")
    with pytest.raises(UserError, match="update 4: the gradient norm is"):
        learner(model).update(batch(), 4)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_learning_rate_warms_up_linearly():
    made = learner(warmup_updates=3, learning_rate=1e-3)
    rates = [made.update(batch(), update)[0]["learner/learning_rate"] for update in (0, 1, 3, 9)]
    assert rates == pytest.approx([0.25e-3, 0.5e-3, 1e-3, 1e-3])


def test_a_saved_and_loaded_learner_continues_identically(tmp_path):
    first, second = learner(micro()), learner(micro(1))
    first.update(batch(), 0)
    first.save(tmp_path)
    second.model.load_state_dict(first.weights())
    second.load(tmp_path)
    results = [made.update(batch(seed=1), 1)[0] for made in (first, second)]
    assert {k: v for k, v in results[0].items() if "perf/" not in k} == {
        k: v for k, v in results[1].items() if "perf/" not in k
    }
    for name, tensor in first.weights().items():
        assert torch.equal(tensor, second.weights()[name])
    assert second.state_dict()["steps"] == 2


def test_the_state_of_another_model_is_refused(tmp_path):
    first = learner()
    first.update(batch(), 0)
    state = first.state_dict()
    state["tensors"]["other.exp_avg"] = torch.zeros(1)
    with pytest.raises(UserError, match=r"other\.exp_avg"):
        learner().load_state_dict(state)


def test_a_fresh_learner_can_be_saved_and_loaded(tmp_path):
    learner().save(tmp_path)
    made = learner()
    made.load(tmp_path)
    assert made.state_dict() == {"steps": 0, "tensors": {}}


def test_supervised_steps_learn_demonstrations_and_nothing_else():
    made = learner(learning_rate=1e-2)
    contexts = [context("ttooddooaa", seed) for seed in range(4)]
    losses = [made.supervised_step(contexts, update)["learner/loss"] for update in range(30)]
    assert losses[-1] < 0.3 * losses[0]
    expected = -np.mean(np.concatenate(learner().score([(c.token_ids, np.isin(c.origins, [4, 5])) for c in contexts])))
    assert losses[0] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(UserError, match="demonstrated or sampled"):
        made.supervised_step([context("ttoo")], 0)


def test_bfloat16_keeps_fp32_weights_and_is_close():
    model = micro()
    made = learner(model, dtype="bfloat16")
    groups = batch()
    items = [(c.token_ids, c.sampled) for g in groups for t in g.trajectories for c in t.contexts]
    exact, rounded = learner().score(items), made.score(items)
    assert max(np.abs(a - b).max() for a, b in zip(exact, rounded, strict=True)) < 0.3
    made.update(groups, 0)
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())


def test_what_a_learner_was_not_given_is_said():
    with pytest.raises(UserError, match="reference"):
        learner(objective=ClippedRatio(kl=KL(coefficient=0.1)))
    with pytest.raises(ValueError, match="temperature 0"):
        learner(temperature=0)
    with pytest.raises(ValueError, match="without an objective"):
        TorchLearner(AdamW(), model=micro(), temperature=1.0).update([], 0)


def test_learning_raises_the_probability_of_what_was_rewarded():
    made = learner(learning_rate=1e-2)
    good, bad = trajectory("ttooaaaa", reward=1.0, seed=1), trajectory("ttooaaaa", seed=2)
    items = [(t.contexts[0].token_ids, t.contexts[0].sampled) for t in (good, bad)]
    before = made.score(items)
    for update in range(5):
        made.update([Group("0/0", good.task, (good, bad), 0, 0, 2)], update)
    after = made.score(items)
    assert after[0].mean() > before[0].mean()
    assert after[1].mean() < before[1].mean()
