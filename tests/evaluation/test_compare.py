"""Two evaluations side by side."""

import numpy as np
import pytest

from farhorizon.core.errors import UserError
from farhorizon.core.record import Status, StopReason
from farhorizon.core.stats import paired_sign_flip
from farhorizon.evaluation.compare import as_markdown, paired
from farhorizon.evaluation.items import Item


def items(successes, domain="easy", start=0):
    """One task for each row of `successes`; None for an episode set aside."""
    return [
        Item(
            task=f"t/{start + task}", domain=domain, sample=sample, success=success, reward=0.0, turns=1,
            success_turn=None, sampled_tokens=0, context_tokens=0, valid_actions=1, actions=1, truncated=False,
            status=Status.INFRA_FAULT if success is None else Status.OK,
            stop_reason=StopReason.TERMINATED, seed=0,
        )
        for task, row in enumerate(successes)
        for sample, success in enumerate(row)
    ]  # fmt: skip


def test_tasks_are_paired_by_the_mean_of_their_samples():
    comparison = paired(items([[1, 1], [1, 0], [0, 0], [0, 1]]), items([[0, 0], [0, 1], [1, 0], [0, 0]]))
    overall = comparison.overall
    assert (overall.a, overall.b, overall.difference) == (0.5, 0.25, 0.25)
    assert (overall.wins, overall.ties, overall.losses) == (2, 1, 1)
    assert overall.p == paired_sign_flip([1.0, 0.0, -0.5, 0.5])
    assert overall.interval[0] < 0.25 < overall.interval[1]


def test_numbers_of_samples_may_differ():
    overall = paired(items([[1, 1, 0, 0]]), items([[1, 0]])).overall
    assert (overall.ties, overall.difference, overall.interval) == (1, 0.0, (-1.0, 1.0))


def test_planted_difference_is_found_and_none_where_there_is_none():
    noise = np.random.default_rng(0)
    rates = noise.random(60)
    weak, again, strong = (noise.random((60, 4)) < np.minimum(rates + more, 1)[:, None] for more in (0, 0, 0.2))
    found = paired(items(strong.tolist()), items(weak.tolist())).overall
    assert found.p < 0.01
    assert found.interval[0] > 0
    nothing = paired(items(again.tolist()), items(weak.tolist())).overall
    assert nothing.p > 0.05
    assert nothing.interval[0] < 0 < nothing.interval[1]


def test_categories_are_compared_on_their_own():
    a = [*items([[1], [1]]), *items([[0]], "hard", 2)]
    b = [*items([[0], [1]]), *items([[0]], "hard", 2)]
    comparison = paired(a, b)
    assert {name: each.difference for name, each in comparison.by_category.items()} == {"easy": 0.5, "hard": 0.0}
    assert "| hard | 1 | 0 | 0.000 | 0.000 |" in as_markdown(comparison, "one", "two")


def test_task_without_a_scored_episode_is_left_out_and_counted():
    overall = paired(items([[1, None], [None, None]]), items([[0, 0], [1, 1]])).overall
    assert (overall.tasks, overall.left_out, overall.difference) == (1, 1, 1.0)
    with pytest.raises(UserError, match="no task has a scored episode in both"):
        paired(items([[None]]), items([[1]]))


def test_other_tasks_are_refused():
    with pytest.raises(UserError, match="different tasks"):
        paired(items([[1]]), items([[1], [0]]))
