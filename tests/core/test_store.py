from dataclasses import fields, is_dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from farhorizon.core.record import (
    Branch,
    Call,
    Comparison,
    Context,
    Group,
    Origin,
    Reward,
    Segment,
    Span,
    Status,
    StopReason,
    Task,
    Trajectory,
    Turn,
)
from farhorizon.core.store import read_update, stored_updates, write_update

tokens = st.lists(st.integers(0, 50_000), min_size=1, max_size=6)


@st.composite
def segments(draw):
    ids, origin = draw(tokens), draw(st.sampled_from(Origin))
    if origin is Origin.SAMPLED:
        return Segment(origin, ids, -np.arange(len(ids)) / 7, np.full(len(ids), draw(st.integers(0, 99))))
    return Segment(origin, ids)


@st.composite
def trajectories(draw, name):
    contexts = tuple(Context(tuple(draw(st.lists(segments(), max_size=4)))) for _ in range(draw(st.integers(0, 2))))
    if contexts and len(contexts[0]):
        contexts += (Context(contexts[0].segments, parent=Branch(name, 0, 1)),)
    call = Call("act", "policy", Span(0, 1, 3), {"temperature": 0.5}, StopReason.TURN_TOKENS)
    turns = (
        Turn(
            "say “é” \u2028 \x85 \ud800\n",
            " x\n",
            "x",
            info={"valid": True, "n": [1, None]},
            calls=(call,),
            state_key="k",
        ),
    )
    rewards = (Reward("environment", 1.0, 0), Reward("length", -0.25), Reward("judge", 0.5, Span(0, 1, 2)))
    return Trajectory(
        name,
        Task("t", "e", "train", "d", 2, {"a": 1}),
        contexts,
        turns,
        rewards,
        draw(st.sampled_from(Status)),
        draw(st.sampled_from(StopReason)),
        draw(st.sampled_from([True, False, None])),
        2**63,
        5,
        7,
        faults=("x",),
    )


def same(a, b):
    if is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


@given(st.data())
def test_what_is_written_is_read_back_exactly(tmp_path_factory, data):
    directory = tmp_path_factory.mktemp("store")
    members = tuple(data.draw(trajectories(f"rollout/0/0/{i}")) for i in range(2))
    group = Group("rollout/0/0", members[0].task, members, 1, 3, 4, "why", 0.5, (Comparison("a", "b", 0.7, "judge"),))
    path = write_update(directory, 0, [group])
    assert same(read_update(path), [group])


def test_what_the_learner_adds_comes_back_on_its_tokens(tmp_path):
    contexts = tuple(Context((Segment(Origin.TEMPLATE, [i] * n),)) for i, n in enumerate((3, 2)))
    blank = {
        "turns": (),
        "rewards": (),
        "status": Status.OK,
        "stop_reason": StopReason.TERMINATED,
        "success": True,
    }
    trajectory = Trajectory(
        "rollout/4/0/0", Task("t", "e", "train"), contexts, **blank, seed=0, group_seed=0, horizon=1
    )
    added = {(0, 0, 1): {"advantage": np.array([1.5, np.nan], np.float32)}}
    write_update(tmp_path, 4, [Group("rollout/4/0", trajectory.task, (trajectory,), 0, 0, 1)], added)
    first, second = read_update(tmp_path / "update-000004.jsonl")[0].trajectories[0].contexts
    assert np.isnan(first.arrays["advantage"]).all()
    assert second.arrays["advantage"][0] == 1.5
    assert stored_updates(tmp_path) == [4]
