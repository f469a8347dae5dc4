import errno
import json

import pytest

from farhorizon.core.errors import UserError
from farhorizon.core.rundir import RunDirectory
from farhorizon.core.store import write_update


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create(tmp_path / "run", "[env]\n", {})


def save(run, finished, text="weights"):
    return run.save_checkpoint(finished, lambda directory: (directory / "model").write_text(text))


def test_a_new_run_never_writes_over_an_old_one(run):
    with pytest.raises(UserError, match="--resume"):
        RunDirectory.create(run.path, "", {})


def test_prime_rl_1825_torn_checkpoint_is_skipped_for_the_last_good_one(run):
    good, torn = save(run, 1), save(run, 2)
    (torn / "COMPLETE.json").unlink()
    warnings = []
    assert run.last_checkpoint(warnings.append) == good
    assert "no completion marker" in warnings[0]


@pytest.mark.parametrize("text", ["weight", "Weights"])
def test_damaged_checkpoint_is_named_and_skipped(run, text):
    good, bad = save(run, 1), save(run, 2)
    (bad / "model").write_text(text)
    warnings = []
    assert run.last_checkpoint(warnings.append) == good
    assert "model is damaged" in warnings[0]


def test_checkpoints_are_ordered_by_number_not_by_name(run):
    for finished in (999_999, 1_000_000):
        save(run, finished)
    assert run.last_checkpoint(print) == run.checkpoint(1_000_000)


def test_failed_save_leaves_earlier_checkpoints_and_nothing_of_its_own(run):
    good = save(run, 1)

    def full(directory):
        (directory / "model").write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        run.save_checkpoint(2, full)
    assert [path.name for path in run.checkpoints.iterdir()] == [good.name]
    assert run.last_checkpoint(print) == good


def test_only_the_last_two_and_the_best_are_kept(run):
    for finished in range(1, 6):
        save(run, finished)
    run.prune({2})
    assert run.stored_checkpoints() == [2, 4, 5]


def test_what_is_newer_than_the_checkpoint_is_set_aside_not_deleted(run):
    for update in range(4):
        run.append_metrics({"update": update, "phase": "train"})
        write_update(run.trajectories, update, [])
    run.metrics_file.open("a").write('{"update": 4, "pha')
    run.set_aside(2)
    assert [line["update"] for line in run.read_metrics()] == [0, 1]
    aside = run.path / "set_aside" / "0"
    assert [json.loads(line)["update"] for line in (aside / "metrics.jsonl").read_text().splitlines()] == [2, 3]
    assert sorted(path.name for path in (aside / "trajectories").glob("*.jsonl")) == [
        "update-000002.jsonl",
        "update-000003.jsonl",
    ]
