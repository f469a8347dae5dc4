"""Writing files so that nobody ever sees half of one."""

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def replace(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` fill a file aside, then rename it into place."""
    aside = aside_of(path)
    try:
        write(aside)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Replace a text file."""
    replace(path, lambda aside: aside.write_text(text, encoding="utf-8"))


def aside_of(path: Path) -> Path:
    """Where this process writes a file or folder that is to be renamed to `path`."""
    return path.with_name(f".{path.name}.{os.getpid()}")


def sha256(path: Path) -> str:
    """Digest of a file's content, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Wait until a file, or a folder's entries, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def disk_is_full(error: BaseException) -> bool:
    """Whether a write failed for want of space; libraries wrap the system's error in their own."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return "os error 28" in str(error) or "No space left on device" in str(error)
