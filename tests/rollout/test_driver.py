import asyncio
import contextlib
import sys
import time

import numpy as np
import pytest
from toys import Counting, CountingWorld, Hanging, ScriptedEngine, ToyTokenizer, failing, saying

from farhorizon.agents.append_only import AppendOnlyAgent
from farhorizon.config.agent import AppendOnly
from farhorizon.config.tables import Rollout
from farhorizon.core.errors import UserError
from farhorizon.core.record import Origin, Status, StopReason
from farhorizon.core.store import read_update, write_update
from farhorizon.engines.base import Sampling
from farhorizon.envs.base import Start, StepResult
from farhorizon.rollout.driver import Circumstances, Driver
from farhorizon.rollout.metrics import rollout_metrics
from farhorizon.tasks.base import Assignment


def counts_right(request):
    """Says the next number: one more than the turns so far."""
    return f" {request.key.turn + 1}\n"


def roll_out(world=None, answers=counts_right, goal=3, size=2, horizon=9, start=(), renderer="transcript", **limits):
    world, tokenizer = world or CountingWorld(), ToyTokenizer()
    engine = saying(tokenizer, answers)
    agent = AppendOnlyAgent(AppendOnly(renderer=renderer), tokenizer=tokenizer, world=world)
    limits = Rollout(**{"max_turn_tokens": 20, "max_trajectory_tokens": 100, "context_tokens": 400, **limits})
    driver = Driver(world=world, agent=agent, engine=engine, limits=limits, seed=0)
    task = CountingWorld().tasks("train")[goal - 1]
    given = Circumstances("rollout", 0, horizon, Sampling(0.5))
    groups = asyncio.run(driver.groups([Assignment(task, size, Start(tuple(start)))], given))
    return groups[0], engine


def test_solved_episode_is_recorded_turn_by_turn():
    group, engine = roll_out()
    trajectory = group.trajectories[0]
    assert (trajectory.status, trajectory.stop_reason, trajectory.success) == (
        Status.OK,
        StopReason.TERMINATED,
        True,
    )
    assert [turn.parsed for turn in trajectory.turns] == ["1", "2", "3"]
    assert [turn.state_key for turn in trajectory.turns] == ["0/3", "1/3", "2/3"]
    assert [(reward.value, reward.at) for reward in trajectory.rewards] == [(1.0, 2)]
    assert trajectory.turns[0].calls[0].sampling == {"temperature": 0.5}
    assert set(engine.released) == {"rollout/0/0/0/0/0", "rollout/0/0/1/0/0"}


def test_members_differ_in_noise_and_share_the_group_seed():
    group, engine = roll_out()
    first, second = group.trajectories
    assert first.seed != second.seed
    assert first.group_seed == second.group_seed
    assert len({request.key.digest() for request in engine.requests}) == len(engine.requests)


def test_horizon_is_a_truncation_recorded_and_never_a_success():
    trajectory = roll_out(horizon=2)[0].trajectories[0]
    assert (trajectory.status, trajectory.stop_reason) == (Status.TRUNCATED, StopReason.HORIZON)
    assert (trajectory.horizon, len(trajectory.turns), trajectory.success) == (2, 2, False)


def test_malformed_action_costs_a_turn_and_gets_an_observation():
    answers = lambda request: " \n" if request.key.turn == 0 else f" {request.key.turn}\n"  # noqa: E731
    trajectory = roll_out(answers=answers)[0].trajectories[0]
    assert trajectory.turns[0].parsed is None
    assert trajectory.turns[1].observation == "Nothing was written. Write one action."
    assert len(trajectory.turns) == 4
    assert trajectory.success


def test_verifiers_1763_malformed_action_never_ends_the_run():
    trajectory = roll_out(answers=lambda request: ' {"a": 1\n', horizon=3)[0].trajectories[0]
    assert [turn.info["valid"] for turn in trajectory.turns] == [False] * 3
    assert trajectory.scored


