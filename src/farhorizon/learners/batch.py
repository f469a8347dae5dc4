"""From groups to what the learner computes: items, optimizer steps, weights and micro-batches.

Everything here is fixed before any forward, from the groups alone, and the same on every rank.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from farhorizon.core.record import Context, ContextKey, Group, Origin
from farhorizon.models.packed import Packable
from farhorizon.models.tokens import common_prefix

Weights = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""Action tokens of each trajectory of a step -> weight of each of its tokens, both `[trajectories]`."""


@dataclass(frozen=True, eq=False)
class Item:
    """One context to train on, and where its action tokens sit in the batch's arrays."""

    key: ContextKey
    """(group, trajectory, context)."""
    token_ids: NDArray[np.int32]
    """`[tokens]`."""
    trainable: NDArray[np.bool_]
    """The action tokens, `[tokens]`."""
    start: int
    """Index of its first action token in the batch's arrays."""
    stop: int
    """One past its last."""

    @property
    def packable(self) -> Packable:
        """What packing needs to know."""
        return self.token_ids, self.trainable

    def on_tokens(self, values: NDArray[np.floating]) -> NDArray[np.float32]:
        """Values of its action tokens as an array over all its tokens, NaN elsewhere, `[tokens]`."""
        spread = np.full(len(self.token_ids), np.nan, dtype=np.float32)
        spread[self.trainable] = values
        return spread


@dataclass(frozen=True, eq=False)
class TrainBatch:
    """An update's action tokens, packed: contexts one after another, each array `[action tokens]`."""

    items: tuple[Item, ...]
    """Contexts with at least one action token."""
    steps: tuple[tuple[Item, ...], ...]
    """The items each optimizer step has to compute; those that would add exactly nothing are left out."""
    trajectory: Tensor
    """Index of each token's trajectory within the update, int64."""
    advantages: Tensor
    """From credit, float64."""
    logp_behaviour: Tensor
    """The sampler's log-probabilities, float32."""
    weights: Tensor
    """What each token counts for in its step: the denominator, float64."""

    @property
    def skipped(self) -> int:
        """Contexts left out of every step; they count in the denominators all the same."""
        return len(self.items) - sum(len(step) for step in self.steps)

    @property
    def trajectories(self) -> int:
        """Trajectories with at least one action token."""
        return len(self.trajectory.unique())

    def indices(self, items: Sequence[Item]) -> Tensor:
        """Positions of the items' action tokens in the batch's arrays, in a `PackedTree`'s order."""
        return torch.cat([torch.arange(item.start, item.stop) for item in items])


def policy_batch(
    groups: Sequence[Group],
    advantages: Mapping[ContextKey, NDArray[np.float64]],
    weights: Weights,
    *,
    steps: int,
    skip_silent: bool,
) -> TrainBatch:
    """The batch of an RL update: loss on owned sampled tokens of scored trajectories, nothing else.

    Args:
        groups: the update's groups.
        advantages: from credit.
        weights: the objective's denominator.
        steps: optimizer steps, each of whole groups and of about as many; there are no more steps than groups.
        skip_silent: leave contexts whose every advantage is zero out of the steps.
    """
    contexts = [
        ((g, t, c), context, context.sampled)
        for g, group in enumerate(groups)
        for t, trajectory in enumerate(group.trajectories)
        if trajectory.scored
        for c, context in enumerate(trajectory.contexts)
        if context.sampled.any()
    ]
    parts = np.array_split(np.arange(len(groups)), steps)
    step_of = {int(g): step for step, part in enumerate(parts) for g in part}
    scale = np.array([groups[key[0]].weight for key, _, _ in contexts])
    return _batch(contexts, step_of, weights, advantages, skip_silent, scale)


def supervised_batch(contexts: Sequence[Context], weights: Weights) -> TrainBatch:
    """The batch of a supervised step: loss on owned sampled and demonstrated tokens (law 2)."""
    codes = [Origin.SAMPLED.code, Origin.DEMONSTRATED.code]
    masks = [np.isin(context.origins, codes) for context in contexts]
    for context, mask in zip(contexts, masks, strict=True):
        mask[: context.parent.length if context.parent else 0] = False
    rows = [((0, i, 0), c, m) for i, (c, m) in enumerate(zip(contexts, masks, strict=True)) if m.any()]
    return _batch(rows, {0: 0}, weights, None, skip_silent=False, scale=np.ones(len(rows)))


