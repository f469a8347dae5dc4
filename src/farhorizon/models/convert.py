"""A Llama-shaped GGUF file written out as a Hugging Face directory, weights dequantised.

Read with the `gguf` package alone: transformers' own GGUF loading differs between releases (weights kept
packed, `accelerate` needed, a model that refuses to be saved) and its tokenizer drops the digit splitting
that `tokenizer.ggml.pre = "smollm"` stands for.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFReader, TokenType, dequantize
from numpy.typing import NDArray
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationConfig, LlamaConfig, PreTrainedTokenizerFast

_KIND = {"general.architecture": "llama", "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm"}
_TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_HEADS = {".attn_q.": "llama.attention.head_count", ".attn_k.": "llama.attention.head_count_kv"}
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def write_huggingface(gguf: Path, directory: Path) -> None:
    """Write config, fp32 weights, tokenizer and chat template of a GGUF file into an existing directory.

    The weights are fp32 because dequantised values are a scale times an integer plus an offset, each scale
    and offset in fp16: of SmolLM2's Q4_1 values bf16 would round four in five.

    Raises:
        ValueError: the file is not a Llama with a byte-level BPE tokenizer of the SmolLM kind.
    """
    reader = GGUFReader(gguf)
    facts = {name: field.contents() for name, field in reader.fields.items()}
    kind = tuple(facts.get(name) for name in _KIND)
    if kind != tuple(_KIND.values()):
        raise ValueError(f"{gguf} is of the kind {kind}; only {tuple(_KIND.values())} is known")
    weights = {
        _name(tensor.name): torch.from_numpy(
            _heads_in_order(tensor.name, dequantize(tensor.data, tensor.tensor_type), facts).astype(np.float32)
        )
        for tensor in reader.tensors
    }
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    config = _config(facts, tied="lm_head.weight" not in weights)
    config.save_pretrained(directory)
    GenerationConfig(
        bos_token_id=config.bos_token_id, eos_token_id=config.eos_token_id, pad_token_id=config.pad_token_id
    ).save_pretrained(directory)
    _tokenizer(facts).save_pretrained(directory)


def _config(facts: dict[str, Any], tied: bool) -> LlamaConfig:
    return LlamaConfig(
        architectures=["LlamaForCausalLM"],
        dtype="float32",
        vocab_size=facts["llama.vocab_size"],
        hidden_size=facts["llama.embedding_length"],
        intermediate_size=facts["llama.feed_forward_length"],
        num_hidden_layers=facts["llama.block_count"],
        num_attention_heads=facts["llama.attention.head_count"],
        num_key_value_heads=facts["llama.attention.head_count_kv"],
        max_position_embeddings=facts["llama.context_length"],
        rms_norm_eps=facts["llama.attention.layer_norm_rms_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": facts["llama.rope.freq_base"]},
        tie_word_embeddings=tied,
        bos_token_id=facts["tokenizer.ggml.bos_token_id"],
        eos_token_id=facts["tokenizer.ggml.eos_token_id"],
        pad_token_id=facts["tokenizer.ggml.padding_token_id"],
    )


def _name(gguf_name: str) -> str:
    """The Hugging Face name of a weight."""
    if gguf_name in _TOP:
        return _TOP[gguf_name]
    match = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", gguf_name)
    if match is None or match[2] not in _LAYER:
        raise ValueError(f"unknown weight {gguf_name}")
    return f"model.layers.{match[1]}.{_LAYER[match[2]]}.weight"


def _heads_in_order(name: str, weight: NDArray[Any], facts: dict[str, Any]) -> NDArray[Any]:
    """Query and key rows as Hugging Face has them: GGUF interleaves the two halves of each head that rotary
    positions pair up."""
    for part, key in _HEADS.items():
        if part in name:
            rows, columns = weight.shape
            halves = weight.reshape(facts[key], rows // facts[key] // 2, 2, columns)
            return halves.swapaxes(1, 2).reshape(rows, columns)
    return weight


def _tokenizer(facts: dict[str, Any]) -> PreTrainedTokenizerFast:
    """Byte-level BPE in which every digit stands alone."""
    tokens: list[str] = facts["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in facts["tokenizer.ggml.merges"]]
    backend = Tokenizer(models.BPE(vocab={token: index for index, token in enumerate(tokens)}, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, type_ in zip(tokens, facts["tokenizer.ggml.token_type"], strict=True)
            if type_ == TokenType.CONTROL
        ]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=tokens[facts["tokenizer.ggml.bos_token_id"]],
        eos_token=tokens[facts["tokenizer.ggml.eos_token_id"]],
        pad_token=tokens[facts["tokenizer.ggml.padding_token_id"]],
        unk_token=tokens[facts["tokenizer.ggml.unknown_token_id"]],
        model_max_length=facts["llama.context_length"],
        clean_up_tokenization_spaces=False,
        chat_template=facts["tokenizer.chat_template"],
    )
