"""What an evaluation comes to, overall and by category, as JSON and as Markdown.

Episodes that infrastructure broke are counted and otherwise left out: they are no failures (law 4).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from farhorizon.core.stats import bootstrap_mean, success_at_k, wilson
from farhorizon.evaluation.items import Item

Interval = tuple[float, float]


@dataclass(frozen=True)
class Within:
    """Success within a number of turns."""

    turns: int
    """Turns allowed."""
    rate: float
    """Share of the scored episodes that stood solved by then."""
    interval: Interval
    """Wilson's 95% interval, over episodes."""


@dataclass(frozen=True)
class Summary:
    """Episodes of one category, or of all. Means and rates are over the scored ones; None where there are none."""

    tasks: int
    """Tasks played."""
    samples: int
    """Episodes per task."""
    episodes: int
    """Episodes played."""
    set_aside: int
    """Episodes that infrastructure broke."""
    fault_rate: float
    """Their share."""
    successes: int
    """Episodes solved."""
    success: float | None
    """Success rate."""
    success_interval: Interval
    """Wilson's 95% interval; it takes the episodes for independent, which those of one task are not."""
    avg_at_k: float | None
    """Mean over tasks of the success rate within each; k is `samples`."""
    avg_at_k_interval: Interval | None
    """95% bootstrap interval of it that draws tasks; None with one sample a task. Where every task has the same rate,
    Wilson's with tasks as the trials, as a bootstrap has no width then."""
    success_at_k: dict[int, float]
    """Chance that one of k episodes of a task succeeds, for k = 1, 2, 4, …: unbiased, mean over the tasks with at
    least k scored episodes."""
    reward: float | None
    """Mean total reward."""
    turns: float | None
    """Mean turns taken."""
    sampled_tokens: float | None
    """Mean tokens sampled."""
    context_tokens: int | None
    """Longest context, in tokens."""
    valid_actions: float | None
    """Share of all actions that were found and accepted."""
    truncated: float | None
    """Share of the episodes that a limit ended."""
    within: tuple[Within, ...]
    """Success against allowed turns, from 1 to the horizon.

    An agent that is not told the horizon acts in its first h turns as it would if there were no more, so the episode
    with H turns contains the one with h < H, and all are read off one run. This would not hold for an agent or an
    environment that is told how many turns remain. A success that the environment takes back counts from when it
    came to stay. With fewer turns other episodes would share a model's batches, which can change its rounding.
    """


@dataclass(frozen=True)
class Report:
    """All of an evaluation."""

    overall: Summary
    """Over all tasks."""
    by_category: dict[str, Summary]
    """By the tasks' categories, in alphabetical order."""


def summarised(items: Sequence[Item], turns: int) -> Report:
    """The report of an evaluation's items.

    Args:
        turns: the horizon.
    """
    by_domain: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        by_domain[item.domain].append(item)
    return Report(_summary(items, turns), {domain: _summary(by_domain[domain], turns) for domain in sorted(by_domain)})


def successes_by_task(items: Iterable[Item]) -> dict[str, list[bool]]:
    """Outcomes of the scored episodes of each task that has any."""
    outcomes: dict[str, list[bool]] = defaultdict(list)
    for item in items:
        if item.scored:
            outcomes[item.task].append(bool(item.success))
    return outcomes


