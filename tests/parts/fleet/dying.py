"""`synapsed` that is killed before the nth time that it puts a file in its place, or removes a folder, in its home.

python -m tests.parts.fleet.dying 7 fleet scale
"""

import os
import runpy
import sys
from typing import Any, Final

KILLED: Final = 137
_CHANGES: Final = ("os.rename", "shutil.rmtree")


def _die_before(step: int, home: str) -> None:
    left = step

    def heard(event: str, told: tuple[Any, ...]) -> None:
        nonlocal left
        if event in _CHANGES and str(told[0]).startswith(home):
            left -= 1
            if left == 0:
                os._exit(KILLED)

    sys.addaudithook(heard)


if __name__ == "__main__":
    _die_before(int(sys.argv.pop(1)), os.environ["SYNAPSED_HOME"])
    runpy.run_module("synapsed", run_name="__main__", alter_sys=True)
