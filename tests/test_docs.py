"""What the documentation says is so."""

import re
import runpy
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_metrics_page_is_up_to_date():
    page = runpy.run_path(str(ROOT / "docs" / "make_metrics.py"))["page"]
    assert (ROOT / "docs" / "metrics.md").read_text() == page(), "run: python docs/make_metrics.py"


@pytest.fixture
def guess(tmp_path, monkeypatch):
    """The README's own environment, in a module of its name."""
    (tmp_path / "guess.py").write_text(blocks("python")[0])
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("guess")
    del sys.modules["guess"]


def test_readme_environment_is_short_and_keeps_every_promise(guess):
    from farhorizon.envs.check import check

    lines = [line for line in blocks("python")[0].splitlines() if line.strip()]
    assert len(lines) < 40
    failed = [result for result in check(guess.Guess().build()) if not result.ok]
    assert not failed


def test_readme_recipe_reads():
    from farhorizon.config.recipe import parse

    recipe = parse(tomllib.loads(blocks("toml")[0]))
    assert recipe.horizon.values == (4, 8, 12)


@pytest.mark.parametrize("path", sorted((ROOT / "recipes").glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_recipe_reads(path):
    from farhorizon.config.recipe import read

    read(path)


def test_example_is_the_whole_loop_in_sixty_lines_and_runs(start, monkeypatch):
    from farhorizon.runtime import warmstart

    path = ROOT / "examples" / "loop.py"
    assert len(path.read_text().splitlines()) <= 60
    monkeypatch.setattr(warmstart, "make_micro", lambda *_: start)
    successes = runpy.run_path(str(path))["main"](2)
    assert len(successes) == 2


def test_repository_speaks_of_the_product_alone():
    """No paths of a machine in what is shipped."""
    pattern = re.compile(r"(^|[^A-Za-z0-9.])/(work|root|home)/[A-Za-z.]")
    for folder in ("src", "docs", "recipes", "examples", "tests"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".md", ".toml"} and path != Path(__file__):
                assert not pattern.search(path.read_text()), path
