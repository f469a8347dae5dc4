"""What a run tells whoever watches it."""

from typing import Protocol

from farhorizon.evaluation.evaluate import Evaluation


class Reporter(Protocol):
    """Receives progress; the command line draws bars, tests and examples listen to nothing."""

    def begin(self, what: str, total: int) -> None:
        """A stretch of `total` steps starts: episodes rolled out, say."""
        ...

    def advance(self) -> None:
        """One step of the current stretch is done."""
        ...

    def updated(self, update: int, metrics: dict[str, float]) -> None:
        """An update is finished."""
        ...

    def evaluated(self, finished: int, evaluation: Evaluation) -> None:
        """An evaluation after `finished` updates is done."""
        ...

    def say(self, message: str) -> None:
        """A line worth reading: a checkpoint skipped, a model converted."""
        ...


class Silent:
    """Tells nobody."""

    def begin(self, what: str, total: int) -> None: ...

    def advance(self) -> None: ...

    def updated(self, update: int, metrics: dict[str, float]) -> None: ...

    def evaluated(self, finished: int, evaluation: Evaluation) -> None: ...

    def say(self, message: str) -> None: ...
