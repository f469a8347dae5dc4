"""Players that are not models."""

import asyncio

import pytest

from farhorizon.config.env import TextCraft as Config
from farhorizon.core.errors import UserError
from farhorizon.core.seeds import Key
from farhorizon.envs.base import Episode
from farhorizon.envs.players import OraclePlayer, RandomPlayer, ScriptedPlayer, play, players
from farhorizon.envs.textcraft import phrases

WORLD = Config(depths=(1, 2)).build()
SINGLE = Config(depths=(1,), distractors=(0, 0)).build()
TASK = WORLD.tasks("train")[100]


def played(player, horizon=20):
    return asyncio.run(play(WORLD.make(), TASK, player, Episode(seed=0, group_seed=0, update=0, horizon=horizon)))


def test_oracle_player_solves_its_task():
    assert played(OraclePlayer(WORLD, TASK)).success is True


def test_oracle_player_says_which_task_has_no_solution(monkeypatch):
    monkeypatch.setattr(WORLD, "oracle", lambda task: None)
    with pytest.raises(UserError, match=TASK.id):
        OraclePlayer(WORLD, TASK)


def test_random_player_depends_on_its_key_alone():
    one, again, other = (played(RandomPlayer(Key(seed, "player"))) for seed in (1, 1, 2))
    assert one == again
    assert [action for action, _ in one.steps] != [action for action, _ in other.steps]


def test_random_player_without_a_list_says_words_it_has_seen(monkeypatch):
    environment = WORLD.make()
    monkeypatch.setattr(environment, "available_actions", lambda: None)
    player = RandomPlayer(Key(0, "player"))
    assert player.act("go north or south", environment) in {"go", "north", "or", "south"}
    assert player.act("", environment) == ""


def test_scripted_player_keeps_to_its_script_until_the_horizon():
    result = played(ScriptedPlayer(["inventory", "dance"]), horizon=3)
    assert [action for action, _ in result.steps] == ["inventory", "dance", ""]
    assert result.success is False


def test_players_of_a_world_are_its_heuristics_the_oracle_and_the_random_one():
    made = players(WORLD)
    assert set(made) == {"first_recipe", "oracle", "random"}
    assert played(made["oracle"](TASK, Key(0, "player"))).success is True
    assert played(made["random"](TASK, Key(1, "player"))) == played(RandomPlayer(Key(1, "player")))


def test_first_recipe_gets_what_the_first_command_names_crafts_it_and_begins_again():
    commands = ["craft 2 gate using 4 stick, 2 planks", "craft 1 door using 6 planks"]
    observations = [phrases.prompt(commands, "door"), *["Got it."] * 4]
    player = players(WORLD)["first_recipe"](TASK, Key(0, "player"))
    actions = [player.act(observation, WORLD.make()) for observation in observations]
    assert actions == ["get 4 stick", "get 2 planks", commands[0], "get 4 stick", "get 2 planks"]


def test_first_recipe_shown_nothing_to_craft_looks_around():
    player = players(WORLD)["first_recipe"](TASK, Key(0, "player"))
    assert player.act("Hello.", WORLD.make()) == "inventory"


def test_first_recipe_solves_what_takes_one_command_of_base_items():
    task = next(task for task in SINGLE.tasks("train") if len(SINGLE.oracle(task)) == 2)
    player = SINGLE.heuristics()["first_recipe"](task, Key(0, "player"))
    result = asyncio.run(play(SINGLE.make(), task, player, Episode(seed=0, group_seed=0, update=0, horizon=2)))
    assert [action for action, _ in result.steps] == list(SINGLE.oracle(task))
    assert result.success is True
