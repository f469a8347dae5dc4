"""The agent slot: what stands between an environment's text and a model's tokens."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from farhorizon.core.record import Context, Origin, Segment, Span, Turn
from farhorizon.engines.base import Generation
from farhorizon.envs.base import Episode


@dataclass(frozen=True)
class Action:
    """What the environment is sent."""

    text: str
    """As the model wrote it, without surrounding white space."""


@dataclass(frozen=True)
class ParseError:
    """Why no action was found; the message is the agent's next observation."""

    message: str
    """One sentence that says what to write."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Tokens to append to a context."""

    origin: Origin
    """Where they come from."""
    token_ids: Sequence[int]
    """Exact ids."""


@dataclass(frozen=True, eq=False)
class Fork:
    """The next prompt does not extend the stream: a new context starts with these tokens."""

    pieces: tuple[Piece, ...]
    """The whole new prompt."""


class Script(Protocol):
    """A renderer's side of one episode: turns the conversation so far into what is appended next."""

    stop: frozenset[int]
    """Ids that end an action."""

    def show(self, observation: str) -> tuple[Piece, ...] | Fork:
        """Tokens that present an observation and ask for an action."""
        ...

    def wrote(self, token_ids: NDArray[np.int32]) -> str:
        """Take note of a sampled action; returns its text."""
        ...

    def replay(self, action: str) -> tuple[int, ...]:
        """Tokens of an action as the model would have written it, its end included; taken note of likewise."""
        ...

    def parse(self, text: str) -> Action | ParseError:
        """The action in what the model wrote."""
        ...


class Renderer(Protocol):
    """How conversations are written for a model."""

    def script(self) -> Script:
        """A fresh conversation."""
        ...


Generate = Callable[[NDArray[np.int32], int, int, frozenset[int]], Awaitable[Generation]]
"""Runs one generation: prompt ids `[tokens]`, index of its context, index of the call within the turn, stop ids.
Raises `OutOfTokens` when there is no room for a single token."""


class Agent(Protocol):
    """Plays one episode."""

    forks: int
    """Contexts opened because a prompt did not extend the stream."""

    async def act(self, observation: str, generate: Generate) -> Turn:
        """Answer an observation. `parsed` is None, with `parse_error` set, when no action was found."""
        ...

    def replay(self, observation: str, action: str, origin: Origin) -> Turn:
        """Take over a known action (`prefix` or `demonstrated`) without a model call."""
        ...

    def contexts(self) -> tuple[Context, ...]:
        """Token streams so far."""
        ...


class AgentFactory(Protocol):
    """Makes an agent for each episode."""

    def begin(self, episode: Episode) -> Agent:
        """A fresh agent."""
        ...


class ContextBuilder:
    """A context while it grows. Tokens are only ever appended (law 1)."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, pieces: Sequence[Piece]) -> None:
        """Add tokens nobody sampled."""
        for piece in pieces:
            if len(piece.token_ids):
                self._add(Segment(piece.origin, np.asarray(piece.token_ids, np.int32)))

    def sampled(self, generation: Generation, context: int) -> Span:
        """Add a generation exactly as the engine returned it."""
        start = self._length
        self._add(Segment(Origin.SAMPLED, generation.token_ids, generation.logps, generation.version))
        return Span(context, start, self._length)

    def token_ids(self, more: Sequence[Piece] = ()) -> NDArray[np.int32]:
        """The stream so far and what is to come, `[tokens]`."""
        return np.concatenate([self.build().token_ids, *(np.asarray(piece.token_ids, np.int32) for piece in more)])

    def build(self) -> Context:
        """The context as it stands."""
        return Context(tuple(self._segments))

    def _add(self, segment: Segment) -> None:
        self._segments.append(segment)
        self._length += len(segment)
