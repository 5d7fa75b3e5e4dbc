"""The API over real sockets, in front of the fake control: as for the API's own tests."""

from tests.api.conftest import api, control

__all__ = ["api", "control"]
