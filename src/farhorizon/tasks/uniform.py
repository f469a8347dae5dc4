"""Training tasks in shuffled passes."""

from farhorizon.config import tasks as config
from farhorizon.core.errors import UserError
from farhorizon.core.record import Task
from farhorizon.core.seeds import Key
from farhorizon.core.taskstats import TaskStats
from farhorizon.envs.base import Start, World
from farhorizon.tasks.base import Assignment


class Uniform:
    """The k-th group of a run takes the k-th task of an endless sequence of shuffled passes.

    The place in the sequence follows from the update alone, so there is no state to lose. Groups asked for
    again within an update (`asked` past `groups`) come from a sequence of their own and shift nothing.
    """

    def __init__(self, config: config.Uniform, *, world: World, seed: int) -> None:
        self.groups = config.groups
        self._config, self._world, self._seed = config, world, seed
        self._tasks = list(world.tasks("train"))
        if not self._tasks:
            raise UserError(f'environment "{world.name}" has no training tasks with these settings')

    def next(self, k: int, stats: TaskStats, update: int, asked: int = 0) -> list[Assignment]:
        return [self._assignment(update, asked + i) for i in range(k)]

    def _assignment(self, update: int, index: int) -> Assignment:
        if index < self.groups:
            place, stream = update * self.groups + index, "tasks"
        else:
            place, stream = index - self.groups, f"tasks/again/{update}"
        which, offset = divmod(place, len(self._tasks))
        order = Key(self._seed, stream, update=which).generator().permutation(len(self._tasks))
        task = self._tasks[order[offset]]
        start = self._start(task, Key(self._seed, "start", update=update, group=index))
        return Assignment(task, self._config.size, start)

    def _start(self, task: Task, key: Key) -> Start:
        draw = key.generator()
        if draw.random() >= self._config.part_way:
            return Start()
        path = self._world.oracle(task)
        if path is None or len(path) < 2:
            return Start()
        return Start(tuple(path[: int(draw.integers(1, len(path)))]))
