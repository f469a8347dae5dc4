"""Gradient descent with AdamW on one device, or data-parallel over the ranks of `torch.distributed`.

An update is: credit -> batch -> (score the start of the update and the reference) -> for each optimizer step:
micro-batches forward and backward, gradients summed over ranks, clipped, applied. Every rank is called with
the same groups, plans the same micro-batches and trains its share of them; denominators are global, so one
rank or several, and any micro-batch split, have the same gradient (law 6).
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from farhorizon.config.learner import AdamW
from farhorizon.core.errors import Interrupted, UserError
from farhorizon.core.record import Context, ContextKey, Group
from farhorizon.credit.base import CreditAssignment
from farhorizon.learners import checkpoint, ranks
from farhorizon.learners.batch import Item, MicroBatch, TrainBatch, microbatches, policy_batch, supervised_batch
from farhorizon.learners.forward import action_logps
from farhorizon.learners.tally import Tally
from farhorizon.models.dtypes import compute_dtype
from farhorizon.models.packed import Packable, PackedTree
from farhorizon.objectives.base import ActionTokens, Objective
from farhorizon.objectives.cross_entropy import CrossEntropy

Arrays = dict[ContextKey, dict[str, NDArray[np.float32]]]
"""What an update adds to the record: context -> name -> `[tokens]`, NaN where there is no action token."""

Metrics = dict[str, float]


@dataclass(frozen=True, eq=False)
class Scores:
    """Log-probabilities fixed before the first optimizer step, each `[action tokens of the batch]`."""

    prox: Tensor | None
    """The learner's at the start of the update; None where it is one step and the current ones serve."""
    ref: Tensor | None
    """The reference's; None where the objective has no use for them."""


