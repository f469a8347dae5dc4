"""What a run came to: told when it ends, and again by `farhorizon show RUN --story`.

Every number comes from the run's files, so that a resumed run tells all of it.
"""

import json
from collections import defaultdict
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from farhorizon.cli.commands import command
from farhorizon.cli.cost import Cost
from farhorizon.cli.side_by_side import print_pairs
from farhorizon.config.recipe import Recipe, read
from farhorizon.core.record import Group
from farhorizon.core.rundir import RunDirectory
from farhorizon.core.store import read_update, stored_updates, update_path
from farhorizon.evaluation.evaluate import Rate
from farhorizon.rollout.metrics import rollout_metrics
from farhorizon.viewer.pairs import Pair, chosen, paired
from farhorizon.viewer.text import printable


def tell(run: RunDirectory) -> None:
    """Print success before and after on held-out tasks, some episodes side by side, the cost, and where to go on."""
    console, recipe = Console(highlight=False), read(run.recipe)
    lines = [line for line in run.read_metrics() if line["phase"] == "train"]
    updates = stored_updates(run.evaluations)
    ends = [updates[0], updates[-1]] if len(updates) > 1 else updates
    evaluations = [read_update(update_path(run.evaluations, update)) for update in ends]
    heads = [_head(update) for update in ends]
    if evaluations:
        _print_success(console, evaluations, heads)
    if lines:
        console.print(Text(_training(lines)))
    if recipe.runtime.max_updates not in updates:  # an evaluation ends every run
        done = f"{len(lines)} of {recipe.runtime.max_updates} updates are done"
        console.print(Text(f"\nThe run is not finished: {done}. Continue with:"))
        _print_line(console, f"  {command('train', '--resume', run.path)}")
    pairs: list[Pair] = []
    if len(evaluations) == 2:
        pairs = paired(*evaluations)
        if pairs:
            print_pairs(console, pairs, (heads[0], heads[1]))
    if lines:
        _print_rows(console, "What it cost, evaluation included", Cost.of(run).rows())
    _print_rows(console, "Where everything is", _places(run))
    _print_next(console, run, recipe, pairs)


def _head(finished: int) -> str:
    return f"after {finished} update{'s' if finished != 1 else ''}" if finished else "before"


_ALL = "all tasks"


def _print_success(console: Console, evaluations: Sequence[list[Group]], heads: Sequence[str]) -> None:
    """Success tells the task learned, valid actions the format."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("", *(f"success\n{head}" for head in heads), "episodes", "valid\nactions"):
        table.add_column(column, overflow="fold")
    split = [_by_domain(groups) for groups in evaluations]
    domains = sorted(set().union(*split) - {_ALL})
    for domain in domains if len(domains) == 1 else [*domains, _ALL]:
        groups = [each.get(domain, []) for each in split]
        rates = [_rate(each) for each in groups]
        trials = [str(rate.trials) for rate in rates]
        episodes = trials[0] if len(set(trials)) == 1 else ", ".join(trials)
        valid = " → ".join(_valid(each) for each in groups)
        table.add_row(*map(Text, (printable(domain), *map(_described, rates), episodes, valid)))
    console.print(Text("\nHeld-out tasks: success with 95% interval, and share of actions that were valid", "bold"))
    console.print(table)


def _by_domain(groups: Sequence[Group]) -> dict[str, list[Group]]:
    by_domain: dict[str, list[Group]] = defaultdict(list)
    for group in groups:
        by_domain[group.task.domain].append(group)
    return {**by_domain, _ALL: list(groups)}


def _rate(groups: Sequence[Group]) -> Rate:
    scored = [trajectory for group in groups for trajectory in group.scored]
    return Rate(sum(bool(trajectory.success) for trajectory in scored), len(scored))


def _described(rate: Rate) -> str:
    low, high = rate.interval
    return f"{rate.rate:.2f} [{low:.2f}, {high:.2f}]" if rate.trials else "–"


def _valid(groups: Sequence[Group]) -> str:
    share = rollout_metrics(groups).get("actions/valid")
    return "–" if share is None else f"{share:.2f}"


def _training(lines: list[dict[str, float]]) -> str:
    rates = [line["success/rate"] for line in lines if "success/rate" in line]
    if not rates:
        return "No training episode started from the beginning."
    few = max(1, min(3, len(rates) // 2))
    first, last = (f"over the first {few} updates", f"over the last {few}") if few > 1 else ("at first", "at last")
    return (
        f"In training, from the start of a task: success {_mean(rates[:few]):.2f} {first}, "
        f"{_mean(rates[-few:]):.2f} {last}."
    )


def _places(run: RunDirectory) -> list[tuple[str, str]]:
    rows = [("run", str(run.path))]
    best, stored = run.path / "best.json", run.stored_checkpoints()
    if best.exists():
        found = json.loads(best.read_text())
        also = "; also the last" if stored and stored[-1] == found["finished"] else ""
        notes = f"(held-out success {found['success']:.2f}{also})"
        rows.append(("best checkpoint", f"{run.checkpoint(found['finished'])} {notes}"))
    rows += [("all checkpoints", str(run.checkpoints))] if stored else []
    return [*rows, ("metrics", str(run.metrics_file)), ("TensorBoard", str(run.tensorboard))]


def _print_rows(console: Console, title: str, rows: Sequence[tuple[str, str]]) -> None:
    console.print(Text(f"\n{title}", "bold"))
    widest = max(len(name) for name, _ in rows)
    for name, text in rows:
        _print_line(console, f"  {name:<{widest}}  {text}")


def _print_next(console: Console, run: RunDirectory, recipe: Recipe, pairs: Sequence[Pair]) -> None:
    """Two commands that work for this run as printed."""
    tries = []
    shown = chosen(pairs)
    if shown:
        _, pair = shown[0]
        tries.append(("read an episode above in full", command("show", run.path, pair.after.id)))
    else:
        tries.append(("look at its episodes", command("show", run.path)))
    if run.stored_checkpoints():
        task = ["--task", shown[-1][1].task.id] if shown else []
        split = [] if recipe.eval.split == "eval" else ["--split", recipe.eval.split]
        words = ("play", recipe.env.kind, "--as", run.path, *split, *task)
        tries.append(("let the trained model play a held-out task", command(*words)))
    console.print(Text("\nTry next", "bold"))
    for what, line in tries:
        _print_line(console, f"  # {what}")
        _print_line(console, f"  {line}")


def _print_line(console: Console, text: str) -> None:
    """A line that is not broken, to be copied whole."""
    console.print(Text(text), soft_wrap=True)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
