"""A rebuildable index over stored trajectories, for questions that span updates.

The files are the truth: the index is made from them when it is missing or out of step, and may be deleted.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from farhorizon.core.store import read_update, stored_updates, update_path

_COLUMNS = {
    "id": "TEXT PRIMARY KEY",
    "of_update": "INTEGER",
    "task": "TEXT",
    "domain": "TEXT",
    "level": "INTEGER",
    "start_depth": "INTEGER",
    "turns": "INTEGER",
    "sampled_tokens": "INTEGER",
    "reward": "REAL",
    "success": "INTEGER",
    "status": "TEXT",
    "stop_reason": "TEXT",
}


class Index:
    """One row per stored trajectory of a folder, in `index.sqlite` beside the files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / "index.sqlite"

    def rows(self, where: str = "1", arguments: tuple[Any, ...] = ()) -> list[dict[str, Any]]:
        """Rows that satisfy an SQL condition over the columns, in the order of updates and ids.

        Raises:
            sqlite3.Error: the condition is no SQL.
        """
        try:
            self._catch_up()
        except sqlite3.DatabaseError:  # damaged: the files are the truth
            self._path.unlink()
            self._catch_up()
        with closing(sqlite3.connect(self._path)) as database:
            database.row_factory = sqlite3.Row
            found = database.execute(f"SELECT * FROM trajectories WHERE {where} ORDER BY of_update, rowid", arguments)
            return [dict(row) for row in found]

    def _catch_up(self) -> None:
        stored = set(stored_updates(self._directory))
        with closing(sqlite3.connect(self._path)) as database, database:
            columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
            database.execute(f"CREATE TABLE IF NOT EXISTS trajectories ({columns})")
            database.execute("CREATE TABLE IF NOT EXISTS updates (number INTEGER PRIMARY KEY, written INTEGER)")
            known = dict(database.execute("SELECT number, written FROM updates"))
            for update in known.keys() | stored:
                path = update_path(self._directory, update)
                written = path.stat().st_mtime_ns if update in stored else None
                if known.get(update) == written:
                    continue
                database.execute("DELETE FROM trajectories WHERE of_update = ?", (update,))
                database.execute("DELETE FROM updates WHERE number = ?", (update,))
                if written is not None:
                    marks = ", ".join("?" for _ in _COLUMNS)
                    database.executemany(f"INSERT INTO trajectories VALUES ({marks})", _rows(path, update))
                    database.execute("INSERT INTO updates VALUES (?, ?)", (update, written))


def _rows(path: Path, update: int) -> Iterator[tuple[Any, ...]]:
    for group in read_update(path):
        for t in group.trajectories:
            yield (
                t.id, update, t.task.id, t.task.domain, t.task.level, t.start_depth, len(t.turns), t.sampled_tokens,
                t.total_reward, t.success, t.status.value, t.stop_reason.value,
            )  # fmt: skip
