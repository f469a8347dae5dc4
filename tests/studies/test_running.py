"""Running, stopping, going on: with a stand-in for the trainer, so that a cell takes a tenth of a second."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from studies.runner import figure, limits, main, session, starts

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, str(Path(__file__).with_name("fake_trainer.py"))]
CELLS = ["high-s0", "high-s1", "low-s0", "low-s1"]

APART = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from types import ModuleType
from studies.runner import main, session
session.COMMAND = {COMMAND!r}
sys.modules["studies.runner.starts"] = starts = ModuleType("starts")
starts.make = lambda *_: None
import studies.runner
studies.runner.starts = starts
sys.exit(main.main(Path(sys.argv[1]), sys.argv[2:]))
"""
"""The command with the stand-in, as a process of its own."""


@pytest.fixture
def run(root, monkeypatch, capsys):
    """Runs the command in this process; returns exit status, output and errors."""
    monkeypatch.setattr(session, "COMMAND", COMMAND)
    monkeypatch.setattr(starts, "make", lambda *_: None)
    monkeypatch.setattr("studies.runner.pool.PERIOD", 0.01)
    monkeypatch.setattr(figure, "draw", lambda study, results, path: None)

    def command(*arguments):
        status = main.main(root, arguments)
        return status, *capsys.readouterr()

    return command


