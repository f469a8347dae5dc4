"""Commands to type, written so that they work as printed."""

import shlex
import shutil
import sys
from pathlib import Path


def command(*words: object) -> str:
    """A `farhorizon` command line, quoted for a shell in the current directory.

    The program is called by its path where the shell would not find it: in a virtual environment not activated, say.
    """
    return shlex.join([_program(), *map(str, words)])


def _program() -> str:
    name = "farhorizon"
    called, beside = Path(sys.argv[0]), Path(sys.executable).with_name(name)
    own = next((path for path in (called, beside) if path.name == name and path.is_file()), None)
    found = shutil.which(name)
    if own is None or (found is not None and own.samefile(found)):
        return name
    return str(own)
