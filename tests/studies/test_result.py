"""Results of cells: read from a run's metrics, written exactly, compared bit for bit."""

import json

import pytest
from hand_made import result

from farhorizon.core.errors import UserError
from studies.runner.result import Result, curve, difference, load, text, write


def line(update, phase, **values):
    return {"update": update, "phase": phase, **values}


LINES = [
    line(0, "eval", **{"eval/success/rate": 0.1}),
    line(0, "train", **{"total/env_steps": 7.0, "total/sampled_tokens": 30.0, "success/rate": 0.25}),
    line(1, "train", **{"total/env_steps": 15.0, "total/sampled_tokens": 65.0}),
    line(2, "eval", **{"eval/success/rate": 0.1 + 0.2}),
    line(1, "eval", **{"eval/success/rate": 0.2}),
]


def test_value_stands_at_what_was_spent_before_it():
    points = curve(LINES, "eval/success/rate")
    assert [(p.update, p.env_steps, p.sampled_tokens, p.value, p.training_success) for p in points] == [
        (0, 0.0, 0.0, 0.1, None),
        (1, 7.0, 30.0, 0.2, 0.25),
        (2, 15.0, 65.0, 0.1 + 0.2, None),
    ]


def test_measure_of_training_belongs_to_the_policy_its_update_began_with():
    (point,) = curve(LINES, "success/rate")
    assert (point.update, point.env_steps, point.value) == (0, 0.0, 0.25)


def test_measure_that_the_run_lacks_is_an_error():
    with pytest.raises(UserError, match='no metric "eval/sucess/rate"'):
        curve(LINES, "eval/sucess/rate")


def test_result_keeps_every_bit_and_is_plain_json(tiny):
    made = result("a", 0, (0, 0.1 + 0.2), (1e17, 1 / 3))
    assert '"value": 0.30000000000000004' in text(made)
    assert json.loads(text(made))["curve"][1]["value"] == 1 / 3
    write(tiny, made)
    assert load(tiny, "a-s0") == made
    assert [path.name for path in tiny.cells.iterdir()] == ["a-s0.json"]


def test_damaged_result_is_named(tiny):
    write(tiny, result("a", 0, (0, 0)))
    (tiny.cells / "a-s0.json").write_text("{")
    with pytest.raises(UserError, match=r"a-s0\.json is no result"):
        load(tiny, "a-s0")


def test_identical_but_for_cost_and_code_is_identical():
    stored = result("a", 0, (0, 0.1), (5, 0.3), cpu=1.0)
    now = result("a", 0, (0, 0.1), (5, 0.3), cpu=9.0)
    now = now.model_copy(update={"code": now.code.model_copy(update={"commit": None})})
    assert difference(stored, now) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda values: values["curve"][1].update(value=0.1 + 0.2),
            "curve.1.value: stored 0.3, now 0.30000000000000004",
        ),
        (lambda values: values["recipe"].update(hash="1"), 'recipe.hash: stored "0", now "1"'),
        (lambda values: values["totals"].pop("env_steps"), "totals.env_steps is only in the stored result"),
        (lambda values: values["totals"].update(more=1.0), "totals.more is only in this one"),
    ],
)
def test_first_difference_is_named(change, message):
    stored = result("a", 0, (0, 0.1), (5, 0.3))
    values = stored.model_dump(mode="json")
    change(values)
    assert difference(stored, Result.model_validate(values)) == message
