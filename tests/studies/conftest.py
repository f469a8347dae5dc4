import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The package `studies` stands at the top of the repository; the helpers of these tests cannot share its name.
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

BASE = """
method = "grpo"
[models]
policy = "micro"
[env]
kind = "textcraft_generated"
[learner]
learning_rate = 0.5
[runtime]
max_updates = 4
[eval]
every = 1
"""

STUDY = """
title = "A tiny study"
question = "Does it matter?"
recipe = "recipes/base.toml"
seeds = [0, 1]
budget = ["env_steps"]
comparisons = [["high", "low"]]
[arms.low]
[arms.high]
learner.learning_rate = 0.9
"""


@pytest.fixture
def root(tmp_path):
    """A repository with one study, `tiny`."""
    (tmp_path / "studies" / "recipes").mkdir(parents=True)
    (tmp_path / "studies" / "recipes" / "base.toml").write_text(BASE)
    (tmp_path / "studies" / "tiny.toml").write_text(STUDY)
    return tmp_path


@pytest.fixture
def tiny(root):
    """Its places."""
    from studies.runner.study import Places

    return Places(root, "tiny")
