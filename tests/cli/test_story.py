"""What a run came to, told from its files alone."""

import shlex

import pytest
from made_up import FAILED, SOLVED, broken, episode, stored_run

from farhorizon.cli.cost import Cost, duration
from farhorizon.cli.story import tell

BEFORE = [episode(FAILED, False, f"count/{n}") for n in range(6)]
AFTER = [episode(SOLVED, True, f"count/{n}") for n in range(5)] + [episode(FAILED, False, "count/5")]


def train_line(update, **values):
    totals = {"total/episodes": 10 * (update + 1), "total/env_steps": 30 * (update + 1)}
    totals |= {"total/sampled_tokens": 1000 * (update + 1), "total/context_tokens": 0}
    return {"update": update, "phase": "train", **totals, "learner/context_tokens": 5000, **values}


def eval_line(update, **values):
    totals = {"eval/total/episodes": 6, "eval/total/env_steps": 12, "eval/total/sampled_tokens": 100}
    return {"update": update, "phase": "eval", **totals, **values}


LINES = [
    eval_line(0, **{"time/wall": 20.0, "time/cpu": 30.0, "perf/peak_memory_gib": 1.0}),
    train_line(0, **{"time/wall": 60.0, "time/cpu": 100.0, "perf/peak_memory_gib": 1.5, "success/rate": 0.25}),
    train_line(1, **{"time/wall": 60.0, "time/cpu": 100.0, "perf/peak_memory_gib": 0.5, "success/rate": 0.75}),
    eval_line(2, **{"time/wall": 10.0, "time/cpu": 15.0, "perf/peak_memory_gib": 0.5}),
]


