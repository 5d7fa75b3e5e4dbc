"""Opens and runs the part: the inbox, and the notifier with its sinks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from synapsed.clock import Clock
from synapsed.errors import ConfigError
from synapsed.interfaces import Subscriptions, Terminals, WaitingHere
from synapsed.kernel import Automated, Kernel, Running
from synapsed.parts.attention.browsers import Browsers
from synapsed.parts.attention.face import KEY_FILE
from synapsed.parts.attention.inbox import PersonInbox
from synapsed.parts.attention.notifier import Notifier, NotifyMeans
from synapsed.parts.attention.notify import WebSink
from synapsed.parts.attention.sinks.making import SinkMaker

if TYPE_CHECKING:
    from synapsed.parts.attention.vapid import PushKey

log = structlog.stdlib.get_logger("synapsed.notify")


class Presence:
    """Time of the person's last action in synapsed: a key at an attached terminal, or a request that changes something.
    Reads (lists, streams, an open inbox) do not count."""

    def __init__(self, terminals: Terminals, clock: Clock) -> None:
        self._terminals = terminals
        self._clock = clock
        self._acted_at = clock.monotonic()

    def acted(self) -> None:
        """Notes a request of the person that changes something."""
        self._acted_at = self._clock.monotonic()

    @property
    def idle(self) -> float:
        """Returns the seconds since the last action; the daemon's start counts as one."""
        at = max(self._acted_at, self._terminals.hands_at() or self._acted_at)
        return max(0.0, self._clock.monotonic() - at)


class AttentionPart(Running):
    """The part after its start; `inbox` is restored. Without `browsers` no browser is notified."""

    def __init__(self, kernel: Kernel, inbox: PersonInbox, browsers: Browsers | None) -> None:
        self._kernel = kernel
        self._inbox = inbox
        self._presence = Presence(kernel.control.terminals, kernel.clock)
        self._notifier = Notifier(
            NotifyMeans(
                inbox=inbox,
                control=kernel.control,
                store=kernel.store,
                idle=lambda: self._presence.idle,
                make=SinkMaker(kernel),
                clock=kernel.clock,
                timers=kernel.timers,
                zone=kernel.zone,
                browsers=browsers,
            )
        )
        self.provides = {PersonInbox: inbox, WaitingHere: inbox, Notifier: self._notifier}

    def started(self) -> None:
        self._inbox.start()
        self.reconfigured()

    async def stopping(self) -> None:
        await self._notifier.close()
        await self._inbox.close()

    def reconfigured(self) -> None:
        self._notifier.reconfigure(self._kernel.config.notify)

    def acted(self) -> None:
        self._presence.acted()

    async def automated(self) -> list[Automated]:
        sinks, states = self._kernel.config.notify.sinks, self._notifier.states()
        of_browsers = {name for name, sink in sinks.items() if isinstance(sink, WebSink)}
        return [
            Automated(kind="sink", name=name, state="wrong" if problem else "ok", problem=problem)
            for name, problem in {**dict.fromkeys(sinks, ""), **states}.items()
            if name not in of_browsers
        ]


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncIterator[AttentionPart]:
    """Opens the part where the last daemon left it."""
    inbox = PersonInbox(
        directory=kernel.control.directory,
        terminals=kernel.control.terminals,
        store=kernel.store,
        clock=kernel.clock,
        timers=kernel.timers,
    )
    await inbox.restore()
    attention = AttentionPart(kernel, inbox, await _browsers(kernel))
    try:
        yield attention
    finally:
        await attention.stopping()


async def _browsers(kernel: Kernel) -> Browsers | None:
    """Returns the browsers; None if no part knows browsers, or if the key's file is invalid, which an alert reports."""
    subscriptions = next(iter(kernel.all(Subscriptions)), None)
    if subscriptions is None:
        return None
    path = kernel.paths.state / KEY_FILE
    try:
        if await asyncio.to_thread(path.exists):  # else it is made when a page asks for it
            await asyncio.to_thread(_key, path)
    except ConfigError as error:
        log.error("no browser is told of what waits", why=error.message)  # noqa: TRY400 - the words say it
        kernel.alert(
            f"browsers are not told of what waits: {path} cannot be used; remove it and restart the daemon, then turn "
            "notifications on again on each device"
        )
        return None
    return Browsers(subscriptions, partial(_key, path), kernel)


def _key(path: Path) -> "PushKey":
    from synapsed.parts.attention.vapid import load_or_create

    return load_or_create(path)
