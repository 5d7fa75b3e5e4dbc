"""`[api] tls_listen`: the listener with TLS comes up, and follows its certificate, its key and this machine's names.

None of that ends the daemon, whose agents are worth more: what is wrong is told as an alert, and tried again.
"""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import psutil
import structlog

from synapsed.access.certificates import is_for
from synapsed.access.pairs import Pair, load_given, load_own, stamp
from synapsed.access.reach import addresses, announced, by_default_route, names_here
from synapsed.api.servers import ApiServers
from synapsed.clock import Clock
from synapsed.errors import SynapsedError

LOOK_EVERY_S: Final = 10.0
"""Between two looks at the files, and at this machine's names and addresses."""
SOON_DAYS: Final = 14.0
"""A given certificate that is good for less is told of: certbot renews 30 days before the end."""
_DAY_S: Final = 86_400

log = structlog.stdlib.get_logger("synapsed.api")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """`given`: the files of a certificate and its key; None: the daemon makes its own in `folder`. `allowed`: the names
    of `[api] allowed_hosts`."""

    host: str
    port: int
    given: tuple[Path, Path] | None
    allowed: list[str]
    folder: Path


class TlsService:
    """`names`: those of this machine, for a listener at an address; blocks."""

    def __init__(
        self,
        settings: TlsSettings,
        servers: ApiServers,
        *,
        clock: Clock,
        names: Callable[[TlsSettings], list[str]] | None = None,
    ) -> None:
        self._settings = settings
        self._servers = servers
        self._clock = clock
        self._names = names or _names
        self._seen: object = None
        self._pair: Pair | None = None
        self._failures = 0
        self._told: str | None = None

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            await self.look()

    async def look(self) -> None:
        """Once: load what is new, and listen with it."""
        try:
            names, seen, pair = await asyncio.to_thread(self._load)
            if pair is not None:
                await self._use(pair, names)
            self._seen = seen
        except SynapsedError as error:
            self._seen, self._failures = None, self._failures + 1
            # A pair that is being renewed does not fit together for a moment.
            if self._pair is None or self._failures > 1:
                self._say(f"the page over TLS: {error.message}")
        else:
            self._failures = 0
            self._say(self._ending())

    def _load(self) -> tuple[list[str], object, Pair | None]:
        """Names, what was looked at, and the pair, or None where that is the one that is in use. Blocks."""
        settings, now = self._settings, self._clock.wall()
        names = self._names(settings)
        seen = (int(now // _DAY_S), tuple(names), stamp(settings.given or ()))
        if seen == self._seen:
            return names, seen, None
        if settings.given is not None:
            return names, seen, load_given(*settings.given)
        at = datetime.fromtimestamp(now, UTC)
        own = load_own(
            settings.folder,
            names,
            given=[one.lower().strip("[]") for one in settings.allowed],
            host=socket.gethostname(),
            now=at,
        )
        return names, seen, own

    async def _use(self, pair: Pair, names: list[str]) -> None:
        listener = await self._servers.start_secure(self._settings.host, self._settings.port, pair.context)
        if self._pair is None or self._pair.told != pair.told:
            log.info("TLS", port=listener.port, fingerprint=pair.told.fingerprint, ends=pair.told.ends.isoformat())
        self._pair = pair
        context = self._servers.context
        context.pair, context.security.secure_names = pair, pair.told.names
        fitting = [name for name in names if is_for(pair.told.names, name)]
        if pair.authority is None:
            fitting += [name for name in pair.told.names if name not in fitting]
        context.secure[:] = addresses(fitting or names, listener.port)

    def _ending(self) -> str | None:
        """Of a given certificate; the daemon's own is made again before."""
        if self._pair is None or self._pair.authority is not None or self._settings.given is None:
            return None
        told, now = self._pair.told, datetime.fromtimestamp(self._clock.wall(), UTC)
        if (left := told.days_left(now)) > SOON_DAYS:
            return None
        words = f"ends on {told.ends:%Y-%m-%d}" if left > 0 else f"has ended on {told.ends:%Y-%m-%d}"
        return (
            f"the page over TLS: the certificate in {self._settings.given[0]} {words}; renew it, no restart is needed"
        )

    def _say(self, message: str | None) -> None:
        if message == self._told:
            return
        if self._told is not None:
            self._servers.settle(self._told)
        if message is not None:
            log.error("the page over TLS", why=message)
            self._servers.alert(message)
        self._told = message


def _names(settings: TlsSettings) -> list[str]:
    return names_here(
        settings.host,
        allowed=settings.allowed,
        hostname=socket.gethostname(),
        interfaces=psutil.net_if_addrs(),
        first=by_default_route(),
        announced=announced(),
    )
