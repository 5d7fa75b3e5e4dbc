"""Runs the tests with real agent programs: enters a loopback-only network namespace, then becomes pytest.

    python -m tests.real.run [--optional] [PYTEST ARGUMENT …]     # by default: tests/real

With ``--optional`` it is no failure, but loud, when the programs are not installed or there can be no namespace.
"""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from tests.real import netns, programs

__all__ = ["main"]

PATIENCE_S = 180
"""A turn of a real program takes ten seconds of computing, of which a busy machine gives it a part."""


def main(arguments: Sequence[str]) -> NoReturn:
    optional = arguments[:1] == ["--optional"]
    given = list(arguments[1:] if optional else arguments)
    if reason := _obstacle():
        print(f"\n*** REAL AGENT PROGRAMS WERE NOT TESTED: {reason} ***\n", file=sys.stderr)
        sys.exit(0 if optional else 1)
    command = [sys.executable, "-m", "pytest", *(given or ["tests/real"])]
    sys.stdout.flush()
    told = {"SYNAPSED_REAL": "1", "SYNAPSED_TEST_PATIENCE_S": str(PATIENCE_S)}
    os.execve(sys.executable, command, {**os.environ, **told})


def _obstacle() -> str | None:
    """Enters the namespace, or says why the tests cannot run."""
    if reason := programs.missing():
        return reason
    try:
        netns.enter()
    except netns.NotIsolatedError as error:
        return str(error)
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
