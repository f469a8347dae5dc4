"""A module imports only from its own floor or below (DESIGN, Floors)."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import farhorizon

ROOT = Path(farhorizon.__file__).parent
FLOORS = {
    "core": 0, "config": 0, "methods": 0,
    "envs": 1, "tasks": 1, "rewards": 1, "models": 1, "credit": 1, "objectives": 1, "classic": 1,
    "agents": 2, "engines": 2, "learners": 2,
    "rollout": 3,
    "runtime": 4, "evaluation": 4, "viewer": 4,
    "cli": 5,
}  # fmt: skip
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT)


def imported_packages(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("farhorizon.")}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module_imports_from_its_own_floor_or_below(path):
    own = path.relative_to(ROOT).parts[0]
    above = {package for package in imported_packages(path) if FLOORS[package] > FLOORS[own]}
    assert not above


def test_every_package_has_a_floor():
    assert {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()} <= set(FLOORS)


@pytest.mark.parametrize("package", ["core", "config", "methods", "envs"])
def test_what_environment_authors_use_imports_no_torch(package):
    modules = [
        ".".join(["farhorizon", *path.relative_to(ROOT).with_suffix("").parts])
        for path in sorted((ROOT / package).rglob("*.py"))
    ]
    code = f"import sys, importlib\nfor m in {modules!r}: importlib.import_module(m.removesuffix('.__init__'))\n"
    code += "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("path", sorted((ROOT / "methods").glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_method_is_a_short_composition(path):
    assert len(path.read_text().splitlines()) <= 40
