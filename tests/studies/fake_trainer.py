"""Stands in for `farhorizon train` in tests of the runner: the same arguments and files, and a made-up curve.

The curve is `learner.learning_rate` times the update, a bit more for a higher seed. `FAKE_SECONDS` is what an update
takes; `learner.weight_decay` = 1 fails.
"""

import json
import os
import signal
import sys
import time
import tomllib
from pathlib import Path


def main(arguments):
    if "--resume" in arguments:
        run = Path(arguments[arguments.index("--resume") + 1])
        sets = json.loads((run / "recipe.toml").read_text())
    else:
        run = Path(arguments[arguments.index("--run") + 1])
        tables = tomllib.loads(Path(arguments[1]).read_text())
        sets = {f"{name}.{key}": tables[name][key] for name in ("learner", "runtime") for key in tables[name]}
        run.mkdir(parents=True)
        (run / "run.json").write_text(json.dumps({"source": "fake"}))
        (run / "recipe.toml").write_text(json.dumps(sets))
    (run / "pid").write_text(str(os.getpid()))
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    rate, seed = sets["learner.learning_rate"], sets["runtime.seed"]
    if sets["learner.weight_decay"] == 1.0:
        sys.exit("farhorizon: it went wrong")
    metrics = run / "metrics.jsonl"
    kept = metrics.read_text().splitlines(keepends=True) if metrics.exists() else []
    done = len(kept) // 2
    metrics.write_text("".join(kept[: 2 * done]))
    updates = sets["runtime.max_updates"]
    for update in range(done, updates + 1):
        value = {"update": update, "phase": "eval", "eval/success/rate": rate * update / 10 + seed / 100}
        spent = {"total/env_steps": 10.0 * (update + 1), "total/sampled_tokens": 50.0 * (update + 1)}
        train = {"update": update, "phase": "train", **spent, "success/rate": 0.5}
        time.sleep(float(os.environ.get("FAKE_SECONDS", "0")))
        with metrics.open("a") as file:
            file.write("".join(json.dumps(line) + "\n" for line in ([value, train] if update < updates else [value])))
        if stopped:
            sys.exit(130)


if __name__ == "__main__":
    main(sys.argv[1:])
