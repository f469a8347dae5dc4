"""Which episodes are shown for what a run changed."""

import pytest
from made_up import FAILED, SOLVED, broken, episode, evaluation

from farhorizon.viewer.pairs import Pair, chosen, paired


def pair(outcome: str, task: str) -> Pair:
    before, after = (episode(SOLVED if solved == "+" else FAILED, solved == "+", task) for solved in outcome)
    return Pair(after.task, before, after)


def shown(*outcomes: str) -> list[tuple[str, str]]:
    pairs = [pair(outcome, str(number)) for number, outcome in enumerate(outcomes)]
    return [(how, each.task.id) for how, each in chosen(pairs)]


def test_same_task_and_sample_are_paired_whatever_the_order_stored():
    before = [episode(SOLVED, True, task) for task in ("a", "b", "c") for _ in range(2)]
    after = [episode(FAILED, False, task) for task in ("c", "a", "d") for _ in range(2)]
    pairs = paired(evaluation(0, *before), evaluation(5, *after))
    assert [each.before.task.id for each in pairs] == [each.after.task.id for each in pairs]
    assert sorted((p.before.id, p.after.id) for p in pairs) == [
        ("eval/0/0/0", "eval/5/1/0"), ("eval/0/0/1", "eval/5/1/1"),
        ("eval/0/2/0", "eval/5/0/0"), ("eval/0/2/1", "eval/5/0/1"),
    ]  # fmt: skip
    again = paired(evaluation(0, *before[::-1]), evaluation(5, *after[::-1]))
    assert [each.task.id for each in again] == [each.task.id for each in pairs]


def test_episodes_that_infrastructure_broke_are_not_compared():
    before, after = evaluation(0, broken("a"), episode(task="b")), evaluation(1, episode(task="a"), broken("b"))
    assert paired(before, after) == []


@pytest.mark.parametrize(
    ("outcome", "named"),
    [("-+", "only after"), ("+-", "only before"), ("++", "both times"), ("--", "neither time")],
)
def test_outcome_says_when_a_task_was_solved(outcome, named):
    assert pair(outcome, "a").outcome == named


def test_a_win_a_failure_and_another_success_are_shown_in_their_order():
    assert shown("++", "--", "-+", "-+", "+-", "-+") == [
        ("the first solved only after", "2"),
        ("the first not solved after", "1"),
        ("the next solved after", "0"),
    ]


def test_three_are_shown_also_when_all_went_one_way():
    assert shown("--", "+-", "--", "--") == [
        ("the first not solved after", "0"),
        ("the next in order", "1"),
        ("the next in order", "2"),
    ]
    assert [task for _, task in shown("-+", "-+", "-+", "-+")] == ["0", "1", "2"]
    assert shown() == []


def test_no_task_is_shown_twice():
    pairs = [pair(outcome, task) for task, outcome in (("a", "-+"), ("a", "--"), ("a", "-+"), ("b", "-+"))]
    assert [each.task.id for _, each in chosen(pairs)] == ["a", "b"]
