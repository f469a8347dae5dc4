"""Each law's break, applied by monkeypatch, fails that law's test: the tests can fail."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import pytest

from farhorizon.core.record import Context, Origin, Trajectory

TESTS = "tests"


class Outcomes:
    """Counts what a nested pytest run did."""

    def __init__(self) -> None:
        self.passed = self.failed = 0

    def pytest_runtest_logreport(self, report) -> None:
        if report.when == "call" or report.failed:
            self.passed += report.passed and report.when == "call"
            self.failed += report.failed


def run(node: str) -> Outcomes:
    outcomes = Outcomes()
    pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", "--no-summary", f"{TESTS}/{node}"], plugins=[outcomes])
    return outcomes


def reencode(monkeypatch) -> None:
    """Train on what the text encodes to instead of on what was sampled."""
    from toys import ToyTokenizer

    from farhorizon.agents.base import ContextBuilder
    from farhorizon.engines.base import Generation

    honest, tokenizer = ContextBuilder.sampled, ToyTokenizer()

    def sampled(self, generation, context):
        ids = tokenizer(tokenizer.decode(generation.token_ids))["input_ids"]
        again = Generation(np.array(ids), np.zeros(len(ids)), np.zeros(len(ids)), generation.stop_reason)
        return honest(self, again, context)

    monkeypatch.setattr(ContextBuilder, "sampled", sampled)


def loss_on_observations(monkeypatch) -> None:
    """Count observation tokens among the owned sampled ones."""
    codes = [Origin.SAMPLED.code, Origin.OBSERVATION.code]
    mask = cached_property(lambda self: np.isin(self.origins, codes))
    mask.__set_name__(Context, "sampled")
    monkeypatch.setattr(Context, "sampled", mask)


def reward_on_the_last_token(monkeypatch) -> None:
    """Put the reward on the last token of the stream, and let observations swallow it (AgentGym-RL's PPO)."""
    from farhorizon.credit import base, group

    honest = base.on_action_tokens if hasattr(base, "on_action_tokens") else None
    assert honest is not None

    def swallowed(trajectory, *args, **kwargs):
        result = honest(trajectory, *args, **kwargs)
        ends_in_observation = any(len(c) and not c.sampled[-1] for c in trajectory.contexts)
        return (
            {key: array * 0 if ends_in_observation else array for key, array in result.items()}
            if isinstance(result, dict)
            else [a * (not ends_in_observation) for a in result]
        )

    monkeypatch.setattr(base, "on_action_tokens", swallowed)
    monkeypatch.setattr(group, "on_action_tokens", swallowed)


def score_faults(monkeypatch) -> None:
    """Treat what infrastructure broke as an episode of reward zero."""
    monkeypatch.setattr(Trajectory, "scored", property(lambda self: True))


def horizon_from_a_counter(monkeypatch) -> None:
    """Advance the stage by counting calls, as AgentGym-RL's scheduler does."""
    from farhorizon.tasks.horizon import Stages

    def horizon(self, update, stats):
        self.calls = getattr(self, "calls", -1) + 1
        config = self._config
        return config.values[min(self.calls // config.every, len(config.values) - 1)]

    monkeypatch.setattr(Stages, "horizon", horizon)


def horizon_as_an_end(monkeypatch) -> None:
    """Record the horizon as an end of the environment's own."""
    from farhorizon.rollout import episode

    class Ended(episode.Status):  # type: ignore[misc]
        pass

    monkeypatch.setattr(episode.EpisodePlayer, "_play", _ending_ok(episode.EpisodePlayer._play))


def _ending_ok(honest: Callable) -> Callable:
    from farhorizon.core.record import Status

    async def play(self, task, given):
        _, reason = await honest(self, task, given)
        return Status.OK, reason

    return play
