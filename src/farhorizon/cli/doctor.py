"""`farhorizon doctor`"""

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import typer

from farhorizon.cli.extras import EXTRAS


def doctor() -> None:
    """Say what is installed, what is missing and how to mend it. Exit status 1 when something is missing."""
    healthy = True
    for ok, line in _findings():
        print(f"{'ok  ' if ok else 'MISS'}  {line}")
        healthy &= ok
    if not healthy:
        raise typer.Exit(1)


def _findings() -> Iterator[tuple[bool, str]]:
    yield sys.version_info >= (3, 11), f"Python {sys.version.split()[0]} (3.11 or newer is needed)"
    for package, extra in EXTRAS.items():
        found = _version(package)
        yield (
            found is not None,
            f"{package} {found}" if found else f'{package}: pip install "farhorizon[{extra}]"',
        )
    yield True, f"{os.cpu_count()} cores"
    if importlib.util.find_spec("torch") is not None:
        import torch

        devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        yield True, f"accelerators: {', '.join(devices) or 'none; everything runs on the CPU'}"
    if importlib.util.find_spec("transformers") is not None:
        from farhorizon.models.fetch import CATALOGUE, cache_dir, cached

        free = shutil.disk_usage(_existing(cache_dir())).free / 2**30
        yield free > 5, f"{free:.0f} GiB free for models in {cache_dir()} (a 135M run needs about 5)"
        for name in CATALOGUE:
            present = cached(name)
            yield (
                True,
                f"model {name}: {'in the cache' if present else f'not fetched yet: farhorizon model fetch {name}'}",
            )


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
