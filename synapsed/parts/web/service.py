"""Devices, scripts and the listener with TLS of one daemon, put together."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from synapsed.aio import cancel_all
from synapsed.interfaces import Subscriptions
from synapsed.kernel import Kernel, Running, Serving
from synapsed.parts.web.book import AccessBook
from synapsed.parts.web.visitors import Visitors

if TYPE_CHECKING:
    from synapsed.parts.web.pairs import Pair

BOOK_FILE = "access.json"
"""File in the state directory: paired devices, and tokens for scripts, as hashes."""


class Web(Running):
    """The part. `pair`: the certificate of the listener with TLS; None if there is no such listener."""

    def __init__(self, kernel: Kernel, book: AccessBook) -> None:
        self.book = book
        self.bearers = self.visitors = Visitors(book, kernel.clock)
        self.provides = {Web: self, Subscriptions: book}
        self.pair: Pair | None = None
        self._kernel = kernel
        self._at_work: list[asyncio.Task[None]] = []

    def all_addresses(self, place: str) -> list[str]:
        """Returns the addresses of the page, those first that other machines reach. `place`: the main listener's, if
        any."""
        local = [f"http://{place}/"] if place else []
        return [*(f"https://{name}/" for name in self.book.served), *self.addresses, *local]

    async def listening(self, serving: Serving) -> None:
        if self._kernel.config.api.tls_listen is None:
            return
        from synapsed.parts.web.tls import TlsService, settings_of

        service = TlsService(settings_of(self._kernel), self._kernel, serving, on_use=self.use)
        try:
            await service.look()
        finally:  # what fails now is tried again
            self._at_work.append(asyncio.create_task(service.run()))

    def use(self, pair: "Pair", addresses: list[str]) -> None:
        """Takes the pair of the listener with TLS, and its addresses."""
        self.pair, self.addresses, self.visitors.certified = pair, addresses, pair.told.names

    async def stopping(self) -> None:
        """Keeps the listener until the daemon's own are closed."""
        await cancel_all(self._at_work)


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncGenerator[Web]:
    """Opens the part. Raises ConfigError for a file that is not ours."""
    book = AccessBook(kernel.paths.state / BOOK_FILE, kernel.clock)
    await book.load()
    yield Web(kernel, book)
