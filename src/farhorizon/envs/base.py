"""What an environment author writes: a `World` of tasks, and an `Environment` that plays one at a time.

Authors see text and actions; tokens, prompts and batching belong to the framework. Methods of an
`Environment` may be plain or `async`: the driver runs plain ones in a thread of the environment's own, so
one that blocks delays nobody else and one that hangs is given up after a deadline.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from farhorizon.core.record import Task
from farhorizon.core.values import Json, check_json

if TYPE_CHECKING:
    from farhorizon.envs.players import MakePlayer


@dataclass(frozen=True)
class Start:
    """A start state along a known path: these actions are replayed before the agent's first turn."""

    actions: tuple[str, ...] = ()
    """Actions from the true start, in order; empty for the true start itself."""

    @property
    def depth(self) -> int:
        """Replayed turns."""
        return len(self.actions)


@dataclass(frozen=True)
class Episode:
    """Circumstances of one episode, fixed when it starts."""

    seed: int
    """Noise of this member alone."""
    group_seed: int
    """Noise that all members of the group share."""
    update: int
    """Update the episode belongs to."""
    horizon: int
    """Maximum turns (law 5)."""
    start: Start = Start()
    """Where it starts."""
    training: bool = True
    """False in evaluation; wrappers that help training do nothing then (law 8)."""


@dataclass(frozen=True)
class StepResult:
    """What follows an action."""

    observation: str
    """Shown to the agent."""
    reward: float = 0.0
    """Reward of this step."""
    terminated: bool = False
    """The episode reached an end of its own."""
    truncated: bool = False
    """The environment's own limit was hit."""
    success: bool | None = None
    """Whether the task is solved so far; declared, never guessed from the reward. None: there is no such notion."""
    info: dict[str, Json] = field(default_factory=dict)
    """Further facts. `valid` is False when the action was malformed or refused; `normalised` is the action as
    executed where it differs from what was written."""

    def __post_init__(self) -> None:
        if not isinstance(self.observation, str):
            raise TypeError(f"the observation of a step is a {type(self.observation).__name__}, not a str")
        object.__setattr__(self, "reward", float(self.reward))
        check_json(self.reward, "the reward of a step")
        for name in ("terminated", "truncated", "success"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else bool(value))
        check_json(self.info, "info of a step")


@dataclass(frozen=True)
class Example:
    """A worked episode shown to the agent: observations and the actions taken on them, of equal number."""

    observations: tuple[str, ...]
    """The first is the task's opening observation."""
    actions: tuple[str, ...]
    """`actions[k]` answers `observations[k]`."""

    def __post_init__(self) -> None:
        if len(self.observations) != len(self.actions):
            raise ValueError(f"{len(self.observations)} observations but {len(self.actions)} actions")


class Environment(ABC):
    """Plays one episode at a time. Every method may be plain or `async`."""

    @abstractmethod
    def reset(self, task: Task, episode: Episode) -> str | Awaitable[str]:
        """Begin an episode of `task` at its true start (the driver replays `episode.start`) and return the
        opening observation. The same task and episode give the same episode in any process."""

    @abstractmethod
    def step(self, action: str) -> StepResult | Awaitable[StepResult]:
        """Take an action. A malformed one is answered with a helpful observation and `info["valid"] = False`;
        raising means that the environment is broken, and the episode is begun anew on a fresh instance."""

    def close(self) -> Awaitable[None] | None:
        """Release what the instance holds; called once, also after a fault."""
        return None

    def snapshot(self) -> Json | Awaitable[Json]:
        """The state as a JSON value that `restore` accepts on any instance. Optional."""
        raise NotImplementedError(f"{type(self).__name__} has no snapshot")

    def restore(self, snapshot: Json) -> str | Awaitable[str]:
        """Return to a snapshot; returns the observation that was current when it was taken. Optional."""
        raise NotImplementedError(f"{type(self).__name__} has no snapshot")

    def available_actions(self) -> Sequence[str] | None:
        """Valid actions in the current state, in a fixed order, or None where they cannot be listed."""
        return None

    def state_key(self) -> str | None:
        """Identity of the current state, equal for equal states of one task, or None."""
        return None


class World(ABC):
    """A family of tasks and the environments that play them."""

    name: str
    """As recipes name it."""
    version: str
    """Changes whenever any task, observation or reward does."""

    @abstractmethod
    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of `train` or `eval` in a fixed order. The splits share no content."""

    @abstractmethod
    def make(self) -> Environment:
        """A fresh, independent environment."""

    @abstractmethod
    def instructions(self) -> str:
        """Rules and action formats, for the head of a prompt."""

    def examples(self) -> Sequence[Example]:
        """Worked episodes on tasks outside every split, simplest first."""
        return ()

    def oracle(self, task: Task) -> Sequence[str] | None:
        """Actions that solve `task` from its true start, or None where no solution is known."""
        return None

    def heuristics(self) -> "Mapping[str, MakePlayer]":
        """Players that follow a simple rule, by name, for a policy to be compared with."""
        return {}

    def texts(self) -> Iterable[str]:
        """Texts that together hold every word the world can show or accept, for the vocabulary of `micro`."""
        return ()
