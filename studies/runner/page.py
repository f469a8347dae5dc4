"""The result page of a study, from its committed results alone."""

from collections.abc import Sequence
from pathlib import Path

from farhorizon.core.errors import UserError
from farhorizon.core.files import replace_text
from studies.runner.cells import cell_name
from studies.runner.compare import (
    Comparison,
    Estimate,
    best_candidates,
    common_budget,
    compare,
    estimate,
    mean_up_to,
    signed,
    value_at,
    verdict,
)
from studies.runner.limits import summary
from studies.runner.result import Result
from studies.runner.study import AXES, Axis, Places, Study, settings

OPEN, CLOSE = "<!-- notes -->", "<!-- /notes -->"
"""What stands between them is written by hand and kept."""


def write(places: Places, study: Study, results: Sequence[Result], tries: Sequence[Result], stale: set[str]) -> None:
    """Write the page and its figure.

    Args:
        results: of the cells that count, at least one.
        tries: of the tuning.
        stale: names of cells measured on another recipe than the study has now.

    Raises:
        UserError: the page that is there has lost the marks of its hand-written part.
    """
    from studies.runner.figure import draw  # brings matplotlib, which lists and checks do without

    notes = _notes(places.page)
    comparisons = [
        compare(results, first, second, axis, common_budget(results, axis))
        for axis in study.budget
        for first, second in study.comparisons
    ]
    parts = [
        f"# {study.title}",
        study.question,
        _state(study, results, stale),
        _verdicts(comparisons),
        f"{OPEN}{notes}{CLOSE}",
        f"![{study.measure} of every arm against {_axes(study)}]({places.figure.name})",
        _setting(places, study, results),
        *(_values(study, results, axis) for axis in study.budget),
        _differences(comparisons),
        _costs(study, results, [*results, *tries]),
        _tuning(study, tries),
        _reproduction(places, study, results),
    ]
    draw(study, results, places.figure)
    replace_text(places.page, "\n\n".join(part for part in parts if part) + "\n")


def _notes(path: Path) -> str:
    if not path.exists():
        return "\n"
    text = path.read_text(encoding="utf-8")
    _, opened, rest = text.partition(OPEN)
    notes, closed, _ = rest.partition(CLOSE)
    if not opened or not closed:
        raise UserError(f"{path} has lost {OPEN} or {CLOSE}; put them around what was written by hand, to keep it")
    return notes


def _state(study: Study, results: Sequence[Result], stale: set[str]) -> str:
    done = {(result.arm, result.seed) for result in results}
    missing = [
        f"`{cell_name(arm, seed, None)}`" for seed in study.seeds for arm in study.arms if (arm, seed) not in done
    ]
    lines = []
    if missing:
        lines.append(f"**Not finished**: {len(missing)} cells are missing: {', '.join(missing)}.")
    if stale:
        cells = ", ".join(f"`{name}`" for name in sorted(stale))
        lines.append(f"**Out of date**: the study's recipe has changed since these were measured: {cells}.")
    return "\n\n".join(lines)


def _verdicts(comparisons: Sequence[Comparison]) -> str:
    if not comparisons:
        return ""
    lines = [f"* {verdict(comparison)}" for comparison in comparisons]
    apart = ""
    if len(comparisons) > 1:
        apart = f" Each of the {len(comparisons)} intervals is a 95% one by itself, not widened for the others."
    return "## Verdict\n\n" + "\n".join(lines) + f"\n\nDifferences are paired by seed, with Student's t.{apart}"


def _setting(places: Places, study: Study, results: Sequence[Result]) -> str:
    common = "".join(f", `{line}`" for line in settings(study.overrides))
    rows = [(f"`{arm}`", _code(settings(overrides)) or "nothing") for arm, overrides in study.arms.items()]
    starts = sorted({result.recipe.start for result in results})
    return (
        f"## Setting\n\nRecipe `studies/{study.recipe}`{common}. Measured: `{study.measure}`. "
        f"Seeds: {', '.join(map(str, study.seeds))}. All cells of an arm differ in the seed alone: "
        "intervals over seeds cover the randomness of training and of evaluation's sampling, not another start, nor "
        f"other held-out tasks. Policy's start: {_code(starts)}.\n\n" + _table(("arm", "sets"), rows)
    )


