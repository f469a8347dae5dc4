"""The loop: roll out, learn, repeat. Everything else is elsewhere.

Evaluation comes before an update's rollouts, so that an interruption at any moment finds the learner exactly
as the last finished update left it.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from farhorizon.config import runtime as config
from farhorizon.core.errors import Interrupted, UserError
from farhorizon.core.ledger import Ledger, Meter
from farhorizon.core.record import Group
from farhorizon.core.rundir import RunDirectory
from farhorizon.core.store import write_update
from farhorizon.engines.base import Sampling
from farhorizon.evaluation.evaluate import Evaluation, chosen_tasks, evaluate
from farhorizon.rollout.driver import Circumstances
from farhorizon.rollout.metrics import rollout_metrics
from farhorizon.runtime.assemble import Parts
from farhorizon.runtime.checkpoint import Checkpoints
from farhorizon.runtime.interrupt import StopSignal
from farhorizon.runtime.report import Reporter
from farhorizon.runtime.tracking import Tracker


class Synchronous:
    """Trains from `finished` updates to `max_updates`."""

    def __init__(
        self,
        config: config.Synchronous,
        *,
        parts: Parts,
        run: RunDirectory,
        stop: StopSignal,
        report: Reporter,
        meter: Meter,
    ) -> None:
        self._config, self._parts, self._run, self._stop, self._report = config, parts, run, stop, report
        self._meter = meter
        self._checkpoints = Checkpoints(run, parts, report)
        self._loop = asyncio.Runner()
        self._learning = False

    def train(self) -> None:
        """Run the loop to its end.

        Raises:
            Interrupted: a stop was asked for; the last finished update is saved.
        """
        finished = self._checkpoints.restore()
        with self._loop, Tracker(self._run, finished) as self._tracker:
            try:
                while finished < self._config.max_updates:
                    self._evaluate(finished)
                    self._update(finished)
                    finished += 1
                    if finished % self._config.checkpoint_every == 0:
                        self._checkpoints.save(finished)
                self._evaluate(finished)
                self._checkpoints.save(finished)
            except (Interrupted, UserError):
                # Neither leaves the learner in the middle of an update, unless it says so itself.
                if not self._learning:
                    self._checkpoints.save(finished)
                raise
            finally:
                self._parts.engine.close()

    def _update(self, update: int) -> None:
        parts, began = self._parts, time.perf_counter()
        horizon = parts.horizon.horizon(update, parts.stats)
        groups = parts.reward(self._roll_out(update, horizon))
        rolled = time.perf_counter()
        self._report.begin("learning", 0)
        metrics, arrays = self._learn(groups, update)
        parts.engine.load_weights(parts.learner.weights(), update + 1)
        parts.stats.add(groups, update)
        parts.ledger.add(groups)
        times = {"time/rollout": rolled - began, "time/learn": time.perf_counter() - rolled}
        self._record(update, groups, arrays, {"horizon": float(horizon), **metrics, **times})

    def _learn(self, groups: list[Group], update: int) -> tuple[dict[str, float], Mapping[Any, Mapping[str, Any]]]:
        """An update of the learner; an interruption leaves it untouched, any other failure may not."""
        self._learning = True
        try:
            learned = self._parts.learner.update(groups, update)
        except Interrupted:
            self._learning = False
            raise
        self._learning = False
        return learned

    def _roll_out(self, update: int, horizon: int) -> list[Group]:
        """Enough groups for the update: those in which nothing can be used are asked for again, within bounds."""
        tasks, asked = self._parts.tasks, 0
        kept: list[Group] = []
        given = Circumstances(
            "rollout", update, horizon, Sampling(self._parts.recipe.sampling.temperature), version=update
        )
        for _ in range(self._parts.recipe.rollout.max_attempts):
            missing = tasks.groups - sum(bool(group.scored) for group in kept)
            if missing == 0:
                break
            assignments = tasks.next(missing, self._parts.stats, update, asked)
            self._report.begin(f"update {update}: rolling out", sum(a.size for a in assignments))
            kept += self._play(assignments, given, asked)
            asked += len(assignments)
        if not any(group.scored for group in kept):
            raise UserError(f"update {update}: no episode could be used; the last fault: {kept[-1].short_reason}")
        return kept

    def _play(self, assignments: list[Any], given: Circumstances, first: int) -> list[Group]:
        given = replace(given, first_group=first)
        work = self._parts.driver.groups(assignments, given, lambda _: self._report.advance())
        return self._loop.run(self._stop.guard(work))

    def _record(
        self,
        update: int,
        groups: list[Group],
        arrays: Mapping[Any, Mapping[str, Any]],
        metrics: dict[str, float],
    ) -> None:
        metrics |= rollout_metrics(groups) | self._parts.stats.metrics() | self._parts.ledger.metrics()
        metrics |= self._parts.engine.metrics()
        metrics["perf/sampled_tokens_per_second"] = metrics.get("tokens/sampled", 0.0) / metrics["time/rollout"]
        write_update(self._run.trajectories, update, groups, arrays)
        self._tracker.log(update, "train", metrics | self._meter.lap())
        self._report.updated(update, metrics)

    def _evaluate(self, finished: int) -> None:
        """Evaluate when due: before the first update, after the last, and every `eval.every` between."""
        recipe, parts = self._parts.recipe, self._parts
        ends = finished in (0, self._config.max_updates)
        if not ends and (recipe.eval.every == 0 or finished % recipe.eval.every):
            return
        self._stop.check()
        began = time.perf_counter()
        tasks = chosen_tasks(parts.world.tasks(recipe.eval.split), recipe.eval.tasks)
        temperature = recipe.eval.temperature
        given = Circumstances(
            "eval",
            finished,
            recipe.eval.horizon or parts.horizon.longest,
            Sampling(recipe.sampling.temperature if temperature is None else temperature),
            finished,
            training=False,
        )
        self._report.begin("evaluating", len(tasks) * recipe.eval.samples)
        work = evaluate(parts.driver, tasks, recipe.eval.samples, given, lambda _: self._report.advance())
        evaluation: Evaluation = self._loop.run(self._stop.guard(work))
        parts.engine.metrics()
        write_update(self._run.evaluations, finished, evaluation.groups)
        counted = Ledger()
        counted.add(evaluation.groups)
        metrics = evaluation.metrics() | {f"eval/{name}": value for name, value in counted.metrics().items()}
        metrics |= {"time/eval": time.perf_counter() - began, **self._meter.lap()}
        self._tracker.log(finished, "eval", metrics)
        if evaluation.overall.trials:
            self._checkpoints.keep_if_best(finished, evaluation.overall.rate)
        self._report.evaluated(finished, evaluation)
