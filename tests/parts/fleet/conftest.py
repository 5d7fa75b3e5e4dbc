"""The API, and the tool beside a fake daemon, as their rooms' tests have them."""

from tests.api.conftest import api, control
from tests.synapsectl.conftest import ctl, daemon, home

__all__ = ["api", "control", "ctl", "daemon", "home"]
