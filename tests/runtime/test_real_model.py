"""SmolLM2-135M-Instruct through the same engine, learner and recipes as the micro model."""

import asyncio
import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from runs import finish

from farhorizon.config.agent import AppendOnly, Chat, Transcript
from farhorizon.config.engine import Local
from farhorizon.config.env import TextCraft
from farhorizon.config.learner import AdamW
from farhorizon.config.tables import Rollout
from farhorizon.core.record import Origin
from farhorizon.core.rundir import RunDirectory
from farhorizon.engines.base import Sampling
from farhorizon.learners.torch_learner import TorchLearner
from farhorizon.models.fetch import fetch
from farhorizon.models.load import load_model, load_tokenizer
from farhorizon.rollout.driver import Circumstances, Driver
from farhorizon.tasks.base import Assignment

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def source():
    return fetch("smollm2-135m-instruct")


@pytest.fixture(scope="module")
def model(source):
    return load_model(source, torch.float32)


@pytest.fixture(scope="module")
def tokenizer(source):
    return load_tokenizer(source)


def play(model, tokenizer, renderer, turns=12, members=2):
    world = TextCraft(depths=(3,), distractors=(2, 4)).build()
    agent = AppendOnly(renderer=renderer).build(tokenizer=tokenizer, world=world)
    engine = Local().build(model=copy.deepcopy(model), deterministic=True)
    limits = Rollout(max_turn_tokens=24, context_tokens=2048)
    driver = Driver(world=world, agent=agent, engine=engine, limits=limits, seed=0)
    given = Circumstances("rollout", 0, turns, Sampling(0.7))
    try:
        return asyncio.run(driver.groups([Assignment(world.tasks("train")[5], members)], given))[0].trajectories
    finally:
        engine.close()


@pytest.mark.parametrize(
    "renderer", [Transcript(), Chat(), Chat(style="action", examples=1)], ids=["transcript", "react", "action"]
)
def test_engine_and_learner_agree_over_twelve_turns(model, tokenizer, renderer):
    learner = TorchLearner(AdamW(), model=model, temperature=0.7)
    for trajectory in play(model, tokenizer, renderer):
        assert len(trajectory.turns) == 12
        assert trajectory.forks == 0
        (context,) = trajectory.contexts
        (learned,) = learner.score([(context.token_ids, context.sampled)])
        assert np.abs(learned - context.logp_behaviour[context.sampled]).max() <= 1e-4


def test_chat_template_is_prefix_stable_and_increments_equal_the_full_rendering(tokenizer):
    """verl#6501 with a real template: the ids built turn by turn are those of rendering the whole conversation."""
    world = TextCraft(depths=(1,)).build()
    renderer = Chat(style="action").build(tokenizer=tokenizer, world=world)
    assert renderer.stable
    script, ids, messages = renderer.script(), [], list(renderer.opening)
    for observation, action in (
        ("Goal: craft stick.", "get 2 bamboo"),
        ("Got 2 bamboo.", "craft 1 stick using 2 bamboo"),
    ):
        ids += [token for piece in script.show(observation) for token in piece.token_ids]
        ids += script.replay(action)
        messages += [{"role": "user", "content": observation}, {"role": "assistant", "content": action}]
    whole = renderer.render(messages, prompt=False).removesuffix("\n")
    assert ids == tokenizer(whole, add_special_tokens=False)["input_ids"]


def test_transcript_prompts_end_where_the_model_writes_a_space_and_a_word(tokenizer):
    world = TextCraft(depths=(1,)).build()
    script = Transcript().build(tokenizer=tokenizer, world=world).script()
    pieces = script.show("Goal: craft stick.")
    assert tokenizer.decode(pieces[-1].token_ids) == "\n>"
    assert [piece.origin for piece in pieces] == [Origin.TEMPLATE, Origin.OBSERVATION, Origin.TEMPLATE]
    written = script.replay("get 2 bamboo")
    assert written[-1] in script.stop
    assert not set(written[:-1]) & script.stop


def test_quickstart_trains(tmp_path):
    small = [
        "--set", "runtime.max_updates=1", "--set", "eval.tasks=2", "--set", "tasks.groups=2", "--set", "tasks.size=4",
    ]  # fmt: skip
    output = finish("train", ROOT / "recipes" / "quickstart.toml", "--run", tmp_path / "run", *small)
    assert "Held-out tasks: success" in output
    run = RunDirectory.open(tmp_path / "run")
    assert run.stored_checkpoints() == [0, 1]
    line = next(line for line in run.read_metrics() if line["phase"] == "train")
    assert line["samples/forked"] == 0
    assert line.get("objective/mismatch_abs_max", 0.0) < 1.0
