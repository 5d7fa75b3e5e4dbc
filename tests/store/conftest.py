"""What the store's tests build with."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from synapsed.store.store import SqliteStore
from tests.store.samples import Hands

OpenStore = Callable[..., Awaitable[SqliteStore]]


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
async def open_store(tmp_path: Path, hands: Hands) -> AsyncIterator[OpenStore]:
    """Opens the store of this test, again and again; all are closed in the end."""
    stores: list[SqliteStore] = []

    async def open_store(path: Path = tmp_path / "state" / "synapsed.db") -> SqliteStore:
        stores.append(await SqliteStore.open(path, clock=hands))
        return stores[-1]

    yield open_store
    for store in stores:
        await store.close()
