"""The API, as its room's tests have it."""

from tests.api.conftest import api, control

__all__ = ["api", "control"]