@pytest.fixture
def apart(root, monkeypatch):
    """Begins the command in a process of its own, with slow updates."""
    monkeypatch.setenv("FAKE_SECONDS", "0.1")

    def command(*arguments):
        process = [sys.executable, "-c", APART, str(root), *arguments]
        return subprocess.Popen(process, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    return command


def edit(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def stored(places):
    return {path.stem: json.loads(path.read_text()) for path in sorted(places.cells.glob("*.json"))}


def until(condition, process):
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)


def lines_of(places, cell):
    file = places.runs / cell / "metrics.jsonl"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_study_runs_to_a_page_and_everything_done_is_skipped(run, tiny):
    status, output, _ = run("tiny")
    assert status == 0, output
    first = stored(tiny)
    assert list(first) == CELLS
    assert [point["value"] for point in first["high-s1"]["curve"]] == [0.9 * u / 10 + 0.01 for u in range(5)]
    assert first["high-s1"]["totals"] == {"updates": 4, "env_steps": 40.0, "sampled_tokens": 200.0}
    assert "`high` is above `low` by 0.160" in tiny.page.read_text()
    page, times = tiny.page.read_bytes(), [path.stat().st_mtime_ns for path in tiny.cells.iterdir()]
    assert run("tiny")[0] == 0
    assert [path.stat().st_mtime_ns for path in tiny.cells.iterdir()] == times
    tiny.page.unlink()
    assert run("tiny", "--report")[0] == 0
    assert tiny.page.read_bytes() == page


def test_cell_costs_what_its_process_used(run, tiny):
    began = time.monotonic()
    run("tiny", "--jobs", "1")
    wall = time.monotonic() - began
    costs = [cell["cost"] for cell in stored(tiny).values()]
    assert all(cost["cpu_seconds"] > 0 and cost["wall_seconds"] > 0 for cost in costs)
    assert sum(cost["wall_seconds"] for cost in costs) <= wall
    assert {(cost["sessions"], cost["sessions_lost"]) for cost in costs} == {(1, 0)}


def test_changed_recipe_runs_again_only_where_it_changed(run, tiny):
    run("tiny")
    before = stored(tiny)
    edit(tiny.study, "learning_rate = 0.9", "learning_rate = 0.8")
    assert run("tiny", "--report")[0] == 0
    assert "**Out of date**" in tiny.page.read_text()
    status, output, _ = run("tiny")
    assert (status, "cells to run: 2 of 4" in output) == (0, True)
    after = stored(tiny)
    assert after["low-s0"] == before["low-s0"]
    assert after["high-s0"]["recipe"]["hash"] != before["high-s0"]["recipe"]["hash"]
    assert after["high-s0"]["curve"][-1]["value"] == pytest.approx(0.8 * 4 / 10)
    assert after["high-s0"]["cost"]["sessions"] == 1


def test_budget_spent_starts_nothing_more_and_says_what_is_left(run, tiny, monkeypatch):
    monkeypatch.setenv("FAKE_SECONDS", "0.1")
    status, output, _ = run("tiny", "--budget", "0.2s", "--jobs", "1")
    assert status == 3
    assert "3 cells are left: high-s0, low-s1, high-s1" in output
    assert list(stored(tiny)) == ["low-s0"]
    assert "**Not finished**: 3 cells are missing" in tiny.page.read_text()
    assert "low-s0: 1 of" not in output
    assert "1 of 4 cells." in run("--list")[1]
    assert run("tiny", "--budget", "1h")[0] == 0
    assert run("tiny", "--budget", "0s")[0] == 0  # nothing is left to refuse


def test_cell_that_fails_is_named_and_stops_no_other(run, tiny):
    edit(tiny.study, "[arms.low]", "[arms.low]\nlearner.weight_decay = 1.0")
    status, output, _ = run("tiny")
    assert status == 1
    assert "cell low-s0 failed: exit status 1: farhorizon: it went wrong" in output
    assert "2 cells failed" in output
    assert list(stored(tiny)) == ["high-s0", "high-s1"]


def test_cell_over_the_limit_fails_the_command_and_keeps_its_result(run, tiny, monkeypatch):
    monkeypatch.setattr(limits, "CELL_SECONDS", 0)
    monkeypatch.setattr(limits, "STUDY_MINUTES", 0)
    status, output, _ = run("tiny")
    assert status == 1
    assert "cell low-s0 took 0 CPU-seconds; at most 0 are allowed unless the study says long = true" in output
    assert "minutes on two cores; at most 0 are allowed" in output
    assert list(stored(tiny)) == CELLS
    edit(tiny.study, "title =", "long = true\ntitle =")
    assert run("tiny")[0] == 0


def test_tuning_comes_first_and_its_winner_is_used(run, tiny):
    tries = ["learner.learning_rate = 0.6", "learner.learning_rate = 0.7"]
    tables = ", ".join(f"{{ {line} }}" for line in tries)
    with tiny.study.open("a") as file:
        file.write(f"[tuning]\nseed = 7\n[tuning.candidates]\nlow = [{tables}]\nhigh = [{tables}]\n")
    status, output, _ = run("tiny", "--budget", "0s")
    assert (status, "8 cells are left" in output) == (3, True)
    assert run("tiny")[0] == 0
    found = stored(tiny)
    assert len(found) == 8
    assert found["low-try1-s7"]["candidate"] == 1
    assert "learner.learning_rate=0.7" in found["low-s0"]["recipe"]["settings"]
    assert "| `low` | `learner.learning_rate=0.7` | 0.350 | used |" in tiny.page.read_text()
    assert run("tiny", "--check", "low-s1")[0] == 0


def test_check_says_identical_or_the_first_difference_and_leaves_everything_alone(run, tiny):
    run("tiny")
    status, output, _ = run("tiny", "--check", "high-s1")
    assert (status, output.splitlines()[-1]) == (0, "high-s1: identical")
    file = tiny.cells / "high-s1.json"
    edit(file, '"sampled_tokens": 200.0', '"sampled_tokens": 201.0')
    before = file.read_bytes()
    status, output, _ = run("tiny", "--check", "high-s1")
    assert (status, output.splitlines()[-1]) == (1, "high-s1 differs: curve.4.sampled_tokens: stored 201.0, now 200.0")
    assert file.read_bytes() == before
    status, _, errors = run("tiny", "--check", "high-s9")
    assert (status, errors) == (2, 'studies/run: study tiny has no cell "high-s9"; did you mean "high-s1"?\n')


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_stopped_study_stops_its_cells_and_goes_on_from_there(apart, run, tiny, number, monkeypatch):
    process = apart("tiny", "--jobs", "2")
    until(lambda: min(lines_of(tiny, "low-s0"), lines_of(tiny, "high-s0")) >= 2, process)
    process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    assert (process.returncode, "the same command goes on from here" in output) == (130, True)
    left = lines_of(tiny, "low-s0")
    assert 2 <= left < 9
    monkeypatch.setenv("FAKE_SECONDS", "0")
    assert run("tiny")[0] == 0
    cells = stored(tiny)
    assert cells["low-s0"]["cost"]["sessions"] == 2
    assert cells["low-s0"]["cost"]["sessions_lost"] == 0
    assert len(cells["low-s0"]["curve"]) == 5


@pytest.mark.slow
def test_killed_runner_loses_no_update_and_says_what_it_could_not_measure(apart, run, tiny, monkeypatch):
    process = apart("tiny", "--jobs", "1")
    until(lambda: lines_of(tiny, "low-s0") >= 2, process)
    process.kill()
    process.communicate()
    status, _, errors = run("tiny")
    assert (status, "is in use" in errors) == (2, True)  # its cell lives on, and is left to end
    monkeypatch.setenv("FAKE_SECONDS", "0")
    while (status := run("tiny")[0]) == 2:
        time.sleep(0.05)
    assert status == 0
    cost = stored(tiny)["low-s0"]["cost"]
    assert (cost["sessions"], cost["sessions_lost"]) == (2, 1)


@pytest.mark.slow
def test_killed_cell_is_a_failure_that_the_next_command_mends(apart, run, tiny, monkeypatch):
    process = apart("tiny", "--jobs", "1")
    until(lambda: lines_of(tiny, "low-s0") >= 2, process)
    os.kill(int((tiny.runs / "low-s0" / "pid").read_text()), signal.SIGKILL)
    output, _ = process.communicate(timeout=30)
    assert (process.returncode, "cell low-s0 failed: exit status -9" in output) == (1, True)
    monkeypatch.setenv("FAKE_SECONDS", "0")
    assert run("tiny")[0] == 0
    assert stored(tiny)["low-s0"]["cost"]["sessions"] == 2
    assert run("tiny", "--check", "low-s0")[0] == 0


@pytest.mark.slow
def test_measure_that_changed_is_read_from_the_runs_there_are(run, tiny):
    run("tiny")
    edit(tiny.study, "title =", 'measure = "success/rate"\ntitle =')
    assert run("tiny")[0] == 0
    cell = stored(tiny)["low-s0"]
    assert [point["value"] for point in cell["curve"]] == [0.5] * 4
    assert cell["cost"]["sessions"] == 2


@pytest.mark.slow
def test_cell_interrupted_under_other_code_begins_anew(apart, run, tiny, monkeypatch):
    process = apart("tiny", "--jobs", "1")
    until(lambda: lines_of(tiny, "low-s0") >= 2, process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    monkeypatch.setenv("FAKE_SECONDS", "0")
    monkeypatch.setattr("studies.runner.versions.source_digest", lambda: "other")
    assert run("tiny")[0] == 0
    cell = stored(tiny)["low-s0"]
    assert (cell["cost"]["sessions"], cell["code"]["source"]) == (1, "other")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a study, or --list them"),
        (["tiny", "--budget", "60"], "--budget 60: write it as 90s, 60m or 2h"),
        (["tiny", "--report"], "holds no result of this study; run it: studies/run tiny"),
        (["tiny", "--check", "low-s0"], "cell low-s0 has no stored result to compare with"),
    ],
)
def test_mistake_on_the_command_line_is_one_line_and_status_two(run, arguments, message):
    status, _, errors = run(*arguments)
    assert (status, errors.count("\n")) == (2, 1)
    assert message in errors


def test_the_script_itself_starts_under_any_python():
    script = [sys.executable, str(ROOT / "studies" / "run"), "--list"]
    output = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    assert "scaling_inter_first: " in output
    assert os.access(ROOT / "studies" / "run", os.X_OK)


def test_a_recipe_file_changed_while_cells_run_changes_none_of_them(apart, tiny):
    process = apart("tiny", "--jobs", "1")
    until(lambda: lines_of(tiny, "high-s0"), process)
    base = tiny.root / "studies" / "recipes" / "base.toml"
    base.write_text(base.read_text() + "\n[sampling]\ntemperature = 0.25\n")
    assert process.wait() == 0, process.communicate()[0]
    assert "temperature = 1.0" in (tiny.runs / "low-s1.toml").read_text()
