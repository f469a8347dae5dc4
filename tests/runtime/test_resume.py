"""Law 7: a run killed anywhere resumes to the metrics of one that never was."""

import random
import shutil
import signal
import time

import pytest
from runs import begin, finish, metrics

from farhorizon.core.rundir import RunDirectory
from farhorizon.core.store import stored_updates


def test_something_is_learned_in_the_run_that_is_killed(uninterrupted):
    _, lines, _, _ = uninterrupted
    train = [line for line in lines if line["phase"] == "train"]
    assert [line["update"] for line in train] == list(range(8))
    assert [line["horizon"] for line in train] == [3, 3, 3, 4, 4, 4, 4, 4]
    assert sum(line["learner/steps"] for line in train) >= 4
    assert any(0 < line["reward/mean"] < 1 for line in train)


def killed_and_resumed(uninterrupted, path, moment):
    """Kill -9 a run `moment` (0 to 1) of the way from its first to its last file, then resume it."""
    recipe, _, _, seconds = uninterrupted
    process = begin("train", recipe, "--run", path)
    while not (path / "recipe.toml").exists():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    time.sleep(moment * seconds)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    finish("train", "--resume", path)


def check_same(uninterrupted, path):
    _, lines, weights, _ = uninterrupted
    assert metrics(path) == lines
    assert (path / "checkpoints" / "update-000008" / "model.safetensors").read_bytes() == weights
    assert stored_updates(path / "trajectories") == list(range(8))


@pytest.mark.parametrize("moment", [0.3, 0.8])
def test_run_killed_resumes_to_the_same_metrics(uninterrupted, tmp_path, moment):
    killed_and_resumed(uninterrupted, tmp_path / "run", moment)
    check_same(uninterrupted, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(16))
def test_run_killed_at_a_random_moment_resumes_to_the_same_metrics(uninterrupted, tmp_path, trial):
    killed_and_resumed(uninterrupted, tmp_path / "run", random.Random(trial).random())
    check_same(uninterrupted, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(4))
def test_run_killed_while_saving_resumes_to_the_same_metrics(uninterrupted, tmp_path, trial):
    recipe, path = uninterrupted[0], tmp_path / "run"
    process = begin("train", recipe, "--run", path)
    saving = path / "checkpoints" / f".update-{(2, 4, 6, 8)[trial]:06d}.partial"
    while not saving.exists():
        assert process.poll() is None, process.communicate()[0]
    time.sleep(random.Random(trial).random() * 0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finish("train", "--resume", path)
    check_same(uninterrupted, path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_signal_leaves_within_ten_seconds_at_the_last_finished_update(uninterrupted, tmp_path, number):
    path = tmp_path / "run"
    process = begin("train", uninterrupted[0], "--run", path)
    while len(list(path.glob("trajectories/*.jsonl"))) < 3:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    asked = time.monotonic()
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert time.monotonic() - asked < 10
    assert process.returncode == 130
    assert f"farhorizon train --resume {path}" in output
    saved = RunDirectory.open(path).stored_checkpoints()[-1]
    assert saved == len(stored_updates(path / "trajectories"))
    finish("train", "--resume", path)
    check_same(uninterrupted, path)


def test_torn_checkpoint_is_skipped_with_a_warning_and_the_run_goes_on(uninterrupted, tmp_path):
    recipe, path = uninterrupted[0], tmp_path / "run"
    finish("train", recipe, "--run", path)
    torn = path / "checkpoints" / "update-000008"
    (torn / "model.safetensors").write_bytes(b"torn")
    output = finish("train", "--resume", path)
    assert "model.safetensors is damaged" in " ".join(output.split())
    check_same(uninterrupted, path)
    shutil.rmtree(path)
