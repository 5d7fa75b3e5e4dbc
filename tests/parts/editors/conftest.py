"""Daemons, as their room's tests have them."""

from tests.daemon.conftest import kind

__all__ = ["kind"]
