"""Curves of a study: the mean with its interval, and every seed faintly behind it; one panel a budget axis."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes

from farhorizon.core.files import replace
from studies.runner.compare import common_budget, estimate, value_at
from studies.runner.result import Result
from studies.runner.study import AXES, Axis, Study

POINTS = 101
"""Places along the axis at which means and intervals are drawn."""
STYLE: Any = {"svg.hashsalt": "farhorizon", "font.size": 10.0, "axes.spines.top": False, "axes.spines.right": False}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Told apart by colour-blind readers too (Okabe and Ito 2008)."""


def draw(study: Study, results: Sequence[Result], path: Path) -> None:
    """Write the figure as SVG; the same results give the same bytes under one version of matplotlib."""
    count = len(study.budget)
    with matplotlib.rc_context(STYLE):
        figure, panels = pyplot.subplots(
            1, count, figsize=(1 + 5.5 * count, 4.2), sharey=True, squeeze=False, layout="constrained"
        )
        try:
            for panel, axis in zip(panels[0], study.budget, strict=True):
                _panel(panel, axis, study, results)
            panels[0][0].set_ylabel(study.measure)
            panels[0][0].legend(frameon=False)
            metadata = {"Date": None, "Creator": None}
            replace(path, lambda aside: figure.savefig(aside, format="svg", metadata=metadata))
        finally:
            pyplot.close(figure)


def _panel(panel: Axes, axis: Axis, study: Study, results: Sequence[Result]) -> None:
    for index, arm in enumerate(study.arms):
        own = [result for result in results if result.arm == arm]
        if not own:
            continue
        colour = COLOURS[index % len(COLOURS)]
        for result in own:
            places, values = [point.at(axis) for point in result.curve], [point.value for point in result.curve]
            panel.plot(places, values, color=colour, alpha=0.25, linewidth=0.8)
        grid = np.linspace(0.0, common_budget(own, axis), POINTS)
        means = [estimate([value_at(result.curve, axis, place) for result in own]) for place in grid]
        panel.plot(grid, [mean.mean for mean in means], color=colour, linewidth=2, label=arm)
        if len(own) > 1:
            panel.fill_between(
                grid, [mean.low for mean in means], [mean.high for mean in means], color=colour, alpha=0.15, linewidth=0
            )
    panel.axvline(common_budget(results, axis), color="grey", linestyle=":", linewidth=1)
    panel.set_xlabel(f"{AXES[axis]} (dotted: B, compared there)")
    panel.set_xlim(left=0)
    panel.xaxis.set_major_formatter("{x:,.0f}")
