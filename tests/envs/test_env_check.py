"""The checks of a world, on a small asynchronous world and on that world with one promise broken."""

import pytest

from farhorizon.config.env import TextCraft as Config
from farhorizon.core.record import Task
from farhorizon.envs.base import Environment, StepResult, World
from farhorizon.envs.check import CHECKS, check


class Counter(Environment):
    """Say the numbers up to the task's, in order. Everything but the list of actions is asynchronous."""

    shared = 0

    def __init__(self):
        self.target, self.count, self.closed = 0, 0, False

    async def reset(self, task, episode):
        self.target, self.count = task.data["target"], 0
        return f"Count to {self.target}."

    async def step(self, action):
        if self.count >= self.target:
            return self.answer(valid=False)
        if action != str(self.count + 1):
            return self.answer(valid=False)
        self.count += 1
        return self.answer(valid=True)

    def answer(self, valid):
        done = self.count >= self.target
        info = {} if valid else {"valid": False}
        return StepResult(f"At {self.count}.", float(done and valid), terminated=done, success=done, info=info)

    def available_actions(self):
        return [str(self.count + 1)]

    async def snapshot(self):
        return [self.target, self.count]

    async def restore(self, snapshot):
        self.target, self.count = snapshot
        return f"At {self.count}." if self.count else f"Count to {self.target}."

    def state_key(self):
        return str(self.count)

    async def close(self):
        assert not self.closed
        self.closed = True


class Counting(World):
    name, version = "counting", "1"
    environment: type[Environment] = Counter

    def tasks(self, split):
        first = {"train": 2, "eval": 20}[split]
        return [self.task(split, target) for target in range(first, first + 5)]

    def task(self, split, target):
        return Task(f"counting/{target}", self.name, split, data={"target": target})

    def make(self):
        return self.environment()

    def instructions(self):
        return "Say the next number."

    def oracle(self, task):
        return [str(number + 1) for number in range(task.data["target"])]


class Forgetful(Counter):
    """Does not reset its count."""

    async def reset(self, task, episode):
        self.target = task.data["target"]
        return f"Count to {self.target}, from {self.count}."


class Sharing(Counter):
    """Keeps its count on the class."""

    async def reset(self, task, episode):
        type(self).shared = 0
        return await super().reset(task, episode)

    async def step(self, action):
        self.count = type(self).shared
        result = await super().step(action)
        type(self).shared = self.count
        return result


class Noisy(Counter):
    """Draws from a global count of episodes."""

    episodes = 0

    async def reset(self, task, episode):
        type(self).episodes += 1
        return await super().reset(task, episode) + f" Episode {type(self).episodes}."


class Raising(Counter):
    """Raises on what it cannot read."""

    async def step(self, action):
        return await super().step(str(int(action)))


class Rambling(Counter):
    """Repeats whatever it is told."""

    async def step(self, action):
        result = await super().step(action)
        return StepResult(result.observation + action, result.reward, result.terminated, success=result.success)


class Undeclared(Counter):
    """Leaves success to be guessed from the reward."""

    async def step(self, action):
        result = await super().step(action)
        return StepResult(result.observation, result.reward, result.terminated, info=result.info)


class Misleading(Counter):
    """Lists actions that it refuses."""

    def available_actions(self):
        return [str(self.count + 2)]


class Losing(Counter):
    """Forgets its count in a snapshot."""

    async def snapshot(self):
        return [self.target, 0]


class Overlapping(Counting):
    def tasks(self, split):
        return [Task(f"counting/{split}/{n}", self.name, split, data={"target": n}) for n in range(2, 6)]


class Wrong(Counting):
    def oracle(self, task):
        return ["1"]


class Restless(Counting):
    calls = 0

    def tasks(self, split):
        type(self).calls += 1
        return super().tasks(split)[: 2 + type(self).calls % 3]


def with_environment(environment):
    return type("World", (Counting,), {"environment": environment})()


def broken(world):
    return [result.name for result in check(world, horizon=25) if not result.ok]


def test_a_sound_asynchronous_world_passes_every_check():
    results = check(Counting(), tasks=3, horizon=25)
    assert [result.name for result in results] == list(CHECKS)
    assert all(result.ok for result in results), results


def test_textcraft_passes_every_check():
    results = check(Config().build())
    assert all(result.ok for result in results), results


@pytest.mark.parametrize(
    ("world", "name"),
    [
        (with_environment(Forgetful), "reset"),
        (with_environment(Sharing), "instances isolated"),
        (with_environment(Noisy), "same episode twice"),
        (with_environment(Raising), "hostile actions"),
        (with_environment(Rambling), "hostile actions"),
        (with_environment(Undeclared), "success declared"),
        (with_environment(Misleading), "random player"),
        (with_environment(Losing), "snapshot"),
        (Overlapping(), "splits disjoint"),
        (Wrong(), "oracle"),
        (Restless(), "tasks"),
    ],
)
def test_each_broken_promise_is_found(world, name):
    assert name in broken(world)


def test_a_world_that_cannot_list_its_tasks_fails_with_its_words():
    class Empty(Counting):
        def tasks(self, split):
            raise OSError("data not found")

    assert [(r.name, r.ok, r.detail) for r in check(Empty())] == [("tasks", False, "OSError: data not found")]


def test_what_is_not_offered_is_said_and_passes():
    class Bare(Counter):
        def available_actions(self):
            return None

        async def snapshot(self):
            raise NotImplementedError

    class Silent(Counting):
        environment = Bare

        def oracle(self, task):
            return None

    details = {result.name: result.detail for result in check(Silent(), tasks=1) if result.ok}
    assert details["oracle"] == "no oracle"
    assert details["snapshot"] == "no snapshots"
    assert details["random player"].endswith("available actions not listed")
