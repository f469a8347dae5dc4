"""The default agent: one context that grows turn by turn."""

from collections.abc import Sequence
from typing import Any

from farhorizon.agents.base import Action, ContextBuilder, Fork, Generate, ParseError, Piece, Script
from farhorizon.config import agent as config
from farhorizon.core.record import Call, Context, Origin, Turn
from farhorizon.envs.base import Episode, World


class AppendOnlyAgent:
    """Makes append-only episodes with one renderer."""

    def __init__(self, config: config.AppendOnly, *, tokenizer: Any, world: World) -> None:
        self._renderer = config.renderer.build(tokenizer=tokenizer, world=world)

    def begin(self, episode: Episode) -> "AppendOnlyEpisode":
        return AppendOnlyEpisode(self._renderer.script())


class AppendOnlyEpisode:
    """One episode. A renderer whose template rewrites history forks a context each turn, which is counted."""

    def __init__(self, script: Script) -> None:
        self.forks = 0
        self._script = script
        self._contexts = [ContextBuilder()]

    async def act(self, observation: str, generate: Generate) -> Turn:
        context, pieces = self._next(observation)
        index = len(self._contexts) - (context is self._contexts[-1])
        generation = await generate(context.token_ids(pieces), index, 0, self._script.stop)
        self._show(context, pieces)
        span = context.sampled(generation, index)
        text = self._script.wrote(generation.token_ids)
        action = self._script.parse(text)
        call = Call("act", "policy", span, {}, generation.stop_reason)
        return Turn(
            observation=observation,
            action=text,
            parsed=action.text if isinstance(action, Action) else None,
            parse_error=action.message if isinstance(action, ParseError) else None,
            timings={"generate": generation.seconds},
            calls=(call,),
        )

    def replay(self, observation: str, action: str, origin: Origin) -> Turn:
        context, pieces = self._next(observation)
        self._show(context, [*pieces, Piece(origin, self._script.replay(action))])
        return Turn(observation=observation, action=action, parsed=action)

    def contexts(self) -> tuple[Context, ...]:
        return tuple(builder.build() for builder in self._contexts)

    def _next(self, observation: str) -> tuple[ContextBuilder, Sequence[Piece]]:
        """The context an observation belongs to, perhaps a new one, and what it adds there; nothing is added yet."""
        shown = self._script.show(observation)
        if isinstance(shown, Fork):
            return ContextBuilder(), shown.pieces
        return self._contexts[-1], shown

    def _show(self, context: ContextBuilder, pieces: Sequence[Piece]) -> None:
        if context is not self._contexts[-1]:
            self._contexts.append(context)
            self.forks += 1
        context.append(pieces)
