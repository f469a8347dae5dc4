"""Whole runs in this process: what they do at the edges."""

import errno
import json

import numpy as np
import pytest
import torch

from farhorizon.config.recipe import read
from farhorizon.core.errors import UserError
from farhorizon.core.rundir import RunDirectory
from farhorizon.core.store import read_update, stored_updates, update_path
from farhorizon.models.load import load_model, load_tokenizer
from farhorizon.runtime import checkpoint
from farhorizon.runtime.train import resume
from farhorizon.runtime.train import start as train


@pytest.fixture(autouse=True)
def _threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_agentgym_a7_max_updates_are_performed_exactly(recipe, tmp_path):
    run = train(read(recipe, ["runtime.max_updates=1"]), tmp_path / "run")
    assert stored_updates(run.trajectories) == [0]
    assert [(line["update"], line["phase"]) for line in run.read_metrics()] == [(0, "eval"), (0, "train"), (1, "eval")]
    assert list(run.tensorboard.iterdir())
    facts = json.loads((run.path / "run.json").read_text())
    assert facts["packages"]["torch"] == torch.__version__


def test_equal_rewards_leave_the_weights_alone_and_are_counted(recipe, start_weights, tmp_path):
    unsolvable = ["horizon.values=[1]", "runtime.max_updates=2", "tasks.part_way=0", "objective.kl.coefficient=0"]
    run = train(read(recipe, unsolvable), tmp_path / "run")
    lines = [line for line in run.read_metrics() if line["phase"] == "train"]
    assert all(line["learner/steps_skipped"] == 2 for line in lines)
    assert all(line["credit/groups_without_signal_fraction"] == 1 for line in lines)
    trained = load_model(run.checkpoint(2), torch.float32).state_dict()
    assert all(torch.equal(trained[name], weight) for name, weight in start_weights.items())


@pytest.fixture
def start_weights(start):
    return load_model(start, torch.float32).state_dict()


def test_art_127_prompt_longer_than_the_context_is_an_error_naming_trajectory_and_reason(recipe, tmp_path):
    with pytest.raises(UserError, match=r"rollout/0/0/0.*context_overflow"):
        train(read(recipe, ["rollout.max_turn_tokens=4", "rollout.context_tokens=12"]), tmp_path / "run")
    assert RunDirectory.open(tmp_path / "run").last_checkpoint(print) is not None


def test_full_disk_while_saving_loses_nothing_written_before(recipe, tmp_path, monkeypatch):
    honest, calls = checkpoint.save_model, []

    def save_model(model, tokenizer, directory):
        calls.append(directory)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        honest(model, tokenizer, directory)

    monkeypatch.setattr(checkpoint, "save_model", save_model)
    with pytest.raises(UserError, match=r"the disk is full.*--resume"):
        train(read(recipe), tmp_path / "run")
    run = RunDirectory.open(tmp_path / "run")
    assert run.last_checkpoint(print) == run.checkpoint(0)
    assert stored_updates(run.trajectories) == [0, 1]


def test_engine_and_learner_agree_over_twelve_turns(recipe, tmp_path):
    """At the same weights, fp32, to 1e-4: what the engine recorded while sampling turn by turn from its cache is what
    the learner computes in one pass."""
    resolved = read(recipe, ["horizon.values=[12]", "rollout.context_tokens=1024", "runtime.max_updates=1"])
    run = train(resolved, tmp_path / "run")
    trajectories = [t for group in read_update(update_path(run.trajectories, 0)) for t in group.trajectories]
    assert max(len(t.turns) - t.start_depth for t in trajectories) == 12
    compared = 0
    for trajectory in trajectories:
        for context in trajectory.contexts:
            learner = context.arrays["logp"][context.sampled]
            engine = context.logp_behaviour[context.sampled]
            known = ~np.isnan(learner)
            compared += known.sum()
            assert np.abs(learner - engine)[known].max(initial=0.0) <= 1e-4
    assert compared > 100


@pytest.mark.parametrize("stopped", [2, 3, 4])
def test_horizon_is_the_same_resumed_before_at_and_after_a_stage(recipe, tmp_path, stopped):
    run = train(read(recipe, [f"runtime.max_updates={stopped}"]), tmp_path / "run")
    text = run.recipe.read_text().replace(f"max_updates = {stopped}", "max_updates = 5")
    run.recipe.write_text(text)
    resume(run.path)
    horizons = [line["horizon"] for line in run.read_metrics() if line["phase"] == "train"]
    assert horizons == [3, 3, 3, 4, 4]


def test_what_is_stored_is_what_was_trained_on(uninterrupted):
    run = RunDirectory.open(uninterrupted[0].parent / "run")
    for update in stored_updates(run.trajectories):
        for group in read_update(update_path(run.trajectories, update)):
            for trajectory in group.trajectories:
                (context,) = trajectory.contexts
                assert (~np.isnan(context.arrays["advantage"]) == context.sampled).all()
                assert (context.policy_version[context.sampled] == update).all()
                assert trajectory.horizon == (3 if update < 3 else 4)


def test_best_checkpoint_is_kept(uninterrupted):
    run = RunDirectory.open(uninterrupted[0].parent / "run")
    best = json.loads((run.path / "best.json").read_text())
    evaluations = {line["update"]: line for line in run.read_metrics() if line["phase"] == "eval"}
    assert best["success"] == max(line["eval/success/rate"] for line in evaluations.values())
    assert best["finished"] in run.stored_checkpoints()
    assert run.stored_checkpoints()[-2:] == [6, 8]


def test_checkpoint_is_a_plain_hugging_face_directory(uninterrupted, recipe):
    run = RunDirectory.open(uninterrupted[0].parent / "run")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = run.checkpoint(8)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(path), AutoTokenizer.from_pretrained(path)
    ids = tokenizer("get 1 oak log\n", return_tensors="pt")["input_ids"]
    assert model(ids).logits.shape == (1, ids.shape[1], len(load_tokenizer(path)))
