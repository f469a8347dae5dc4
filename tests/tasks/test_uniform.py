from collections import Counter

import pytest
from toys import CountingWorld

from farhorizon.config.tasks import Uniform
from farhorizon.core.errors import UserError
from farhorizon.core.taskstats import TaskStats

stats = TaskStats()


def source(seed=0, **config):
    return Uniform(**{"groups": 3, "size": 2, **config}).build(world=CountingWorld(), seed=seed)


def test_every_task_comes_once_per_pass():
    handed = [a.task.id for update in range(8) for a in source().next(3, stats, update)]
    assert set(Counter(handed).values()) == {6}
    assert len(set(handed[:4])) == 4


def test_transformers_40691_passes_differ_and_resuming_changes_nothing():
    first = [a.task.id for update in range(4) for a in source().next(3, stats, update)]
    assert first[:4] != first[4:8] or first[4:8] != first[8:12]
    assert [a.task.id for a in source().next(3, stats, 3)] == first[9:12]


def test_groups_asked_for_again_shift_nothing():
    before = source().next(3, stats, 5)
    again = source().next(2, stats, 4, asked=3)
    assert len(again) == 2
    assert source().next(3, stats, 5) == before


def test_part_way_starts_are_a_proper_part_of_the_oracles_path():
    assignments = [a for update in range(60) for a in source(part_way=0.5).next(3, stats, update)]
    depths = [a.start.depth for a in assignments if a.task.data["goal"] > 1]
    assert 0.3 < sum(depth > 0 for depth in depths) / len(depths) < 0.7
    assert all(a.start.depth < max(a.task.data["goal"], 1) for a in assignments)
    assert all(a.start.actions == tuple(str(n + 1) for n in range(a.start.depth)) for a in assignments)


def test_a_world_without_training_tasks_is_named():
    with pytest.raises(UserError, match='"counting" has no training tasks'):
        Uniform().build(world=CountingWorld(goals=()), seed=0)
