"""All that is done by itself, as one part of the daemon."""

import asyncio
from collections.abc import Callable
from zoneinfo import ZoneInfo

from synapsed.clock import Clock
from synapsed.config.schema import Config
from synapsed.interfaces import Control, Subscriptions
from synapsed.outgoing.posting import Posting
from synapsed.parts.attention.browsers import Browsers
from synapsed.parts.attention.health import Health
from synapsed.parts.attention.inbox import PersonInbox
from synapsed.parts.attention.notifier import Notifier, NotifyMeans
from synapsed.parts.attention.presence import Presence
from synapsed.parts.attention.sinks.making import SinkMaker
from synapsed.parts.attention.vapid import PushKey
from synapsed.store.store import SqliteStore


class Automation:
    """Life: `restore`, `start` once the agents are there, …, `close` before they go."""

    def __init__(
        self,
        control: Control,
        store: SqliteStore,
        *,
        config: Config,
        clock: Clock,
        outgoing: Posting,
        subscriptions: Subscriptions | None,
        push_key: PushKey | None,
        zone: Callable[[], ZoneInfo],
    ) -> None:
        """Call it in the running event loop. Without `subscriptions` or `push_key` no browser is told anything."""
        timers, directory = asyncio.get_running_loop(), control.directory
        self.inbox = PersonInbox(
            directory=directory, terminals=control.terminals, store=store, clock=clock, timers=timers
        )
        self.presence = Presence(control.terminals, clock)
        browsers = None
        if subscriptions is not None and push_key is not None:
            browsers = Browsers(subscriptions, push_key, poster=outgoing.poster, clock=clock)
        self.notifier = Notifier(
            NotifyMeans(
                inbox=self.inbox,
                control=control,
                store=store,
                presence=self.presence,
                make=SinkMaker(
                    places=outgoing.secrets, poster=outgoing.poster, clock=clock, user_agent=outgoing.user_agent
                ),
                clock=clock,
                timers=timers,
                zone=zone,
                browsers=browsers,
            )
        )
        self.health = Health(self.notifier, config=config)

    async def restore(self) -> None:
        await self.inbox.restore()

    def start(self) -> None:
        self.inbox.start()
        self.notifier.reconfigure(self.health.config.notify)

    def reconfigure(self, config: Config) -> None:
        """The configuration was read again."""
        self.health.config = config
        self.notifier.reconfigure(config.notify)

    async def close(self) -> None:
        """May be called again."""
        await self.notifier.close()
        await self.inbox.close()
