"""Law 8: evaluation strips every training aid and goes the way training goes."""

import asyncio

from toys import Counting, CountingWorld, ToyTokenizer, failing, saying

from farhorizon.agents.append_only import AppendOnlyAgent
from farhorizon.config.agent import AppendOnly
from farhorizon.config.tables import Rollout
from farhorizon.core.record import Task
from farhorizon.engines.base import Sampling
from farhorizon.evaluation.evaluate import chosen_tasks, evaluate
from farhorizon.rollout.driver import Circumstances, Driver


def run(world, tasks, samples=1, **limits):
    tokenizer = ToyTokenizer()
    engine = saying(tokenizer, lambda request: f" {request.key.turn + 1}\n")
    agent = AppendOnlyAgent(AppendOnly(), tokenizer=tokenizer, world=world)
    driver = Driver(world=world, agent=agent, engine=engine, limits=Rollout(**limits), seed=0)
    given = Circumstances("eval", 7, 3, Sampling(0.0), training=False)
    return asyncio.run(evaluate(driver, tasks, samples, given)), engine


def test_no_training_aid_reaches_an_evaluation_episode():
    seen = []

    class Watching(Counting):
        def reset(self, task, episode):
            seen.append(episode)
            return super().reset(task, episode)

    world = CountingWorld(Watching)
    run(world, world.tasks("train"))
    assert [episode.training for episode in seen] == [False] * 4
    assert [episode.start.depth for episode in seen] == [0] * 4


def test_success_is_counted_by_category_with_its_interval():
    world = CountingWorld()
    evaluation, _ = run(world, world.tasks("train"), samples=2)
    assert (evaluation.overall.successes, evaluation.overall.trials) == (6, 8)
    assert {domain: rate.rate for domain, rate in evaluation.by_domain.items()} == {
        "to 1": 1.0, "to 2": 1.0, "to 3": 1.0, "to 4": 0.0,
    }  # fmt: skip
    low, high = evaluation.overall.interval
    assert low < 0.75 < high


def test_episodes_that_infrastructure_broke_are_not_failures():
    world = CountingWorld(failing([1]))
    evaluation, _ = run(world, world.tasks("train")[:2], retries=0)
    assert (evaluation.overall.successes, evaluation.overall.trials) == (1, 1)


def test_same_tasks_whatever_their_order_spread_over_categories():
    tasks = [Task(f"t/{d}/{i}", "e", "eval", f"depth {d}") for d, n in ((1, 20), (2, 3)) for i in range(n)]
    chosen = chosen_tasks(tasks, 8)
    assert chosen == chosen_tasks(tasks[::-1], 8)
    assert [task.domain for task in chosen].count("depth 2") == 3
    assert len(chosen_tasks(tasks, 99)) == 23