class TorchLearner:
    """Trains `model` in place. Not thread-safe; dropout is off, since it would break ratios of one."""

    def __init__(
        self,
        config: AdamW,
        *,
        model: nn.Module,
        temperature: float,
        objective: Objective | None = None,
        credit: CreditAssignment | None = None,
        reference: nn.Module | None = None,
        check_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            config: the `[learner]` table.
            model: Hugging Face causal language model with farhorizon's attention and fp32 weights.
            temperature: the sampling temperature, by which logits are divided.
            objective: per-token terms and denominator; needed by `update`.
            credit: groups to advantages; needed by `update`.
            reference: frozen model of the same kind, where the objective needs `logp_ref`.
            check_stop: polled between micro-batches until the update's first optimizer step; raises
                `Interrupted` to abandon the update with the weights untouched. With several ranks, one rank's
                is enough.
        """
        if temperature <= 0:
            raise ValueError(f"log-probabilities at temperature {temperature} do not exist")
        if objective is not None and "logp_ref" in objective.needs and reference is None:
            raise UserError("[objective.kl] has a coefficient, but no reference model is loaded; set it to 0?")
        self._config, self._temperature, self._check_stop = config, temperature, check_stop
        self._objective, self._credit = objective, credit
        self.model, self._reference = model.eval(), reference.eval() if reference is not None else None
        self._device = next(model.parameters()).device
        self._dtype = compute_dtype(config.dtype, self._device)
        self._names = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
        self._optimizer = torch.optim.AdamW(
            list(self._names.values()),
            lr=config.learning_rate,
            betas=config.betas,
            eps=config.eps,
            weight_decay=config.weight_decay,
            fused=self._device.type in ("cpu", "cuda"),
        )
        self._steps = 0

    def update(self, groups: Sequence[Group], update: int) -> tuple[Metrics, Arrays]:
        """Learn from one update's groups.

        An optimizer step whose every advantage is zero, under an objective that then has no gradient, is left
        out altogether, since AdamW's momentum would still move the weights; `learner/steps_skipped` counts it.

        Args:
            groups: the same on every rank.
            update: its number, from 0.

        Returns:
            Metrics, and for each context with action tokens `advantage`, `logp` (the learner's at the start of
            the update) and `logp_ref`, the last two where they were computed; the same on every rank.

        Raises:
            UserError: there is no action token to learn from, or the gradient is not finite.
            Interrupted: by `check_stop`; nothing has changed.
        """
        if self._objective is None or self._credit is None:
            raise ValueError("this learner was built without an objective or credit: supervised steps alone")
        credit = self._credit(groups)
        batch = policy_batch(
            groups,
            credit.advantages,
            self._objective.weights,
            steps=self._config.steps_per_update,
            skip_silent=self._objective.silent_without_advantage,
        )
        if not batch.items:
            raise UserError(_nothing_to_learn_from(groups, update))
        metrics, logp, scores = self._train(batch, self._objective, update)
        known = {"logp": logp} if scores.ref is None else {"logp": logp, "logp_ref": scores.ref}
        computed = {item.key for step in batch.steps for item in step}
        arrays: Arrays = {}
        for item in batch.items:
            named = {"advantage": batch.advantages, **(known if item.key in computed else {})}
            span = slice(item.start, item.stop)
            arrays[item.key] = {name: item.on_tokens(values[span].numpy()) for name, values in named.items()}
        return {**credit.metrics, **metrics}, arrays

    def supervised_step(self, contexts: Sequence[Context], update: int) -> Metrics:
        """One optimizer step of token cross-entropy on the sampled and demonstrated tokens that the contexts
        own, under softmax(logits / temperature). The mean over tokens is reported as `learner/loss`."""
        objective = CrossEntropy()
        batch = supervised_batch(contexts, objective.weights)
        if not batch.items:
            raise UserError(f"update {update}: no context holds a demonstrated or sampled token to learn from")
        return self._train(batch, objective, update)[0]

    def score(self, items: Sequence[Packable], model: nn.Module | None = None) -> list[NDArray[np.float32]]:
        """Log-probabilities of the marked tokens of each `(token ids, mask)`, `[marked tokens]` each, under a
        model (the trained one unless given), at the sampling temperature."""
        stops = np.cumsum([0, *(mask.sum() for _, mask in items)])
        made = [
            Item((0, 0, index), ids, mask, int(stops[index]), int(stops[index + 1]))
            for index, (ids, mask) in enumerate(items)
            if mask.any()
        ]
        logps = torch.zeros(int(stops[-1]))
        for micro in microbatches(made, self._config.tokens_per_microbatch)[0]:
            self._score_into(logps, micro, model if model is not None else self.model)
        return [logps[start:stop].numpy() for start, stop in pairwise(stops)]

    def weights(self) -> dict[str, Tensor]:
        """The model's current weights by name, for an engine to copy; they change with the next update."""
        return {name: tensor.detach() for name, tensor in self.model.state_dict().items()}

    def state_dict(self) -> dict[str, Any]:
        """`steps` taken, and AdamW's state as `tensors` (`parameter.field` -> tensor), without the weights."""
        return {"steps": self._steps, "tensors": checkpoint.optimizer_tensors(self._optimizer, self._names)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._steps = int(state["steps"])
        checkpoint.load_optimizer_tensors(self._optimizer, self._names, state["tensors"])

    def save(self, directory: Path) -> None:
        """Write the state to `learner.json` and `learner.safetensors` in an existing directory."""
        checkpoint.save(directory, self.state_dict())

    def load(self, directory: Path) -> None:
        """Restore what `save` wrote."""
        self.load_state_dict(checkpoint.load(directory))

    def _train(self, batch: TrainBatch, objective: Objective, update: int) -> tuple[Metrics, Tensor, Scores]:
        """All optimizer steps of an update: metrics, the learner's log-probabilities at its start, scores."""
        began = time.perf_counter()
        self._set_learning_rate(update)
        plans = [microbatches(step, self._config.tokens_per_microbatch, ranks.count()) for step in batch.steps]
        mine = [plan[ranks.rank()] for plan in plans]
        scores = Scores(
            prox=self._scored(batch, mine, self.model) if len(plans) > 1 else None,
            ref=self._scored(batch, mine, self._reference) if "logp_ref" in objective.needs else None,
        )
        logp, tally = torch.zeros(len(batch.advantages)), Tally()
        losses: list[float] = []
        norms: list[float] = []
        for step, share in zip(batch.steps, mine, strict=True):
            if not step:
                continue
            loss, norm = self._step(batch, share, objective, scores, logp, tally, update, may_stop=not norms)
            losses.append(loss)
            norms.append(norm)
        logp = scores.prox if scores.prox is not None else ranks.sum_(logp)
        live = [item for step in batch.steps for item in step]
        computed = sum(micro.computed for plan in plans for share in plan for micro in share)
        metrics = {
            "learner/learning_rate": self._optimizer.param_groups[0]["lr"],
            "learner/loss": float(np.mean(losses)) if losses else 0.0,
            "learner/grad_norm": float(np.mean(norms)) if norms else 0.0,
            "learner/steps": float(len(norms)),
            "learner/steps_skipped": float(len(plans) - len(norms)),
            "learner/microbatches": float(sum(len(share) for plan in plans for share in plan)),
            "learner/contexts": float(len(batch.items)),
            "learner/contexts_skipped": float(batch.skipped),
            "learner/action_tokens": float(len(batch.advantages)),
            "learner/action_tokens_per_trajectory": len(batch.advantages) / batch.trajectories,
            "learner/context_tokens": float(sum(len(item.token_ids) for item in live)),
            "learner/computed_tokens": float(computed),
            "perf/learner_tokens_per_second": computed / (time.perf_counter() - began),
        }
        return metrics | tally.reduced(), logp, scores

    def _step(
        self,
        batch: TrainBatch,
        share: Sequence[MicroBatch],
        objective: Objective,
        scores: Scores,
        logp: Tensor,
        tally: Tally,
        update: int,
        *,
        may_stop: bool,
    ) -> tuple[float, float]:
        """One optimizer step: this rank's micro-batches, then all ranks together. Loss and gradient norm."""
        total = torch.zeros((), dtype=torch.float64)

        def forward_backward(micro: MicroBatch) -> None:
            where = batch.indices(micro.items)
            current = self._logps(self.model, micro)
            detached = current.detach()
            tokens = ActionTokens(
                logp=current,
                logp_prox=detached if scores.prox is None else scores.prox[where].to(current),
                logp_behaviour=batch.logp_behaviour[where].to(current),
                advantages=batch.advantages[where].to(current),
                trajectory=batch.trajectory[where].to(self._device),
                logp_ref=None if scores.ref is None else scores.ref[where].to(current),
            )
            terms = objective(tokens)
            loss = (terms.loss * batch.weights[where].to(terms.loss)).sum()
            loss.backward()
            logp[where] = detached.float().cpu()
            total.add_(loss.detach().double().cpu())
            tally.add(terms)

        try:
            self._run(share, forward_backward, may_stop)
            if ranks.count() > 1:
                for parameter in self._names.values():
                    own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                    parameter.grad = ranks.sum_(own)
            norm = float(nn.utils.clip_grad_norm_(self._names.values(), self._config.max_grad_norm))
            if not math.isfinite(norm):
                raise UserError(
                    f"update {update}: the gradient norm is {norm}, the step was not taken; lower [learner] "
                    "learning_rate or look for broken rewards"
                )
            self._optimizer.step()
        finally:
            self._optimizer.zero_grad(set_to_none=True)
        self._steps += 1
        return float(ranks.sum_(total)), norm

    def _scored(self, batch: TrainBatch, steps: Sequence[Sequence[MicroBatch]], model: nn.Module | None) -> Tensor:
        """Log-probabilities of all computed action tokens under a model, zero elsewhere, `[action tokens]`."""
        assert model is not None
        logps = torch.zeros(len(batch.advantages))
        mine = [micro for step in steps for micro in step]
        self._run(mine, lambda micro: self._score_into(logps, micro, model), may_stop=True)
        return ranks.sum_(logps)

    def _score_into(self, logps: Tensor, micro: MicroBatch, model: nn.Module) -> None:
        with torch.no_grad():
            where = torch.cat([torch.arange(item.start, item.stop) for item in micro.items])
            logps[where] = self._logps(model, micro).float().cpu()

    def _logps(self, model: nn.Module, micro: MicroBatch) -> Tensor:
        tree = PackedTree([item.packable for item in micro.items], self._device)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._dtype is torch.bfloat16):
            return action_logps(model, tree, self._temperature)

    def _run(self, share: Sequence[MicroBatch], work: Callable[[MicroBatch], None], may_stop: bool) -> None:
        """Work on this rank's micro-batches. A stop asked for on any rank is raised on all, together."""
        stop: Interrupted | None = None
        for micro in share:
            try:
                if may_stop:
                    self._check_stop()
            except Interrupted as asked:
                stop = asked
                break
            work(micro)
        if may_stop and ranks.any_rank(stop is not None):
            raise stop or Interrupted("another rank was asked to stop")

    def _set_learning_rate(self, update: int) -> None:
        share = min(1.0, (update + 1) / (self._config.warmup_updates + 1))
        for group in self._optimizer.param_groups:
            group["lr"] = self._config.learning_rate * share


def _nothing_to_learn_from(groups: Sequence[Group], update: int) -> str:
    first = next((trajectory for group in groups for trajectory in group.trajectories), None)
    if first is None:
        return f"update {update}: there are no trajectories to learn from"
    return (
        f"update {update}: no scored trajectory holds a sampled token to learn from; the first, {first.id}, is "
        f"{first.status} and stopped by {first.stop_reason}; look at it with `farhorizon show`, and check "
        "prompt length and token limits"
    )
