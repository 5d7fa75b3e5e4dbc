"""Browsers that have turned notifications on, and the way to each."""

from collections.abc import Callable
from typing import Final

import structlog

from synapsed.errors import InvalidRequest, UnknownDevice
from synapsed.interfaces import PushPlace, Subscriber, Subscriptions
from synapsed.kernel import Kernel
from synapsed.outgoing.poster import checked_url, literal_address, origin_of
from synapsed.parts.attention.sinks.base import SinkPort
from synapsed.parts.attention.sinks.browser import BrowserPort
from synapsed.parts.attention.vapid import PushKey
from synapsed.parts.attention.webpush import keys_of

PREFIX: Final = "web:"
"""Prefix of the names of browsers as sinks; no name in the configuration has a colon."""

log = structlog.stdlib.get_logger("synapsed.notify")


class Browsers:
    """The browsers; each has a poster of its own."""

    def __init__(self, subscriptions: Subscriptions, key: PushKey, kernel: Kernel) -> None:
        self._subscriptions = subscriptions
        self._key = key
        subscriptions.key = key.public
        self._kernel = kernel

    def on_change(self, changed: Callable[[], None]) -> None:
        """Registers `changed`, which is called when a browser was turned on or off, or its device was removed."""
        self._subscriptions.on_subscribed = changed

    def all(self) -> list[Subscriber]:
        return self._subscriptions.subscribed()

    async def check(self, place: PushPlace) -> None:
        """Raises InvalidRequest for an invalid key, and for an address that may not be posted to: push services speak
        https, and one on this machine is allowed by the configuration only."""
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
        await self.check(browser.place)
        return BrowserPort(browser, key=self._key, contact=contact, kernel=self._kernel, forget=self._forget)

    async def _forget(self, browser: Subscriber) -> None:
        where = origin_of(checked_url(browser.place.endpoint))
        log.info("a browser is gone: it is told no more", device=browser.id, name=browser.name, service=where)
        try:
            await self._subscriptions.unsubscribe(browser.id, browser.place)
        except UnknownDevice:  # it was removed meanwhile
            return
