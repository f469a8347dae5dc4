"""The micro architecture: the same weights on any run, in the shape of the large models."""

import pytest
import torch
from pydantic import ValidationError

from farhorizon.config.models import MicroConfig, Models
from farhorizon.models.micro import WorldStamp, build_micro, micro_dir, micro_hash

TEXTS = ["> get 1 oak log\n", "craft 4 oak planks using 1 oak log\n"]


def weights(seed: int) -> dict[str, torch.Tensor]:
    return build_micro(MicroConfig(), TEXTS, seed)[0].state_dict()


def test_weights_depend_on_the_seed_alone():
    first = weights(0)
    torch.manual_seed(123)
    state = torch.random.get_rng_state()
    again = weights(0)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(first[name], again[name]) for name in first)
    other = weights(1)
    assert not any(torch.equal(first[name], other[name]) for name in first if "norm" not in name)


def test_weights_are_the_same_in_later_versions():
    q, down = (weights(0)[f"model.layers.1.{name}.weight"] for name in ("self_attn.q_proj", "mlp.down_proj"))
    assert q.flatten()[:2].tolist() == pytest.approx([0.009940413758158684, 0.014156081713736057])
    assert q.std().item() == pytest.approx(0.02, rel=0.05)
    assert down.std().item() == pytest.approx(0.01, rel=0.05)


def test_default_shape_is_small_and_tied():
    model, tokenizer = build_micro(MicroConfig(), [" ".join(f"word{i}" for i in range(1000))], 0)
    assert 0.5e6 < sum(weight.numel() for weight in model.parameters()) < 5e6
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert model.config.vocab_size == len(tokenizer) == 2005
    assert model.config.eos_token_id == tokenizer.eos_token_id
    assert tokenizer.model_max_length == model.config.max_position_embeddings == 1024
    assert model.config._attn_implementation == "farhorizon"
    assert not model.training


def test_hash_covers_what_decides_the_weights():
    worlds = [WorldStamp("textcraft", "1", {"depths": [1, 2]}), WorldStamp("other", "3", {})]
    training = {"seed": 0}
    hashes = [
        micro_hash(MicroConfig(), worlds, training),
        micro_hash(MicroConfig(layers=3), worlds, training),
        micro_hash(MicroConfig(), worlds[:1], training),
        micro_hash(MicroConfig(), [WorldStamp("textcraft", "2", {"depths": [1, 2]}), worlds[1]], training),
        micro_hash(MicroConfig(), [WorldStamp("textcraft", "1", {"depths": [1]}), worlds[1]], training),
        micro_hash(MicroConfig(), worlds, {"seed": 1}),
    ]
    assert len(set(hashes)) == len(hashes)
    assert micro_hash(MicroConfig(), worlds[::-1], training) == hashes[0]


def test_starts_are_cached_by_hash(tmp_path, monkeypatch):
    monkeypatch.setenv("FARHORIZON_CACHE", str(tmp_path))
    assert micro_dir("abc") == tmp_path / "micro" / "abc"


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"width": 130}, "width = 130 is not an even multiple of heads = 4"),
        ({"key_value_heads": 3}, "key_value_heads = 3 does not divide heads = 4"),
    ],
)
def test_shape_that_does_not_divide_is_refused(table, told):
    with pytest.raises(ValidationError, match=told):
        Models.model_validate({"policy": "micro", "micro": table})
