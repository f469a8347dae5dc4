"""The runner with the real trainer."""

import time

import pytest
from runs import RECIPE

from studies.runner import main
from studies.runner.cells import main_cells
from studies.runner.result import load
from studies.runner.session import Session
from studies.runner.study import read


@pytest.mark.slow
def test_cell_killed_and_resumed_by_the_study_reproduces_bit_for_bit(root, tiny, start, capsys):
    (root / "studies" / "recipes" / "base.toml").write_text(RECIPE.format(start=start))
    text = tiny.study.read_text().replace("learner.learning_rate = 0.9", "learner.learning_rate = 2e-3")
    tiny.study.write_text(text.replace('["env_steps"]', '["env_steps", "sampled_tokens"]').replace("[0, 1]", "[3]"))
    study = read(tiny)
    cell = main_cells(tiny, study, {})[0]
    session = Session(cell, tiny.runs)
    metrics = tiny.runs / cell.name / "metrics.jsonl"
    while not metrics.exists() or len(metrics.read_text().splitlines()) < 5:
        assert session.poll() is None, session.log.read_text()
        time.sleep(0.01)
    session.kill()
    assert main.main(root, ["tiny"]) == 0, capsys.readouterr().out
    result = load(tiny, cell.name)
    assert [point.update for point in result.curve] == [0, 4, 8]
    assert result.curve[0].env_steps == 0 < result.curve[1].env_steps < result.curve[2].env_steps
    assert result.curve[2].env_steps == result.totals["env_steps"]
    assert result.cost.sessions == 2
    assert result.cost.cpu_seconds > 2
    assert tiny.figure.read_text().count("<svg") == 1
    assert "## At equal sampled tokens" in tiny.page.read_text()
    assert main.main(root, ["tiny", "--check", cell.name]) == 0
    assert f"{cell.name}: identical" in capsys.readouterr().out
