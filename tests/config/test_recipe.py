import pytest

from farhorizon.config.recipe import dump, parse, read
from farhorizon.core.errors import UserError

BASE = {"env": {"kind": "textcraft"}}


def write(tmp_path, text):
    path = tmp_path / "smoke.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[env]\nkind = "textcraft"\n[learner]\nlearnin_rate = 1e-5',
            '[learner] has no key "learnin_rate"; did you mean "learning_rate"?',
        ),
        (
            '[env]\nkind = "textcraft"\n[objective.kl]\ncoeficient = 1',
            '[objective.kl] has no key "coeficient"; did you mean "coefficient"?',
        ),
        ('[env]\nkind = "textcraft"\n[lerner]\n', 'there is no table [lerner]; did you mean "learner"?'),
        ('[env]\nkind = "textcraf"', '[env] has no kind "textcraf"; did you mean "textcraft"?'),
        (
            '[env]\nkind = "textcraft"\n[agent.renderer]\nkind = "transcipt"',
            '[agent.renderer] has no kind "transcipt"; did you mean "transcript"?',
        ),
        ('method = "grop"\n[env]\nkind = "textcraft"', '[method] has no kind "grop"; did you mean "grpo"?'),
        (
            '[env]\nkind = "textcraft"\n[learner]\nlearning_rate = "fast"',
            "[learner] learning_rate = 'fast': input should be a valid number",
        ),
        (
            '[env]\nkind = "textcraft"\n[horizon]\nkind = "stages"\nvalues = [4]',
            '[horizon] needs the key "every"',
        ),
        ('[env]\nkind = "textcraft"\n[env', "not valid TOML"),
        ("", "the table [env] is missing"),
        (
            '[env]\nkind = "textcraft"\n[sampling]\ntemperature = 0',
            "[sampling] temperature = 0: input should be greater than 0",
        ),
        (
            '[env]\nkind = "textcraft"\ndepths = [7]',
            "[env.depths] 0 = 7: input should be less than or equal to 4",
        ),
    ],
)
def test_mistake_is_one_line_naming_file_table_key_and_the_nearest_known(tmp_path, text, message):
    with pytest.raises(UserError) as raised:
        read(write(tmp_path, text))
    assert str(raised.value).startswith("recipe smoke.toml: " if "TOML" not in message else "recipe ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value).removesuffix("\n") or "TOML" in message


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"tasks": {"size": 1}}, "a lone one zero advantage; use at least 2"),
        ({"learner": {"steps_per_update": 9}, "tasks": {"groups": 8}}, "splits an update by whole groups"),
        ({"rollout": {"max_turn_tokens": 64, "context_tokens": 64}}, "leaves no room for a prompt"),
        ({"tasks": {"groups": True}}, "[tasks] groups = True: input should be a valid integer"),
        ({"runtime": {"deterministic": "no"}}, "[runtime] deterministic = 'no': input should be a valid boolean"),
        ({"learner": {"betas": [1.5, 0]}}, "[learner.betas] 0 = 1.5: input should be less than 1"),
        ({"learner": {"kind": 5}}, "[learner] kind = 5 is no name"),
        ({"method": 5}, "[method] kind = 5 is no name"),
        ({"env": {"kind": "textcraft", "depths": []}}, "[env] depths = []"),
        ({"env": {"kind": "textcraft", "distractors": [3, 1]}}, "the least is above the most"),
    ],
)
def test_combination_that_makes_no_sense_is_refused_with_the_reason(tables, message):
    with pytest.raises(UserError, match="^\\[") as raised:
        parse({**BASE, **tables})
    assert message in str(raised.value)


def test_missing_recipe_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"none\.toml: No such file"):
        read(tmp_path / "none.toml")


def test_method_gives_tables_that_the_recipe_overrides_key_by_key():
    assert parse({**BASE, "method": "dr_grpo", "objective": {"denominator": "token"}}).objective.denominator == "token"
    recipe = parse({**BASE, "method": "scaling_inter_rl", "objective": {"high": 1.28}, "horizon": {"every": 7}})
    assert (recipe.horizon.values, recipe.horizon.every) == ((10, 20, 30), 7)
    assert (recipe.objective.high, recipe.objective.low, recipe.objective.kl.coefficient) == (1.28, 0.8, 1e-3)


def test_another_kind_replaces_the_methods_table_altogether():
    recipe = parse({**BASE, "method": "scaling_inter_rl", "horizon": {"kind": "fixed", "turns": 5}})
    assert recipe.horizon.turns == 5


def test_overrides_are_toml_values_and_bare_words_are_text(tmp_path):
    path = write(tmp_path, '[env]\nkind = "textcraft"\n[horizon]\nturns = 3\n')
    recipe = read(
        path,
        ["env.depths=[1, 2]", "models.policy=micro", "learner.learning_rate=1e-4", "agent.renderer.kind=chat"],
    )
    assert recipe.env.depths == (1, 2)
    assert recipe.models.policy == "micro"
    assert recipe.learner.learning_rate == 1e-4
    assert recipe.agent.renderer.kind == "chat"
    with pytest.raises(UserError, match=r"--set horizon.turns.x=1: turns is a value"):
        read(path, ["horizon.turns.x=1"])
    with pytest.raises(UserError, match="write it as table.key=value"):
        read(path, ["horizon"])


def test_resolved_recipe_reads_back_as_itself(tmp_path):
    recipe = parse({**BASE, "method": "dr_grpo", "eval": {"temperature": 0.0}, "agent": {"renderer": {"kind": "chat"}}})
    assert read(write(tmp_path, dump(recipe))) == recipe
