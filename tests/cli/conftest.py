import io
import sys

import pytest

from farhorizon.cli.main import main


@pytest.fixture
def farhorizon(monkeypatch, capsys):
    """Runs the command line in this process; returns exit status, output and errors."""
    monkeypatch.setenv("COLUMNS", "160")

    def run(*arguments, typed=""):
        monkeypatch.setattr(sys, "argv", ["farhorizon", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        status = 0
        try:
            main()
        except SystemExit as left:
            status = left.code or 0
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


@pytest.fixture
def finished(uninterrupted):
    """Directory of a finished run."""
    return uninterrupted[0].parent / "run"
