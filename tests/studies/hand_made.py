"""Results made by hand."""

from studies.runner.result import Cost, Made, Point, Result
from studies.runner.versions import Code, Machine


def curve(*points):
    """From (environment steps, value); tokens are ten times the steps."""
    return tuple(
        Point(update=i, env_steps=float(x), sampled_tokens=10.0 * x, value=float(y), training_success=None)
        for i, (x, y) in enumerate(points)
    )


def result(arm, seed, *points, candidate=None, cpu=1.0):
    """Of a cell with that curve."""
    return Result(
        study="tiny",
        arm=arm,
        seed=seed,
        candidate=candidate,
        measure="eval/success/rate",
        recipe=Made(base="recipes/base.toml", settings=(), hash="0", start="fake"),
        curve=curve(*points),
        totals={"updates": len(points) - 1, "env_steps": float(points[-1][0]), "sampled_tokens": 10.0 * points[-1][0]},
        code=Code(commit="c" * 40, dirty=False, source="s", version="0"),
        cost=Cost(cpu_seconds=cpu, wall_seconds=1.0, sessions=1, sessions_lost=0, machine=Machine(cpu="x", cores=2)),
    )
