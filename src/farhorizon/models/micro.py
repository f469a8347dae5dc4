"""The micro architecture: a Llama of about a million parameters over an environment's own words.

It has the layout, attention and file format of the large models, so that engine and learner cannot tell.
Trained starts are cached under the hash of everything that decides them.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from farhorizon.config.models import MicroConfig
from farhorizon.core.seeds import Key
from farhorizon.core.values import Json
from farhorizon.models.attention import IMPLEMENTATION
from farhorizon.models.fetch import cache_dir
from farhorizon.models.load import prepare
from farhorizon.models.words import PATTERN, SPECIALS, build_tokenizer

FORMAT = 1
"""Raised when the same configuration would give another model than before."""
INITIAL_STD = 0.02


@dataclass(frozen=True)
class WorldStamp:
    """What identifies a world that a micro model is made for."""

    name: str
    """As recipes name it."""
    version: str
    """Its `World.version`."""
    config: Json
    """Its configuration, as JSON."""


def build_micro(
    config: MicroConfig, texts: Iterable[str], seed: int
) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """An untrained micro model in fp32, with our attention, and its tokenizer.

    Every weight is drawn by (seed, its name): the same on any run, whatever was drawn before. Matrices are
    normal with standard deviation 0.02, those that write into the residual stream 0.02 / sqrt(2 layers) (GPT-2,
    Radford et al. 2019); embeddings are tied.

    Args:
        config: shape.
        texts: texts that contain every word to be known, as `World.texts` gives.
        seed: of the weights.

    Raises:
        UserError: more words than `config.max_words`.
    """
    tokenizer = build_tokenizer(texts, config.max_words)
    tokenizer.model_max_length = config.context_tokens
    with torch.random.fork_rng(devices=[]):  # its own initial weights are replaced below
        model = AutoModelForCausalLM.from_config(
            _llama(config, tokenizer), attn_implementation=IMPLEMENTATION, dtype=torch.float32
        )
    model.generation_config = GenerationConfig(eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(_initial(name, tuple(weight.shape), config.layers, seed))
    return prepare(model), tokenizer


def micro_hash(config: MicroConfig, worlds: Sequence[WorldStamp], training: Json) -> str:
    """Name of a trained start in the cache: 16 hexadecimal digits over all that decides its weights.

    Args:
        config: shape.
        worlds: what it is trained on, in any order.
        training: how it is trained, its seed included.
    """
    content = {
        "format": FORMAT,
        "initial_std": INITIAL_STD,
        "pattern": PATTERN,
        "specials": SPECIALS,
        "config": config.model_dump(mode="json"),
        "worlds": sorted(json.dumps(asdict(world), sort_keys=True) for world in worlds),
        "training": training,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def micro_dir(content_hash: str) -> Path:
    """Where the start of that hash is cached."""
    return cache_dir() / "micro" / content_hash


def _initial(name: str, shape: tuple[int, ...], layers: int, seed: int) -> Tensor:
    """First value of a weight, `[*shape]`; the gains of norms begin at one."""
    if len(shape) == 1:
        return torch.ones(shape)
    std = INITIAL_STD
    if name.endswith(("o_proj.weight", "down_proj.weight")):
        std /= math.sqrt(2 * layers)
    draws = Key(seed, f"micro/{name}").generator().normal(0.0, std, shape)
    return torch.from_numpy(draws.astype("float32"))


def _llama(config: MicroConfig, tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.width,
        intermediate_size=config.feed_forward * config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.key_value_heads,
        max_position_embeddings=config.context_tokens,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_base},
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
