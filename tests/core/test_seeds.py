import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from farhorizon.core.seeds import Key, uniforms


def test_every_field_changes_the_noise():
    base = Key(0, "rollout")
    others = [Key(1, "rollout"), Key(0, "eval")]
    others += [base.at(**{name: 1}) for name in ("update", "group", "member", "retry", "turn", "call")]
    assert len({key.digest() for key in [base, *others]}) == len(others) + 1


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 10**6), min_size=1, max_size=8))
def test_a_draw_does_not_depend_on_the_batch_it_is_drawn_in(digest, positions):
    together = uniforms([digest] * len(positions), positions)
    alone = [uniforms([digest], [position])[0] for position in positions]
    assert together.tolist() == alone
    assert ((together >= 0) & (together < 1)).all()


def test_uniforms_are_uniform_over_positions_and_over_keys():
    over_positions = uniforms([Key(3, "a").digest()] * 20000, range(20000))
    over_keys = uniforms([Key(i, "a").digest() for i in range(20000)], [0] * 20000)
    for draws in (over_positions, over_keys):
        counts, _ = np.histogram(draws, bins=20, range=(0, 1))
        assert ((counts - 1000) ** 2 / 1000).sum() < 43.8  # chi-square, 19 degrees of freedom, p = 0.001