def test_start_state_is_replayed_without_loss_and_the_horizon_counts_own_turns():
    group, _ = roll_out(goal=3, start=("1",), answers=lambda r: f" {r.key.turn + 1}\n", horizon=2)
    trajectory = group.trajectories[0]
    assert (trajectory.start_depth, trajectory.success, group.start_depth) == (1, True, 1)
    context = trajectory.contexts[0]
    replayed = [segment for segment in context.segments if segment.origin is Origin.PREFIX]
    assert ToyTokenizer().decode(replayed[0].token_ids) == " 1\n"
    assert ToyTokenizer().decode(context.token_ids[context.sampled]) == " 2\n 3\n"
    assert rollout_metrics([group])["success/part_way"] == 1.0
    assert "success/rate" not in rollout_metrics([group])


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"max_trajectory_tokens": 4}, StopReason.TRAJECTORY_TOKENS),
        ({"context_tokens": 95}, StopReason.CONTEXT_OVERFLOW),
    ],
)
def test_skyrl_406_each_limit_has_a_stop_reason_of_its_own(limits, reason):
    trajectory = roll_out(**{"max_turn_tokens": 10, **limits})[0].trajectories[0]
    assert (trajectory.status, trajectory.stop_reason) == (Status.TRUNCATED, reason)
    assert trajectory.sampled_tokens > 0


def test_turn_limit_cuts_the_turn_and_the_episode_goes_on():
    trajectory = roll_out(answers=lambda r: " 1 and a half and more\n", max_turn_tokens=3, horizon=2)[0].trajectories[0]
    assert trajectory.turns[0].calls[0].stop_reason is StopReason.TURN_TOKENS
    assert trajectory.turns[0].parsed == "1"
    assert trajectory.stop_reason is StopReason.HORIZON


def test_prime_rl_1983_overlong_prompt_is_never_cut_silently():
    group, engine = roll_out(context_tokens=60)
    trajectory = group.trajectories[0]
    assert (trajectory.status, trajectory.stop_reason) == (Status.TRUNCATED, StopReason.CONTEXT_OVERFLOW)
    assert trajectory.sampled_tokens == 0
    assert not engine.requests


def test_agentgym_a4_environment_that_raises_is_retried_on_a_fresh_instance():
    group, _ = roll_out(CountingWorld(failing([2])), size=1)
    trajectory = group.trajectories[0]
    assert (trajectory.status, trajectory.retries, trajectory.success) == (Status.OK, 1, True)
    assert "the server is gone" in trajectory.faults[0]
    assert len(trajectory.turns) == 3


def test_nemo_gym_1351_environment_that_stays_broken_is_set_aside_never_scored_zero():
    group, _ = roll_out(CountingWorld(failing(range(1, 99))), size=2, retries=1, max_consecutive_faults=50)
    assert [t.status for t in group.trajectories] == [Status.INFRA_FAULT] * 2
    assert group.scored == ()
    assert [t.rewards for t in group.trajectories] == [(), ()]
    assert "2 set aside" in group.short_reason
    metrics = rollout_metrics([group])
    assert metrics["faults/set_aside"] == 2
    assert "reward/mean" not in metrics


def test_prime_rl_2230_environment_that_hangs_is_given_up_after_its_deadline():
    began = time.perf_counter()
    group, _ = roll_out(CountingWorld(Hanging), size=2, env_timeout=0.2, retries=0)
    assert [t.stop_reason for t in group.trajectories] == [StopReason.TIMEOUT] * 2
    assert time.perf_counter() - began < 5


def test_faults_in_a_row_stop_the_run_and_name_the_environment():
    with pytest.raises(UserError, match='"counting" failed 3 times in a row, last: step raised RuntimeError'):
        roll_out(CountingWorld(failing(range(1, 99))), max_consecutive_faults=3)


