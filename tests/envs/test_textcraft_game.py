"""What the game does with actions, good and bad."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farhorizon.config.env import TextCraft as Config
from farhorizon.core.errors import UserError
from farhorizon.core.record import Task
from farhorizon.core.seeds import Key
from farhorizon.envs.base import Episode, StepResult
from farhorizon.envs.players import RandomPlayer
from farhorizon.envs.textcraft.actions import MOST

EPISODE = Episode(seed=0, group_seed=0, update=0, horizon=100)
WORLD = Config(distractors=(0, 0)).build()
TASKS = {task.data["goal"]: task for split in ("train", "eval") for task in WORLD.tasks(split)}


def game(goal: str, *actions: str):
    """A game of the goal in which the actions have been taken."""
    playing = WORLD.make()
    playing.reset(TASKS[goal], EPISODE)
    for action in actions:
        assert "valid" not in playing.step(action).info
    return playing


def test_goal_is_rewarded_once_and_ends_the_episode():
    playing = game("oak button", "get 1 oak logs", "craft 4 oak planks using 1 oak logs")
    result = playing.step("craft 1 oak button using 1 oak planks")
    assert result == StepResult("Crafted 1 oak button.", 1.0, terminated=True, success=True)
    after = playing.step("inventory")
    assert (after.reward, after.terminated, after.success, after.info) == (0.0, True, True, {"valid": False})
    assert playing.available_actions() == ()


def test_actions_change_the_inventory_as_they_say():
    playing = game("oak button", "get 2 oak logs", "craft 4 oak planks using 1 oak logs")
    assert playing.step("inventory").observation == "Inventory: 1 oak logs, 4 oak planks."
    assert game("oak button").step("inventory").observation == "Inventory: nothing."


@pytest.mark.parametrize(
    ("written", "executed"),
    [
        ("get 2 oak logs", None),
        ("GET 2 Oak Logs", "get 2 oak logs"),
        ("  get 2 oak logs.\n", "get 2 oak logs"),
        ("`get 2 oak logs`.", "get 2 oak logs"),
        ("get 2 oak_logs", "get 2 oak logs"),
        ("get  2   oak logs", "get 2 oak logs"),
    ],
)
def test_normalisation_is_reported_and_only_then(written, executed):
    result = game("oak button").step(written)
    assert result.observation == "Got 2 oak logs."
    assert result.info == ({} if executed is None else {"normalised": executed})


@pytest.mark.parametrize(
    ("written", "executed"),
    [
        ("craft 4 oak planks using 1 oak logs", None),
        ("craft oak planks using 1 oak logs", "craft 4 oak planks using 1 oak logs"),
        ("craft 9 oak_planks using 1 oak logs", "craft 4 oak planks using 1 oak logs"),
    ],
)
def test_number_made_is_the_recipe_s_and_a_correction_is_reported(written, executed):
    result = game("oak button", "get 1 oak logs").step(written)
    assert result.observation == "Crafted 4 oak planks."
    assert result.info == ({} if executed is None else {"normalised": executed})


def test_order_of_ingredients_does_not_matter():
    playing = game("torch", "get 2 bamboo", "craft 1 stick using 2 bamboo", "get 1 coals", "get 1 coal")
    assert playing.step("craft 4 torch using 1 coal , 1 stick").success
    assert playing.step("").success


@pytest.mark.parametrize(
    "action",
    [
        'get 2 "oak logs"',
        "get 2: oak logs",
        "get 2 oak-logs",
        "get 2 oak logs!",
        "get (2) oak logs",
        "oak logs",
    ],
)
def test_agentgym_a9_action_reaches_the_environment_unmodified(action):
    """AgentGym's client strips what is not a letter, digit, comma or space, so the environment sees another
    action than the one trained on. Here nothing is dropped in silence: such an action is refused as written."""
    playing = game("oak button")
    result = playing.step(action)
    assert result.info == {"valid": False}
    assert playing.step("inventory").observation == "Inventory: nothing."


@pytest.mark.parametrize(
    ("action", "told"),
    [
        ("", "Not an action. Write get, craft or inventory."),
        ("I think I should get logs", "Not an action. Write get, craft or inventory."),
        ("inventory please", "Not an action. Write get, craft or inventory."),
        ("get oak logs", "Write: get 2 ITEM"),
        ("craft oak planks", "Write: craft 1 ITEM using 2 ITEM, 1 ITEM"),
        ("craft 4 oak planks using oak logs", "Write: craft 1 ITEM using 2 ITEM, 1 ITEM"),
        ("get 1 oak logs\nget 1 oak logs", "Write one action on one line."),
        ("get 1" + "0" * 30 + " oak logs", f"Counts are whole numbers from 1 to {MOST}."),
        ("get 0 oak logs", f"Counts are whole numbers from 1 to {MOST}."),
        ("get " + "1" * 100_000, "That action is too long."),
        ("get 1 oak planks", "oak planks must be crafted."),
        ("get 1 planks", "Name one kind of planks, such as oak planks."),
        ("get 1 oak lgs", "No such item. Did you mean oak logs?"),
        ("get 1 unobtainium", "No such item."),
        ("get ٣ oak logs", "Write: get 2 ITEM"),
        ("craft 1 oak logs using 1 oak planks", "oak logs cannot be crafted. Get it."),
        ("craft 4 oak planks using 1 oak log", "Use: craft 4 oak planks using 1 oak logs"),
        ("craft 8 oak planks using 2 oak logs", "Use: craft 4 oak planks using 1 oak logs"),
        ("craft 4 oak planks using 1 oak logs, 1 oak logs", "Use: craft 4 oak planks using 1 oak logs"),
        ("craft 4 oak planks using 1 oak logs", "Missing 1 oak logs."),
        ("craft 1 oak button using 1 oak planks", "Missing 1 oak planks."),
        ("craft 1 beacon using 1 oak logs", "Those ingredients do not make beacon."),
    ],
)
def test_refused_actions_are_told_what_is_wrong_and_change_nothing(action, told):
    playing = game("oak button")
    result = playing.step(action)
    assert (result.observation, result.reward, result.success, result.terminated) == (told, 0.0, False, False)
    assert result.info["valid"] is False
    assert playing.state_key() == ""


def test_a_kind_is_named_by_an_item_the_task_shows():
    shown = next(text for text in TASKS["crafting table"].data["recipes"] if "logs" in text or "stems" in text)
    planks = shown.split(" using ")[0].removeprefix("craft 4 ")
    told = game("crafting table").step("craft 1 crafting table using 4 planks").observation
    assert told == f"Name one kind of planks, such as {planks}."


def test_any_one_item_of_a_kind_will_do_but_not_a_mixture():
    logs = [f"get 1 {wood} logs" for wood in ("oak", "birch")]
    planks = [f"craft 4 {wood} planks using 1 {wood} logs" for wood in ("oak", "birch")]
    playing = game("crafting table", *logs, *planks)
    assert playing.step("craft 1 crafting table using 2 oak planks, 2 birch planks").info == {"valid": False}
    assert playing.step("craft 1 crafting table using 4 birch planks").success


def test_no_more_than_a_stack_is_carried():
    playing = game("oak button", "get 60 oak logs", *["craft 4 oak planks using 1 oak logs"] * 16)
    told = f"You can carry at most {MOST} oak planks."
    assert playing.step("craft 4 oak planks using 1 oak logs").observation == told
    assert playing.step("get 21 oak logs").observation == f"You can carry at most {MOST} oak logs."
    assert playing.step("inventory").observation == "Inventory: 44 oak logs, 64 oak planks."


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.text(max_size=200),
        st.builds("get {} {}".format, st.integers(), st.text(max_size=30)),
        st.builds("craft {} using {}, {}".format, st.text(max_size=30), st.text(max_size=30), st.integers()),
        st.lists(
            st.sampled_from(["craft", "get", "1", "4", "oak", "logs", "planks", "using", ",", "1 oak logs", "_", "."])
        ).map(" ".join),
    )
)
def test_any_text_is_answered(text):
    result = game("oak button").step(text)
    assert isinstance(result, StepResult)
    assert 0 < len(result.observation) < 200
    assert result.reward == 0.0
    assert result.success is False
    assert not result.terminated


def test_available_actions_are_valid_and_in_a_fixed_order():
    for index, task in enumerate(list(TASKS.values())[::20]):
        playing, twin = WORLD.make(), WORLD.make()
        observation = playing.reset(task, EPISODE)
        twin.reset(task, EPISODE)
        player = RandomPlayer(Key(0, "available", group=index))
        for _ in range(25):
            assert playing.available_actions() == twin.available_actions()
            action = player.act(observation, playing)
            result = playing.step(action)
            assert result.info == {}, (task.id, action, result)
            twin.step(action)
            observation = result.observation
            if result.terminated:
                break


def test_what_the_oracle_crafts_is_among_the_available_actions():
    for task in TASKS.values():
        playing = WORLD.make()
        playing.reset(task, EPISODE)
        for action in WORLD.oracle(task):
            assert action.startswith("get") or action in playing.available_actions(), (task.id, action)
            playing.step(action)


def test_snapshot_restores_on_another_instance_in_the_middle_and_at_the_end():
    task = TASKS["lodestone"]
    actions = WORLD.oracle(task)
    for taken in (0, 5, len(actions)):
        original, other = game("lodestone", *actions[:taken]), game("oak button", "get 1 oak logs")
        last = original.step("get 1 nothing").observation
        snapshot = json.loads(json.dumps(original.snapshot()))
        assert other.restore(snapshot) == last
        assert other.state_key() == original.state_key()
        for action in ("inventory", *actions[taken:], "inventory"):
            assert other.step(action) == original.step(action)


def test_a_snapshot_is_not_changed_by_what_follows():
    playing = game("oak button", "get 1 oak logs")
    snapshot = playing.snapshot()
    before = json.dumps(snapshot)
    playing.step("get 5 oak logs")
    assert json.dumps(snapshot) == before
    playing.restore(snapshot)
    playing.step("get 5 oak logs")
    assert json.dumps(snapshot) == before


def test_equal_states_have_equal_keys_however_they_were_reached():
    one = game("torch", "get 1 coal", "get 2 bamboo", "inventory")
    other = game("torch", "get 1 bamboo", "get 1 coal", "get 1 bamboo")
    assert one.state_key() == other.state_key() == "bamboo:2,coal:1"
    assert one.state_key() != game("torch").state_key()


def test_a_task_of_other_recipes_is_refused_with_its_id():
    task = Task("textcraft/old", "textcraft", "train", data={"goal": "x", "recipes": ["craft 1 x using 1 y"]})
    with pytest.raises(UserError, match="task textcraft/old: no installed recipe reads"):
        WORLD.make().reset(task, EPISODE)


def test_twenty_thousand_steps_a_second():
    playing = WORLD.make()
    episodes = [(task, WORLD.oracle(task)) for task in TASKS.values()]

    def rate() -> float:
        began = time.process_time()
        for task, actions in episodes:
            playing.reset(task, EPISODE)
            for action in actions:
                playing.step(action)
        return sum(len(actions) for _, actions in episodes) / (time.process_time() - began)

    assert max(rate() for _ in range(5)) >= 20_000
