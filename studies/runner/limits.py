"""How long a cell and a study may take on two cores, unless the study says it is long."""

from collections.abc import Sequence

from studies.runner.result import Result
from studies.runner.study import Study

CELL_SECONDS = 150
"""CPU-seconds of a cell."""
STUDY_MINUTES = 60
"""Minutes of a study on `CORES` cores, all its cells and tries."""
CORES = 2


def minutes(results: Sequence[Result]) -> float:
    """What cells take together on two cores that never wait."""
    return sum(result.cost.cpu_seconds for result in results) / CORES / 60


def summary(results: Sequence[Result]) -> str:
    """What the cells took, in a sentence."""
    return f"{len(results)} cells: {minutes(results):.1f} minutes on two cores."


def broken(study: Study, results: Sequence[Result]) -> list[str]:
    """A line for each limit that a study breaks; none where it is long."""
    if study.long:
        return []
    lines = [
        f"cell {result.cell} took {result.cost.cpu_seconds:.0f} CPU-seconds; at most {CELL_SECONDS} are allowed "
        "unless the study says long = true"
        for result in results
        if result.cost.cpu_seconds > CELL_SECONDS
    ]
    if (taken := minutes(results)) > STUDY_MINUTES:
        lines.append(
            f"the study takes {taken:.0f} minutes on two cores; at most {STUDY_MINUTES} are allowed "
            "unless it says long = true"
        )
    return lines
