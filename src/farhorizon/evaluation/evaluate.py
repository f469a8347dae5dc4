"""Success on held-out tasks, by the same driver as training with every training aid off (law 8)."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from farhorizon.core.record import Group, Task, Trajectory
from farhorizon.core.stats import wilson
from farhorizon.rollout.driver import Circumstances, Driver
from farhorizon.rollout.metrics import rollout_metrics
from farhorizon.tasks.base import Assignment


@dataclass(frozen=True)
class Rate:
    """A success rate."""

    successes: int
    """Episodes solved, as the environment declares."""
    trials: int
    """Episodes scored."""

    @property
    def rate(self) -> float:
        """Share solved; 0 with no trials."""
        return self.successes / self.trials if self.trials else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval."""
        return wilson(self.successes, self.trials)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One evaluation."""

    groups: tuple[Group, ...]
    """Its episodes, one group a task."""
    overall: Rate
    """Over all episodes."""
    by_domain: dict[str, Rate]
    """By the tasks' categories, in alphabetical order."""

    def metrics(self) -> dict[str, float]:
        """For the metrics file: `eval/…`."""
        metrics = {f"eval/{name}": value for name, value in rollout_metrics(self.groups).items()}
        metrics |= {f"eval/success/{domain}": rate.rate for domain, rate in self.by_domain.items()}
        return metrics


def chosen_tasks(tasks: Sequence[Task], count: int) -> list[Task]:
    """`count` tasks spread evenly over the categories, always the same ones: in the order of a hash of their ids."""
    by_domain: dict[str, list[Task]] = defaultdict(list)
    for task in sorted(tasks, key=lambda task: blake2b(task.id.encode()).digest()):
        by_domain[task.domain].append(task)
    rounds = max(map(len, by_domain.values()), default=0)
    order = [by_domain[domain][i] for i in range(rounds) for domain in sorted(by_domain) if i < len(by_domain[domain])]
    return sorted(order[:count], key=lambda task: (task.domain, task.id))


async def evaluate(
    driver: Driver,
    tasks: Sequence[Task],
    samples: int,
    given: Circumstances,
    on_done: Callable[[Trajectory], None] | None = None,
) -> Evaluation:
    """Play every task `samples` times from its true start."""
    groups = await driver.groups([Assignment(task, samples) for task in tasks], given, on_done)
    outcomes: dict[str, list[bool]] = defaultdict(list)
    for group in groups:
        outcomes[group.task.domain] += [bool(trajectory.success) for trajectory in group.scored]
    by_domain = {domain: _rate(outcomes[domain]) for domain in sorted(outcomes) if outcomes[domain]}
    return Evaluation(tuple(groups), _rate([x for each in outcomes.values() for x in each]), by_domain)


def _rate(outcomes: Sequence[bool]) -> Rate:
    return Rate(int(np.sum(outcomes)), len(outcomes))
