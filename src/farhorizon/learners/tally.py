"""Means and maxima gathered over micro-batches, optimizer steps and ranks."""

import torch

from farhorizon.learners import ranks
from farhorizon.objectives.base import Terms


class Tally:
    """Adds up what objectives report; every rank calls `reduced` once, whatever it has seen itself."""

    def __init__(self) -> None:
        self._means: dict[str, tuple[float, float]] = {}
        self._maxima: dict[str, float] = {}

    def add(self, terms: Terms) -> None:
        """One micro-batch."""
        for name, (total, weight) in terms.means.items():
            before = self._means.get(name, (0.0, 0.0))
            self._means[name] = (before[0] + float(total), before[1] + float(weight))
        for name, value in terms.maxima.items():
            self._maxima[name] = max(self._maxima.get(name, -float("inf")), float(value))

    def reduced(self) -> dict[str, float]:
        """Metrics over all ranks; a mean over nothing is left out."""
        self._agree_on_names()
        means, maxima = sorted(self._means), sorted(self._maxima)
        pairs = torch.tensor([self._means[name] for name in means], dtype=torch.float64).reshape(-1, 2)
        peaks = torch.tensor([self._maxima[name] for name in maxima], dtype=torch.float64)
        sums = zip(means, ranks.sum_(pairs).tolist(), strict=True)
        return {
            **{name: total / weight for name, (total, weight) in sums if weight > 0},
            **dict(zip(maxima, ranks.maximum_(peaks).tolist(), strict=True)),
        }

    def _agree_on_names(self) -> None:
        """A rank may have had no micro-batch at all."""
        for names in ranks.gather((sorted(self._means), sorted(self._maxima))):
            for name in names[0]:
                self._means.setdefault(name, (0.0, 0.0))
            for name in names[1]:
                self._maxima.setdefault(name, -float("inf"))
