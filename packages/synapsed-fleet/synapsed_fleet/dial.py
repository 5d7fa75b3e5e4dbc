"""Connections to a broker: TLS first, the fleet's own authority, a token and its key.

At the fleet's own brokers the TLS handshake comes before the broker's greeting. Where it follows the greeting, an
attacker in between can leave TLS out of that greeting, and nats-py goes on unencrypted: at a broker of another owner
such a greeting ends the connection before anything is sent. With `nats://` nothing is encrypted: that is allowed for
loopback only.
"""

import asyncio
import base64
import ipaddress
import logging
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from nats.aio.client import DEFAULT_BUFFER_SIZE, Client, Srv
from nats.aio.transport import TcpTransport
from nats.errors import Error as NatsError

from synapsed.errors import ConfigError
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.tls import BROKER_NAME

CONNECT_S: Final = 5.0
PING_S: Final = 10.0
"""Seconds between two pings; the connection is lost at the third without an answer."""
RECONNECT_S: Final = 0.5
CLOSE_S: Final = 0.2
"""Seconds for a connection to report that it has ended."""
PENDING_BYTES: Final = 4 << 20
"""Most unsent bytes while the broker does not read; more is refused to the caller."""


def options(
    urls: Sequence[str],
    *,
    token: str | Callable[[], str],
    pair: KeyPair,
    ca: str | None,
    inbox: str,
    name: str = "synapsed",
    given: bool = False,
) -> dict[str, Any]:
    """Returns the arguments of `connect`. A callable `token` is called at each connection. `ca`: the authority as PEM,
    None for those that the system trusts. `given`: the broker is not the fleet's own. Raises ConfigError for an address
    that would mean an unencrypted connection over a network."""

    def user_token() -> bytearray:
        return bytearray(token if isinstance(token, str) else token(), "ascii")

    def signature(nonce: str) -> bytes:
        return base64.b64encode(pair.sign(nonce.encode()))

    found: dict[str, Any] = {
        "servers": list(urls),
        "name": name,
        "user_jwt_cb": user_token,
        "signature_cb": signature,
        "inbox_prefix": inbox,
        "connect_timeout": CONNECT_S,
        "reconnect_time_wait": RECONNECT_S,
        "ping_interval": PING_S,
        "max_outstanding_pings": 2,
        "pending_size": PENDING_BYTES,
    }
    if all(_is_plain(url) for url in urls):
        return found
    if plain := next((url for url in urls if _is_plain(url)), None):
        raise ConfigError(f"fleet.urls: {plain} is not encrypted, and others are: write tls:// for all")
    found["tls"] = context(ca)
    if ca is not None and not given:
        found |= {"tls_hostname": BROKER_NAME, "tls_handshake_first": True}
    return found


class EndingTransport(TcpTransport):
    """Transport that waits for its end CLOSE_S at most. After a handshake that was given up, the writer never learns of
    its end, and nats-py (2.16) waits for it without limit: a host that starts while its broker does not react would
    never reach it."""

    async def wait_closed(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await super().wait_closed()  # type: ignore[no-untyped-call]


class EncryptedClient(Client):
    """Client that sends nothing to a server that greets without TLS when TLS is required, and gives up one that does
    not greet."""

    async def _connect_to_server(self, s: Srv) -> None:
        if self._transport or s.uri.scheme in ("ws", "wss"):
            await super()._connect_to_server(s)
            return
        transport, s.last_attempt = EndingTransport(), time.monotonic()  # type: ignore[no-untyped-call]
        await transport.connect(s.uri, DEFAULT_BUFFER_SIZE, self.options["connect_timeout"])
        self._transport = transport

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        server = self._current_server
        first = self.options["tls_handshake_first"] or (server is not None and server.uri.scheme in ("ws", "wss"))
        if initial_connection and self.options.get("tls") and not first and not info.get("tls_required"):
            raise NatsError("the broker does not ask for TLS: it is not set up for it, or somebody is in between")
        await super()._process_info(info, initial_connection)


async def connect(**asked: Any) -> Client:
    """Connects as `nats.connect` does, and closes all sockets if that fails. Raises what `nats.connect` raises."""
    client = EncryptedClient()
    try:
        await client.connect(**asked)
    except BaseException:
        for writer in _writers(client):
            writer.close()
        raise
    return client


REMOVED: Final = (
    "the broker has revoked this host's key: it was removed from the fleet, or has joined again elsewhere. "
    "'synapsectl fleet leave' here, and 'synapsectl fleet join -' with a new invitation if it is to be a member again"
)
REFUSED: Final = (
    "it refuses these credentials: they are revoked or expired, or a clock is wrong. A host that was removed "
    "leaves with 'synapsectl fleet leave', and joins again with a new invitation"
)
CUT: Final = (
    "it ends the connection without a word, as brokers do that refuse credentials: they are revoked or expired, "
    "or a clock is wrong, unless it is just starting. A host that was removed leaves with 'synapsectl fleet leave', "
    "and joins again with a new invitation"
)


def explained(error: BaseException | None, heard: Sequence[str] = ()) -> str:
    """Returns the reason why a broker was not reached, or was lost, in words for people."""
    words = " ".join([str(error or ""), *heard])
    low = words.lower()
    if "revoked" in low:
        return REMOVED
    if "certificate" in low and ("expired" in low or "not yet valid" in low):
        return f"{words}; is the clock of this host right?"
    if "authorization" in low or "expired" in low:
        return REFUSED
    if isinstance(error, BrokenPipeError | ConnectionResetError):
        return CUT
    if isinstance(error, TimeoutError) and not str(error):
        return "it does not answer"
    return words.strip() or type(error).__name__


def _writers(client: Client) -> list[asyncio.StreamWriter]:
    """Returns the writers of a connection that failed: nats-py (2.16) closes neither the plain writer nor the TLS
    one."""
    transport = getattr(client, "_transport", None)
    found = [getattr(transport, name, None) for name in ("_io_writer", "_bare_io_writer")]
    return [writer for writer in found if isinstance(writer, asyncio.StreamWriter)]


def context(ca: str | None) -> ssl.SSLContext:
    """Returns a TLS context that trusts `ca` only, or without one what the system trusts."""
    logging.getLogger("asyncio").addFilter(_said_for_nothing)
    made = ssl.create_default_context(cadata=ca) if ca else ssl.create_default_context()
    made.minimum_version = ssl.TLSVersion.TLSv1_3 if ca else ssl.TLSVersion.TLSv1_2
    return made


def _said_for_nothing(record: logging.LogRecord) -> bool:
    """Returns False for asyncio's remark at each end of a connection whose reader keeps half-closed connections, as
    NATS's does."""
    return not record.getMessage().startswith("returning true from eof_received()")


def _is_plain(url: str) -> bool:
    """Returns True for an unencrypted address on loopback. Raises ConfigError for one that is not on loopback."""
    split = urlsplit(url)
    if split.scheme in ("tls", "wss"):
        return False
    host = split.hostname or ""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ConfigError(f"fleet.urls: {url} is not encrypted, which is for loopback only: write tls://")
    return True
