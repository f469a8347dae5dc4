"""Plain text: what a 135M-parameter model can learn to act with.

    rules
    (a worked episode)
    observation
    > action
    observation
    >

The prompt ends in `>` and the model writes ` get 1 oak log` and a newline: a space before the action would be a
token that such text never has there.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from farhorizon.agents.base import Action, ParseError, Piece
from farhorizon.agents.encoding import encode, end_ids, ids_containing
from farhorizon.config import agent as config
from farhorizon.core.errors import UserError
from farhorizon.core.record import Origin
from farhorizon.envs.base import World

_PROMPT = "\n>"


class TranscriptRenderer:
    """Writes every episode of a world after the same head, which engines prefill once."""

    def __init__(self, config: config.Transcript, *, tokenizer: Any, world: World) -> None:
        self.tokenizer = tokenizer
        self.end = end_ids(tokenizer)
        self.stop = ids_containing(tokenizer, "\n") | self.end
        self.head = encode(tokenizer, _head(config, world))
        self.newline = encode(tokenizer, "\n")
        self.prompt = encode(tokenizer, _PROMPT)

    def script(self) -> "TranscriptScript":
        return TranscriptScript(self)


class TranscriptScript:
    """One episode in plain text."""

    def __init__(self, renderer: TranscriptRenderer) -> None:
        self.stop = renderer.stop
        self._renderer = renderer
        self._opened = self._line_open = False

    def show(self, observation: str) -> tuple[Piece, ...]:
        renderer = self._renderer
        before = renderer.head if not self._opened else renderer.newline if self._line_open else ()
        self._opened = self._line_open = True
        return (
            Piece(Origin.TEMPLATE, before),
            Piece(Origin.OBSERVATION, encode(renderer.tokenizer, observation)),
            Piece(Origin.TEMPLATE, renderer.prompt),
        )

    def wrote(self, token_ids: NDArray[np.int32]) -> str:
        ended = len(token_ids) > 0 and int(token_ids[-1]) in self._renderer.end
        text = str(self._renderer.tokenizer.decode(token_ids[:-1] if ended else token_ids))
        self._line_open = "\n" not in text
        return text

    def replay(self, action: str) -> tuple[int, ...]:
        self._line_open = False
        return encode(self._renderer.tokenizer, f" {action}\n")

    def parse(self, text: str) -> Action | ParseError:
        line = text.partition("\n")[0].strip()
        return Action(line) if line else ParseError("Nothing was written. Write one action.")


def _head(config: config.Transcript, world: World) -> str:
    examples = world.examples()
    if config.examples > len(examples):
        raise UserError(
            f'[agent.renderer] examples = {config.examples}, but "{world.name}" has {len(examples)} worked episodes'
        )
    blocks = [world.instructions()] if config.instructions else []
    for example in examples[: config.examples]:
        turns = zip(example.observations, example.actions, strict=True)
        blocks.append("\n".join(f"{observation}{_PROMPT} {action}" for observation, action in turns))
    return "".join(f"{block}\n\n" for block in blocks)
