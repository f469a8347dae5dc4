"""What a run has spent."""

import subprocess
import sys
import time

from farhorizon.core.ledger import Meter


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_laps_add_up_to_what_was_spent():
    meter = Meter()
    burn(0.2)
    first, second = meter.lap(), meter.lap()
    assert 0.15 < first["time/cpu"] < 0.4
    assert first["time/wall"] > 0.15
    assert second["time/cpu"] < 0.1
    assert first["perf/peak_memory_gib"] > 0.01


def test_process_counts_from_its_start_its_children_included():
    code = (
        "import subprocess, sys, time\n"
        "from farhorizon.core.ledger import Meter\n"
        "loop = 'import time\\nwhile time.process_time() < 0.4: pass'\n"
        "exec(loop)\n"
        "meter = Meter.of_process()\n"
        "subprocess.run([sys.executable, '-c', loop], check=True)\n"
        "print(meter.lap()['time/cpu'], meter.lap()['time/cpu'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    first, second = map(float, done.stdout.split())
    assert 0.75 < first < 2
    assert second < 0.1