def _summary(items: Sequence[Item], turns: int) -> Summary:
    scored = [item for item in items if item.scored]
    by_task = successes_by_task(items)
    successes = sum(bool(item.success) for item in scored)
    actions = sum(item.actions for item in scored)
    samples = max((len(each) for each in by_task.values()), default=0)
    within = []
    for allowed in range(1, turns + 1 if scored else 1):
        solved = sum(item.solved_within(allowed) for item in scored)
        within.append(Within(allowed, solved / len(scored), wilson(solved, len(scored))))
    return Summary(
        tasks=len({item.task for item in items}),
        samples=max((item.sample + 1 for item in items), default=0),
        episodes=len(items),
        set_aside=len(items) - len(scored),
        fault_rate=(len(items) - len(scored)) / len(items) if items else 0.0,
        successes=successes,
        success=successes / len(scored) if scored else None,
        success_interval=wilson(successes, len(scored)),
        avg_at_k=_mean([float(np.mean(each)) for each in by_task.values()]),
        avg_at_k_interval=_by_tasks(list(by_task.values())) if samples > 1 else None,
        success_at_k={k: _success_at(k, by_task.values()) for k in (2**n for n in range(samples.bit_length()))},
        reward=_mean([item.reward for item in scored]),
        turns=_mean([item.turns for item in scored]),
        sampled_tokens=_mean([item.sampled_tokens for item in scored]),
        context_tokens=max((item.context_tokens for item in scored), default=None),
        valid_actions=sum(item.valid_actions for item in scored) / actions if actions else None,
        truncated=_mean([item.truncated for item in scored]),
        within=tuple(within),
    )


def _success_at(k: int, by_task: Iterable[Sequence[bool]]) -> float:
    return float(np.mean([success_at_k(len(each), sum(each), k) for each in by_task if len(each) >= k]))


def _by_tasks(outcomes: Sequence[Sequence[bool]]) -> Interval:
    rates = [float(np.mean(each)) for each in outcomes]
    if min(rates) == max(rates):
        return wilson(round(rates[0] * len(rates)), len(rates))
    return bootstrap_mean(outcomes)


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


_OUTCOME: dict[str, Callable[[Summary], str]] = {
    "tasks": lambda s: str(s.tasks),
    "samples per task": lambda s: str(s.samples),
    "episodes": lambda s: str(s.episodes),
    "set aside": lambda s: f"{s.set_aside} ({s.fault_rate:.1%})",
    "success": lambda s: rate(s.success, s.success_interval),
    "avg@k": lambda s: rate(s.avg_at_k, s.avg_at_k_interval),
}
_CONDUCT: dict[str, Callable[[Summary], str]] = {
    "reward": lambda s: _number(s.reward, 3),
    "turns": lambda s: _number(s.turns, 1),
    "sampled tokens": lambda s: _number(s.sampled_tokens, 1),
    "longest context": lambda s: _number(s.context_tokens, 0),
    "valid actions": lambda s: _number(s.valid_actions, 3),
    "truncated": lambda s: _number(s.truncated, 3),
}


def as_markdown(report: Report, title: str) -> str:
    """The report as Markdown: a table of everything, and success against allowed turns where it changes."""
    columns = {"all": report.overall, **report.by_category}
    attempts = {f"success@{k}": lambda s, k=k: _number(s.success_at_k.get(k), 3) for k in report.overall.success_at_k}
    told = {**_OUTCOME, **attempts, **_CONDUCT}
    rows = [[name, *(write(summary) for summary in columns.values())] for name, write in told.items()]
    allowed = [
        [str(turns + 1), *(_number(s.within[turns].rate if s.within else None, 3) for s in columns.values())]
        for turns in _changes([s.within for s in columns.values() if s.within])
    ]
    return (
        f"# {title}\n\nRates carry 95% intervals: Wilson's over episodes for success, a bootstrap over tasks for avg@k."
        "\n\n"
        f"{table(['', *columns], rows)}\n## Success against allowed turns\n\n"
        f"{table(['turns allowed', *columns], allowed)}"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, line end included."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def rate(value: float | None, interval: Interval | None) -> str:
    """`0.520 [0.400, 0.640]`."""
    if value is None or interval is None:
        return _number(value, 3)
    return f"{value:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]"


def _changes(columns: Sequence[Sequence[Within]]) -> list[int]:
    """Indices of the rows that differ from the one before, and of the last."""
    rows = [[within.rate for within in row] for row in zip(*columns, strict=True)]
    return [i for i, row in enumerate(rows) if i in (0, len(rows) - 1) or row != rows[i - 1]]


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
