import asyncio
from pathlib import Path

import pytest
from hypothesis import settings
from runs import RECIPE, finish, metrics

settings.register_profile("farhorizon", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("farhorizon")


@pytest.fixture(autouse=True)
def _own_cache(request, tmp_path_factory, monkeypatch):
    """Fast tests neither read nor write the user's cache; the slower suites use the real model in it."""
    if not any(request.node.get_closest_marker(name) for name in ("integration", "study")):
        monkeypatch.setenv("FARHORIZON_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="session")
def start(tmp_path_factory) -> Path:
    """A start that sometimes succeeds, taught in seconds, for tests that run whole training runs."""
    import torch

    from farhorizon.config.agent import AppendOnly, Transcript
    from farhorizon.config.env import TextCraft
    from farhorizon.config.learner import AdamW
    from farhorizon.config.models import MicroConfig
    from farhorizon.core.seeds import Key
    from farhorizon.learners.torch_learner import TorchLearner
    from farhorizon.models.load import save_model
    from farhorizon.models.micro import build_micro
    from farhorizon.rollout.demonstrate import demonstrate

    torch.set_num_threads(1)
    world = TextCraft(depths=(1,), distractors=(0, 0)).build()
    texts = ["\n", ">", "Nothing was written. Write one action.", *world.texts()]
    model, tokenizer = build_micro(MicroConfig(width=64, heads=2, key_value_heads=1), texts, seed=0)
    agent = AppendOnly(renderer=Transcript(examples=0, instructions=False)).build(tokenizer=tokenizer, world=world)
    lessons = [
        asyncio.run(demonstrate(world, agent, task, world.oracle(task)))[0] for task in world.tasks("train")[:24]
    ]
    learner = TorchLearner(AdamW(learning_rate=3e-3), model=model, temperature=1.0)
    for step in range(110):
        chosen = Key(0, "lessons", update=step).generator().choice(len(lessons), size=12, replace=False)
        learner.supervised_step([lessons[i] for i in chosen], step)
    directory = tmp_path_factory.mktemp("start")
    save_model(model, tokenizer, directory)
    return directory


@pytest.fixture
def recipe(start, tmp_path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(RECIPE.format(start=start))
    return path


@pytest.fixture(scope="session")
def uninterrupted(start, tmp_path_factory):
    """A finished run: its recipe, its metrics, its final weights, and how long it took from its first file on."""
    directory = tmp_path_factory.mktemp("uninterrupted")
    recipe = directory / "tiny.toml"
    recipe.write_text(RECIPE.format(start=start))
    run = directory / "run"
    finish("train", recipe, "--run", run)
    first = (run / "recipe.toml").stat().st_mtime
    last = (run / "checkpoints" / "update-000008" / "COMPLETE.json").stat().st_mtime
    return (
        recipe,
        metrics(run),
        (run / "checkpoints" / "update-000008" / "model.safetensors").read_bytes(),
        last - first,
    )
