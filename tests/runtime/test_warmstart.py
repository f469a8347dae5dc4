import asyncio
import json
from typing import ClassVar, Literal

import numpy as np
import pytest
import torch
from toys import CountingWorld

from farhorizon.config.agent import AppendOnly, Transcript
from farhorizon.config.base import Component
from farhorizon.config.env import TextCraft
from farhorizon.config.models import MicroConfig
from farhorizon.core.errors import UserError
from farhorizon.core.record import Origin
from farhorizon.core.seeds import Key
from farhorizon.models.load import load_model
from farhorizon.models.micro import build_micro
from farhorizon.rollout.demonstrate import demonstrate
from farhorizon.runtime import warmstart
from farhorizon.runtime.renaming import Renaming
from farhorizon.runtime.report import Silent

AGENT = AppendOnly(renderer=Transcript(examples=0, instructions=False))


class CountingConfig(Component):
    kind: Literal["counting"] = "counting"
    builds: ClassVar[str] = "toys:counting_world"


@pytest.mark.slow
def test_start_is_made_once_and_its_success_is_in_the_band(monkeypatch):
    monkeypatch.setattr(warmstart, "PERIOD", 16)
    monkeypatch.setattr(warmstart, "EPISODES", 48)
    config = MicroConfig(width=32, heads=2, key_value_heads=1)
    place = warmstart.make_micro([CountingConfig()], AGENT, config, Silent())
    facts = json.loads((place / "start.json").read_text())
    assert warmstart.BAND[0] <= facts["success"] <= warmstart.BAND[1]
    weights = load_model(place, torch.float32)
    assert 1e4 < sum(p.numel() for p in weights.parameters()) < 5e6
    monkeypatch.setattr(warmstart, "_make", lambda *_: pytest.fail("made again"))
    assert warmstart.make_micro([CountingConfig()], AGENT, config, Silent()) == place


def test_another_environment_configuration_is_another_start():
    stamps = []
    for distractors in ((0, 2), (0, 3)):
        env = TextCraft(depths=(1,), distractors=distractors)
        stamps.append(warmstart.start_directory([env], AGENT, MicroConfig()))
    assert stamps[0] != stamps[1]


def test_a_demonstration_that_does_not_solve_its_task_is_refused():
    world = CountingWorld()
    _, tokenizer = build_micro(MicroConfig(width=32, heads=2, key_value_heads=1), world.texts(), 0)
    agent = AGENT.build(tokenizer=tokenizer, world=world)
    with pytest.raises(ValueError, match="does not solve it"):
        asyncio.run(demonstrate(world, agent, world.tasks("train")[2], ["1", "2"]))


def test_names_trade_places_consistently_and_everything_else_stays():
    world = TextCraft(depths=(1,), distractors=(0, 0)).build()
    _, tokenizer = build_micro(MicroConfig(), ["\n", ">", *world.texts()], 0)
    agent = AGENT.build(tokenizer=tokenizer, world=world)
    tasks = world.tasks("train")[:20]
    lessons = [asyncio.run(demonstrate(world, agent, task, world.oracle(task)))[0] for task in tasks]
    renaming = Renaming(tokenizer, lessons)
    before = lessons[0]
    after = renaming(before, Key(0, "names"))
    assert [segment.origin for segment in after.segments] == [segment.origin for segment in before.segments]
    assert (after.token_ids != before.token_ids).any()
    words_before = [tokenizer.decode([token]) for token in before.token_ids]
    words_after = [tokenizer.decode([token]) for token in after.token_ids]
    mapping = {}
    for old, new in zip(words_before, words_after, strict=True):
        assert mapping.setdefault(old.strip(), new.strip()) == new.strip()
        assert old.startswith(" ") == new.startswith(" ")
        if not old.strip().isalpha() or old.strip() in ("craft", "using", "Goal", "get"):
            assert new == old
    assert len(set(mapping.values())) == len(mapping)
    demonstrated = np.concatenate([s.token_ids for s in after.segments if s.origin is Origin.DEMONSTRATED])
    assert set(demonstrated) <= set(after.token_ids)


def test_solutions_that_do_not_fit_the_context_are_said():
    config = MicroConfig(width=32, heads=2, key_value_heads=1, context_tokens=4)
    with pytest.raises(UserError, match='no solution of environment "counting" fits into 4 tokens'):
        warmstart.make_micro([CountingConfig()], AGENT, config, Silent())