def test_a_step_taken_between_faults_breaks_the_row():
    group, _ = roll_out(CountingWorld(failing([1, 2, 4, 5])), size=1, retries=9, max_consecutive_faults=3)
    trajectory = group.trajectories[0]
    assert (trajectory.success, len(trajectory.faults)) == (True, 4)


def test_agentgym_a5_slow_environment_delays_nobody_else():
    class Slow(Counting):
        made = 0

        def __init__(self):
            Slow.made += 1
            self.slow = Slow.made == 1

        def step(self, action):
            if self.slow:
                time.sleep(0.5)
            return super().step(action)

    ended = []
    world, tokenizer = CountingWorld(Slow), ToyTokenizer()
    agent = AppendOnlyAgent(AppendOnly(), tokenizer=tokenizer, world=world)
    driver = Driver(world=world, agent=agent, engine=saying(tokenizer, counts_right), limits=Rollout(), seed=0)
    given = Circumstances("rollout", 0, 9, Sampling())
    began = time.perf_counter()
    work = driver.groups(
        [Assignment(world.tasks("train")[2], 8)], given, lambda t: ended.append(time.perf_counter() - began)
    )
    asyncio.run(work)
    assert sum(at < 0.5 for at in ended) == 7
    assert max(ended) < 1.5 + 1.0


def test_async_environments_work_too():
    class Async(Counting):
        async def reset(self, task, episode):
            return super().reset(task, episode)

        async def step(self, action):
            await asyncio.sleep(0)
            return super().step(action)

    assert roll_out(CountingWorld(Async))[0].trajectories[0].success


def test_result_that_is_no_step_result_is_a_fault_of_the_environment():
    class Wrong(Counting):
        def step(self, action):
            return ("obs", 0.0, True, False, {})

    group, _ = roll_out(CountingWorld(Wrong), size=1, retries=0)
    assert "step returned a tuple, not a StepResult" in group.short_reason


def test_success_is_what_the_environment_declares_not_a_positive_reward():
    class Silent(Counting):
        def step(self, action):
            result = super().step(action)
            return StepResult(result.observation, 1.0, result.terminated)

    assert roll_out(CountingWorld(Silent))[0].trajectories[0].success is None


def test_concurrency_bounds_the_episodes_in_flight():
    class Counted(Counting):
        now = most = 0

        def reset(self, task, episode):
            Counted.now += 1
            Counted.most = max(Counted.most, Counted.now)
            return super().reset(task, episode)

        def close(self):
            Counted.now -= 1

    roll_out(CountingWorld(Counted), size=12, concurrency=3)
    assert Counted.most <= 3
    assert Counted.now == 0


def test_openenv_1000_environment_is_closed_after_a_fault():
    closed = []

    class Closing(failing([1])):
        def close(self):
            closed.append(self)

    roll_out(CountingWorld(Closing), size=1)
    assert len(closed) == 2


@pytest.mark.parametrize(
    "answer",
    [
        lambda env: (_ for _ in ()).throw(StopIteration),
        lambda env: sys.exit(3),
        lambda env: (_ for _ in ()).throw(TimeoutError("socket")),
        lambda env: StepResult("x", float("nan")),
        lambda env: StepResult(None),
    ],
    ids=["StopIteration", "sys.exit", "TimeoutError", "nan", "None"],
)
def test_whatever_an_environment_does_is_its_fault_and_ends_no_run(answer):
    class Odd(Counting):
        def step(self, action):
            return answer(self)

    group, _ = roll_out(CountingWorld(Odd), size=1, retries=0)
    trajectory = group.trajectories[0]
    assert (trajectory.status, trajectory.stop_reason) == (Status.INFRA_FAULT, StopReason.ENV_FAULT)
    assert "step raised" in trajectory.faults[0]


def test_state_key_that_raises_is_a_fault_too():
    class Keyless(Counting):
        def state_key(self):
            raise OSError("gone")

    assert "state_key raised OSError" in roll_out(CountingWorld(Keyless), size=1, retries=0)[0].short_reason


