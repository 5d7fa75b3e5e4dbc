"""synapsed: the per-user daemon that keeps command-line agents running, reachable and talking to each other."""

__all__ = ["__version__"]

__version__ = "0.1.0"
