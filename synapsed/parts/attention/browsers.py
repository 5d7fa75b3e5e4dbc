"""Browsers that have turned notifications on: which there are, and how each is told."""

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
"""Of the names of these sinks; no name in the configuration has a colon."""

log = structlog.stdlib.get_logger("synapsed.notify")


class Browsers:
    """What each is told goes by a poster of its own."""

    def __init__(self, subscriptions: Subscriptions, key: PushKey, kernel: Kernel) -> None:
        self._subscriptions = subscriptions
        self._key = key
        subscriptions.key = key.public
        self._kernel = kernel

    def on_change(self, changed: Callable[[], None]) -> None:
        """`changed` is called when a browser was turned on or off, or is let in no more."""
        self._subscriptions.on_subscribed = changed

    def all(self) -> list[Subscriber]:
        return self._subscriptions.subscribed()

    async def check(self, place: PushPlace) -> None:
        """Raises InvalidRequest for what is no key, and for an address that is not told anything: push services
        speak https, and one on this machine does so by configuration only."""
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
        """Raises InvalidRequest for an address that may not be told any more."""
        await self.check(browser.place)
        return BrowserPort(browser, key=self._key, contact=contact, kernel=self._kernel, forget=self._forget)

    async def _forget(self, browser: Subscriber) -> None:
        where = origin_of(checked_url(browser.place.endpoint))
        log.info("a browser is gone: it is told no more", device=browser.id, name=browser.name, service=where)
        try:
            await self._subscriptions.unsubscribe(browser.id, browser.place)
        except UnknownDevice:  # it was removed meanwhile
            return
