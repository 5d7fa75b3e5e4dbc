"""A hook that keeps what it is given: ``python hookdump.py FOLDER EVENT`` writes its standard input to a new file.

Files are named ``<Unix time in ns>-<EVENT>.json``. Stdlib only; prints nothing.
"""

import sys
import time
from pathlib import Path

if __name__ == "__main__":
    folder, event = Path(sys.argv[1]), sys.argv[2]
    kept = folder / f"{time.time_ns()}-{event}.json"
    unfinished = kept.with_suffix(".part")
    unfinished.write_bytes(sys.stdin.buffer.read())
    unfinished.rename(kept)
