"""Models and tokenizers by name, path or hub id, and their saving as plain Hugging Face directories."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from farhorizon.core.errors import UserError
from farhorizon.models.attention import IMPLEMENTATION
from farhorizon.models.fetch import CATALOGUE, Report, cached, fetch


def resolve(name: str, report: Report = print) -> Path | str:
    """What a recipe's model name stands for.

    A catalogue name is fetched if it is not in the cache, and checked by names and sizes of files if it is.

    Args:
        name: a catalogue name, a local Hugging Face directory or a hub id `organisation/name`, tried in this
            order.
        report: told, in one line each, what fetching does.

    Returns:
        A directory, or a hub id as it came.

    Raises:
        UserError: the name is none of the three, or its directory is no model or is damaged.
    """
    if name in CATALOGUE:
        return cached(name) or fetch(name, report=report)
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UserError(f'"{name}" is a directory without config.json, not a Hugging Face model')
        return path
    if re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name):
        return name
    nearest = get_close_matches(name, CATALOGUE, n=1, cutoff=0.0)[0]
    raise UserError(
        f'there is no model "{name}": the nearest in the catalogue is "{nearest}"; a model is a name of the '
        "catalogue, a local Hugging Face directory or a hub id (organisation/name)"
    )


def load_model(source: Path | str, dtype: torch.dtype, *, attention: str = IMPLEMENTATION) -> PreTrainedModel:
    """A causal language model in evaluation mode, without dropout and without a cache of its own.

    Args:
        source: what `resolve` returned.
        dtype: type of the weights.
        attention: attention implementation; ours needs a `layout` in every forward.

    Raises:
        UserError: nothing loadable there, or weights are missing.
    """
    with _told_in_one_line("model", source), _bars_only_for_downloads(source):
        model, loading = AutoModelForCausalLM.from_pretrained(
            str(source), dtype=dtype, attn_implementation=attention, output_loading_info=True
        )
    if loading["missing_keys"]:
        missing = sorted(loading["missing_keys"])
        raise UserError(f"the model {source} lacks {len(missing)} of its weights, such as {missing[0]}")
    return prepare(model)


def prepare(model: PreTrainedModel) -> PreTrainedModel:
    """Evaluation mode, no dropout in any mode, no cache of the model's own; in place."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model.config.use_cache = False
    return model.eval()


def load_tokenizer(source: Path | str) -> PreTrainedTokenizerFast:
    """The tokenizer beside a model.

    Raises:
        UserError: nothing loadable there.
    """
    with _told_in_one_line("tokenizer", source):
        return AutoTokenizer.from_pretrained(str(source))


def save_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, directory: Path) -> None:
    """Write a Hugging Face directory that loads without farhorizon.

    Files are written in place: a caller that may be interrupted writes to a temporary directory and renames it.
    """
    with _bars_only_for_downloads(directory):
        model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    path = directory / "config.json"
    config = json.loads(path.read_text())
    config["use_cache"] = True
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


@contextmanager
def _told_in_one_line(what: str, source: Path | str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        taken = "" if isinstance(source, Path) else " (taken for a hub id, as there is no such directory)"
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise UserError(f"could not load a {what} from {source}{taken}: {reason}") from error


@contextmanager
def _bars_only_for_downloads(source: Path | str) -> Iterator[None]:
    """No progress bars for what takes a second."""
    shown = transformers_logging.is_progress_bar_enabled()
    if isinstance(source, Path):
        transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()
