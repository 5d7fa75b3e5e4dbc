"""Browsers that have turned notifications on, and the way to each."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import structlog

from synapsed.errors import InvalidRequest, SynapsedError, UnknownDevice
from synapsed.interfaces import PushPlace, Subscriber, Subscriptions
from synapsed.kernel import Kernel
from synapsed.outgoing.poster import checked_url, literal_address, origin_of
from synapsed.parts.attention.sinks.base import SinkPort

if TYPE_CHECKING:
    from synapsed.parts.attention.vapid import PushKey

PREFIX: Final = "web:"
"""Prefix of the names of browsers as sinks; no name in the configuration has a colon."""

log = structlog.stdlib.get_logger("synapsed.notify")


class Browsers:
    """The browsers; each has a poster of its own. `load` returns the key when it is needed, and blocks."""

    def __init__(self, subscriptions: Subscriptions, load: "Callable[[], PushKey]", kernel: Kernel) -> None:
        self._subscriptions = subscriptions
        self._load = load
        self._loading = asyncio.Lock()
        self._known: PushKey | None = None
        subscriptions.key = self._public
        self._kernel = kernel

    async def _key(self) -> "PushKey":
        async with self._loading:
            if self._known is None:
                self._known = await asyncio.to_thread(self._load)
            return self._known

    async def _public(self) -> str | None:
        try:
            return (await self._key()).public
        except SynapsedError as error:
            log.error("no browser can be told of what waits", why=error.message)  # noqa: TRY400 - the words say it
            return None

    def on_change(self, changed: Callable[[], None]) -> None:
        """Registers `changed`, which is called when a browser was turned on or off, or its device was removed."""
        self._subscriptions.on_subscribed = changed

    def all(self) -> list[Subscriber]:
        return self._subscriptions.subscribed()

    async def check(self, place: PushPlace) -> None:
        """Raises InvalidRequest for an invalid key, and for an address that may not be posted to: push services speak
        https, and one on this machine is allowed by the configuration only."""
        from synapsed.parts.attention.webpush import keys_of

        try:
            keys_of(place.p256dh, place.auth)
        except ValueError as error:
            raise InvalidRequest(str(error), field=str(error).partition(":")[0]) from None
        url = checked_url(place.endpoint)
        literal = literal_address(url)
        if url.scheme != "https" and not (literal is not None and literal.is_loopback):
            raise InvalidRequest("endpoint: must begin with https://", field="endpoint")
        poster = self._kernel.outgoing.poster()
        try:
            await poster.check(place.endpoint)
        finally:
            await poster.close()

    async def port(self, browser: Subscriber, contact: str | None) -> SinkPort:
        """Returns the sink of a browser. Raises InvalidRequest for an address that may not be posted to any more."""
        from synapsed.parts.attention.sinks.browser import BrowserPort

        await self.check(browser.place)
        return BrowserPort(browser, key=await self._key(), contact=contact, kernel=self._kernel, forget=self._forget)

    async def _forget(self, browser: Subscriber) -> None:
        where = origin_of(checked_url(browser.place.endpoint))
        log.info("a browser is gone: it is told no more", device=browser.id, name=browser.name, service=where)
        try:
            await self._subscriptions.unsubscribe(browser.id, browser.place)
        except UnknownDevice:  # it was removed meanwhile
            return
