"""Stores and daemons, as their rooms' tests have them."""

from tests.daemon.conftest import kind
from tests.store.conftest import hands, open_store

__all__ = ["hands", "kind", "open_store"]
