"""The story of a real, if tiny, run: what it says it cost, and the commands it proposes."""

import shlex

import pytest
from made_up import stored_run

from farhorizon.cli.cost import Cost
from farhorizon.core.ledger import Ledger
from farhorizon.core.rundir import RunDirectory
from farhorizon.core.store import read_update, stored_updates, update_path


@pytest.fixture
def run(uninterrupted):
    return RunDirectory.open(uninterrupted[0].parent / "run")


def test_every_line_tells_its_wall_and_cpu_seconds(run, uninterrupted):
    lines = run.read_metrics()
    assert all(line["time/wall"] > 0 and line["time/cpu"] > 0 for line in lines)
    first, *others = (line["time/cpu"] for line in lines if line["phase"] == "eval")
    assert first > 1 + max(others)  # imports and loading are counted
    seconds = uninterrupted[3]
    assert 0.5 * seconds < sum(line["time/wall"] for line in lines) < 10 * seconds + 30


def test_cost_adds_up_what_is_stored(run):
    counted = Ledger()
    for folder in (run.trajectories, run.evaluations):
        for update in stored_updates(folder):
            counted.add(read_update(update_path(folder, update)))
    cost = Cost.of(run)
    assert cost.updates == 8
    assert cost.eval_episodes == 3 * 4
    assert cost.episodes + cost.eval_episodes == counted.episodes
    assert (cost.actions, cost.sampled_tokens) == (counted.env_steps, counted.sampled_tokens)
    assert cost.peak_memory > 0.05


def test_commands_to_try_next_work_as_printed(run, farhorizon):
    status, output, _ = farhorizon("show", run.path, "--story")
    assert status == 0
    _, _, after = output.partition("Try next")
    commands = [words for line in after.splitlines() if (words := shlex.split(line, comments=True))]
    assert len(commands) == 2
    for words in commands:
        status, output, errors = farhorizon(*words[1:])
        assert (status, errors) == (0, "")
        assert "ended: " in output


def test_what_is_no_training_run_has_no_story(tmp_path, farhorizon):
    run = stored_run(tmp_path / "evaluation")
    (run.path / "run.json").unlink()
    status, _, errors = farhorizon("show", run.path, "--story")
    assert status == 2
    assert "is not a training run" in errors
