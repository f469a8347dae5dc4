from pathlib import Path

import pytest

from farhorizon.config.recipe import read
from farhorizon.core.stats import wilson
from farhorizon.core.store import read_update, update_path
from farhorizon.runtime.train import start

RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.mark.study
def test_smoke_recipe_lifts_held_out_success_clearly(tmp_path):
    recipe = read(RECIPES / "smoke.toml")
    run = start(recipe, tmp_path / "run")
    intervals = []
    for finished in (0, recipe.runtime.max_updates):
        episodes = [t for group in read_update(update_path(run.evaluations, finished)) for t in group.scored]
        assert len(episodes) == recipe.eval.tasks * recipe.eval.samples
        intervals.append(wilson(sum(bool(t.success) for t in episodes), len(episodes)))
    before, after = intervals
    assert after[0] > before[1]
