"""Built-in profiles and launches of them, as the tests of channels have them."""

from tests.channels.conftest import launch, library

__all__ = ["launch", "library"]