def _values(study: Study, results: Sequence[Result], axis: Axis) -> str:
    budget = common_budget(results, axis)
    rows = []
    for arm in study.arms:
        own = sorted((result for result in results if result.arm == arm), key=lambda result: result.seed)
        if not own:
            continue
        at_budget = [value_at(result.curve, axis, budget) for result in own]
        over_curve = [mean_up_to(result.curve, axis, budget) for result in own]
        seeds = ", ".join(f"{result.seed}: {value:.3f}" for result, value in zip(own, at_budget, strict=True))
        rows.append((f"`{arm}`", _interval(estimate(at_budget)), seeds, _interval(estimate(over_curve))))
    heads = ("arm", "mean at B [95% interval]", "every seed at B", "mean of the curve up to B")
    return (
        f"## At equal {AXES[axis]}\n\nB = {budget:,.0f}: what the shortest cell reached. "
        f"Between two measurements a cell's curve is a line.\n\n" + _table(heads, rows)
    )


def _differences(comparisons: Sequence[Comparison]) -> str:
    if not comparisons:
        return ""
    rows = [
        (
            AXES[comparison.axis],
            f"`{comparison.first}` − `{comparison.second}`",
            _signed_interval(comparison.at_budget),
            _signed_interval(comparison.over_curve),
            str(comparison.at_budget.seeds if comparison.at_budget else 0),
        )
        for comparison in comparisons
    ]
    heads = ("equal", "difference", "at B [95% interval]", "of the curves' means up to B", "seeds")
    return "## Comparisons\n\n" + _table(heads, rows)


def _costs(study: Study, results: Sequence[Result], everything: Sequence[Result]) -> str:
    rows = []
    for arm in study.arms:
        own = [result for result in results if result.arm == arm]
        if own:
            totals = [_mean([result.totals[name] for result in own]) for name in ("updates", *_SPENT)]
            seconds = [result.cost.cpu_seconds for result in own]
            lost = "≥ " if any(result.cost.sessions_lost for result in own) else ""
            rows.append((f"`{arm}`", *totals, f"{lost}{_mean(seconds)}", f"{lost}{max(seconds):,.0f}"))
    heads = ("arm", "updates", *(AXES[name] for name in _SPENT), "CPU-seconds", "most of a cell")
    cpus = sorted({f"{r.cost.machine.cpu}, {r.cost.machine.cores} cores" for r in everything})
    return (
        "## Cost\n\nWhole cells, means over seeds; evaluation is in the CPU-seconds alone. "
        f"{summary(everything)} Measured on {'; '.join(cpus)}.\n\n" + _table(heads, rows)
    )


def _tuning(study: Study, tries: Sequence[Result]) -> str:
    if not tries:
        return ""
    axis = study.budget[0]
    budget, best = common_budget(tries, axis), best_candidates(tries, axis)
    rows = [
        (
            f"`{result.arm}`",
            _code(settings(study.tuning.candidates[result.arm][result.candidate or 0])) or "nothing",
            f"{value_at(result.curve, axis, budget):.3f}",
            "used" if best[result.arm] == result.candidate else "",
        )
        for result in tries
    ]
    return (
        f"## Tuning\n\nEvery arm had the same number of tries, on seed {study.tuning.seed}, compared at "
        f"{budget:,.0f} {AXES[axis]}. Everything that was tried:\n\n" + _table(("arm", "sets", study.measure, ""), rows)
    )


def _reproduction(places: Places, study: Study, results: Sequence[Result]) -> str:
    versions = sorted(
        {
            f"{r.code.version}, commit {(r.code.commit or 'unknown')[:12]}"
            + (f" with changes (source {r.code.source})" if r.code.dirty else "")
            for r in results
        }
    )
    return (
        f"## Reproduction\n\n```\nstudies/run {places.name}\n"
        f"studies/run {places.name} --check {results[0].cell}    # one cell again, compared bit for bit\n```\n\n"
        f"farhorizon {'; '.join(versions)}. Every measured value is in `docs/results/cells/{places.name}/`."
    )


_SPENT: tuple[Axis, ...] = ("env_steps", "sampled_tokens")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _interval(found: Estimate) -> str:
    if found.seeds == 1:
        return f"{found.mean:.3f}"
    return f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]".replace("-", "−")


def _signed_interval(found: Estimate | None) -> str:
    if found is None:
        return "–"
    return signed(found.mean) + ("" if found.seeds == 1 else f" [{signed(found.low)}, {signed(found.high)}]")


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):,.0f}"


def _code(lines: Sequence[str]) -> str:
    return ", ".join(f"`{line}`" for line in lines)


def _axes(study: Study) -> str:
    return " and ".join(AXES[axis] for axis in study.budget)
