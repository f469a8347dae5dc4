"""Tasks of TextCraft: the same everywhere, solvable from what they show, split by family."""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict

import pytest

from farhorizon.config.env import TextCraft as Config
from farhorizon.core.errors import UserError
from farhorizon.core.seeds import Key
from farhorizon.envs.base import Episode
from farhorizon.envs.players import RandomPlayer
from farhorizon.envs.textcraft.actions import MOST
from farhorizon.envs.textcraft.families import families, signature
from farhorizon.envs.textcraft.goals import tree
from farhorizon.envs.textcraft.recipes import installed

EPISODE = Episode(seed=0, group_seed=0, update=0, horizon=100)

DIGEST = "80ba6f6b72285726a8a9094a32d0a9c95aa03690dde14020e8d920dc5ac6fbcd"
"""Of all tasks and solutions at version 1. When it changes, the version must."""

DIGEST_SCRIPT = """
import hashlib, json, random, sys
from dataclasses import asdict
from pathlib import Path
listed = Path.glob
def shuffled(self, pattern):
    paths = list(listed(self, pattern))
    random.Random(int(sys.argv[1])).shuffle(paths)
    return iter(paths)
Path.glob = shuffled
from farhorizon.config.env import TextCraft
world = TextCraft().build()
tasks = [*world.tasks("train"), *world.tasks("eval")]
text = json.dumps([[asdict(task), list(world.oracle(task))] for task in tasks], sort_keys=True)
print(hashlib.sha256(text.encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def world():
    return Config().build()


@pytest.fixture(scope="module")
def tasks(world):
    return [*world.tasks("train"), *world.tasks("eval")]


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+|[^\w\s]", text))


def test_every_goal_is_one_task(tasks):
    assert len(tasks) == 544
    assert {task.data["goal"] for task in tasks} == set(installed().by_output)
    assert Counter(task.level for task in tasks) == {1: 125, 2: 291, 3: 117, 4: 11}
    assert all(task.domain == f"depth {task.level}" for task in tasks)
    assert all(task.id == "textcraft/" + task.data["goal"].replace(" ", "_") for task in tasks)


@pytest.mark.parametrize(("hash_seed", "order"), [("0", "1"), ("4242", "2")])
def test_tasks_are_the_same_for_any_hash_seed_and_directory_order(hash_seed, order):
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", DIGEST_SCRIPT, order]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == DIGEST


def test_tasks_of_this_version_have_not_changed(world, tasks):
    text = json.dumps([[asdict(task), list(world.oracle(task))] for task in tasks], sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest() == DIGEST


def test_no_family_is_in_both_splits(world):
    split = {task.data["goal"]: task.split for name in ("train", "eval") for task in world.tasks(name)}
    seen: dict[str, str] = {}
    for goal, recipes in installed().by_output.items():
        for recipe in recipes:
            assert seen.setdefault(signature(recipe.text), split[goal]) == split[goal], recipe.text


def test_goals_that_differ_by_wood_stone_or_colour_share_a_family():
    together = {goal: family.name for family in families(installed()) for goal in family.goals}
    for goals in (
        ("oak door", "dark oak door", "warped door"),
        ("oak planks", "crimson planks"),
        ("stone slab", "red sandstone slab", "granite slab"),
        ("light blue wool", "red wool"),
    ):
        assert len({together[goal] for goal in goals}) == 1, goals
    assert together["oak door"] != together["oak fence"]


def test_every_depth_is_in_both_splits_and_eval_is_about_a_fifth(world):
    held_out = Counter(task.level for task in world.tasks("eval"))
    assert held_out == {1: 44, 2: 52, 3: 23, 4: 3}
    assert Counter(task.level for task in world.tasks("train")) == {1: 81, 2: 239, 3: 94, 4: 8}
    assert all(len(world.oracle(task)) >= 2 for task in world.tasks("eval"))


def test_depths_choose_among_the_same_tasks(world):
    deep = Config(depths=(3, 4)).build()
    for split in ("train", "eval"):
        assert list(deep.tasks(split)) == [task for task in world.tasks(split) if task.level >= 3]


def test_unknown_split_is_named(world):
    with pytest.raises(UserError, match='no split "test"; there are: train, eval'):
        world.tasks("test")


@pytest.mark.parametrize("range_", [(0, 0), (1, 1), (2, 5), (0, 10)])
def test_distractors_are_as_many_as_asked_for_and_not_needed(range_):
    world, counts = Config(distractors=range_).build(), Counter()
    book = installed()
    for task in (*world.tasks("train"), *world.tasks("eval")):
        needed = {recipe.text for recipe, _ in tree(book, task.data["goal"], task.id).crafts}
        shown = task.data["recipes"]
        assert needed <= set(shown)
        assert len(set(shown)) == len(shown)
        made = {book.by_text[text].output for text in needed}
        assert all(book.by_text[text].output not in made for text in shown if text not in needed)
        counts[len(shown) - len(needed)] += 1
    assert sorted(counts) == list(range(range_[0], range_[1] + 1))


def test_more_distractors_than_there_are_recipes_shows_all_it_can():
    task = Config(depths=(4,), distractors=(9999, 9999)).build().tasks("eval")[0]
    assert 500 < len(task.data["recipes"]) <= len(installed().recipes)


def test_version_names_what_changes_tasks():
    assert Config(distractors=(0, 0)).build().version != Config().build().version


def test_what_is_shown_is_enough_to_make_the_goal_at_its_depth(tasks):
    book = installed()
    for task in tasks:
        depth = dict.fromkeys(book.base, 0)
        for _ in range(task.level):
            for recipe in (book.by_text[text] for text in task.data["recipes"]):
                ways = [[item for item in book.kinds.get(name, (name,)) if item in depth] for name, _ in recipe.inputs]
                if all(ways):
                    reached = 1 + max(min(depth[item] for item in items) for items in ways)
                    depth[recipe.output] = min(reached, depth.get(recipe.output, reached))
        assert depth[task.data["goal"]] == task.level, task.id


def test_oracle_solves_every_goal_with_actions_as_they_are_written(world, tasks):
    game = world.make()
    for task in tasks:
        game.reset(task, EPISODE)
        results = [game.step(action) for action in world.oracle(task)]
        assert all(result.info == {} for result in results), task.id
        assert [r.terminated for r in results] == [r.success for r in results] == [r.reward == 1 for r in results]
        assert [result.success for result in results] == [False] * (len(results) - 1) + [True], task.id


def test_oracle_gets_each_base_item_once_unless_it_cannot_be_carried(world, tasks):
    for task in tasks:
        gets = Counter(action.split(" ", 2)[2] for action in world.oracle(task) if action.startswith("get"))
        amounts = tree(installed(), task.data["goal"], task.id).gets
        assert all(count == 1 or amounts[item] > MOST for item, count in gets.items()), task.id


def test_no_action_of_the_oracle_can_be_left_out(world, tasks):
    game = world.make()
    for task in tasks[::7]:
        actions = world.oracle(task)
        for left_out in range(len(actions)):
            game.reset(task, EPISODE)
            assert not any(game.step(a).success for i, a in enumerate(actions) if i != left_out), task.id


def test_goals_with_cyclic_recipes_and_all_others_start_at_once(world, tasks):
    cyclic = [task for task in tasks if re.match("(pink|magenta|light gray) |painting", task.data["goal"])]
    assert len(cyclic) >= 22
    game = world.make()
    for chosen in (cyclic, tasks):
        began = time.process_time()
        for task in chosen:
            assert task.data["goal"] in game.reset(task, EPISODE)
        assert (time.process_time() - began) / len(chosen) < 1e-3
    began = time.process_time()
    fresh = Config().build()
    assert len(fresh.tasks("train")) + len(fresh.tasks("eval")) == 544
    assert (time.process_time() - began) / 544 < 3e-3


def test_prompt_reads_as_in_the_package_with_spaces_in_names(world):
    bare = Config(distractors=(0, 0)).build()
    task = next(task for split in ("train", "eval") for task in bare.tasks(split) if task.id == "textcraft/oak_button")
    lines = bare.make().reset(task, EPISODE).split("\n")
    assert lines[0] == "Crafting commands:"
    assert sorted(lines[1:3]) == [
        "craft 1 oak button using 1 oak planks",
        "craft 4 oak planks using 1 oak logs",
    ]
    assert lines[3:] == ["", "Goal: craft oak button."]


def test_texts_cover_every_word_of_random_play_and_stay_small(world, tasks):
    vocabulary = set().union(*map(words, world.texts()))
    assert len(vocabulary) < 1000
    assert not any("_" in word or "minecraft" in word for word in vocabulary)
    game = world.make()
    for index, task in enumerate(tasks[::9]):
        player, observation = RandomPlayer(Key(0, "words", group=index)), game.reset(task, EPISODE)
        for turn in range(30):
            action = player.act(observation, game)
            observation = game.step(action if turn % 3 else action[: turn + 4]).observation
            assert words(observation) | words(action) <= vocabulary


def test_examples_show_items_that_exist_nowhere_simplest_first(world):
    names = set(installed().items) | set(installed().kinds)
    lengths = []
    for example in world.examples():
        shown = example.observations[0].split("\n")
        made = {line.split(" using ")[0].split(" ", 2)[2] for line in shown if line.startswith("craft ")}
        used = {
            part.split(" ", 1)[1]
            for line in shown
            if " using " in line
            for part in line.split(" using ")[1].split(", ")
        }
        assert made
        assert not (made | used) & names
        lengths.append(len("".join(example.observations + example.actions)))
    assert len(lengths) == 3
    assert lengths == sorted(lengths)
