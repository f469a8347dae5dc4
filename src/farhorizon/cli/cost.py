"""What a run cost, added up from its metrics file."""

from dataclasses import dataclass
from typing import Any

from farhorizon.core.rundir import RunDirectory


@dataclass(frozen=True)
class Cost:
    """Over all sessions of a run, evaluation included."""

    wall: float
    """Seconds, from the start of each session to its last finished update or evaluation."""
    cpu: float
    """CPU seconds, work that was set aside and done again included."""
    redone: float
    """Wall seconds of what a resumed session set aside."""
    peak_memory: float
    """Most resident memory of any session, GiB."""
    updates: int
    """Updates finished."""
    episodes: int
    """Training episodes."""
    eval_episodes: int
    """Evaluation episodes."""
    actions: int
    """Actions taken in environments."""
    sampled_tokens: int
    """Tokens sampled."""
    trained_tokens: int
    """Tokens of the contexts that went through the learner."""

    @classmethod
    def of(cls, run: RunDirectory) -> "Cost":
        """Read it from a run's files."""
        lines = run.read_metrics()
        aside = [line for folder in run.path.glob("set_aside/*") for line in RunDirectory(folder).read_metrics()]
        train = [line for line in lines if line["phase"] == "train"]
        evaluations = [line for line in lines if line["phase"] == "eval"]

        def total(name: str) -> int:
            before = train[-1][f"total/{name}"] if train else 0
            return int(before + _sum(evaluations, f"eval/total/{name}"))

        return cls(
            wall=_sum(lines + aside, "time/wall"),
            cpu=_sum(lines + aside, "time/cpu"),
            redone=_sum(aside, "time/wall"),
            peak_memory=max((line.get("perf/peak_memory_gib", 0.0) for line in lines + aside), default=0.0),
            updates=len(train),
            episodes=int(train[-1]["total/episodes"]) if train else 0,
            eval_episodes=int(_sum(evaluations, "eval/total/episodes")),
            actions=total("env_steps"),
            sampled_tokens=total("sampled_tokens"),
            trained_tokens=int(_sum(train, "learner/context_tokens")),
        )

    def rows(self) -> list[tuple[str, str]]:
        """What to print: name and amount; nothing for what was never recorded."""
        again = f", {duration(self.redone)} of it done again after an interruption" if self.redone >= 1 else ""
        rows = [
            ("wall time", f"{duration(self.wall)}{again}" if self.wall else ""),
            ("CPU time", f"{self.cpu:,.0f} CPU-seconds" if self.cpu else ""),
            ("peak memory", f"{self.peak_memory:.1f} GiB" if self.peak_memory else ""),
            ("updates", f"{self.updates:,}"),
            ("episodes", f"{self.episodes:,} in training, {self.eval_episodes:,} in evaluation"),
            ("actions", f"{self.actions:,}"),
            ("tokens", f"{self.sampled_tokens:,} sampled, {self.trained_tokens:,} trained on (prompts included)"),
        ]
        return [(name, amount) for name, amount in rows if amount]


def duration(seconds: float) -> str:
    """`42 s`, `13 min 05 s`, `2 h 03 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _sum(lines: list[dict[str, Any]], name: str) -> float:
    return float(sum(line.get(name, 0.0) for line in lines))
