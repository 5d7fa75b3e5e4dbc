"""`[api] tls_listen`: the listener with TLS comes up, and follows its certificate, its key and this machine's names.

No error in it ends the daemon, whose agents are more important: it is reported as an alert, and tried again.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import psutil
import structlog

from synapsed.errors import ConfigError, SynapsedError
from synapsed.kernel import Kernel, Serving
from synapsed.parts.web.pairs import Pair, load_given, load_own, stamp
from synapsed.parts.web.reach import addresses, announced, by_default_route, names_here
from synapsed.parts.web.tls_connections import SecureListener
from synapsed.parts.web.visitors import is_for

FOLDER: Final = "tls"
"""Folder in the state directory: certificates that the daemon has made for its own listener with TLS, each with its
key."""
LOOK_EVERY_S: Final = 10.0
"""Seconds between two looks at the files, and at this machine's names and addresses."""
SOON_DAYS: Final = 14.0
"""Remaining days below which a given certificate is reported: certbot renews 30 days before the end."""
_DAY_S: Final = 86_400

log = structlog.stdlib.get_logger("synapsed.api")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """Settings of the listener with TLS."""

    host: str
    port: int
    given: tuple[Path, Path] | None
    """Files of a certificate and its key; None: the daemon makes its own in `folder`."""
    allowed: list[str]
    """Names of `[api] allowed_hosts`."""
    folder: Path


class TlsService:
    """Keeps the listener up. `names` returns this machine's names for a listener with such settings, and blocks.
    `on_use` is called with each new pair, and with the addresses of the listener."""

    def __init__(
        self,
        settings: TlsSettings,
        kernel: Kernel,
        serving: Serving,
        *,
        on_use: Callable[[Pair, list[str]], None],
        names: Callable[[TlsSettings], list[str]] | None = None,
    ) -> None:
        self.listener: SecureListener | None = None
        self._settings = settings
        self._kernel = kernel
        self._serving = serving
        self._on_use = on_use
        self._names = names or _names
        self._seen: object = None
        self._pair: Pair | None = None
        self._failures = 0
        self._told: str | None = None

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
            except Exception:  # agents are worth more
                log.exception("TLS cannot be looked after")

    async def look(self) -> None:
        """Looks once: loads a new pair, and listens with it."""
        try:
            names, seen, pair = await asyncio.to_thread(self._load)
            if pair is not None:
                self._use(pair, names)
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
        """Returns names, a stamp of the inputs, and the pair, or None if it is the one in use. Blocks."""
        settings, now = self._settings, self._kernel.clock.wall()
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

    def _use(self, pair: Pair, names: list[str]) -> None:
        """Uses a pair. Raises ConfigError if the address is in use."""
        if self.listener is None:
            self.listener = self._listen(pair.context)
        self.listener.context = pair.context
        port = self.listener.port
        if self._pair is None or self._pair.told != pair.told:
            log.info("TLS", port=port, fingerprint=pair.told.fingerprint, ends=pair.told.ends.isoformat())
        self._pair = pair
        fitting = [name for name in names if is_for(pair.told.names, name)]
        if pair.authority is None:
            fitting += [name for name in pair.told.names if name not in fitting]
        self._on_use(pair, addresses(fitting or names, port))

    def _listen(self, context: ssl.SSLContext) -> SecureListener:
        """Listens; at `::` for IPv4, too. Raises ConfigError if the address is in use."""
        host, port = self._settings.host, self._settings.port
        try:
            sockets = self._serving.bind(host, port)
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {host}:{port} with TLS: {os.strerror(error.errno) if error.errno else error}; free "
                "the port, or set another with 'tls_listen' under [api] of config.toml",
                key="api.tls_listen",
            ) from error
        listener = SecureListener(sockets, context, serving=self._serving, name="listener with TLS")
        self._serving.add(listener)
        return listener

    def _ending(self) -> str | None:
        """Returns the warning about the end of a given certificate; the daemon's own is made again before."""
        if self._pair is None or self._pair.authority is not None or self._settings.given is None:
            return None
        told, now = self._pair.told, datetime.fromtimestamp(self._kernel.clock.wall(), UTC)
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
            self._kernel.settle(self._told)
        if message is not None:
            log.error("the page over TLS", why=message)
            self._kernel.alert(message)
        self._told = message


def settings_of(kernel: Kernel) -> TlsSettings:
    """Returns the settings of a configuration in which the listener is wanted."""
    api = kernel.config.api
    host, port = api.tls_address
    given = (Path(api.tls_cert), Path(api.tls_key)) if api.tls_cert is not None else None
    folder = kernel.paths.state / FOLDER
    return TlsSettings(host=host, port=port, given=given, allowed=api.allowed_hosts, folder=folder)


def _names(settings: TlsSettings) -> list[str]:
    return names_here(
        settings.host,
        allowed=settings.allowed,
        hostname=socket.gethostname(),
        interfaces=psutil.net_if_addrs(),
        first=by_default_route(),
        announced=announced(),
    )
