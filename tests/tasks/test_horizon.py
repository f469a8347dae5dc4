import pytest

from farhorizon.config.horizon import Fixed, Stages
from farhorizon.core.taskstats import TaskStats


@pytest.mark.parametrize(
    ("update", "expected"), [(0, 10), (99, 10), (100, 20), (101, 20), (199, 20), (200, 30), (5000, 30)]
)
def test_agentgym_a1_horizon_is_a_function_of_the_update_alone(update, expected):
    """Resumed at 100, the released scheduler gives 30 from step 102 on; ours cannot know where a run began."""
    stats = TaskStats()
    begun_here = Stages(values=(10, 20, 30), every=100).build()
    begun_before = Stages(values=(10, 20, 30), every=100).build()
    for earlier in range(update):
        begun_before.horizon(earlier, stats)
    assert begun_here.horizon(update, stats) == begun_before.horizon(update, stats) == expected


def test_longest_horizon_is_what_evaluation_uses():
    assert Stages(values=(4, 8, 12), every=5).build().longest == 12
    assert Fixed(turns=7).build().longest == 7
