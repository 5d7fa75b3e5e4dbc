"""What a hook costs an agent's turn: the hook client against an interpreter that does nothing.

python -m bench hookclient

Bar: at most 5 ms beyond Python's start, median. Runs alternate, so that both see the same machine.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import environment, milliseconds, report, sized

CLIENT = Path(__file__).parent.parent / "synapsed" / "hookclient.py"
FLAGS = ("-S", "-E", "-I")
PAYLOAD = b'{"session_id": "x", "last_assistant_message": "' + b"word " * 800 + b'"}'  # a common answer: 4 KB
BAR_S = 0.005
RUNS = sized(100, 3)


def run_s(*argv: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *FLAGS, *argv], input=PAYLOAD, env=environment(), check=True)
    return time.perf_counter() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as hooks:
        for name in ("tmp", "new"):
            (Path(hooks) / name).mkdir()
        client = (str(CLIENT), hooks, f"{hooks}/none.sock", "synapse-bench-1", "Stop")
        bare, hooked = [], []
        for _ in range(RUNS):
            bare.append(run_s("-c", ""))
            hooked.append(run_s(*client))
        stored = len(list((Path(hooks) / "new").iterdir()))
    beyond = statistics.median(hooked) - statistics.median(bare)
    report(
        "hook client, beyond Python's start",
        f"{beyond * 1e3:.1f} ms ({milliseconds(hooked)}; {stored} of {RUNS} stored)",
        "p50 ≤ 5 ms",
        held=beyond <= BAR_S and stored == RUNS,
    )


if __name__ == "__main__":
    main()
