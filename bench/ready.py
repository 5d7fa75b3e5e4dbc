"""The daemon's start beside the import of its libraries: CPU times in one run, by which load hardly matters.

python -m bench ready

A daemon with an empty configuration is measured until it answers `/healthz`, and right before and after it what its
libraries take: `aiohttp.web`, pydantic with one model, sqlite3, psutil. `many` has the bar for 50 agents after kill -9.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.figures import environment, report, sized
from tests.support.daemon import Daemon

STARTS = sized(7, 1)
BAR = 1.5
LIBRARIES = "import aiohttp.web, pydantic, sqlite3, psutil\nclass Model(pydantic.BaseModel):\n    number: int\n"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="synapsed-bench-") as folder:
        ready_s(Path(folder))  # compiles the modules
    bare, libraries, ready = [], [], []
    for _ in range(STARTS):
        bare.append(python_s("pass"))
        before = python_s(LIBRARIES)
        with tempfile.TemporaryDirectory(prefix="synapsed-bench-") as folder:
            ready.append(ready_s(Path(folder)))
        libraries.append((before + python_s(LIBRARIES)) / 2)
    ratio = statistics.median(one / beside for one, beside in zip(ready, libraries, strict=True))
    of_bare = statistics.median(ready) / statistics.median(bare)
    report(
        "CPU until the daemon is ready, beside its libraries",
        f"{statistics.median(ready) * 1e3:.0f} ms, {statistics.median(libraries) * 1e3:.0f} ms: {ratio:.2f} ×; "
        f"{of_bare:.0f} × a bare interpreter ({statistics.median(bare) * 1e3:.0f} ms)",
        f"≤ {BAR} ×",
        held=ratio <= BAR,
    )


def python_s(code: str) -> float:
    """CPU seconds of an interpreter that runs this."""
    process = subprocess.Popen([sys.executable, "-c", code], env=environment())
    return ended_s(process)


def ready_s(home: Path) -> float:
    """CPU seconds of a daemon until it answers."""
    daemon = Daemon(home, environ=environment()).start()
    assert isinstance(daemon.process, subprocess.Popen)
    daemon.process.kill()
    return ended_s(daemon.process)


def ended_s(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of a process that ends."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
