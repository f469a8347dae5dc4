"""Small worlds, a tokenizer that does not round-trip, and an engine that says what it is told: for tests alone."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from farhorizon.core.record import StopReason, Task
from farhorizon.engines.base import Generation, Request
from farhorizon.envs.base import Environment, Episode, Example, StepResult, World


class Counting(Environment):
    """Say 1, 2, … up to the task's number."""

    def reset(self, task: Task, episode: Episode) -> str:
        self.goal, self.said = task.data["goal"], 0
        return f"Count to {self.goal}."

    def step(self, action: str) -> StepResult:
        if action != str(self.said + 1):
            return StepResult(f"Say {self.said + 1}.", success=False, info={"valid": False})
        self.said += 1
        done = self.said == self.goal
        return StepResult(f"Said {self.said}.", float(done), terminated=done, success=done)

    def state_key(self) -> str:
        return f"{self.said}/{self.goal}"

    def snapshot(self) -> list[int]:
        return [self.goal, self.said]

    def restore(self, snapshot: list[int]) -> str:
        self.goal, self.said = snapshot
        return f"Said {self.said}." if self.said else f"Count to {self.goal}."


class CountingWorld(World):
    name, version = "counting", "1"

    def __init__(self, make: Callable[[], Environment] = Counting, goals: Sequence[int] = (1, 2, 3, 4)) -> None:
        self._make, self._goals = make, goals

    def tasks(self, split: str) -> list[Task]:
        goals = self._goals if split == "train" else [5]
        return [Task(f"counting/{n}", "counting", split, f"to {n}", n, {"goal": n}) for n in goals]

    def make(self) -> Environment:
        return self._make()

    def instructions(self) -> str:
        return "Say one number at a time."

    def examples(self) -> list[Example]:
        return [Example(("Count to 2.", "Said 1."), ("1", "2"))]

    def oracle(self, task: Task) -> list[str]:
        return [str(n + 1) for n in range(task.data["goal"])]

    def texts(self) -> Iterator[str]:
        yield self.instructions()
        for n in range(1, 6):
            yield from (f"Count to {n}.", f"Said {n}.", f"Say {n}.", f" {n}\n", f"> {n}\n")


class Failing(Counting):
    """Raises on the steps it is told to, counted over all instances."""

    steps = 0
    bad: frozenset[int] = frozenset()

    def step(self, action: str) -> StepResult:
        type(self).steps += 1
        if type(self).steps in type(self).bad:
            raise RuntimeError("the server is gone")
        return super().step(action)


def failing(bad: Sequence[int] | range) -> type[Failing]:
    """A fresh failing class, so that counts are not shared between tests."""
    return type("FailingNow", (Failing,), {"steps": 0, "bad": frozenset(bad)})


class Hanging(Counting):
    def step(self, action: str) -> StepResult:
        time.sleep(30)
        raise AssertionError("nobody waits this long")


class ToyTokenizer:
    """Greedy longest match over single characters and some merges, so that decode and encode are no inverses.

    `[he, llo]` decodes to `hello`, which encodes to `[hello]`.
    """

    eos_token = "<eos>"
    chat_template = "toy"

    def __init__(self, merges: Sequence[str] = ("he", "llo", "hello", "12")) -> None:
        characters = [chr(code) for code in range(32, 127)] + ["\n"]
        self.vocabulary = [self.eos_token, *characters, *merges]
        self._ids = {text: index for index, text in enumerate(self.vocabulary)}
        ordered = sorted(self.vocabulary, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, ordered)))
        self.eos_token_id = 0

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __call__(self, text: str, add_special_tokens: bool = True, return_offsets_mapping: bool = False) -> dict:
        found = list(self._pattern.finditer(text))
        encoded = {"input_ids": [self._ids[match.group()] for match in found]}
        if return_offsets_mapping:
            encoded["offset_mapping"] = [match.span() for match in found]
        return encoded

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.vocabulary[int(token)] for token in ids)

    def apply_chat_template(self, messages, tools=None, tokenize=False, add_generation_prompt=False) -> str:
        assert tools is None, "no tools means None (huggingface/trl#5379)"
        text = "".join(f"<{m['role']}>{m['content']}{self.eos_token}\n" for m in messages)
        return text + ("<assistant>" if add_generation_prompt else "")


class ForgetfulTokenizer(ToyTokenizer):
    """A template that drops the thought of earlier answers, as reasoning models' do."""

    def apply_chat_template(self, messages, tools=None, tokenize=False, add_generation_prompt=False) -> str:
        last = max(i for i, m in enumerate(messages) if m["role"] == "user")
        kept = [
            {**m, "content": re.sub(r"<think>.*</think>\s*", "", m["content"], flags=re.DOTALL)} if i < last else m
            for i, m in enumerate(messages)
        ]
        return super().apply_chat_template(kept, tools, tokenize, add_generation_prompt)


class ScriptedEngine:
    """Answers with given token ids, in order per (group, member), and keeps every request."""

    def __init__(self, script: Callable[[Request], Sequence[int]], version: int = 0) -> None:
        self.requests: list[Request] = []
        self.released: list[str] = []
        self._script, self._version = script, version

    async def generate(self, request: Request) -> Generation:
        self.requests.append(request)
        room, reason = request.limits.binding(len(request.token_ids))
        ids = list(self._script(request))
        if len(ids) <= room:
            reason = StopReason.STOP if ids and ids[-1] in request.stop else reason
        ids = ids[:room]
        logps = -np.arange(1, len(ids) + 1, dtype=np.float32)
        return Generation(np.array(ids, np.int32), logps, np.full(len(ids), self._version, np.int32), reason)

    @contextmanager
    def participant(self) -> Iterator[None]:
        yield

    async def release(self, session: str) -> None:
        self.released.append(session)

    def load_weights(self, state, version: int) -> None:
        self._version = version

    def metrics(self) -> dict[str, float]:
        return {}


def saying(tokenizer: ToyTokenizer, answers: Callable[[Request], str]) -> ScriptedEngine:
    """An engine that writes text."""
    return ScriptedEngine(lambda request: tokenizer(answers(request))["input_ids"])


def counting_world(config) -> CountingWorld:
    """Builds the world from its configuration, as entry points do."""
    return CountingWorld(goals=range(1, 5))
