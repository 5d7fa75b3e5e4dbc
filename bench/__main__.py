"""Every bar of speed and size in one run: one line each with the figure, the bar and whether it holds.

python -m bench [SECTION ...]        (docs/benchmarks.md says how to read it)
"""

import importlib
import os
import platform
import sys
import time
from importlib.util import find_spec

SECTIONS = (
    "ready",
    "turns",
    "ways",
    "output",
    "stands",
    "floods",
    "screens",
    "attach",
    "many",
    "parked",
    "hookclient",
    "tasks",
    "a2a",
    "subscribers",
    "connections",
    "page",
    "bus",
    "history",
    "telemetry",
    "fleet",
)


def main() -> int:
    wanted = sys.argv[1:] or list(SECTIONS)
    unknown = [name for name in wanted if name not in SECTIONS]
    if unknown:
        print(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}", file=sys.stderr)
        return 2
    print(f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores")
    for name in wanted:
        load = os.getloadavg()[0]
        print(f"\n--- {name}; {time.strftime('%H:%M')}, load average {load:.1f}", flush=True)
        if name == "a2a" and not all(map(find_spec, ("uvicorn", "uvloop", "httptools"))):
            print("      not measured: needs the extra `bench`")
            continue
        importlib.import_module(f"bench.{name}").main()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
