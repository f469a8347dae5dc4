"""`farhorizon eval`: what a person types and reads."""

import json
import signal
import time

import pytest
from runs import begin

from farhorizon.core.rundir import MARKER, RunDirectory
from farhorizon.evaluation.directory import EvaluationDirectory

SMALL = ["--tasks", "4", "--samples", "2"]
MADE_UP = ["--env", "textcraft_generated", "--set", "env.train=1", "--set", "env.eval=20"]
SHALLOW = ["--env", "textcraft", "--set", "env.depths=[1]"]


def files(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def facts(path):
    return json.loads((path / "eval.json").read_text())


def success(path):
    return json.loads((path / "report.json").read_text())["overall"]["success"]


def test_oracle_solves_everything_and_random_less(farhorizon, tmp_path):
    for name in ("oracle", "random", "first_recipe"):
        status, output, _ = farhorizon("eval", name, *SHALLOW, "--out", tmp_path / name)
        assert status == 0
        assert f"# {name} on textcraft, split eval" in output
    assert success(tmp_path / "oracle") == 1.0
    assert 0.0 < success(tmp_path / "random") < 1.0
    assert 0.0 < success(tmp_path / "first_recipe") < 1.0
    status, output, _ = farhorizon("eval", "--compare", tmp_path / "oracle", tmp_path / "random")
    assert (status, "| all | 44 | 0 | 1.000 | " in output) == (0, True)
    _, output, _ = farhorizon("eval", "--compare", tmp_path / "oracle", tmp_path / "random", "--json")
    compared = json.loads(output)
    assert compared["overall"]["a"] == 1.0
    assert compared["overall"]["p"] < 0.001
    assert compared["by_category"]["depth 1"] == compared["overall"]


def test_heuristic_plays_made_up_recipes_too(farhorizon, tmp_path):
    assert farhorizon("eval", "first_recipe", *MADE_UP, "--set", "env.depths=[1]", "--out", tmp_path / "e")[0] == 0
    assert success(tmp_path / "e") > 0.0


def test_model_evaluated_twice_writes_the_same_files(farhorizon, start, recipe, tmp_path):
    for name in ("one", "two"):
        status, output, errors = farhorizon("eval", start, "--recipe", recipe, *SMALL, "--out", tmp_path / name)
        assert status == 0, errors
        assert "| success@2 |" in output
    assert files(tmp_path / "one") == files(tmp_path / "two")
    items = EvaluationDirectory(tmp_path / "one").items()
    assert [item.sample for item in items] == [0, 1] * 4
    assert all(item.sampled_tokens > 0 and item.context_tokens > item.sampled_tokens for item in items)
    assert "ended: " in farhorizon("show", tmp_path / "one", "eval/0/3/1")[1]
    farhorizon("eval", start, "--recipe", recipe, *SMALL, "--seed", 1, "--out", tmp_path / "seed")
    assert EvaluationDirectory(tmp_path / "seed").items() != items
    status, _, errors = farhorizon("eval", "--compare", tmp_path / "one", tmp_path / "seed")
    assert (status, "cannot be compared: seed is 0 and 1" in errors) == (2, True)


def test_evaluation_killed_and_continued_writes_the_files_of_one_never_stopped(farhorizon, tmp_path):
    arguments = ["eval", "random", *SHALLOW, "--samples", 4]
    assert farhorizon(*arguments, "--out", tmp_path / "whole")[0] == 0
    process = begin(*arguments, "--out", tmp_path / "killed")
    items = tmp_path / "killed" / "items.jsonl"
    while not items.exists() or not items.read_bytes():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "killed" / "report.json").exists(), "it was killed too late to show anything"
    with items.open("ab") as file:
        file.write(b'{"task": "textcraft/ac')
    assert farhorizon(*arguments, "--out", tmp_path / "killed")[0] == 0
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


