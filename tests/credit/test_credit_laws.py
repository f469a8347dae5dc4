"""Rewards reach action tokens and nothing else; infrastructure faults have no part in it (laws 3 and 4)."""

import numpy as np
import pytest
from learners.episodes import context, group, trajectory

from farhorizon.config.credit import GroupCentred, GroupStandardised
from farhorizon.core.record import Branch, Reward, Span, Status, StopReason
from farhorizon.core.returns import reward_positions

CREDITS = [GroupStandardised(), GroupCentred()]


@pytest.mark.parametrize("config", CREDITS)
def test_agentgym_a2_a_trajectory_ending_in_an_observation_still_rewards_its_actions(config):
    won, lost = trajectory("ttaaoaaooo", reward=1.0), trajectory("ttaaoaa", reward=0.0)
    credit = config.build()([group([won, lost])])
    assert (credit.advantages[0, 0, 0] > 0).all()
    assert (credit.advantages[0, 1, 0] < 0).all()
    assert reward_positions(won) == [(0, 6, 1.0)]


@pytest.mark.parametrize("config", CREDITS)
def test_c2_inserting_observation_tokens_changes_no_advantage(config):
    plain = [trajectory("taaoaa", reward=1.0), trajectory("taoaa", reward=0.0), trajectory("taa", reward=0.0)]
    padded = [
        trajectory("ttoaaooohaao", reward=1.0),
        trajectory("taooooaaoo", reward=0.0),
        trajectory("toaahhh", reward=0.0),
    ]
    before, after = config.build()([group(plain)]), config.build()([group(padded)])
    assert before.advantages.keys() == after.advantages.keys()
    for key in before.advantages:
        np.testing.assert_array_equal(before.advantages[key], after.advantages[key])


@pytest.mark.parametrize("config", CREDITS)
def test_nemo_rl_3201_infrastructure_faults_enter_neither_baseline_nor_advantages(config):
    members = [trajectory("taa", reward=1.0), trajectory("taa", reward=0.0)]
    broken = trajectory("taa", reward=0.0, status=Status.INFRA_FAULT, stop_reason=StopReason.ENV_FAULT)
    with_fault = config.build()([group([broken, *members])])
    without = config.build()([group(members)])
    assert (0, 0, 0) not in with_fault.advantages
    for member in range(2):
        np.testing.assert_array_equal(with_fault.advantages[0, member + 1, 0], without.advantages[0, member, 0])


@pytest.mark.parametrize("status", [Status.TRUNCATED, Status.AGENT_FAULT])
def test_what_the_agent_did_wrong_is_scored(status):
    credit = GroupCentred().build()([group([trajectory("taa", reward=1.0), trajectory("taa", status=status)])])
    np.testing.assert_array_equal(credit.advantages[0, 1, 0], [-0.5, -0.5])


def test_groups_without_signal_are_counted():
    broken = trajectory("ta", status=Status.INFRA_FAULT, stop_reason=StopReason.TIMEOUT)
    groups = [
        group([trajectory("ta", reward=1.0), trajectory("ta")]),
        group([trajectory("ta", reward=1.0), broken]),
        group([broken]),
        group([trajectory("ta"), trajectory("ta")]),
    ]
    credit = GroupStandardised().build()(groups)
    assert credit.metrics["credit/groups_without_signal"] == 3
    assert credit.metrics["credit/groups_without_signal_fraction"] == 0.75
    assert not credit.advantages[1, 0, 0].any()


def test_advantages_cover_every_context_and_skip_trunk_tokens():
    trunk = context("ttaao", 1)
    leaf = context("ttaaoaaa", 2, parent=Branch("0/0/0", 0, 5))
    credit = GroupCentred().build()([group([trajectory(trunk, leaf, reward=1.0), trajectory("ta")])])
    assert [len(credit.advantages[0, 0, c]) for c in range(2)] == [2, 3]


def test_rewards_land_on_the_last_action_token_of_what_they_belong_to():
    rewards = (
        Reward("whole", 1.0),
        Reward("first", 2.0, at=0),
        Reward("second", 3.0, at=1),
        Reward("span", 4.0, at=Span(0, 1, 3)),
        Reward("early", 5.0, at=Span(0, 3, 6)),
    )
    made = trajectory("ttaaoaaoo", rewards=rewards)
    assert reward_positions(made) == [(0, 6, 1.0), (0, 3, 2.0), (0, 6, 3.0), (0, 2, 4.0), (0, 5, 5.0)]


def test_a_turn_of_two_calls_is_rewarded_on_the_last_that_sampled_anything():
    made = trajectory("taa", "taaa", rewards=(Reward("turn", 1.0, at=0),))
    thought, action = made.turns[0].calls + made.turns[1].calls
    empty = type(action)("act", "policy", Span(1, 4, 4), {}, StopReason.TRAJECTORY_TOKENS)
    turn = type(made.turns[0])("see", "do", "do", calls=(thought, action, empty))
    made = trajectory(*made.contexts, turns=(turn,), rewards=made.rewards)
    assert reward_positions(made) == [(1, 3, 1.0)]


@pytest.mark.parametrize("at", [Span(0, 0, 1), Span(0, 4, 5), Span(2, 0, 1), 0, 7])
def test_a_reward_that_no_action_token_can_carry_is_an_error_naming_it(at):
    made = trajectory("ttaao", rewards=(Reward("judge", 1.5, at=at),), id="3/1/2")
    made = trajectory(*made.contexts, turns=(type(made.turns[0])("see", "do", "do"),), rewards=made.rewards, id="3/1/2")
    with pytest.raises(ValueError, match=r"trajectory 3/1/2: reward 'judge' = 1.5"):
        reward_positions(made)


def test_a_trajectory_without_any_sampled_token_carries_nothing():
    assert reward_positions(trajectory("ttpo", reward=1.0)) == []


def test_without_calls_the_whole_trajectory_ends_at_its_last_sampled_token():
    assert reward_positions(trajectory("taao", "taaa", "tto", turns=(), reward=1.0)) == [(1, 3, 1.0)]
