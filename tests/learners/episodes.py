"""Made-up records and a micro model for tests of credit, objectives and learners."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import farhorizon.models.attention  # noqa: F401  (registers the attention)
from farhorizon.core.record import (
    Call,
    Context,
    Group,
    Origin,
    Reward,
    Segment,
    Span,
    Status,
    StopReason,
    Task,
    Trajectory,
    Turn,
)

VOCABULARY = 64
TASK = Task("goal", "made-up", "train")
ORIGIN = {
    "t": Origin.TEMPLATE,
    "o": Origin.OBSERVATION,
    "h": Origin.HINT,
    "p": Origin.PREFIX,
    "d": Origin.DEMONSTRATED,
    "a": Origin.SAMPLED,
}


def context(pattern: str, seed: int = 0, prompt: int = 0, **fields) -> Context:
    """A context of random tokens, one letter of `ORIGIN` each. Contexts of the same `prompt` seed begin with
    the same tokens up to the first action."""
    fixed, free = np.random.default_rng(prompt), np.random.default_rng([seed, 1])
    started, segments = False, []
    for letter, run in groupby(pattern):
        length = len(list(run))
        started = started or letter in "ad"
        rng = free if started else fixed
        ids = rng.integers(0, VOCABULARY, length)
        extra = (
            {"logp_behaviour": -4 - rng.random(length) / 4, "policy_version": np.zeros(length)} if letter == "a" else {}
        )
        segments.append(Segment(ORIGIN[letter], ids, **extra))
    return Context(tuple(segments), **fields)


def calls(index: int, context: Context) -> list[Call]:
    """One call per run of owned sampled tokens."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], context.sampled.astype(int), [0]])))
    spans = edges.reshape(-1, 2).tolist()
    return [Call("act", "policy", Span(index, a, b), {"temperature": 1.0}, StopReason.STOP) for a, b in spans]


def trajectory(*contexts: Context | str, reward: float = 0.0, id: str = "0/0/0", seed: int = 0, **fields) -> Trajectory:
    """One turn per run of sampled tokens; the reward belongs to the whole unless `rewards` are given."""
    made = tuple(context(c, seed) if isinstance(c, str) else c for c in contexts)
    turns = tuple(Turn("see", "do", "do", calls=(call,)) for i, c in enumerate(made) for call in calls(i, c))
    defaults = {
        "rewards": (Reward("environment", reward),),
        "status": Status.OK,
        "stop_reason": StopReason.TERMINATED,
        "success": reward > 0,
        "turns": turns,
    }
    return Trajectory(id=id, task=TASK, contexts=made, seed=seed, group_seed=0, horizon=9, **(defaults | fields))


def group(members: Sequence[Trajectory], index: int = 0) -> Group:
    return Group(f"0/{index}", TASK, tuple(members), 0, 0, len(members))


def batch(groups: int = 3, members: int = 4, seed: int = 0) -> list[Group]:
    """Groups that share a prompt each, members of different lengths, some with two contexts, rewards 0 or 1."""
    rng = np.random.default_rng(seed)
    made = []
    for g in range(groups):
        prompt = "t" * 6 + "o" * int(rng.integers(2, 5))
        rows = []
        for m in range(members):
            pattern = prompt + "".join("a" * int(rng.integers(1, 5)) + "o" * int(rng.integers(1, 4)) for _ in range(3))
            number = int(rng.integers(2**31))
            contexts = [context(pattern, number, prompt=g)]
            if m == 1:
                contexts.append(context(prompt + "oaaa", number + 1, prompt=g))
            rows.append(trajectory(*contexts, reward=float((m + g) % 2), id=f"0/{g}/{m}", seed=number))
        made.append(group(rows, g))
    return made


def micro(seed: int = 0, dtype: torch.dtype = torch.float32, attention: str = "farhorizon") -> LlamaForCausalLM:
    """A two-layer random Llama with grouped-query attention; weights large enough for a lively softmax."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        initializer_range=0.2,
        max_position_embeddings=512,
        attn_implementation=attention,
    )
    return LlamaForCausalLM(config).to(dtype)


def gradients(model: torch.nn.Module) -> torch.Tensor:
    """All gradients, `[parameters]`."""
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
