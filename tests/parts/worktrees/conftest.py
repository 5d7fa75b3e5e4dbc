"""The tool beside a daemon, as its room's tests have it."""

from tests.synapsectl.conftest import ctl, daemon, home

__all__ = ["ctl", "daemon", "home"]
