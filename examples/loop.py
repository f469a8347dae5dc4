"""The whole loop in public Python: a micro model learns to craft. Run it: python examples/loop.py [UPDATES]"""

import asyncio
import copy
import sys

import torch

from farhorizon.config.agent import AppendOnly, Transcript
from farhorizon.config.credit import GroupCentred
from farhorizon.config.engine import Local
from farhorizon.config.env import TextCraft
from farhorizon.config.horizon import Stages
from farhorizon.config.learner import AdamW
from farhorizon.config.models import MicroConfig
from farhorizon.config.objective import ClippedRatio
from farhorizon.config.tables import Rollout
from farhorizon.config.tasks import Uniform
from farhorizon.core.taskstats import TaskStats
from farhorizon.engines.base import Sampling
from farhorizon.models.load import load_model, load_tokenizer
from farhorizon.rollout.driver import Circumstances, Driver
from farhorizon.rollout.metrics import rollout_metrics
from farhorizon.runtime.report import Silent
from farhorizon.runtime.warmstart import make_micro


def main(updates: int) -> list[float]:
    """Train for some updates; returns the training success of each."""
    env = TextCraft(depths=(1,), distractors=(0, 2))
    agent_config = AppendOnly(renderer=Transcript(examples=0, instructions=False))
    start = make_micro([env], agent_config, MicroConfig(), Silent())
    model, tokenizer = load_model(start, torch.float32), load_tokenizer(start)

    world, stats = env.build(), TaskStats()
    engine = Local().build(model=copy.deepcopy(model), deterministic=True)
    agent = agent_config.build(tokenizer=tokenizer, world=world)
    limits = Rollout(max_turn_tokens=32, context_tokens=512)
    driver = Driver(world=world, agent=agent, engine=engine, limits=limits, seed=0)
    tasks = Uniform(groups=8, size=8).build(world=world, seed=0)
    schedule = Stages(values=(4, 6), every=10).build()
    learner = AdamW(learning_rate=3e-4).build(
        model=model, temperature=1.0, objective=ClippedRatio(high=1.28).build(), credit=GroupCentred().build()
    )
    successes = []
    with asyncio.Runner() as runner:
        for update in range(updates):
            given = Circumstances("rollout", update, schedule.horizon(update, stats), Sampling(), version=update)
            groups = runner.run(driver.groups(tasks.next(tasks.groups, stats, update), given))
            learner.update(groups, update)
            engine.load_weights(learner.weights(), update + 1)
            stats.add(groups, update)
            successes.append(rollout_metrics(groups)["success/rate"])
            print(f"update {update}: success {successes[-1]:.2f}")
    engine.close()
    return successes


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