def test_numpy_values_of_a_step_are_stored_as_plain_ones(tmp_path):
    class Numpy(Counting):
        def step(self, action):
            result = super().step(action)
            return StepResult(
                result.observation,
                np.float32(result.reward),
                np.bool_(result.terminated),
                success=np.bool_(result.success),
            )

    group, _ = roll_out(CountingWorld(Numpy))
    write_update(tmp_path, 0, [group])
    assert read_update(tmp_path / "update-000000.jsonl")[0].trajectories[0].success is True


def test_coroutine_that_ignores_its_cancellation_is_given_up_all_the_same():
    class Stubborn(Counting):
        async def step(self, action):
            for _ in range(20):
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.1)
            return super().step(action)

    group, _ = roll_out(CountingWorld(Stubborn), size=1, env_timeout=0.2, retries=0)
    assert group.trajectories[0].stop_reason is StopReason.TIMEOUT


def test_stopping_does_not_wait_for_a_slow_environment():
    world, tokenizer = CountingWorld(Hanging), ToyTokenizer()
    agent = AppendOnlyAgent(AppendOnly(), tokenizer=tokenizer, world=world)
    driver = Driver(world=world, agent=agent, engine=saying(tokenizer, counts_right), limits=Rollout(), seed=0)

    async def stopped():
        work = asyncio.ensure_future(
            driver.groups([Assignment(world.tasks("train")[2], 4)], Circumstances("rollout", 0, 9, Sampling()))
        )
        await asyncio.sleep(0.3)
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work

    began = time.perf_counter()
    asyncio.run(stopped())
    assert time.perf_counter() - began < 3


def test_one_broken_task_does_not_stop_the_run():
    class Picky(Counting):
        def reset(self, task, episode):
            if task.id == "counting/1":
                raise RuntimeError("this level is broken")
            return super().reset(task, episode)

    world, tokenizer = CountingWorld(Picky), ToyTokenizer()
    agent = AppendOnlyAgent(AppendOnly(), tokenizer=tokenizer, world=world)
    limits = Rollout(concurrency=2, retries=1, max_consecutive_faults=8)
    driver = Driver(world=world, agent=agent, engine=saying(tokenizer, counts_right), limits=limits, seed=0)
    assignments = [Assignment(task, 3) for task in world.tasks("train")]
    groups = asyncio.run(driver.groups(assignments, Circumstances("rollout", 0, 9, Sampling())))
    assert [len(group.scored) for group in groups] == [0, 3, 3, 3]


def test_end_of_text_is_no_part_of_an_action_and_closes_no_line():
    tokenizer = ToyTokenizer()
    world = CountingWorld()
    engine = ScriptedEngine(lambda r: [*tokenizer(f" {r.key.turn + 1}")["input_ids"], tokenizer.eos_token_id])
    agent = AppendOnlyAgent(AppendOnly(), tokenizer=tokenizer, world=world)
    driver = Driver(world=world, agent=agent, engine=engine, limits=Rollout(), seed=0)
    given = Circumstances("rollout", 0, 9, Sampling())
    (group,) = asyncio.run(driver.groups([Assignment(world.tasks("train")[1], 1)], given))
    trajectory = group.trajectories[0]
    assert [turn.parsed for turn in trajectory.turns] == ["1", "2"]
    assert "> 1<eos>\nSaid 1.\n> 2<eos>" in tokenizer.decode(trajectory.contexts[0].token_ids)


def test_context_holds_only_what_the_model_saw():
    """An observation for which there is no room is not appended."""
    trajectory = roll_out(context_tokens=100, goal=4)[0].trajectories[0]
    assert trajectory.stop_reason is StopReason.CONTEXT_OVERFLOW
    assert len(trajectory.contexts[0]) <= 100
    assert trajectory.contexts[0].sampled[-1]


def test_cut_action_is_not_counted_as_valid():
    group, _ = roll_out(max_trajectory_tokens=2)
    assert rollout_metrics([group])["actions/valid"] == 0.0
