"""Writes docs/metrics.md from core/metrics.py. Run it: python docs/make_metrics.py"""

from pathlib import Path

from farhorizon.core.metrics import METRICS


def page() -> str:
    """The page as it should be."""
    rows = "\n".join(f"| `{name}` | {text} |" for name, text in METRICS.items())
    return (
        "# Metrics\n\nWhat `metrics.jsonl` and TensorBoard hold. Fractions lie in 0 to 1, times are seconds. "
        "`stop/REASON` is the share\nof the trajectories that ended for that reason; `eval/…` are the same names, and "
        "`eval/success/CATEGORY`, over an\nevaluation's episodes; `eval/total/…` count that evaluation alone.\n\n"
        f"| name | meaning |\n|---|---|\n{rows}\n"
    )


if __name__ == "__main__":
    (Path(__file__).parent / "metrics.md").write_text(page())