def test_model_s_evaluation_continues_with_a_fresh_engine_as_if_never_stopped(farhorizon, start, recipe, tmp_path):
    arguments = ["eval", start, "--recipe", recipe, "--set", "rollout.concurrency=3", "--tasks", 7, "--samples", 2]
    for name in ("whole", "cut"):
        farhorizon(*arguments, "--out", tmp_path / name)
    items = tmp_path / "cut" / "items.jsonl"
    items.write_bytes(items.read_bytes()[: items.read_bytes().index(b"\n", 2500) + 50])
    (tmp_path / "cut" / "report.json").unlink()
    (tmp_path / "cut" / "evaluations" / "update-000002.jsonl").unlink()
    assert 6 < items.read_bytes().count(b"\n") < 12
    assert farhorizon(*arguments, "--out", tmp_path / "cut")[0] == 0
    assert files(tmp_path / "cut") == files(tmp_path / "whole")


def test_greedy_and_temperature_reach_the_model(farhorizon, start, recipe, tmp_path):
    command = ["eval", start, "--recipe", recipe, *SMALL]
    farhorizon(*command, "--greedy", "--out", tmp_path / "greedy")
    farhorizon(*command, "--temperature", 0.5, "--turns", 2, "--out", tmp_path / "cool")
    assert (facts(tmp_path / "greedy")["subject"]["temperature"], facts(tmp_path / "greedy")["turns"]) == (0.0, 4)
    assert (facts(tmp_path / "cool")["subject"]["temperature"], facts(tmp_path / "cool")["turns"]) == (0.5, 2)
    items = EvaluationDirectory(tmp_path / "greedy").items()
    conduct = [(item.turns, item.sampled_tokens, item.success) for item in items]
    assert conduct[::2] == conduct[1::2]
    assert max(item.turns for item in EvaluationDirectory(tmp_path / "cool").items()) == 2


def test_run_brings_its_recipe_and_the_checkpoint_asked_for(farhorizon, finished, start, tmp_path):
    run = RunDirectory.open(finished)
    earlier, last = run.stored_checkpoints()[-2:]
    best = json.loads((finished / "best.json").read_text())["finished"]
    for which, expected in (("last", last), (str(earlier), earlier), ("best", best), ("start", 0)):
        out = tmp_path / which
        status, _, errors = farhorizon("eval", finished, "--checkpoint", which, "--tasks", 2, "--out", out)
        assert status == 0, errors
        subject = facts(out)["subject"]
        assert (subject["finished"], facts(out)["env"]["depths"]) == (expected, [1])
    farhorizon("eval", start, "--recipe", finished / "recipe.toml", "--tasks", 2, "--out", tmp_path / "copy")
    assert facts(tmp_path / "copy")["subject"]["sha256"] == facts(tmp_path / "start")["subject"]["sha256"]
    assert facts(tmp_path / "last")["subject"]["sha256"] != facts(tmp_path / "start")["subject"]["sha256"]
    assert files(tmp_path / "copy")["items.jsonl"] == files(tmp_path / "start")["items.jsonl"]


def test_damaged_checkpoint_is_refused(farhorizon, finished, tmp_path):
    torn = tmp_path / "run" / "checkpoints" / "update-000004"
    torn.mkdir(parents=True)
    (tmp_path / "run" / "recipe.toml").write_bytes((finished / "recipe.toml").read_bytes())
    (torn / MARKER).write_text('{"files": {"model.safetensors": "00"}}')
    status, _, errors = farhorizon("eval", tmp_path / "run", "--checkpoint", 4)
    assert (status, "cannot be used: model.safetensors is missing" in errors) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "eval takes a model or player, or --compare A B"),
        (["oracle"], "say where oracle plays: --recipe FILE, or --env NAME"),
        (["orcle", *SHALLOW], 'there is no player or model "orcle"; the nearest: oracle'),
        (["first_recip", *SHALLOW], 'there is no player or model "first_recip"; the nearest: first_recipe'),
        (["smollm2-135m", *SHALLOW], 'there is no player or model "smollm2-135m"; the nearest: smollm2-135m-instruct'),
        (["oracle", "--env", "textcraf"], '[env] has no kind "textcraf"; did you mean "textcraft"?'),
        (["oracle", *SHALLOW, "--set", "env.depth=[1]"], '[env] has no key "depth"; did you mean "depths"?'),
        (["oracle", *SHALLOW, "--split", "test"], 'textcraft has no split "test"'),
        (["oracle", *SHALLOW, "--checkpoint", "best"], '--checkpoint best: "oracle" is not a run'),
        (["oracle", *SHALLOW, "--greedy"], '"oracle" is not a model'),
        (["oracle", *SHALLOW, "--greedy", "--temperature", "1"], "--greedy is --temperature 0"),
        (["oracle", *SHALLOW, "--recipe", "x.toml"], "--env is for evaluating without a recipe"),
        (["--compare", "nowhere", "nowhere"], "nowhere is not an evaluation: it has no eval.json"),
    ],
)
def test_mistake_is_one_line_and_status_two(farhorizon, arguments, message):
    status, _, errors = farhorizon("eval", *arguments)
    assert status == 2
    assert errors.startswith("farhorizon: ")
    assert message in errors
    assert errors.count("\n") == 1


