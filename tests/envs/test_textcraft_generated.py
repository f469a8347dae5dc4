"""Made-up recipe worlds: the same everywhere, as deep as asked for, solvable, and split by content."""

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhorizon.config.env import TextCraftGenerated as Config
from farhorizon.envs.base import Episode
from farhorizon.envs.players import OraclePlayer, play
from farhorizon.envs.textcraft.actions import MOST

EPISODE = Episode(seed=0, group_seed=0, update=0, horizon=400)
DIGEST = "146defd5d438eec405c94dab9909f88900bd1e2606af45aabc1870005b98dd36"
"""Of the tasks and solutions of `SMALL`. When it changes, `GENERATOR` must."""
SMALL = {"depths": (1, 2, 3), "distractors": (0, 3), "names": 100, "train": 40, "eval": 10}
SCRIPT = """
import hashlib, json, sys
from dataclasses import asdict
from farhorizon.config.env import TextCraftGenerated
world = TextCraftGenerated(**json.loads(sys.argv[1])).build()
tasks = [*world.tasks("train"), *world.tasks("eval")]
text = json.dumps([[asdict(task), list(world.oracle(task))] for task in tasks], sort_keys=True)
print(hashlib.sha256(text.encode()).hexdigest())
"""


def all_tasks(world):
    return [*world.tasks("train"), *world.tasks("eval")]


def depth_of(item, recipes):
    return 1 + max(depth_of(name, recipes) for name in recipes[item]) if item in recipes else 0


def parsed(task):
    """Inputs by output, read from the texts."""
    recipes = {}
    for text in task.data["recipes"]:
        made, used = re.fullmatch(r"craft \d+ (\w+) using (.+)", text).groups()
        recipes[made] = [part.split()[1] for part in used.split(", ")]
    return recipes


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_tasks_and_solutions_are_the_same_in_any_process(hash_seed):
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", SCRIPT, json.dumps(SMALL)]
    assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip() == DIGEST


@given(depth=st.integers(1, 6), least=st.integers(0, 3), more=st.integers(0, 3), seed=st.integers(0, 10**6))
def test_every_task_has_the_depth_asked_for_and_its_oracle_solves_it(depth, least, more, seed):
    config = Config(depths=(depth,), distractors=(least, least + more), train=3, eval=1, seed=seed)
    world = config.build()
    for task in all_tasks(world):
        recipes = parsed(task)
        assert depth_of(task.data["goal"], recipes) == task.level == depth
        played = asyncio.run(play(world.make(), task, OraclePlayer(world, task), EPISODE))
        assert played.success
        assert all(result.info.get("valid", True) for _, result in played.steps)


def test_as_many_distractors_as_asked_for_none_of_which_is_needed():
    world = Config(depths=(2,), distractors=(2, 2), train=30, eval=5).build()
    for task in all_tasks(world):
        recipes = parsed(task)
        used, waiting = set(), [task.data["goal"]]
        while waiting:
            name = waiting.pop()
            used.add(name)
            waiting += recipes.get(name, [])
        assert sum(output not in used for output in recipes) == 2


def test_splits_share_no_content_and_have_the_sizes_asked_for():
    world = Config(depths=(1,), distractors=(0, 0), names=16, train=600, eval=150).build()
    contents = {split: {tuple(sorted(t.data["recipes"])) for t in world.tasks(split)} for split in ("train", "eval")}
    assert not contents["train"] & contents["eval"]
    assert (len(world.tasks("train")), len(world.tasks("eval"))) == (600, 150)


def test_a_larger_training_set_begins_with_the_smaller_one():
    small, large = (Config(train=size, eval=1).build().tasks("train") for size in (10, 50))
    assert [asdict(task) for task in large[:10]] == [asdict(task) for task in small]


def test_a_task_needs_only_itself_to_be_played():
    task = Config(train=5, eval=1).build().tasks("train")[4]
    other = Config(train=1, eval=1, seed=9).build()
    assert asyncio.run(play(other.make(), task, OraclePlayer(other, task), EPISODE)).success


def test_texts_hold_every_word_that_can_be_shown():
    world = Config(**SMALL).build()
    known = set(re.findall(r"\w+|[^\w\s]", " ".join(world.texts())))
    for task in all_tasks(world):
        environment = world.make()
        shown = [environment.reset(task, EPISODE)]
        shown += [environment.step(action).observation for action in ("inventory", *world.oracle(task), "nonsense")]
        assert set(re.findall(r"\w+|[^\w\s]", " ".join(shown))) <= known


def test_nothing_needs_more_than_can_be_carried():
    world = Config(depths=(5,), train=30, eval=5).build()
    counts = [int(n) for task in all_tasks(world) for a in world.oracle(task) for n in re.findall(r"get (\d+)", a)]
    assert max(counts) <= MOST


def test_digest_is_of_the_configuration_named_here():
    world = Config(**SMALL).build()
    text = json.dumps([[asdict(task), list(world.oracle(task))] for task in all_tasks(world)], sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest() == DIGEST
