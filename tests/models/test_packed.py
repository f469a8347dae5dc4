"""Shared trunks, no padding: the same log-probabilities and gradients as separate forward passes (law 6)."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learners.episodes import VOCABULARY, gradients, micro

from farhorizon.learners.forward import action_logps
from farhorizon.models.packed import PackedTree
from farhorizon.models.tokens import common_prefix

MODEL, PLAIN = micro(), micro(attention="eager")


@st.composite
def forests(draw):
    """Contexts over three tokens, so that prefixes coincide often, each with some trainable tokens after its
    first."""
    contexts = []
    for _ in range(draw(st.integers(1, 7))):
        kept = draw(st.integers(0, len(contexts[-1][0]))) if contexts else 0
        trunk = contexts[-1][0][:kept].tolist() if contexts else []
        tokens = trunk + draw(st.lists(st.integers(0, 2), min_size=2, max_size=12))
        first = draw(st.integers(1, len(tokens)))
        rest = draw(st.lists(st.booleans(), min_size=len(tokens) - first, max_size=len(tokens) - first))
        contexts.append((np.array(tokens, dtype=np.int32), np.array([False] * first + rest)))
    return contexts


def separate(contexts, coefficients):
    """Log-probabilities and gradients of one plain forward pass per context, eager attention, full head."""
    PLAIN.zero_grad()
    pieces = []
    for tokens, mask in contexts:
        ids = torch.from_numpy(tokens.astype(np.int64))
        logps = PLAIN(input_ids=ids[None]).logits[0].float().div(0.7).log_softmax(-1)
        rows = torch.from_numpy(np.flatnonzero(mask))
        pieces.append(logps[rows - 1, ids[rows]])
    logps = torch.cat(pieces)
    (logps * coefficients).sum().backward()
    return logps.detach(), gradients(PLAIN)


def packed(contexts, coefficients):
    MODEL.zero_grad()
    logps = action_logps(MODEL, PackedTree(contexts), 0.7)
    (logps * coefficients).sum().backward()
    return logps.detach(), gradients(MODEL)


def close(a, b):
    scale = max(b.abs().max().item(), 1e-3)
    assert (a - b).abs().max().item() <= 1e-5 * scale


@settings(max_examples=60, deadline=None)
@given(forests())
def test_shared_equals_separate(contexts):
    trainable = sum(int(mask.sum()) for _, mask in contexts)
    if trainable == 0:
        return
    coefficients = torch.linspace(-1, 2, trainable)
    for ours, theirs in zip(packed(contexts, coefficients), separate(contexts, coefficients), strict=True):
        close(ours, theirs)


@settings(max_examples=60, deadline=None)
@given(forests())
def test_each_distinct_prefix_is_computed_once_and_each_distinct_prediction_made_once(contexts):
    tree = PackedTree(contexts)
    prefixes = {tuple(tokens[: n + 1]) for tokens, _ in contexts for n in range(len(tokens))}
    predictions = {tuple(tokens[: n + 1]) for tokens, mask in contexts for n in np.flatnonzero(mask)}
    assert len(tree) == len(prefixes)
    assert len(tree.targets) == len(predictions)
    targets = np.concatenate([tokens[mask] for tokens, mask in contexts])
    assert tree.targets[tree.places].tolist() == targets.tolist()
    positions = np.concatenate([np.flatnonzero(mask) for _, mask in contexts])
    assert (tree.position_ids[0][tree.predecessors[tree.places]] + 1).tolist() == positions.tolist()


def test_members_of_a_group_share_their_prompt():
    rng = np.random.default_rng(0)
    prompt = rng.integers(0, VOCABULARY, 20)
    contexts = []
    for length in (5, 6, 6, 9):
        tokens = np.concatenate([prompt, rng.integers(0, VOCABULARY, length)]).astype(np.int32)
        contexts.append((tokens, np.arange(20 + length) >= 20))
    assert len(PackedTree(contexts)) == 20 + 5 + 6 + 6 + 9
    assert common_prefix(contexts[0][0], contexts[1][0]) == 20
    close(*(f(contexts, torch.ones(26))[1] for f in (packed, separate)))


def test_contexts_identical_up_to_their_end():
    tokens = np.arange(6, dtype=np.int32)
    contexts = [
        (tokens, np.zeros(6, dtype=bool)),
        (tokens, np.arange(6) == 5),
        (tokens[:3], np.zeros(3, dtype=bool)),
    ]
    assert len(PackedTree(contexts)) == 6
    close(*(f(contexts, torch.ones(1))[0] for f in (packed, separate)))


def test_a_first_token_cannot_be_trained_on():
    with pytest.raises(ValueError, match="first token of context 0"):
        PackedTree([(np.arange(3, dtype=np.int32), np.ones(3, dtype=bool))])
