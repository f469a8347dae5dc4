"""The record of what happened: one set of frozen dataclasses read by training, replay, viewer and tests.

Tokens live in `Context`s exactly as a model saw them; everything else refers to them by span. Free fields
hold JSON values and are checked at construction, so that what is written can always be read back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from farhorizon.core.values import Json, check_json

ContextKey = tuple[int, int, int]
"""A context of an update: positions of its group, of the trajectory in the group, of the context in that."""


class Origin(StrEnum):
    """Where a token came from. What it may be trained on follows from this alone (law 2)."""

    TEMPLATE = "template"
    """Written by the renderer: instructions, worked examples, role markers."""
    OBSERVATION = "observation"
    """Written by the environment."""
    HINT = "hint"
    """Written by a training wrapper; never seen in evaluation."""
    PREFIX = "prefix"
    """An action replayed to reach a start state."""
    DEMONSTRATED = "demonstrated"
    """An action of a demonstrator; supervised and preference losses may train on it."""
    SAMPLED = "sampled"
    """Sampled by the policy; the only tokens an RL loss sits on."""

    @property
    def code(self) -> int:
        """Position in the enumeration, as stored in token arrays."""
        return _ORIGIN_CODES[self]


ORIGINS: tuple[Origin, ...] = tuple(Origin)
_ORIGIN_CODES = {origin: code for code, origin in enumerate(ORIGINS)}


class Status(StrEnum):
    """How a trajectory ended, as far as training is concerned."""

    OK = "ok"
    """The environment ended the episode."""
    TRUNCATED = "truncated"
    """A limit of ours ended it: horizon or tokens."""
    AGENT_FAULT = "agent_fault"
    """The agent made going on impossible; scored."""
    INFRA_FAULT = "infra_fault"
    """Environment or engine broke; set aside, never scored (law 4)."""


class StopReason(StrEnum):
    """Why a generation or a trajectory ended."""

    STOP = "stop"
    """A stop token was sampled (generations)."""
    TERMINATED = "terminated"
    """The environment reached an end."""
    HORIZON = "horizon"
    """The turns in force at the start of the episode were used up (law 5)."""
    ENV_TRUNCATED = "env_truncated"
    """The environment's own limit."""
    TURN_TOKENS = "turn_tokens"
    """One turn's token limit (generations; the episode goes on)."""
    TRAJECTORY_TOKENS = "trajectory_tokens"
    """The limit on sampled tokens over the whole trajectory."""
    CONTEXT_OVERFLOW = "context_overflow"
    """The context has no room for another token."""
    TIMEOUT = "timeout"
    """The environment did not answer in time, on every retry."""
    ENV_FAULT = "env_fault"
    """The environment raised, on every retry."""


@dataclass(frozen=True)
class Task:
    """One thing to do: a pure function of environment version and id."""

    id: str
    """Unique within the environment, stable across machines."""
    env: str
    """Name of the environment."""
    split: str
    """`train`, `eval` or another split the environment declares."""
    domain: str = ""
    """Category reported on its own."""
    level: int = 0
    """Difficulty; larger is harder, the unit is the environment's."""
    data: dict[str, Json] = field(default_factory=dict)
    """What the environment needs to set the task up."""

    def __post_init__(self) -> None:
        check_json(self.data, f"data of task {self.id}")


def _frozen(array: Any, dtype: Any) -> NDArray[Any]:
    copy = np.array(array, dtype=dtype)
    copy.setflags(write=False)
    return copy


