"""Players that are not models."""

import asyncio

import pytest

from farhorizon.config.env import TextCraft as Config
from farhorizon.core.errors import UserError
from farhorizon.core.seeds import Key
from farhorizon.envs.base import Episode
from farhorizon.envs.players import OraclePlayer, RandomPlayer, ScriptedPlayer, play

WORLD = Config(depths=(1, 2)).build()
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