def test_run_s_recipe_is_not_replaced(farhorizon, finished):
    status, _, errors = farhorizon("eval", finished, "--env", "textcraft")
    assert (status, "a run brings its own recipe; change its values with --set" in errors) == (2, True)


def test_unknown_checkpoint_names_those_there_are(farhorizon, finished):
    status, _, errors = farhorizon("eval", finished, "--checkpoint", 99)
    assert (status, "has no checkpoint 99; there are: last, best, start, " in errors) == (2, True)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (["--turns", "9"], "turns is 10 and 9"),
        (["--seed", "1"], "seed is 0 and 1"),
        (["--tasks", "3"], "tasks is 4 and 3"),
        (["--set", "env.depths=[1]"], "split is eval "),
        (["--split", "train"], "split is eval "),
        (MADE_UP, "environment is textcraft "),
    ],
)
def test_evaluations_of_different_things_are_not_compared(farhorizon, tmp_path, other, message):
    env = [] if "--env" in other else ["--env", "textcraft"]
    farhorizon("eval", "oracle", "--env", "textcraft", "--tasks", 4, "--out", tmp_path / "a")
    farhorizon("eval", "oracle", *env, "--tasks", 4, *other, "--out", tmp_path / "b")
    status, _, errors = farhorizon("eval", "--compare", tmp_path / "a", tmp_path / "b")
    assert (status, message in errors, errors.count("\n")) == (2, True, 1)


def test_unfinished_evaluation_is_not_compared(farhorizon, tmp_path):
    farhorizon("eval", "oracle", *SHALLOW, "--out", tmp_path / "a")
    (tmp_path / "a" / "report.json").unlink()
    status, _, errors = farhorizon("eval", "--compare", tmp_path / "a", tmp_path / "a")
    assert (status, "is not finished; repeat its command to continue it" in errors) == (2, True)


def test_directory_is_named_after_the_model_and_the_date(farhorizon, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    farhorizon("eval", "oracle", *SHALLOW, "--tasks", 1)
    (made,) = (tmp_path / "evals").iterdir()
    assert made.name.startswith("oracle-20")


def test_heuristic_can_be_watched(farhorizon):
    status, output, _ = farhorizon("play", "textcraft", "--as", "first_recipe", "--turns", 2)
    assert status == 0
    assert output.count("> ") == 2


def test_play_names_the_nearest_player_or_model(farhorizon):
    status, _, errors = farhorizon("play", "textcraft", "--as", "randm")
    assert (status, 'there is no player or model "randm"; the nearest: random' in errors) == (2, True)


def test_an_evaluation_is_not_resumed_as_a_run_and_keeps_its_episodes(farhorizon, tmp_path):
    assert farhorizon("eval", "random", *SHALLOW, "--tasks", 2, "--out", tmp_path / "e")[0] == 0
    status, _, errors = farhorizon("train", "--resume", tmp_path / "e")
    assert status == 2
    assert "cannot be resumed: it has no run.json" in errors
    assert not (tmp_path / "e" / "set_aside").exists()


def test_the_seed_has_one_name(farhorizon, tmp_path):
    status, _, errors = farhorizon("eval", "random", *SHALLOW, "--set", "runtime.seed=7", "--out", tmp_path / "e")
    assert status == 2
    assert "the seed of an evaluation is --seed" in errors
