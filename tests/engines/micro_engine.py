"""A micro engine whose every answer can be checked against a plain forward pass."""

import asyncio
import copy

import numpy as np
import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM

from farhorizon.config.engine import Local
from farhorizon.core.seeds import Key
from farhorizon.engines.base import Limits, Request, Sampling
from farhorizon.engines.local import LocalEngine
from farhorizon.models.attention import IMPLEMENTATION

VOCABULARY = 64


def micro_model(seed=0, tied=False):
    """A random two-layer Llama with three query heads a key-value head."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=1024,
        initializer_range=0.3,
        tie_word_embeddings=tied,
        attn_implementation=IMPLEMENTATION,
    )
    return LlamaForCausalLM(config)


class PlainCausal:
    """Every token of one sequence attends to all before it; nothing is cached."""

    def attend(self, layer, query, key, value, scaling):
        key, value = (x.repeat_interleave(query.shape[1] // key.shape[1], dim=1) for x in (key, value))
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scaling)


class Micro:
    """Builds engines over one model and says what they should answer."""

    def __init__(self):
        self.model = micro_model()
        self.engines = []

    def engine(self, *, model=None, deterministic=False, **config):
        model = copy.deepcopy(self.model) if model is None else model
        self.engines.append(LocalEngine(Local(**config), model=model, deterministic=deterministic))
        return self.engines[-1]

    def close(self):
        """Close every engine built."""
        for engine in self.engines:
            engine.close()

    def logps(self, token_ids, temperature=1.0, model=None):
        """Log-probabilities of every next token, `[tokens, vocabulary]`, by one plain forward pass."""
        with torch.no_grad():
            logits = (model or self.model)(
                input_ids=torch.tensor(np.asarray(token_ids), dtype=torch.int64)[None],
                layout=PlainCausal(),
                use_cache=False,
            ).logits[0]
        return (logits / temperature).log_softmax(-1).numpy()

    def check(self, request, generation, tolerance=1e-4):
        """The generation's log-probabilities are those of a plain forward pass."""
        temperature = request.sampling.temperature or 1.0
        stream = np.concatenate([request.token_ids, generation.token_ids])
        logps = self.logps(stream, temperature)[len(request.token_ids) - 1 : -1]
        expected = np.take_along_axis(logps, generation.token_ids[:, None].astype(int), 1)[:, 0]
        np.testing.assert_allclose(generation.logps, expected, atol=tolerance)


def request(prompt, *, member=0, turn=0, tokens=6, temperature=1.0, stop=(), session=None, limits=None):
    """A request with little to say."""
    return Request(
        np.asarray(prompt, np.int32),
        Key(7, "rollout", member=member, turn=turn),
        Sampling(temperature),
        limits or Limits(tokens, 10_000, 1_000),
        frozenset(stop),
        session,
    )


def ask(engine, *requests):
    """Ask all at once and wait for all answers, but not for ever."""

    async def together():
        return await asyncio.wait_for(asyncio.gather(*map(engine.generate, requests)), 20)

    return asyncio.run(together())


def same(first, second):
    """Same tokens, and log-probabilities equal but for rounding."""
    np.testing.assert_array_equal(first.token_ids, second.token_ids)
    np.testing.assert_allclose(first.logps, second.logps, atol=1e-4)
