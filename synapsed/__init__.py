"""synapsed: the per-user daemon that keeps command-line agents running, reachable and talking to each other."""

import sys

__all__ = ["__version__"]

__version__ = "0.1.0"

if sys.version_info < (3, 12):  # noqa: UP036 - out of a checkout it is started with whatever Python there is
    sys.exit(f"synapsed needs Python 3.12 or newer, and this is Python {sys.version_info[0]}.{sys.version_info[1]}")
