"""The control whose rewards are dealt out at random."""

from collections import Counter
from dataclasses import replace

from learners.episodes import group, trajectory

from farhorizon.config.recipe import parse
from farhorizon.config.reward import ShuffledReward
from farhorizon.core.record import Status, StopReason
from farhorizon.core.returns import reward_positions


def shuffled(members, seed):
    return ShuffledReward().build()([replace(group(members), seed=seed)])[0]


def test_each_group_keeps_its_rewards_and_nothing_follows_from_what_was_done():
    members = [trajectory("taa", reward=1.0), trajectory("taao", reward=0.0), trajectory("ta", reward=0.5)]
    dealt = Counter()
    for seed in range(300):
        totals = [member.total_reward for member in shuffled(members, seed).trajectories]
        assert sorted(totals) == [0.0, 0.5, 1.0]
        dealt.update(enumerate(totals))
    assert all(70 <= dealt[place, value] <= 130 for place in range(3) for value in (0.0, 0.5, 1.0))


def test_the_same_group_seed_deals_the_same():
    members = [trajectory("taa", reward=float(place)) for place in range(6)]
    first, again = (shuffled(members, 5) for _ in range(2))
    assert [t.rewards for t in first.trajectories] == [t.rewards for t in again.trajectories]


def test_a_dealt_reward_reaches_the_last_action_token_and_success_stays_true():
    won = replace(trajectory("ttaaoaaooo", reward=1.0), success=True)
    member = shuffled([won, replace(won, id="other")], 0).trajectories[0]
    assert reward_positions(member) == [(0, 6, 1.0)]
    assert member.success is True


def test_what_infrastructure_broke_takes_no_part():
    broken = trajectory("taa", reward=0.0, status=Status.INFRA_FAULT, stop_reason=StopReason.ENV_FAULT)
    members = [trajectory("taa", reward=1.0), broken, trajectory("taa", reward=2.0)]
    for seed in range(20):
        done = shuffled(members, seed)
        assert done.trajectories[1].rewards == broken.rewards
        assert sorted(t.total_reward for t in done.scored) == [1.0, 2.0]


def test_a_recipe_names_it():
    recipe = parse({"env": {"kind": "textcraft"}, "reward": "shuffled"})
    assert recipe.reward == ShuffledReward()
