"""Study files: what they may say, and what a mistake is told."""

from pathlib import Path

import pytest

from farhorizon.config.recipe import read as read_recipe
from farhorizon.core.errors import UserError
from studies.runner.cells import main_cells, tuning_cells
from studies.runner.study import Places, names, read, settings

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("seeds =", "sees =", 'study tiny.toml: there is no key "sees"; did you mean "seeds"?'),
        ("[arms.low]", "[tuning]\nsed = 5\n[arms.low]", '[study.tuning] has no key "sed"; did you mean "seed"?'),
        ('"env_steps"', '"env_step"', "budget"),
        ('"high", "low"', '"hihg", "low"', 'comparisons names the arm "hihg"; did you mean "high"?'),
        ("[0, 1]", "[0, 0]", "seeds = [0, 0] holds one twice"),
        ("[arms.low]", "[tuning]\nseed = 1\n[arms.low]", "tuning.seed = 1 is one of the seeds"),
        ("[arms.low]", "[tuning.candidates]\nlow = [{}]\n[arms.low]", "(low: 1, high: 0); make them equal"),
        ("title =", "title", "not valid TOML"),
    ],
)
def test_mistake_in_a_study_is_one_line_that_says_how_to_mend_it(tiny, before, after, message):
    tiny.study.write_text(tiny.study.read_text().replace(before, after))
    with pytest.raises(UserError) as error:
        read(tiny)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ("learner.learnin_rate = 1.0", 'did you mean "learning_rate"?'),
        ("runtime.seed = 3", "runtime.seed is set by the runner"),
    ],
)
def test_mistake_in_an_arm_names_the_study_and_the_arm(tiny, overrides, message):
    tiny.study.write_text(tiny.study.read_text().replace("[arms.low]", f"[arms.low]\n{overrides}"))
    with pytest.raises(UserError, match="study tiny.toml, arm low: ") as error:
        main_cells(tiny, read(tiny), {})
    assert message in str(error.value)


def test_unknown_study_is_told_the_nearest_one(root):
    with pytest.raises(UserError, match='there is no study "tinny"; did you mean "tiny"?'):
        read(Places(root, "tinny"))


def test_overrides_are_what_set_takes_and_a_table_with_a_kind_replaces_the_recipes(root, tiny):
    overrides = {
        "horizon": {"kind": "stages", "values": [4, 8], "every": 3},
        "models": {"policy": 'a "name"'},
        "learner": {"learning_rate": 1e-5},
        "runtime.deterministic": True,
    }
    lines = settings(overrides)
    assert lines == [
        'horizon={kind = "stages", values = [4, 8], every = 3}',
        'models.policy="a \\"name\\""',
        "learner.learning_rate=1e-05",
        "runtime.deterministic=true",
    ]
    base = root / "studies" / "recipes" / "base.toml"
    base.write_text(base.read_text() + '[horizon]\nkind = "fixed"\nturns = 9\n')
    recipe = read_recipe(base, lines)
    assert (recipe.horizon.kind, recipe.horizon.values) == ("stages", (4, 8))
    assert (recipe.learner.learning_rate, recipe.models.policy) == (1e-5, 'a "name"')


def test_every_cell_has_one_thread_its_seed_and_determinism(tiny):
    for cell in main_cells(tiny, read(tiny), {}):
        runtime = cell.recipe.runtime
        assert (runtime.seed, runtime.threads, runtime.deterministic) == (cell.seed, 1, True)


def test_cells_go_seed_by_seed(tiny):
    assert [cell.name for cell in main_cells(tiny, read(tiny), {})] == ["low-s0", "high-s0", "low-s1", "high-s1"]


def test_tries_use_the_tuning_seed_and_the_winner_is_laid_over_its_arm(tiny):
    tiny.study.write_text(
        tiny.study.read_text()
        + "[tuning]\nseed = 7\n[tuning.candidates]\n"
        + "".join(f"{arm} = [{{ learner.eps = 1e-6 }}, {{ learner.eps = 1e-4 }}]\n" for arm in ("low", "high"))
    )
    study = read(tiny)
    tries = tuning_cells(tiny, study)
    assert [cell.name for cell in tries] == ["low-try0-s7", "low-try1-s7", "high-try0-s7", "high-try1-s7"]
    cells = main_cells(tiny, study, {"low": 1, "high": 0})
    assert [cell.recipe.learner.eps for cell in cells] == [1e-4, 1e-6, 1e-4, 1e-6]
    assert [cell.recipe.learner.learning_rate for cell in cells] == [0.5, 0.9, 0.5, 0.9]


def hash_of(tiny, overrides):
    tiny.study.write_text(tiny.study.read_text().replace("[arms.low]", f"[arms.low]\n{overrides}"))
    return main_cells(tiny, read(tiny), {})[0].hash


@pytest.mark.parametrize(
    "overrides", ["learner.eps = 1e-6", 'objective.kl.estimator = "k2"', 'credit = "group_centred"']
)
def test_hash_follows_values_and_kinds(tiny, overrides):
    assert hash_of(tiny, "") != hash_of(tiny, overrides)


def test_hash_is_that_of_the_same_recipe_written_with_its_defaults(tiny):
    assert hash_of(tiny, "") == hash_of(tiny, "learner.eps = 1e-8\nrollout.retries = 2")


@pytest.mark.parametrize("name", names(ROOT))
def test_shipped_study_reads_with_every_cell(name):
    places = Places(ROOT, name)
    study = read(places)
    assert study.comparisons
    for cell in [*tuning_cells(places, study), *main_cells(places, study, {})]:
        assert cell.recipe.eval.horizon is not None