@pytest.fixture
def told(monkeypatch, capsys):
    """What is printed of a run where a line has so many columns."""

    def told(run, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        tell(run)
        return capsys.readouterr().out

    return told


def words(text):
    """Words alone, however they are laid out."""
    return " ".join(text.replace("│", " ").split())


def test_success_stands_beside_valid_actions_by_category(told, tmp_path):
    far = [episode(FAILED, False, "count/far", "far")]
    run = stored_run(tmp_path / "run", after_0=BEFORE + far, after_2=[*AFTER, broken("count/far", "far")], lines=LINES)
    rows = [words(line) for line in told(run).splitlines()]
    assert "short 0.00 [0.00, 0.39] 0.83 [0.44, 0.97] 6 0.00 → 0.71" in rows
    assert "far 0.00 [0.00, 0.79] – 1, 0 0.00 → –" in rows
    assert "all tasks 0.00 [0.00, 0.35] 0.83 [0.44, 0.97] 7, 6 0.00 → 0.71" in rows


def test_one_category_has_no_line_for_all(told, tmp_path):
    assert "all tasks" not in told(stored_run(tmp_path / "run", after_0=BEFORE, after_2=AFTER))


def test_two_samples_of_a_task_are_two_episodes(told, tmp_path):
    before, after = BEFORE[:2] * 2, AFTER[:1] * 2 + AFTER[1:2] * 2
    output = words(told(stored_run(tmp_path / "run", after_0=before, after_2=after)))
    assert "The same tasks before and after: 2 of 4 held-out episodes" in output
    assert "Solved only after: 4;" in output


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_episodes_stand_side_by_side_within_the_width(told, tmp_path, columns):
    run = stored_run(tmp_path / "run", after_0=BEFORE, after_2=AFTER)
    output = told(run, columns)
    shown, _, rest = output.partition("Where everything is")
    assert rest
    assert max(map(len, shown.splitlines())) <= columns
    assert "Solved only after: 5; only before: 0; both times: 0; neither time: 1." in words(shown)
    assert words(shown).count("Count to 1.") == 3
    line = next(line for line in shown.splitlines() if "> one" in line)
    assert [cell.strip() for cell in line.split("│")] == ["> one", "> 1"]
    for text in ("the first solved only after", "count/5 (short): the first not solved after", "the next solved after"):
        assert text in words(shown)
    assert "not solved: the 2 turns were used up" in words(shown)
    assert "solved in 1 turn" in words(shown)


def test_repeated_turns_are_told_once_and_long_texts_visibly_shortened(told, tmp_path):
    stuck = episode([("Go.", "left", True), *[("No.", "left", True)] * 8], False)
    wordy = episode([("Go.", "x" * 5000), *[(f"Room {n}.", f"go {n}") for n in range(20)]])
    output = words(told(stored_run(tmp_path / "run", after_0=[stuck], after_2=[wordy]), 160))
    assert output.count("> left") == 1
    assert "[9 times, not valid] No." in output
    assert "… 14 more turns …" in output
    assert "… (4,700 more characters)" in output
    assert "Room 3." in output
    assert "Room 10." not in output
    assert "> go 19" in output


def test_openings_that_differ_are_shown_in_their_columns(told, tmp_path):
    run = stored_run(tmp_path / "run", after_0=[episode([("Maze A.", "x")])], after_2=[episode([("Maze B.", "x")])])
    line = next(line for line in told(run).splitlines() if "Maze A." in line)
    assert [cell.strip() for cell in line.split("│")] == ["Maze A.", "Maze B."]


def test_any_text_can_be_told(told, tmp_path):
    odd = episode([("[bold]木\x1b[2J :smile:", "\ud800 [/]")], task="[red]/\ud800", domain="[b]é")
    output = told(stored_run(tmp_path / "run", after_0=[odd], after_2=[odd]))
    for text in ("[bold]木\\x1b[2J :smile:", "> \\ud800 [/]", "[red]/\\ud800 ([b]é)"):
        assert text in output
    assert "\x1b" not in output


def test_cost_is_that_of_all_sessions_evaluation_included(told, tmp_path):
    run = stored_run(tmp_path / "run", after_0=BEFORE, after_2=AFTER, lines=LINES)
    aside = run.path / "set_aside" / "0"
    aside.mkdir(parents=True)
    lost = train_line(1, **{"time/wall": 50.0, "time/cpu": 90.0, "perf/peak_memory_gib": 2.0})
    type(run)(aside).append_metrics(lost)
    cost = Cost.of(run)
    assert (cost.wall, cost.cpu, cost.redone, cost.peak_memory) == (200.0, 335.0, 50.0, 2.0)
    assert (cost.updates, cost.episodes, cost.eval_episodes, cost.actions) == (2, 20, 12, 84)
    assert (cost.sampled_tokens, cost.trained_tokens) == (2200, 10000)
    output = told(run)
    assert "wall time    3 min 20 s, 50 s of it done again after an interruption" in output
    assert "CPU time     335 CPU-seconds" in output


def test_durations_are_told_in_units_of_their_size():
    told = {0.4: "0 s", 59.6: "1 min 00 s", 785: "13 min 05 s", 7380: "2 h 03 min"}
    assert {seconds: duration(seconds) for seconds in told} == told


def test_unfinished_run_tells_what_there_is_and_how_to_go_on(told, tmp_path):
    run = stored_run(tmp_path / "a run", updates=9, after_0=BEFORE, lines=LINES[:3])
    output = told(run, 200)
    assert "The run is not finished: 2 of 9 updates are done." in output
    assert f"train --resume {shlex.quote(str(run.path))}" in output
    assert "0.00 [0.00, 0.39]" in output
    assert "The same tasks" not in output


def test_run_that_has_hardly_begun_can_be_told(told, tmp_path):
    output = told(stored_run(tmp_path / "run", updates=9))
    assert "0 of 9 updates are done" in output
    assert "Where everything is" in output


def test_paths_to_copy_are_quoted_and_never_broken(told, tmp_path):
    run = stored_run(tmp_path / ("a " * 60 + "run"), after_0=BEFORE, after_2=AFTER)
    run.save_checkpoint(2, lambda directory: None)
    _, _, after = told(run).partition("Try next")
    typed = [words for line in after.splitlines() if (words := shlex.split(line, comments=True))]
    (_, show, path, trajectory), (_, play, kind, *options) = typed
    assert (show, path, play, kind) == ("show", str(run.path), "play", "textcraft")
    assert trajectory.startswith("eval/2/")
    assert options[:2] == ["--as", str(run.path)]
