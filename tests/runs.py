"""Whole runs from the command line, small enough for tests."""

import os
import subprocess
import sys
from pathlib import Path

from farhorizon.core.rundir import RunDirectory

RECIPE = """
method = "grpo"
[models]
policy = "{start}"
[env]
kind = "textcraft"
depths = [1]
distractors = [0, 0]
[agent.renderer]
kind = "transcript"
examples = 0
instructions = false
[tasks]
groups = 3
size = 4
part_way = 0.5
[horizon]
kind = "stages"
values = [3, 4]
every = 3
[rollout]
max_turn_tokens = 16
context_tokens = 256
[objective]
high = 1.28
[objective.kl]
coefficient = 0.01
[learner]
learning_rate = 1e-3
steps_per_update = 2
tokens_per_microbatch = 512
[runtime]
max_updates = 8
deterministic = true
checkpoint_every = 2
threads = 1
[eval]
tasks = 4
every = 4
"""


def command(*arguments: object) -> list[str]:
    """The command line, as a user starts it."""
    return [str(Path(sys.executable).with_name("farhorizon")), *map(str, arguments)]


def begin(*arguments: object) -> subprocess.Popen:
    """A command that is still running."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )


def finish(*arguments: object) -> str:
    """A command's output once it has succeeded."""
    process = begin(*arguments)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return output


def metrics(path):
    """Lines of the metrics file without what depends on the clock."""
    lines = RunDirectory.open(path).read_metrics()
    return [{k: v for k, v in line.items() if not k.startswith(("time/", "perf/"))} for line in lines]
