"""The result page: the same bytes for the same results, and what was written by hand stays."""

import pytest
from hand_made import result

from farhorizon.core.errors import UserError
from studies.runner import page
from studies.runner.study import read

RESULTS = [
    result(arm, seed, (0, 0.1), (100, 0.1 + gain + seed / 100), cpu=30.0)
    for arm, gain in (("low", 0.1), ("high", 0.3))
    for seed in (0, 1)
]


@pytest.fixture
def study(tiny):
    return read(tiny)


def written(tiny, study, results=RESULTS, tries=(), stale=frozenset()):
    page.write(tiny, study, results, tries, set(stale))
    return tiny.page.read_text()


@pytest.fixture(autouse=True)
def _folder(tiny):
    tiny.cells.mkdir(parents=True)


def test_page_and_figure_are_the_same_bytes_twice(tiny, study):
    first = written(tiny, study), tiny.figure.read_bytes()
    tiny.figure.unlink()
    assert (written(tiny, study), tiny.figure.read_bytes()) == first
    assert b"<dc:date>" not in first[1]


def test_page_tells_values_costs_verdict_and_how_to_do_it_again(tiny, study):
    text = written(tiny, study)
    for expected in (
        "# A tiny study",
        "`high` is above `low` by 0.200 [0.200, 0.200] over 2 seeds",
        "| `high` | 0.405 [0.341, 0.469] | 0: 0.400, 1: 0.410 |",
        "| environment steps | `high` − `low` | +0.200 [+0.200, +0.200] | +0.100 [+0.100, +0.100] | 2 |",
        "| `low` | 1 | 100 | 1,000 | 30 | 30 |",
        "`learner.learning_rate=0.9`",
        "4 cells: 1.0 minutes on two cores.",
        "studies/run tiny --check low-s0",
        "commit cccccccccccc",
        "](tiny.svg)",
    ):
        assert expected in text
    assert "Not finished" not in text
    assert "Out of date" not in text


def test_notes_survive_and_lost_marks_are_refused(tiny, study):
    tiny.page.write_text(written(tiny, study).replace(page.OPEN, f"{page.OPEN}\nWritten by hand.\n"))
    assert "Written by hand." in written(tiny, study, RESULTS[:3])
    tiny.page.write_text("by hand, with no marks")
    with pytest.raises(UserError, match="has lost <!-- notes -->"):
        written(tiny, study)
    assert tiny.page.read_text() == "by hand, with no marks"


def test_page_says_what_is_missing_and_what_is_out_of_date(tiny, study):
    text = written(tiny, study, RESULTS[:3], stale={"low-s0"})
    assert "**Not finished**: 1 cells are missing: `high-s1`." in text
    assert "**Out of date**: the study's recipe has changed since these were measured: `low-s0`." in text
    assert "nothing can be said about `high` and `low` from one seed" in text


def test_everything_tried_in_tuning_is_on_the_page(tiny):
    tiny.study.write_text(
        tiny.study.read_text()
        + "[tuning.candidates]\n"
        + "".join(f"{arm} = [{{}}, {{ learner.eps = 1e-4 }}]\n" for arm in ("low", "high"))
    )
    scores = {("low", 0): 0.2, ("low", 1): 0.3, ("high", 0): 0.4, ("high", 1): 0.1}
    tries = [result(arm, 1000, (0, 0), (50, score), candidate=i) for (arm, i), score in scores.items()]
    text = written(tiny, read(tiny), tries=tries)
    for row in (
        "| `low` | nothing | 0.200 |  |",
        "| `low` | `learner.eps=0.0001` | 0.300 | used |",
        "| `high` | nothing | 0.400 | used |",
        "| `high` | `learner.eps=0.0001` | 0.100 |  |",
        "on seed 1000, compared at 50 environment steps",
    ):
        assert row in text


def test_seconds_that_nobody_measured_make_the_cost_a_lower_bound(tiny, study):
    cost = RESULTS[0].cost.model_copy(update={"sessions_lost": 1})
    text = written(tiny, study, [RESULTS[0].model_copy(update={"cost": cost}), *RESULTS[1:]])
    assert "| `low` | 1 | 100 | 1,000 | ≥ 30 | ≥ 30 |" in text
