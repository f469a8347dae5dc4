"""Fail when a test was skipped that tests/expected_skips.txt does not name.

usage: skips.py EXPECTED LOG...
"""

import re
import sys
from pathlib import Path

expected_file, *logs = map(Path, sys.argv[1:])
expected = [
    line.strip() for line in expected_file.read_text().splitlines() if line.strip() and not line.startswith("#")
]
skipped = [line for log in logs for line in log.read_text().splitlines() if re.match(r"SKIPPED \[\d+\]", line)]
unexpected = [line for line in skipped if not any(name in line for name in expected)]
for line in unexpected:
    print(f"unexpected: {line}")
sys.exit(bool(unexpected))
