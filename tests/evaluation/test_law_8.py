"""Evaluation strips every training aid (law 8): environments are told, whoever plays."""

import asyncio

import pytest
from toys import Counting, CountingWorld

from farhorizon.config.recipe import parse
from farhorizon.config.tables import Rollout
from farhorizon.envs.players import ScriptedPlayer
from farhorizon.evaluation.model import ModelSubject
from farhorizon.evaluation.players import PlayerSubject


class Asked(Counting):
    episodes: list = []  # noqa: RUF012

    def reset(self, task, episode):
        Asked.episodes.append(episode)
        return super().reset(task, episode)


def player(world, start):
    return PlayerSubject("one", lambda task, key: ScriptedPlayer(["1"]), world=world, limits=Rollout(), turns=2, seed=0)


def model(world, start):
    recipe = parse({"env": {"kind": "textcraft"}, "rollout": {"max_turn_tokens": 4, "context_tokens": 512}})
    return ModelSubject(recipe, start, name="start", finished=None, world=world, temperature=1.0, turns=2)


@pytest.mark.parametrize("subject", [player, model])
def test_c8_environments_are_told_that_it_is_no_training(subject, start):
    Asked.episodes.clear()
    world = CountingWorld(Asked)
    playing = subject(world, start)
    try:
        asyncio.run(playing.play(world.tasks("train")[:2], 2, 0))
    finally:
        playing.close()
    assert len(Asked.episodes) == 4
    assert not any(episode.training for episode in Asked.episodes)
    assert all(episode.start.depth == 0 for episode in Asked.episodes)
