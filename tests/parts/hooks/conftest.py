"""Launches with channels, as the room's tests have them."""

from tests.channels.conftest import launch, library

__all__ = ["launch", "library"]
