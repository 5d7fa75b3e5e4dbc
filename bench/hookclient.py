"""What a hook costs an agent's turn: the hook client against an interpreter that does nothing.

    python bench/hookclient.py [RUNS]

Bar (DESIGN §9): at most 5 ms beyond Python's start, median. Runs alternate, so that both see the same machine.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CLIENT = Path(__file__).parent.parent / "synapsed" / "hookclient.py"
FLAGS = ("-S", "-E", "-I")
PAYLOAD = b'{"session_id": "x", "last_assistant_message": "' + b"word " * 800 + b'"}'  # a common answer: 4 KB
BAR_MS = 5.0


def run_ms(*argv: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *FLAGS, *argv], input=PAYLOAD, check=True)
    return (time.perf_counter() - start) * 1000


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as hooks:
        for name in ("tmp", "new"):
            (Path(hooks) / name).mkdir()
        client = (str(CLIENT), hooks, f"{hooks}/none.sock", "synapse-bench-1", "Stop")
        bare, hooked = [], []
        for _ in range(runs):
            bare.append(run_ms("-c", ""))
            hooked.append(run_ms(*client))
        stored = len(list((Path(hooks) / "new").iterdir()))
    over = statistics.median(hooked) - statistics.median(bare)
    print(f"python alone   p50 {statistics.median(bare):6.2f} ms")
    print(f"hook client    p50 {statistics.median(hooked):6.2f} ms   p95 {sorted(hooked)[int(runs * 0.95)]:6.2f} ms")
    print(f"beyond python  p50 {over:6.2f} ms   bar {BAR_MS} ms   {stored} of {runs} stored")
    return 0 if over <= BAR_MS and stored == runs else 1


if __name__ == "__main__":
    sys.exit(main())
