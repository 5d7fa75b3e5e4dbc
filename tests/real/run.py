"""Runs the tests with real agent programs: enters a loopback-only network namespace, then becomes pytest.

    python -m tests.real.run [--optional] [PYTEST ARGUMENT …]     # by default: tests/real

With ``--optional`` it is no failure, but loud, when the programs are not installed or there can be no namespace.
"""

import os
import sys
from collections.abc import Sequence

from tests.real import netns, programs

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    optional = arguments[:1] == ["--optional"]
    given = list(arguments[1:] if optional else arguments)
    try:
        if reason := programs.missing():
            raise programs.MissingProgramsError(reason)
        netns.enter()
    except (programs.MissingProgramsError, netns.NotIsolatedError) as error:
        print(f"\n*** REAL AGENT PROGRAMS WERE NOT TESTED: {error} ***\n", file=sys.stderr)
        return 0 if optional else 1
    command = [sys.executable, "-m", "pytest", *(given or ["tests/real"])]
    sys.stdout.flush()
    os.execve(sys.executable, command, {**os.environ, "SYNAPSED_REAL": "1"})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
