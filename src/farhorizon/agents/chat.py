"""The model's own chat template, turn by turn.

Most templates are append-only: what they write for the first turns stays when more follow. For those the tokens
of a new turn are worked out once from a stand-in conversation and appended to what was really sampled, so
nothing sampled is ever re-encoded. Templates that rewrite history (dropping earlier thoughts, say) fork a context
each turn.
"""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farhorizon.agents.base import Action, Fork, ParseError, Piece
from farhorizon.agents.encoding import encode, encode_marked, end_ids
from farhorizon.config import agent as config
from farhorizon.core.errors import UserError
from farhorizon.core.record import Origin
from farhorizon.envs.base import World

ChatMessage = dict[str, str]

_REACT = (
    "Answer each message with a short thought and then exactly one line of the form\n"
    "Action: the action\n"
    "and nothing after it."
)
_ACTION_ONLY = "Answer each message with exactly one action and nothing else."
_STAND_IN = "stand-in"


class ChatRenderer:
    """Writes episodes through `apply_chat_template`.

    Raises:
        UserError: the tokenizer has no chat template.
    """

    def __init__(self, config: config.Chat, *, tokenizer: Any, world: World) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise UserError('[agent.renderer] kind = "chat", but the model has no chat template; use "transcript"')
        self.tokenizer = tokenizer
        self.style = config.style
        self.opening = _opening(config, world)
        self.end = self._end_of_turn()
        self.stop = end_ids(tokenizer) | {self.end}
        self.stable = self._is_stable()

    def script(self) -> "ChatScript":
        return ChatScript(self)

    def render(self, messages: list[ChatMessage], *, prompt: bool) -> str:
        """The template's text; tools are None, since an empty list changes some templates (huggingface/trl#5379)."""
        return str(
            self.tokenizer.apply_chat_template(messages, tools=None, tokenize=False, add_generation_prompt=prompt)
        )

    def tail(self, observation: str) -> str:
        """Template text between the end of an answer and the next generation prompt, the end marker included."""
        before = [*self.opening, {"role": "user", "content": _STAND_IN}]
        after = [*before, {"role": "assistant", "content": _STAND_IN}, {"role": "user", "content": observation}]
        head = self.render(before, prompt=True) + _STAND_IN
        return self.render(after, prompt=True)[len(head) :]

    def _end_of_turn(self) -> int:
        """The special token the template closes an answer with, often another than the one that ends a text."""
        first = encode(self.tokenizer, self.tail(_STAND_IN))[:1]
        special = {*getattr(self.tokenizer, "all_special_ids", ()), *end_ids(self.tokenizer)}
        if not first or first[0] not in special:
            raise UserError(
                '[agent.renderer] kind = "chat": the model\'s template closes answers with no special token, '
                'so nothing would end one; use "transcript"'
            )
        return first[0]

    def _is_stable(self) -> bool:
        messages = list(self.opening)
        text = ""
        for turn in range(4):
            messages.append({"role": "user", "content": f"{_STAND_IN} {turn}"})
            prompt = self.render(messages, prompt=True)
            if not prompt.startswith(text):
                return False
            answer = f"<think>\n{_STAND_IN}\n</think>\n\nAction: {_STAND_IN}" if self.style == "react" else _STAND_IN
            messages.append({"role": "assistant", "content": answer})
            text = prompt + answer
        return True


class ChatScript:
    """One conversation."""

    def __init__(self, renderer: ChatRenderer) -> None:
        self.stop = renderer.stop
        self._renderer = renderer
        self._messages = list(renderer.opening)
        self._end_sampled = False

    def show(self, observation: str) -> tuple[Piece, ...] | Fork:
        first = len(self._messages) == len(self._renderer.opening)
        self._messages.append({"role": "user", "content": observation})
        if first or not self._renderer.stable:
            text = self._renderer.render(self._messages, prompt=True)
            pieces = self._marked(text, observation)
            return pieces if first else Fork(pieces)
        text = self._renderer.tail(observation)
        if self._end_sampled:
            text = text.removeprefix(str(self._renderer.tokenizer.decode([self._renderer.end])))
        return self._marked(text, observation)

    def wrote(self, token_ids: NDArray[np.int32]) -> str:
        last = int(token_ids[-1]) if len(token_ids) else None
        self._end_sampled = last == self._renderer.end
        kept = token_ids[:-1] if last in self.stop else token_ids
        text = str(self._renderer.tokenizer.decode(kept))
        self._messages.append({"role": "assistant", "content": text})
        return text

    def replay(self, action: str) -> tuple[int, ...]:
        text = f"Action: {action}" if self._renderer.style == "react" else action
        self._messages.append({"role": "assistant", "content": text})
        self._end_sampled = True
        return (*encode(self._renderer.tokenizer, text), self._renderer.end)

    def parse(self, text: str) -> Action | ParseError:
        return _parse_react(text) if self._renderer.style == "react" else _parse_action(text)

    def _marked(self, text: str, observation: str) -> tuple[Piece, ...]:
        shown = observation.strip()  # templates trim
        at = text.rfind(shown) if shown else -1
        marks = [] if at < 0 else [(at, at + len(shown), Origin.OBSERVATION)]
        return encode_marked(self._renderer.tokenizer, text, marks)


def _parse_react(text: str) -> Action | ParseError:
    actions = [found.strip() for found in re.findall(r"^\s*Action:(.*)$", text, flags=re.MULTILINE)]
    if not actions:
        return ParseError('No action was found. End with one line of the form "Action: the action".')
    if len(actions) > 1:
        return ParseError(f"{len(actions)} actions were found. Write exactly one line that begins with Action:")
    return Action(actions[0]) if actions[0] else ParseError('The line "Action:" is empty. Write the action behind it.')


def _parse_action(text: str) -> Action | ParseError:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ParseError("Nothing was written. Write one action.")
    if len(lines) > 1:
        return ParseError(f"{len(lines)} lines were written. Write exactly one action on one line.")
    return Action(lines[0])


def _opening(config: config.Chat, world: World) -> list[ChatMessage]:
    examples = world.examples()
    if config.examples > len(examples):
        raise UserError(
            f'[agent.renderer] examples = {config.examples}, but "{world.name}" has {len(examples)} worked episodes'
        )
    rule = _REACT if config.style == "react" else _ACTION_ONLY
    messages = [{"role": "system", "content": f"{world.instructions()}\n\n{rule}"}]
    for example in examples[: config.examples]:
        for observation, action in zip(example.observations, example.actions, strict=True):
            answer = f"Action: {action}" if config.style == "react" else action
            messages += [{"role": "user", "content": observation}, {"role": "assistant", "content": answer}]
    return messages
