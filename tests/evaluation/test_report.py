"""What a report says about items."""

import pytest

from farhorizon.core.record import Status, StopReason
from farhorizon.core.stats import wilson
from farhorizon.evaluation.items import Item, from_line, to_line
from farhorizon.evaluation.report import as_markdown, summarised


def item(task="t/1", sample=0, solved_at=None, turns=4, domain="easy", status=Status.OK, **values):
    return Item(
        task=task,
        domain=domain,
        sample=sample,
        success=None if status is Status.INFRA_FAULT else solved_at is not None,
        reward=float(solved_at is not None),
        turns=turns,
        success_turn=solved_at,
        sampled_tokens=10 * turns,
        context_tokens=50 + turns,
        valid_actions=turns - 1,
        actions=turns,
        truncated=status is Status.TRUNCATED,
        status=status,
        stop_reason=StopReason.TERMINATED,
        seed=7,
        **values,
    )


def task_of(name, solved_at, **values):
    return [item(name, sample, at, **values) for sample, at in enumerate(solved_at)]


ITEMS = [
    *task_of("t/1", [2, 3, None, 4]),
    *task_of("t/2", [None, None, None, 1]),
    *task_of("t/3", [None] * 4, domain="hard", status=Status.TRUNCATED),
]


def test_item_reads_back_as_written():
    assert [from_line(to_line(each)) for each in ITEMS] == ITEMS


def test_half_a_line_is_no_item():
    with pytest.raises(ValueError, match="Unterminated|Expecting"):
        from_line(to_line(ITEMS[0])[:40])


def test_success_is_counted_by_episodes_and_by_tasks():
    overall = summarised(ITEMS, 4).overall
    assert (overall.successes, overall.success, overall.success_interval) == (4, 4 / 12, wilson(4, 12))
    assert overall.avg_at_k == pytest.approx((3 / 4 + 1 / 4 + 0) / 3)
    low, high = overall.avg_at_k_interval
    assert 0.0 <= low < overall.avg_at_k < high <= 1.0
    assert high - low > wilson(4, 12)[1] - wilson(4, 12)[0]  # three tasks say less than twelve episodes
    assert overall.success_at_k == pytest.approx({1: 1 / 3, 2: (1 + 1 / 2 + 0) / 3, 4: 2 / 3})


def test_categories_are_reported_on_their_own():
    report = summarised(ITEMS, 4)
    assert list(report.by_category) == ["easy", "hard"]
    assert report.by_category["easy"].success == 0.5
    assert report.by_category["hard"].truncated == 1.0


def test_rates_without_spread_still_have_an_interval():
    hard = summarised(ITEMS, 4).by_category["hard"]
    assert hard.avg_at_k_interval == wilson(0, 1)


def test_conduct_is_a_mean_over_episodes_and_valid_actions_one_over_actions():
    overall = summarised([item(turns=2), item(sample=1, turns=6)], 6).overall
    assert (overall.turns, overall.sampled_tokens, overall.context_tokens) == (4.0, 40.0, 56)
    assert overall.valid_actions == 6 / 8


def test_success_within_turns_counts_the_turn_that_solved():
    within = summarised(ITEMS, 5).overall.within
    assert [(each.turns, round(each.rate * 12)) for each in within] == [(1, 1), (2, 2), (3, 3), (4, 4), (5, 4)]


def test_set_aside_episodes_are_counted_and_are_no_failures():
    broken = [item("t/1", 4, turns=0, status=Status.INFRA_FAULT), item("t/4", turns=0, status=Status.INFRA_FAULT)]
    whole, with_broken = summarised(ITEMS, 4).overall, summarised([*ITEMS, *broken], 4).overall
    assert (with_broken.set_aside, with_broken.fault_rate) == (2, 2 / 14)
    for name in ("success", "avg_at_k", "success_at_k", "turns", "valid_actions", "within"):
        assert getattr(with_broken, name) == getattr(whole, name)


def test_evaluation_in_which_everything_broke_reports_no_rates():
    report = summarised([item(turns=0, status=Status.INFRA_FAULT)], 4)
    assert (report.overall.success, report.overall.success_interval) == (None, (0.0, 1.0))
    assert "| set aside | 1 (100.0%) |" in as_markdown(report, "nobody")


def test_markdown_lists_turns_only_where_success_changes():
    text = as_markdown(summarised(task_of("t/1", [2, None], domain=""), 50), "somebody")
    allowed = text.split("turns allowed")[1].splitlines()[2:]
    assert [line.split("|")[1].strip() for line in allowed] == ["1", "2", "50"]
