"""Episodes of a task before and after training, in two columns."""

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from farhorizon.core.record import Trajectory, Turn
from farhorizon.viewer.pairs import OUTCOMES, Pair, chosen
from farhorizon.viewer.text import ending, printable, shortened

WIDEST = 160
"""Columns of text; more are harder to read than scrolling."""
FIRST, LAST = 5, 2
"""Turns shown of a long episode: so many from its start, so many from its end; a turn repeated counts as one."""


def print_pairs(console: Console, pairs: Sequence[Pair], heads: tuple[str, str]) -> None:
    """Print how often what changed, and a few pairs in full.

    Args:
        heads: what to call the two evaluations.
    """
    few, counts = chosen(pairs), Counter(pair.outcome for pair in pairs)
    some = f"{len(few)} of {len(pairs)} held-out episodes" if len(few) < len(pairs) else "held-out episodes"
    console.print(Text(f"\nThe same tasks before and after: {some}", "bold"))
    tally = "; ".join(f"{outcome}: {counts[outcome]}" for outcome in OUTCOMES)
    console.print(Text(f"Solved {tally}. Shown are the first of each kind in the order of a hash of the tasks' ids."))
    for number, (how, pair) in enumerate(few, 1):
        domain = f" ({pair.task.domain})" if pair.task.domain else ""
        console.print(Text(printable(f"\n{number}. {pair.task.id}{domain}: {how}"), "bold"))
        openings = [_opening(trajectory) for trajectory in (pair.before, pair.after)]
        shared = not all(openings) or openings[0] == openings[1]
        if shared:
            console.print(Padding(Text(openings[0] or openings[1]), (0, 0, 1, 3)))
        console.print(Padding(_columns(pair, heads, ("", "") if shared else openings, console.width), (0, 0, 0, 3)))


def _columns(pair: Pair, heads: tuple[str, str], openings: Sequence[str], width: int) -> Table:
    table = Table(box=box.MINIMAL, show_edge=False, pad_edge=False, width=min(width, WIDEST) - 3)
    for head in heads:
        table.add_column(Text(head, "bold"), ratio=1, overflow="fold")
    before, after = (
        [*([Text(opening)] if opening else []), *_cells(trajectory)]
        for trajectory, opening in zip((pair.before, pair.after), openings, strict=True)
    )
    for row in zip_longest(before, after, fillvalue=""):
        table.add_row(*row)
    return table


def _cells(trajectory: Trajectory) -> list[RenderableType]:
    """A cell for each turn, then how it ended."""
    exchanges = _exchanges(trajectory)
    left_out = exchanges[FIRST:-LAST]
    if len(left_out) > 1:
        turns = sum(times for *_, times in left_out)
        shown = [*map(_cell, exchanges[:FIRST]), Text(f"… {turns} more turns …"), *map(_cell, exchanges[-LAST:])]
    else:
        shown = [*map(_cell, exchanges)]
    return [*shown, Text(ending(trajectory), "bold")]


def _exchanges(trajectory: Trajectory) -> list[tuple[Turn, str, int]]:
    """A turn, the environment's answer to its action, and how many times the two came in a row.

    What the environment answered to the last action is not recorded; it counts as more of the same.
    """
    exchanges: list[tuple[Turn, str, int]] = []
    for turn, following in zip_longest(trajectory.turns, trajectory.turns[1:]):
        answer = "" if following is None else following.observation
        if exchanges:
            last, answered, times = exchanges[-1]
            same = (last.action, last.info.get("valid")) == (turn.action, turn.info.get("valid"))
            if same and (following is None or answered == answer):
                exchanges[-1] = (last, answered, times + 1)
                continue
        exchanges.append((turn, answer, 1))
    return exchanges


def _cell(exchange: tuple[Turn, str, int]) -> RenderableType:
    turn, answer, times = exchange
    marks = [f"{times} times"] * (times > 1) + ["not valid"] * (turn.info.get("valid") is False)
    below = [f"[{', '.join(marks)}]"] * bool(marks) + [_short(answer)] * bool(answer.strip())
    cell = Table.grid(padding=(0, 1))
    cell.add_column(width=1)
    cell.add_column(overflow="fold")
    cell.add_row(">", Text(_short(turn.action)))
    if below:
        cell.add_row("", Text(" ".join(below), "dim"))
    return cell


def _short(text: str) -> str:
    return shortened(printable(text.strip()), lines=6, characters=300)


def _opening(trajectory: Trajectory) -> str:
    text = printable(trajectory.turns[0].observation.strip("\n").rstrip()) if trajectory.turns else ""
    return shortened(text, lines=20, characters=1500)
