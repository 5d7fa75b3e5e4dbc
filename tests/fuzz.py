"""The longer suite: every test with drawn examples, at random, over and over for some minutes.

    python -m tests.fuzz [--minutes 10] [PYTEST ARGUMENTS...]

What fails is kept in `.hypothesis/examples`, and tried first the next time. `SYNAPSED_FUZZ`
is how many examples the schemas of the API get for each route.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
SCHEMA_EXAMPLES = "40"
_DRAWN = re.compile(r"^(?:from|import) (?:hypothesis|schemathesis)\b", re.MULTILINE)


def drawn_tests() -> list[Path]:
    """The files with tests that draw examples."""
    return [path for path in sorted(HERE.rglob("test_*.py")) if _DRAWN.search(path.read_text())]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    options, rest = parser.parse_known_args()
    environ = {"SYNAPSED_FUZZ": SCHEMA_EXAMPLES, **os.environ}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not real and not faults"]
    targets = rest or [str(path) for path in drawn_tests()]
    until, rounds = time.monotonic() + 60 * options.minutes, 0
    while time.monotonic() < until:
        if code := subprocess.run([*command, *targets], env=environ, check=False).returncode:
            return code
        rounds += 1
    print(f"{rounds} rounds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
