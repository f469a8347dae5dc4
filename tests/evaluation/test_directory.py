"""An evaluation is the same files however often it is stopped, and the same noise whoever plays."""

import asyncio
import json
from dataclasses import replace

import pytest
from toys import Counting, CountingWorld, ToyTokenizer, failing, saying

from farhorizon.agents.append_only import AppendOnlyAgent
from farhorizon.config.agent import AppendOnly
from farhorizon.config.tables import Rollout
from farhorizon.core.errors import UserError
from farhorizon.core.seeds import uniforms
from farhorizon.core.store import read_update
from farhorizon.engines.base import Sampling
from farhorizon.envs.base import StepResult
from farhorizon.envs.players import ScriptedPlayer
from farhorizon.evaluation.directory import EvaluationDirectory, plan, split_sha256
from farhorizon.evaluation.evaluate import evaluate
from farhorizon.evaluation.players import PlayerSubject
from farhorizon.evaluation.subject import STREAM, UPDATE
from farhorizon.rollout.driver import Circumstances, Driver

GOALS = (1, 2, 3, 4, 5)


class Lapsing(Counting):
    """Declares success at every even number, and takes it back at the next; never ends by itself."""

    def step(self, action):
        self.said += 1
        return StepResult(f"Said {self.said}.", success=self.said % 2 == 0)


class Agent:
    """A model's way through an evaluation, with a toy for the model: right answers, now and then a wrong one."""

    def __init__(self, world, turns, seed, tasks_at_once=4, **limits):
        tokenizer = ToyTokenizer()

        def answer(request):
            right = uniforms([request.key.digest()], [0])[0] < 0.7
            return f" {request.key.turn + 1}\n" if right else " what?\n"

        engine = saying(tokenizer, answer)
        agent = AppendOnlyAgent(AppendOnly(), tokenizer=tokenizer, world=world)
        self._driver = Driver(world=world, agent=agent, engine=engine, limits=Rollout(**limits), seed=seed)
        self._given = Circumstances(STREAM, UPDATE, turns, Sampling(), training=False)
        self.facts, self.tasks_at_once = {"name": "toy"}, tasks_at_once

    async def play(self, tasks, samples, first, on_done=None):
        given = replace(self._given, first_group=first)
        return (await evaluate(self._driver, tasks, samples, given, on_done)).groups


class Stumbling:
    """Counts as asked, now and then wrongly."""

    def __init__(self, key):
        self._key, self._turn, self._said = key, 0, 0

    def act(self, observation, environment):
        self._said += observation.startswith("Said")
        self._turn += 1
        right = uniforms([self._key.digest()], [self._turn])[0] < 0.7
        return str(self._said + 1) if right else "what?"


def player(world, turns, seed, make=lambda task, key: Stumbling(key), **limits):
    return PlayerSubject("stumbling", make, world=world, limits=Rollout(**limits), turns=turns, seed=seed)


def play(path, subject=Agent, world=None, samples=2, turns=4, seed=3, count=None, **options):
    """Carry out an evaluation, or continue it; returns its report and its items."""
    world = world or CountingWorld(goals=GOALS)
    planned = plan(world, {}, "train", count, samples, turns, seed)
    directory = EvaluationDirectory(path)
    report = asyncio.run(directory.carry_out(planned, subject(world, turns, seed, **options), "# recipe\n"))
    return report, directory.items()


def files(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


@pytest.mark.parametrize("subject", [Agent, player])
def test_evaluating_twice_writes_the_same_files(tmp_path, subject):
    for name in ("one", "two"):
        play(tmp_path / name, subject)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    names = {"eval.json", "recipe.toml", "items.jsonl", "report.json", "report.md"}
    assert names < set(files(tmp_path / "one"))


@pytest.mark.parametrize("lines", [0, 3, 4, 7, 10])
def test_evaluation_cut_off_anywhere_continues_to_the_same_files(tmp_path, lines):
    """Two tasks a chunk: of 3 lines and a half none are kept, of 4 all."""
    play(tmp_path / "whole")
    play(tmp_path / "cut")
    cut = tmp_path / "cut" / "items.jsonl"
    whole = cut.read_bytes().splitlines(keepends=True)
    cut.write_bytes(b"".join(whole[:lines]) + b"".join(whole[lines : lines + 1])[:25])
    (tmp_path / "cut" / "report.json").unlink()
    play(tmp_path / "cut")
    assert files(tmp_path / "cut") == files(tmp_path / "whole")


def test_only_what_is_missing_is_played_again(tmp_path):
    play(tmp_path)
    items = tmp_path / "items.jsonl"
    items.write_bytes(b"".join(items.read_bytes().splitlines(keepends=True)[:9]))
    world, done = CountingWorld(goals=GOALS), []
    work = EvaluationDirectory(tmp_path).carry_out(
        plan(world, {}, "train", None, 2, 4, 3), Agent(world, 4, 3), "", on_done=lambda t: done.append(t.task.id)
    )
    asyncio.run(work)
    assert done == ["counting/5", "counting/5"]


@pytest.mark.parametrize(
    ("change", "name"),
    [({"seed": 4}, "seed"), ({"turns": 5}, "turns"), ({"samples": 1}, "samples"), ({"count": 2}, "tasks")],
)
def test_another_evaluation_in_the_directory_is_refused(tmp_path, change, name):
    play(tmp_path)
    before = files(tmp_path)
    with pytest.raises(UserError, match=f"holds an evaluation with {name} = .* name another directory with --out"):
        play(tmp_path, **change)
    assert files(tmp_path) == before


def test_directory_of_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="is no evaluation"):
        play(tmp_path)


