import numpy as np
import pytest

from farhorizon.core.record import Branch, Context, Origin, Segment, Task, Turn


def sampled(ids):
    return Segment(Origin.SAMPLED, ids, -np.ones(len(ids)), np.zeros(len(ids)))


def test_free_fields_hold_json_and_say_where_they_do_not():
    with pytest.raises(TypeError, match=r"data of task t\.a\[1\] is a set"):
        Task("t", "e", "train", data={"a": [1, {2}]})
    with pytest.raises(TypeError, match="nan"):
        Turn("o", "a", "a", info={"x": float("nan")})


def test_only_sampled_segments_carry_log_probabilities_and_they_must():
    with pytest.raises(ValueError, match="needs logp_behaviour"):
        Segment(Origin.SAMPLED, [1, 2])
    with pytest.raises(ValueError, match="cannot carry"):
        Segment(Origin.OBSERVATION, [1], logp_behaviour=[-1.0])


def test_tokens_cannot_be_changed_afterwards():
    segment = sampled([1, 2])
    with pytest.raises(ValueError, match="read-only"):
        segment.token_ids[0] = 5


def test_trunk_tokens_are_owned_by_the_trunk():
    segments = (
        Segment(Origin.TEMPLATE, [1, 2]),
        sampled([3, 4]),
        Segment(Origin.OBSERVATION, [5]),
        sampled([6]),
    )
    branch = Context(segments, parent=Branch("0/0/0", 0, 4))
    assert Context(segments).sampled.tolist() == [False, False, True, True, False, True]
    assert branch.sampled.tolist() == [False, False, False, False, False, True]


def test_arrays_have_one_row_per_token():
    context = Context((sampled([1, 2]),))
    assert context.with_arrays(advantage=np.zeros(2)).arrays["advantage"].shape == (2,)
    with pytest.raises(ValueError, match="advantage"):
        context.with_arrays(advantage=np.zeros(3))