def _batch(
    contexts: Sequence[tuple[ContextKey, Context, NDArray[np.bool_]]],
    step_of: Mapping[int, int],
    weights: Weights,
    advantages: Mapping[ContextKey, NDArray[np.float64]] | None,
    skip_silent: bool,
    scale: NDArray[np.float64],
) -> TrainBatch:
    items: list[Item] = []
    credit, behaviour, trajectory = [np.zeros(0)], [np.zeros(0, np.float32)], [np.zeros(0, np.int64)]
    numbers: dict[tuple[int, int], int] = {}
    scales: dict[tuple[int, int], float] = {}
    for (key, context, mask), weighs in zip(contexts, scale, strict=True):
        scales[key[:2]] = weighs
        start = items[-1].stop if items else 0
        items.append(Item(key, context.token_ids, mask, start, start + int(mask.sum())))
        credit.append(np.zeros(mask.sum()) if advantages is None else advantages[key])
        behaviour.append(context.logp_behaviour[mask])
        trajectory.append(np.full(mask.sum(), numbers.setdefault(key[:2], len(numbers))))
    trajectories, credits = np.concatenate(trajectory), np.concatenate(credit)
    if credits.shape != trajectories.shape:
        raise ValueError(f"credit gave {len(credits)} advantages for {len(trajectories)} action tokens")
    lengths = np.bincount(trajectories, minlength=len(numbers))
    steps = np.array([step_of[group] for group, _ in numbers], dtype=np.int64)
    weight = np.zeros(len(numbers))
    chosen = []
    for step in np.unique(steps):
        weight[steps == step] = weights(lengths[steps == step])
        members = [item for item in items if step_of[item.key[0]] == step]
        chosen.append(tuple(i for i in members if not skip_silent or credits[i.start : i.stop].any()))
    # A group's weight scales its terms; the denominator stays what the lengths say.
    weight *= np.array([scales[number] for number in numbers])
    return TrainBatch(
        items=tuple(items),
        steps=tuple(chosen),
        trajectory=torch.from_numpy(trajectories),
        advantages=torch.from_numpy(credits),
        logp_behaviour=torch.from_numpy(np.concatenate(behaviour)),
        weights=torch.from_numpy(weight[trajectories]),
    )


@dataclass(frozen=True, eq=False)
class MicroBatch:
    """Items computed in one forward and backward pass."""

    items: tuple[Item, ...]
    """In the order of the batch."""
    computed: int
    """Tokens computed, shared trunks counted once."""


def microbatches(items: Sequence[Item], budget: int, ranks: int = 1) -> list[list[MicroBatch]]:
    """Split an optimizer step into micro-batches, and those among ranks.

    A group stays together where it fits; a context that alone exceeds the budget is a micro-batch of its own.

    Args:
        items: what the step has to compute, ordered by group.
        budget: most computed tokens of a micro-batch.
        ranks: how many ranks share the work; micro-batches get no larger than an even share of it.

    Returns:
        The micro-batches of each rank, `[ranks]`.
    """
    if ranks > 1:
        total = sum(micro.computed for micro in _packed(items, budget))
        budget = min(budget, -(-total // ranks))
    shares: list[list[MicroBatch]] = [[] for _ in range(ranks)]
    for micro in sorted(_packed(items, budget), key=lambda micro: -micro.computed):
        min(shares, key=lambda share: sum(m.computed for m in share)).append(micro)
    return [sorted(share, key=lambda micro: micro.items[0].start) for share in shares]


def _packed(items: Sequence[Item], budget: int) -> list[MicroBatch]:
    groups: dict[int, list[Item]] = {}
    for item in items:
        groups.setdefault(item.key[0], []).append(item)
    done: list[MicroBatch] = []
    current: list[Item] = []
    used = 0

    def close() -> None:
        nonlocal current, used
        if current:
            done.append(MicroBatch(tuple(current), used))
        current, used = [], 0

    for group in groups.values():
        if used + _added(group, current) > budget:
            close()
        for item in group:
            if used + _added([item], current) > budget:
                close()
            used += _added([item], current)
            current.append(item)
    close()
    return done


def _added(items: Sequence[Item], present: Sequence[Item]) -> int:
    """Tokens that computing `items` adds to computing `present`."""
    seen, added = list(present), 0
    for item in items:
        shared = max((common_prefix(item.token_ids, other.token_ids) for other in seen), default=0)
        added += len(item.token_ids) - shared
        seen.append(item)
    return added
