"""The API over real sockets, and certificates."""

from tests.api.conftest import api, control

__all__ = ["api", "control"]
