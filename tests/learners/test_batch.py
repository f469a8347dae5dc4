"""What is trained on, what it counts for, and how it is split (laws 2, 4 and 6)."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learners.episodes import batch, context, group, trajectory

from farhorizon.config.credit import GroupCentred
from farhorizon.config.objective import ClippedRatio
from farhorizon.core.record import Branch, Status, StopReason
from farhorizon.learners.batch import microbatches, policy_batch, supervised_batch
from farhorizon.models.packed import PackedTree

WEIGHTS = ClippedRatio().build().weights


def policy(groups, weights=WEIGHTS, steps=1, skip_silent=True):
    return policy_batch(
        groups, GroupCentred().build()(groups).advantages, weights, steps=steps, skip_silent=skip_silent
    )


def test_only_owned_sampled_tokens_of_scored_trajectories_are_trained_on():
    broken = trajectory("taa", status=Status.INFRA_FAULT, stop_reason=StopReason.ENV_FAULT)
    mixed = trajectory("tohpdaao", context("ttaaoaaa", parent=Branch("x", 0, 4)), reward=1.0)
    made = policy([group([broken, mixed, trajectory("too"), trajectory("ta")])])
    assert [item.key for item in made.items] == [(0, 1, 0), (0, 1, 1), (0, 3, 0)]
    assert [np.flatnonzero(item.trainable).tolist() for item in made.items] == [[5, 6], [5, 6, 7], [1]]


def test_supervised_loss_sits_on_sampled_and_demonstrated_tokens():
    made = supervised_batch(
        [context("tohpddaao"), context("tooo"), context("tdddd", parent=Branch("x", 0, 3))], WEIGHTS
    )
    assert [np.flatnonzero(item.trainable).tolist() for item in made.items] == [[4, 5, 6, 7], [3, 4]]
    assert made.weights.tolist() == [1 / 6] * 6


def test_openrlhf_1243_lengths_count_action_tokens_alone():
    weights = ClippedRatio(denominator="sequence").build().weights
    made = policy([group([trajectory("tooooaaooo", "tooaaa", reward=1.0), trajectory("toa")])], weights)
    assert made.weights.tolist() == pytest.approx([1 / (2 * 5)] * 5 + [1 / 2])
    assert made.trajectories == 2


def test_contexts_without_advantage_are_skipped_but_count():
    groups = [
        group([trajectory("taa"), trajectory("taaa")]),
        group([trajectory("ta", reward=1.0), trajectory("ta")], 1),
    ]
    made = policy(groups)
    assert [item.key for item in made.steps[0]] == [(1, 0, 0), (1, 1, 0)]
    assert made.skipped == 2
    assert made.weights.tolist() == [1 / 7] * 7
    assert policy(groups, skip_silent=False).skipped == 0


def test_steps_take_whole_groups_each_with_its_own_denominator():
    made = policy(batch(groups=5), steps=2)
    assert [sorted({item.key[0] for item in step}) for step in made.steps] == [[0, 1, 2], [3, 4]]
    for step in made.steps:
        total = sum(float(made.weights[item.start : item.stop].sum()) for item in step)
        assert total == pytest.approx(1.0)
    assert len(policy(batch(groups=2), steps=4).steps) == 2


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 99), st.integers(10, 400), st.integers(1, 3))
def test_micro_batches_hold_everything_once_within_budget(seed, budget, ranks):
    items = policy(batch(seed=seed), skip_silent=False).items
    shares = microbatches(items, budget, ranks)
    assert len(shares) == ranks
    flat = list(chain.from_iterable(shares))
    assert sorted(item.start for micro in flat for item in micro.items) == [item.start for item in items]
    for micro in flat:
        assert micro.computed == len(PackedTree([item.packable for item in micro.items]))
        assert micro.computed <= budget or len(micro.items) == 1


def test_a_group_stays_together_where_it_fits():
    items = policy(batch(groups=4), skip_silent=False).items
    largest = max(len(PackedTree([i.packable for i in items if i.key[0] == g])) for g in range(4))
    for micro in microbatches(items, largest)[0]:
        held = {item.key[0] for item in micro.items}
        assert len(micro.items) == sum(item.key[0] in held for item in items)


def test_ranks_share_the_work_evenly():
    items = policy(batch(groups=8), skip_silent=False).items
    loads = [sum(micro.computed for micro in share) for share in microbatches(items, 100_000, 2)]
    assert max(loads) < 1.6 * min(loads)


def test_a_groups_weight_scales_its_terms_and_leaves_the_denominator():
    groups = [
        group([trajectory("taa", reward=1.0), trajectory("ta")]),
        group([trajectory("taaa"), trajectory("ta")], 1),
    ]
    plain, doubled = policy(groups), policy([replace(groups[0], weight=2.0), groups[1]])
    assert (doubled.weights / plain.weights).tolist() == [2.0] * 3 + [1.0] * 4
