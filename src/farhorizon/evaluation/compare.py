"""Two evaluations, paired task by task: the difference in success, how sure it is, and who won where."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from farhorizon.core.errors import UserError
from farhorizon.core.stats import bootstrap_mean, paired_sign_flip
from farhorizon.evaluation.directory import EvaluationDirectory
from farhorizon.evaluation.items import Item
from farhorizon.evaluation.report import rate, successes_by_task, table


@dataclass(frozen=True)
class Difference:
    """Success of A less that of B, over the tasks of one category or of all."""

    tasks: int
    """Tasks compared."""
    left_out: int
    """Tasks without a scored episode on either side."""
    a: float
    """Mean over tasks of A's success rate."""
    b: float
    """Mean over tasks of B's success rate."""
    difference: float
    """Mean over tasks of A's success rate less B's."""
    interval: tuple[float, float]
    """95% bootstrap interval of the difference, drawing tasks."""
    p: float
    """Two-sided p-value of the sign-flip test over tasks."""
    wins: int
    """Tasks where A's success rate is higher."""
    ties: int
    """Tasks where both are equal."""
    losses: int
    """Tasks where B's is higher."""


@dataclass(frozen=True)
class Comparison:
    """A against B."""

    overall: Difference
    """Over all tasks."""
    by_category: dict[str, Difference]
    """By the tasks' categories, in alphabetical order; those with nothing to compare are missing."""


def paired(a_items: Sequence[Item], b_items: Sequence[Item]) -> Comparison:
    """Compare two evaluations on the same tasks. Samples are averaged within a task, as those of one task are not
    independent; a task without a scored episode on one side is left out.

    Raises:
        UserError: the tasks differ, or none can be compared.
    """
    tasks = {item.task: item.domain for item in a_items}
    if tasks != {item.task: item.domain for item in b_items}:
        raise UserError("the evaluations are of different tasks")
    a, b = successes_by_task(a_items), successes_by_task(b_items)
    rates = {task: (float(np.mean(a[task])), float(np.mean(b[task]))) for task in tasks if task in a and task in b}
    if not rates:
        raise UserError("no task has a scored episode in both evaluations")
    by_domain: dict[str, list[str]] = defaultdict(list)
    for task, domain in tasks.items():
        by_domain[domain].append(task)
    return Comparison(
        _difference([*tasks], rates),
        {d: _difference(by_domain[d], rates) for d in sorted(by_domain) if any(t in rates for t in by_domain[d])},
    )


def compared(a: Path, b: Path) -> Comparison:
    """Compare two evaluation directories.

    Raises:
        UserError: one is no finished evaluation, or they differ in environment, split, seed, turns or tasks.
    """
    first, second = EvaluationDirectory(a), EvaluationDirectory(b)
    left, right = first.facts(), second.facts()
    for name in ("environment", "split", "seed", "turns", "tasks"):
        if left[name] != right[name]:
            shown = [_told(facts[name]) for facts in (left, right)]
            raise UserError(f"{a} and {b} cannot be compared: {name} is {shown[0]} and {shown[1]}")
    try:
        return paired(first.items(), second.items())
    except UserError as error:
        raise UserError(f"{a} and {b} cannot be compared: {error}") from None


def as_markdown(comparison: Comparison, a: str, b: str) -> str:
    """The comparison as Markdown."""
    head = ["", "tasks", "left out", "A", "B", "A − B", "p", "wins", "ties", "losses"]
    rows = [
        [
            name,
            str(d.tasks),
            str(d.left_out),
            f"{d.a:.3f}",
            f"{d.b:.3f}",
            rate(d.difference, d.interval),
            "< 0.0001" if d.p < 1e-4 else f"{d.p:.4f}",
            *map(str, (d.wins, d.ties, d.losses)),
        ]
        for name, d in {"all": comparison.overall, **comparison.by_category}.items()
    ]
    return (
        f"A: {a}  \nB: {b}\n\n{table(head, rows)}\n"
        "Success, mean over tasks; the difference with its 95% bootstrap interval over tasks; p of a sign-flip test "
        "over tasks; tasks that A wins, ties and loses.\n"
    )


def _difference(tasks: Sequence[str], rates: dict[str, tuple[float, float]]) -> Difference:
    pairs = np.array([rates[task] for task in tasks if task in rates])
    differences = pairs[:, 0] - pairs[:, 1]
    low, high = bootstrap_mean(differences[:, None])
    return Difference(
        tasks=len(pairs),
        left_out=len(tasks) - len(pairs),
        a=float(pairs[:, 0].mean()),
        b=float(pairs[:, 1].mean()),
        difference=float(differences.mean()),
        interval=(max(low, -1.0), min(high, 1.0)),
        p=paired_sign_flip(differences),
        wins=int((differences > 0).sum()),
        ties=int((differences == 0).sum()),
        losses=int((differences < 0).sum()),
    )


def _told(value: object) -> str:
    return " ".join(map(str, value.values())) if isinstance(value, dict) else str(value)
