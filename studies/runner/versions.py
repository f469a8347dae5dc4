"""Which code ran, on which type of machine."""

import hashlib
import os
import platform
import subprocess
from pathlib import Path

import farhorizon
from farhorizon.config.base import Table

PACKAGE = Path(farhorizon.__file__).parent


class Code(Table):
    """What ran."""

    commit: str | None
    """Of the repository; None outside one."""
    dirty: bool
    """Whether files other than results differed from that commit."""
    source: str
    """Digest of the package's Python files."""
    version: str
    """Of the package."""


class Machine(Table):
    """Type of a machine."""

    cpu: str
    cores: int


def code() -> Code:
    """The code as it stands now."""
    return Code(
        commit=_git("rev-parse", "HEAD"),
        # `:/` starts at the top of the repository; results come and go while a study runs.
        dirty=bool(_git("status", "--porcelain", "--", ":/", ":(exclude,top)docs/results")),
        source=source_digest(),
        version=farhorizon.__version__,
    )


def source_digest() -> str:
    """16 hexadecimal digits over the package's Python files."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(f"{path.relative_to(PACKAGE)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def machine() -> Machine:
    """This one."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return Machine(cpu=models[0] if models else platform.processor() or platform.machine(), cores=os.cpu_count() or 1)


def _git(*arguments: str) -> str | None:
    """Output of a git command about the package's repository; None without one."""
    command = ["git", "-C", str(PACKAGE), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
