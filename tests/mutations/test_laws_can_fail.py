"""Each law's break, applied by monkeypatch, fails that law's test: the tests can fail."""

from functools import cached_property

import numpy as np
import pytest

from farhorizon.core.record import Context, Origin, Status, Trajectory


def reencode(patch):
    """Law 1: train on what the text encodes to instead of on what was sampled."""
    from toys import ToyTokenizer

    from farhorizon.agents.base import ContextBuilder
    from farhorizon.engines.base import Generation

    honest, tokenizer = ContextBuilder.sampled, ToyTokenizer()

    def sampled(self, generation, context):
        ids = tokenizer(tokenizer.decode(generation.token_ids))["input_ids"]
        return honest(self, Generation(ids, np.zeros(len(ids)), np.zeros(len(ids)), generation.stop_reason), context)

    patch.setattr(ContextBuilder, "sampled", sampled)


def loss_on_observations(patch):
    """Law 2: count observation tokens among the owned sampled ones."""
    mask = cached_property(lambda self: np.isin(self.origins, [Origin.SAMPLED.code, Origin.OBSERVATION.code]))
    mask.__set_name__(Context, "sampled")
    patch.setattr(Context, "sampled", mask)


def swallow(patch):
    """Law 3: a reward falls on the last token of the stream, and an observation there swallows it."""
    from farhorizon.credit import group

    honest = group.on_action_tokens

    def swallowed(trajectory, value):
        ends_in_action = trajectory.contexts[-1].sampled[-1]
        return honest(trajectory, value if ends_in_action else 0.0)

    patch.setattr(group, "on_action_tokens", swallowed)


def score_faults(patch):
    """Law 4: treat what infrastructure broke as an episode of reward zero."""
    patch.setattr(Trajectory, "scored", property(lambda self: True))


def horizon_from_a_counter(patch):
    """Law 5: advance the stage by counting calls, as AgentGym-RL's scheduler does."""
    from farhorizon.tasks.horizon import Stages

    def horizon(self, update, stats):
        self.calls = getattr(self, "calls", -1) + 1
        return self._config.values[min(self.calls // self._config.every, len(self._config.values) - 1)]

    patch.setattr(Stages, "horizon", horizon)


def horizon_as_an_end(patch):
    """Law 5: record running out of turns as an end of the environment's own."""
    from farhorizon.rollout.episode import EpisodePlayer

    honest = EpisodePlayer._play

    async def play(self, task, episode):
        return Status.OK, (await honest(self, task, episode))[1]

    patch.setattr(EpisodePlayer, "_play", play)


def local_denominators(patch):
    """Law 6: divide each micro-batch by its own tokens (verl#3741, open-instruct#1161)."""
    from farhorizon.learners.batch import TrainBatch

    honest = TrainBatch.indices

    def indices(self, items):
        where = honest(self, items)
        self.weights[where] *= len(self.weights) / len(where)
        return where

    patch.setattr(TrainBatch, "indices", indices)


def noise_by_the_clock(patch):
    """Law 7: draw from one generator in the order of asking instead of by key."""
    from farhorizon.engines import local

    generator = np.random.default_rng(0)
    patch.setattr(local, "uniforms", lambda digests, positions: generator.random(len(positions)))


def forgetful_resume(patch):
    """Law 7: lose the optimizer's state on resume."""
    from farhorizon.learners.torch_learner import TorchLearner

    patch.setattr(TorchLearner, "load", lambda self, directory: None)


def train_in_evaluation(patch):
    """Law 8: evaluate with training aids on."""
    from farhorizon.rollout import driver

    honest = driver.Episode
    patch.setattr(driver, "Episode", lambda **fields: honest(**{**fields, "training": True}))


BREAKS = [
    (reencode, "agents/test_append_only.py::test_trl_5224_ids_trained_are_prompt_ids_seen_and_ids_sampled_bit_for_bit"),
    (loss_on_observations, "learners/test_torch_learner.py::test_ragen_71_observation_logits_get_no_gradient"),
    (loss_on_observations, "agents/test_append_only.py::test_skyrl_710_mask_is_one_exactly_on_sampled_ids_the_end_included"),
    (swallow, "credit/test_credit_laws.py::test_agentgym_a2_a_trajectory_ending_in_an_observation_still_rewards_its_actions"),
    (score_faults, "rollout/test_driver.py::test_nemo_gym_1351_environment_that_stays_broken_is_set_aside_never_scored_zero"),
    (score_faults, "learners/test_torch_learner.py::test_nemo_rl_3201_infrastructure_faults_change_no_gradient"),
    (horizon_from_a_counter, "tasks/test_horizon.py::test_agentgym_a1_horizon_is_a_function_of_the_update_alone"),
    (horizon_as_an_end, "rollout/test_driver.py::test_horizon_is_a_truncation_recorded_and_never_a_success"),
    (local_denominators, "learners/test_torch_learner.py::test_open_instruct_1161_gradient_is_the_same_for_any_order_and_micro_batch_split"),
    (noise_by_the_clock, "engines/test_cached_generation.py::test_answers_do_not_depend_on_company_or_order"),
    (forgetful_resume, "learners/test_torch_learner.py::test_a_saved_and_loaded_learner_continues_identically"),
    (train_in_evaluation, "evaluation/test_evaluate.py::test_no_training_aid_reaches_an_evaluation_episode"),
]  # fmt: skip


class Outcomes:
    """Counts what a nested pytest run did."""

    def __init__(self):
        self.passed = self.failed = 0

    def pytest_runtest_logreport(self, report):
        self.failed += report.failed
        self.passed += report.passed and report.when == "call"


def outcomes_of(node, root):
    outcomes = Outcomes()
    arguments = ["-q", "-p", "no:cacheprovider", "--no-header", "--no-summary", "-c", str(root / "pyproject.toml")]
    pytest.main([*arguments, str(root / "tests" / node)], plugins=[outcomes])
    return outcomes


@pytest.mark.parametrize(("broken", "node"), BREAKS, ids=lambda value: getattr(value, "__name__", value))
def test_breaking_a_law_fails_its_test(broken, node, monkeypatch, pytestconfig, capfd):
    broken(monkeypatch)
    outcomes = outcomes_of(node, pytestconfig.rootpath)
    assert outcomes.failed > 0, f"{broken.__doc__} goes unnoticed: {outcomes.passed} passed"


def test_every_law_is_broken_somewhere():
    laws = {broken.__doc__.split(":")[0] for broken, _ in BREAKS}
    assert laws == {f"Law {n}" for n in range(1, 9)}


@pytest.mark.slow
@pytest.mark.parametrize("node", sorted({node for _, node in BREAKS}))
def test_the_same_tests_pass_unbroken(node, pytestconfig, capfd):
    outcomes = outcomes_of(node, pytestconfig.rootpath)
    assert outcomes.passed > 0
    assert outcomes.failed == 0