@dataclass(frozen=True, eq=False)
class Segment:
    """A run of tokens of one origin."""

    origin: Origin
    """Where the tokens came from."""
    token_ids: NDArray[np.int32]
    """Exact ids, `[tokens]`."""
    logp_behaviour: NDArray[np.float32] | None = None
    """Sampler's log-probabilities at the sampling temperature, un-truncated, `[tokens]`; sampled tokens only."""
    policy_version: NDArray[np.int32] | None = None
    """Version of the weights that sampled each token, `[tokens]`; sampled tokens only."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "token_ids", _frozen(self.token_ids, np.int32))
        sampled = self.origin is Origin.SAMPLED
        for name, dtype in (("logp_behaviour", np.float32), ("policy_version", np.int32)):
            value = getattr(self, name)
            if sampled != (value is not None):
                raise ValueError(f"a {self.origin} segment {'needs' if sampled else 'cannot carry'} {name}")
            if value is not None:
                value = _frozen(value, dtype)
                if value.shape != self.token_ids.shape:
                    raise ValueError(f"{name} has shape {value.shape}, the tokens {self.token_ids.shape}")
                object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.token_ids)


@dataclass(frozen=True)
class Branch:
    """Where a context leaves another one: it begins with the first `length` tokens of that context."""

    trajectory: str
    """Id of the trajectory that owns the trunk."""
    context: int
    """Index of the trunk among its contexts."""
    length: int
    """Tokens shared."""


@dataclass(frozen=True, eq=False)
class Context:
    """The exact token stream a model saw as one sequence."""

    segments: tuple[Segment, ...]
    """In order; their tokens joined are the stream (a branch's trunk tokens included)."""
    parent: Branch | None = None
    """Set for a branch: the trunk owns the shared tokens and carries their loss."""
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Named per-token arrays `[tokens, …]` added after sampling: advantages, values, reference log-probabilities."""

    def __post_init__(self) -> None:
        for name, array in self.arrays.items():
            if array.shape[:1] != (len(self),):
                raise ValueError(f"array {name} has shape {array.shape} in a context of {len(self)} tokens")

    def __len__(self) -> int:
        return sum(len(segment) for segment in self.segments)

    @cached_property
    def token_ids(self) -> NDArray[np.int32]:
        """All ids, `[tokens]`."""
        return np.concatenate([np.zeros(0, np.int32), *(segment.token_ids for segment in self.segments)])

    @cached_property
    def origins(self) -> NDArray[np.uint8]:
        """`Origin.code` of each token, `[tokens]`."""
        return np.concatenate(
            [np.zeros(0, np.uint8), *(np.full(len(s), s.origin.code, np.uint8) for s in self.segments)]
        )

    @cached_property
    def sampled(self) -> NDArray[np.bool_]:
        """True on the sampled tokens this context owns, `[tokens]`: those behind its trunk."""
        mask = self.origins == Origin.SAMPLED.code
        if self.parent is not None:
            mask[: self.parent.length] = False
        return mask

    @cached_property
    def logp_behaviour(self) -> NDArray[np.float32]:
        """Sampler's log-probabilities, NaN where nothing was sampled, `[tokens]`."""
        return self._spread("logp_behaviour", np.float32, np.nan)

    @cached_property
    def policy_version(self) -> NDArray[np.int32]:
        """Policy versions, -1 where nothing was sampled, `[tokens]`."""
        return self._spread("policy_version", np.int32, -1)

    def _spread(self, name: str, dtype: Any, fill: float) -> NDArray[Any]:
        pieces = [getattr(s, name) if s.origin is Origin.SAMPLED else np.full(len(s), fill) for s in self.segments]
        return np.concatenate([np.zeros(0), *pieces]).astype(dtype)

    def with_arrays(self, **arrays: NDArray[Any]) -> "Context":
        """The same context with further per-token arrays."""
        return replace(self, arrays={**self.arrays, **arrays})


@dataclass(frozen=True)
class Span:
    """Tokens `start` to `stop` (exclusive) of one context."""

    context: int
    """Index among the trajectory's contexts."""
    start: int
    """First token."""
    stop: int
    """One past the last token."""


@dataclass(frozen=True)
class Call:
    """One generation."""

    role: str
    """What the model was asked for: `act`, `thought`, `summary`, …"""
    policy: str
    """Model role that answered: `policy`, `opponent.…`"""
    span: Span
    """The sampled tokens."""
    sampling: dict[str, Json]
    """Sampling parameters in force."""
    stop_reason: StopReason
    """Why the generation ended."""

    def __post_init__(self) -> None:
        check_json(self.sampling, "sampling parameters")


@dataclass(frozen=True)
class Turn:
    """One observation and the action taken on it."""

    observation: str
    """What the agent was shown."""
    action: str
    """What it wrote, decoded for people; never re-encoded."""
    parsed: str | None
    """The action sent to the environment; None when nothing could be parsed."""
    parse_error: str | None = None
    """What was wrong with the text, as told to the agent."""
    terminated: bool = False
    """The environment ended the episode on this action."""
    truncated: bool = False
    """The environment's own limit ended it."""
    success: bool | None = None
    """Whether the task stood solved after this action, as the environment declares; None where it says nothing."""
    info: dict[str, Json] = field(default_factory=dict)
    """What the environment said beside the observation; `valid` is false for an action it refused."""
    timings: dict[str, float] = field(default_factory=dict)
    """Wall seconds: `generate`, `env`."""
    state_key: str | None = None
    """Identity of the environment state the action was taken in, for anchors."""
    snapshot_ref: str | None = None
    """Where the state can be restored from."""
    calls: tuple[Call, ...] = ()
    """Model calls in order; empty for a replayed turn. The turn's reward sits on the last one."""

    def __post_init__(self) -> None:
        check_json(self.info, "info of a turn")


@dataclass(frozen=True)
class Reward:
    """A named part of the reward and what it belongs to (law 3)."""

    name: str
    """Which part: `environment`, `length`, a judge's name."""
    value: float
    """Amount."""
    at: Literal["trajectory"] | int | Span = "trajectory"
    """The whole trajectory, a turn's index, or a span; it reaches the last action token of it."""

    def __post_init__(self) -> None:
        check_json(float(self.value), f"reward {self.name}")


@dataclass(frozen=True)
class PolicyRef:
    """Which policy acted."""

    name: str = "policy"
    """Model role."""
    version: int = 0
    """Version when the episode began; tokens carry their own."""
    perturbation_seed: int | None = None
    """Seed of the perturbed member, in evolution strategies."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One learned actor's episode."""

    id: str
    """Unique within the run: `update/group/member`."""
    task: Task
    """What was to be done."""
    contexts: tuple[Context, ...]
    """Token streams; append-only agents have one."""
    turns: tuple[Turn, ...]
    """Observations and actions, replayed ones first."""
    rewards: tuple[Reward, ...]
    """Named parts."""
    status: Status
    """How it ended for training."""
    stop_reason: StopReason
    """Why it ended."""
    success: bool | None
    """As the environment declares; None where it does not, or the episode broke."""
    seed: int
    """Episode seed."""
    group_seed: int
    """Seed shared by the group."""
    horizon: int
    """Maximum turns in force when the episode began."""
    start_depth: int = 0
    """Replayed turns before the policy's first."""
    group: int = 0
    """Index of its group within the update."""
    episode_id: str = ""
    """Shared by the trajectories of all actors of one episode."""
    policy: PolicyRef = PolicyRef()
    """Who acted."""
    retries: int = 0
    """Times the episode was begun anew after an infrastructure fault."""
    faults: tuple[str, ...] = ()
    """What the faults said, one line each."""
    forks: int = 0
    """Contexts opened because a prompt did not extend the stream."""

    @property
    def total_reward(self) -> float:
        """Sum of all reward parts."""
        return float(sum(reward.value for reward in self.rewards))

    @property
    def sampled_tokens(self) -> int:
        """Tokens the policy sampled and owns."""
        return int(sum(context.sampled.sum() for context in self.contexts))

    @property
    def scored(self) -> bool:
        """False for what infrastructure broke: such trajectories enter neither baseline nor loss."""
        return self.status is not Status.INFRA_FAULT


@dataclass(frozen=True)
class Comparison:
    """A judgement between two members of a group."""

    winner: str
    """Trajectory id."""
    loser: str
    """Trajectory id."""
    p: float
    """Probability that the winner is better."""
    judge: str
    """Who says so."""


@dataclass(frozen=True, eq=False)
class Group:
    """Trajectories of one task from one start."""

    id: str
    """Unique within the run: `update/group`."""
    task: Task
    """The common task."""
    trajectories: tuple[Trajectory, ...]
    """Members, broken ones included."""
    start_depth: int
    """Replayed turns before each member's first."""
    seed: int
    """Group seed."""
    requested: int
    """Size asked for."""
    short_reason: str | None = None
    """Why fewer members than asked for can be used."""
    weight: float = 1.0
    """Factor of its terms in the loss, given by the task source."""
    comparisons: tuple[Comparison, ...] = ()
    """Pairwise judgements."""

    @property
    def scored(self) -> tuple[Trajectory, ...]:
        """The members that training may use."""
        return tuple(trajectory for trajectory in self.trajectories if trajectory.scored)
