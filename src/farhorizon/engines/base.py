"""The engine slot: tokens in, tokens and their log-probabilities out.

One request per model call; an engine batches whatever is waiting. Limits are separate, and each is a
stop reason of its own, so that a cut trajectory says which budget cut it.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from farhorizon.core.record import StopReason
from farhorizon.core.seeds import Key


@dataclass(frozen=True)
class Sampling:
    """How a token is drawn."""

    temperature: float = 1.0
    """Logits are divided by it; 0 takes the most likely token (log-probabilities are then those at temperature 1)."""


@dataclass(frozen=True)
class Limits:
    """Room left for one generation, in tokens. The smallest binds and names the stop reason."""

    turn: int
    """Tokens this turn may still sample (`turn_tokens`)."""
    trajectory: int
    """Tokens the trajectory may still sample (`trajectory_tokens`)."""
    context: int
    """Tokens the whole context may hold, prompt included (`context_overflow`)."""

    def binding(self, prompt_tokens: int) -> tuple[int, StopReason]:
        """Tokens that may be sampled after a prompt of that length, and the reason to give when they are used up."""
        room = (
            (self.turn, StopReason.TURN_TOKENS),
            (self.trajectory, StopReason.TRAJECTORY_TOKENS),
            (self.context - prompt_tokens, StopReason.CONTEXT_OVERFLOW),
        )
        tokens, reason = min(room, key=lambda pair: pair[0])
        return max(tokens, 0), reason


@dataclass(frozen=True, eq=False)
class Request:
    """One generation asked for."""

    token_ids: NDArray[np.int32]
    """The whole prompt, `[tokens]`: everything the model is to see."""
    key: Key
    """Names the noise: position p of the generation uses `uniforms(key.digest(), p)`."""
    sampling: Sampling
    """How to draw."""
    limits: Limits
    """How much."""
    stop: frozenset[int] = frozenset()
    """Ids that end the generation; the one sampled is kept as its last token."""
    session: str | None = None
    """Requests of one session extend each other's tokens; an engine may keep their cache until `release`."""
    parent: str | None = None
    """Session this one branched from."""


@dataclass(frozen=True, eq=False)
class Generation:
    """What was sampled."""

    token_ids: NDArray[np.int32]
    """Sampled ids, `[tokens]`."""
    logps: NDArray[np.float32]
    """Log-probabilities at the sampling temperature, un-truncated, `[tokens]`."""
    version: NDArray[np.int32]
    """Policy version that sampled each token, `[tokens]`."""
    stop_reason: StopReason
    """`stop`, `turn_tokens`, `trajectory_tokens` or `context_overflow`."""
    kept_mass: NDArray[np.float32] | None = None
    """Probability kept by top-k or top-p at each token, `[tokens]`; None when nothing was cut."""
    seconds: float = field(default=0.0, compare=False)
    """Wall time from asking to answer."""


class Engine(Protocol):
    """A server of generations for one set of weights at a time."""

    async def generate(self, request: Request) -> Generation:
        """Answer one request; concurrent requests share a batch."""
        ...

    def participant(self) -> AbstractContextManager[None]:
        """Held by each running episode. A deterministic engine starts a batch only when every participant
        waits for one, so that the batch's members depend on keys alone (law 7)."""
        ...

    async def release(self, session: str) -> None:
        """Forget a session's cache; unknown sessions are ignored."""
        ...

    def load_weights(self, state: dict[str, Any], version: int) -> None:
        """Take over weights (a name -> tensor mapping, copied and cast) as policy `version`. Caches computed with
        other weights are dropped. Never called while a generation is under way."""
        ...

    def metrics(self) -> dict[str, float]:
        """Counters since the last call: `engine/prefill_tokens`, `engine/reused_tokens`, `engine/sampled_tokens`."""
        ...