def test_noise_depends_on_seed_place_and_sample_and_not_on_who_plays_or_how_many_at_once(tmp_path):
    _, together = play(tmp_path / "together", tasks_at_once=100)
    _, alone = play(tmp_path / "alone", tasks_at_once=1)
    _, others = play(tmp_path / "others", player)
    _, another = play(tmp_path / "another", seed=4)
    assert together == alone
    assert [item.seed for item in others] == [item.seed for item in together]
    assert len({item.seed for item in together} | {item.seed for item in another}) == 20
    assert not all(item.success for item in together)


@pytest.mark.parametrize("subject", [Agent, player])
def test_success_within_turns_is_what_fewer_turns_would_have_given(tmp_path, subject):
    swept, _ = play(tmp_path / "swept", subject, turns=6)
    rates = []
    for turns in range(1, 7):
        report, _ = play(tmp_path / str(turns), subject, turns=turns)
        rates.append(report.overall.success)
        assert swept.by_category["to 1"].within[turns - 1].rate == report.by_category["to 1"].success
    assert [within.rate for within in swept.overall.within] == rates
    assert len(set(rates)) > 1


def test_success_that_is_taken_back_does_not_count(tmp_path):
    world = CountingWorld(Lapsing, goals=(9,))
    kept, _ = play(tmp_path / "kept", player, world, turns=4, samples=1)
    assert [within.rate for within in kept.overall.within] == [0, 0, 0, 1]
    back, items = play(tmp_path / "back", player, world, turns=5, samples=1)
    assert (back.overall.success, items[0].success_turn) == (0.0, None)


@pytest.mark.parametrize("subject", [Agent, player])
def test_set_aside_episodes_are_not_failures(tmp_path, subject):
    """The first episode's first step breaks and is not tried again."""
    world = CountingWorld(failing([1]), goals=(1, 2))
    report, items = play(tmp_path, subject, world, retries=0)
    assert (report.overall.episodes, report.overall.set_aside) == (4, 1)
    broken = [item for item in items if not item.scored]
    assert [(item.status, item.stop_reason, item.success) for item in broken] == [("infra_fault", "env_fault", None)]
    assert report.overall.success == sum(bool(item.success) for item in items) / 3


def test_player_s_environment_is_begun_anew_before_it_is_given_up(tmp_path):
    world = CountingWorld(failing([1]), goals=(1,))
    report, _ = play(tmp_path, player, world, samples=1, make=lambda task, key: ScriptedPlayer(["1"]))
    assert (report.overall.set_aside, report.overall.success) == (0, 1.0)
    (group,) = read_update(tmp_path / "evaluations" / "update-000000.jsonl")
    assert (group.trajectories[0].retries, len(group.trajectories[0].faults)) == (1, 1)


def test_environment_that_never_works_stops_a_player_s_evaluation(tmp_path):
    with pytest.raises(UserError, match="failed 8 times in a row, last: step raised RuntimeError: the server is gone"):
        play(tmp_path, player, CountingWorld(failing(range(1000)), goals=GOALS))


def test_player_s_own_mistake_is_no_fault_of_the_environment(tmp_path):
    class Broken(ScriptedPlayer):
        def act(self, observation, environment):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        play(tmp_path, player, make=lambda task, key: Broken(()))


def test_stored_episodes_bear_their_file_s_number_and_no_clock_times(tmp_path):
    play(tmp_path)
    groups = read_update(tmp_path / "evaluations" / "update-000001.jsonl")
    assert [t.id for group in groups for t in group.trajectories] == [f"eval/1/{g}/{m}" for g in (2, 3) for m in (0, 1)]
    assert all(turn.timings == {} for group in groups for t in group.trajectories for turn in t.turns)
    assert groups[0].trajectories[0].sampled_tokens > 0


def test_split_is_known_by_its_content_in_whatever_order():
    tasks = CountingWorld(goals=GOALS).tasks("train")
    assert split_sha256(tasks) == split_sha256(tasks[::-1])
    changed = [*tasks[1:], replace(tasks[0], data={"goal": 9})]
    assert split_sha256(changed) != split_sha256(tasks)
    assert split_sha256(tasks[1:]) != split_sha256(tasks)


def test_eval_json_says_what_was_evaluated(tmp_path):
    play(tmp_path, count=3)
    facts = json.loads((tmp_path / "eval.json").read_text())
    assert facts["environment"] == {"name": "counting", "version": "1"}
    assert facts["split"] == {"name": "train", "sha256": split_sha256(CountingWorld(goals=GOALS).tasks("train"))}
    assert {name: facts[name] for name in ("tasks", "samples", "turns", "seed", "chunk")} == {
        "tasks": 3, "samples": 2, "turns": 4, "seed": 3, "chunk": 2,
    }  # fmt: skip


def test_split_without_tasks_is_refused():
    with pytest.raises(UserError, match='"counting" has no tasks in split "train"'):
        plan(CountingWorld(goals=()), {}, "train", None, 1, 1, 0)
