from farhorizon.core.index import Index
from farhorizon.core.record import Group, Status, StopReason, Task, Trajectory
from farhorizon.core.store import update_path, write_update


def group(update, success):
    task = Task(f"t/{update % 2}", "e", "train", "d", 1)
    trajectory = Trajectory(
        f"rollout/{update}/0/0", task, (), (), (), Status.OK, StopReason.TERMINATED, success, 0, 0, horizon=3
    )
    return Group(f"rollout/{update}/0", task, (trajectory,), 0, 0, 1)


def test_index_answers_across_updates_and_follows_the_files(tmp_path):
    for update in range(4):
        write_update(tmp_path, update, [group(update, update > 1)])
    index = Index(tmp_path)
    assert [row["id"] for row in index.rows("success = 1")] == ["rollout/2/0/0", "rollout/3/0/0"]
    assert [row["of_update"] for row in index.rows("task = ?", ("t/1",))] == [1, 3]
    update_path(tmp_path, 3).unlink()
    write_update(tmp_path, 0, [group(0, True)])
    assert [row["of_update"] for row in index.rows("success = 1")] == [0, 2]


def test_index_is_rebuilt_when_it_is_deleted(tmp_path):
    write_update(tmp_path, 0, [group(0, None)])
    before = Index(tmp_path).rows()
    (tmp_path / "index.sqlite").unlink()
    assert Index(tmp_path).rows() == before
    assert before[0]["success"] is None
