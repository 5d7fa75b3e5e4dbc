"""All that is done by itself, as one part of the daemon."""

import asyncio
import random
from collections.abc import Callable, Mapping
from zoneinfo import ZoneInfo

from synapsed import __version__
from synapsed.access.book import AccessBook
from synapsed.access.vapid import PushKey
from synapsed.automation.browsers import Browsers
from synapsed.automation.health import Health
from synapsed.automation.inbox import PersonInbox
from synapsed.automation.notifier import Notifier, NotifyMeans
from synapsed.automation.presence import Presence
from synapsed.automation.sinks.making import SinkMaker
from synapsed.clock import Clock
from synapsed.config import Config
from synapsed.interfaces import Control
from synapsed.outgoing.poster import HttpPoster
from synapsed.outgoing.screening import AddressScreen
from synapsed.outgoing.secrets import SecretPlaces
from synapsed.parts.rules.rule_runner import Desktop, Ruler
from synapsed.parts.rules.webhooks import WebhookMeans, Webhooks
from synapsed.paths import Paths
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
        environ: Mapping[str, str],
        paths: Paths,
        book: AccessBook,
        push_key: PushKey | None,
        zone: Callable[[], ZoneInfo],
    ) -> None:
        """Call it in the running event loop. `push_key` None: no browser is told anything."""
        timers, policy, directory = asyncio.get_running_loop(), config.a2a.push, control.directory
        user_agent = f"synapsed/{__version__}"

        def poster() -> HttpPoster:
            return HttpPoster(AddressScreen(policy.allow), timeout=policy.timeout, outgoing=config.outgoing)

        self._webhooks = Webhooks(
            WebhookMeans(
                store=store,
                poster=poster(),
                policy=policy,
                clock=clock,
                timers=timers,
                rng=random.random,
                user_agent=user_agent,
                environ=environ,
                config=paths.config,
                texts=store.texts,
            )
        )
        self.inbox = PersonInbox(
            directory=directory, terminals=control.terminals, store=store, clock=clock, timers=timers
        )
        self.presence = Presence(control.terminals, clock)
        places = SecretPlaces(environ=environ, config=paths.config)
        self.notifier = Notifier(
            NotifyMeans(
                inbox=self.inbox,
                control=control,
                store=store,
                presence=self.presence,
                make=SinkMaker(places=places, poster=poster, clock=clock, user_agent=user_agent),
                clock=clock,
                timers=timers,
                zone=zone,
                browsers=None if push_key is None else Browsers(book, push_key, poster=poster, clock=clock),
            )
        )
        self.health = Health(directory, config=config, webhooks=self._webhooks, notifier=self.notifier)
        self.ruler = Ruler(control=control, store=store, clock=clock, timers=timers, notify=Desktop(environ))

    async def restore(self, config: Config) -> None:
        await self.ruler.restore()
        self.ruler.reconfigure(config.rule)
        await self.inbox.restore()
        self._webhooks.reconfigure(config.webhooks)

    def start(self) -> None:
        self.ruler.start()
        self.inbox.start()
        self.notifier.reconfigure(self.health.config.notify)

    def reconfigure(self, config: Config) -> None:
        """The configuration was read again."""
        self.ruler.reconfigure(config.rule)
        self.health.config = config
        self._webhooks.reconfigure(config.webhooks)
        self.notifier.reconfigure(config.notify)

    async def close(self) -> None:
        """May be called again."""
        await self.ruler.close()
        await self._webhooks.close()
        await self.notifier.close()
        await self.inbox.close()
