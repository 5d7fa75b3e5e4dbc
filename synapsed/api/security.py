"""What the gate knows (docs/security.md): where a request may come from, in what form, and with whose rights.

Behind a reverse proxy: what the client used as this server's address, as a proxy that is trusted tells it.

`X-Forwarded-Host`, `-Proto` and `-Prefix` count only where the connection comes from one of `[api] trusted_proxies`.
Such a request is somebody else's: it has the rights of its token, not those of the proxy's process.
"""

import hmac
import os
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from aiohttp import hdrs, web

from synapsed.api.describe import description_of
from synapsed.api.peers import PeerLookup
from synapsed.api.problems import Handler
from synapsed.api.query import check_names
from synapsed.api.rights import Peer, Rights, Token, TokenKind, decide
from synapsed.errors import Forbidden, InvalidRequest, TooLarge, Unauthorized, UnsupportedMedia
from synapsed.interfaces import Directory

_MARKS: Final = ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Prefix", "Forwarded")
_PREFIX: Final = re.compile(r"(?:/[A-Za-z0-9._~-]{1,64}){0,8}/?")
_HOST: Final = re.compile(r"[A-Za-z0-9._:\[\]-]{1,255}")


@dataclass(frozen=True, slots=True)
class Forwarded:
    """`host` with its port where it is not the scheme's; None where the proxy passes the client's on in `Host`."""

    scheme: str
    host: str | None
    prefix: str


class Proxies:
    """The proxies that are believed."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        """`trusted`: addresses and networks (`10.0.0.0/8`). Raises ValueError for what is neither."""
        self._trusted: list[IPv4Network | IPv6Network] = [ip_network(each) for each in trusted]

    def forwarded(self, request: web.Request) -> Forwarded | None:
        """None for a request that no trusted proxy passed on. Raises InvalidRequest for what is no address."""
        if not self._trusted or not any(name in request.headers for name in _MARKS) or not self._is_trusted(request):
            return None
        scheme = request.headers.get("X-Forwarded-Proto", request.scheme).lower()
        host = request.headers.get("X-Forwarded-Host")
        prefix = request.headers.get("X-Forwarded-Prefix", "")
        if scheme not in ("http", "https"):
            raise InvalidRequest("X-Forwarded-Proto: must be http or https", field="X-Forwarded-Proto")
        if host is not None and not _HOST.fullmatch(host):
            raise InvalidRequest("X-Forwarded-Host: must be one host", field="X-Forwarded-Host")
        if not _PREFIX.fullmatch(prefix):
            raise InvalidRequest("X-Forwarded-Prefix: must be a path", field="X-Forwarded-Prefix")
        return Forwarded(scheme, host, prefix.rstrip("/"))

    def _is_trusted(self, request: web.Request) -> bool:
        peer = request.transport.get_extra_info("peername") if request.transport is not None else None
        if not isinstance(peer, tuple):
            return False
        address = ip_address(peer[0].partition("%")[0])
        return any(address in network for network in self._trusted)


LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
JSON_TYPES: Final = frozenset({"application/json", "application/a2a+json"})
_SINGLE_HEADERS = (hdrs.HOST, hdrs.ORIGIN, hdrs.AUTHORIZATION, hdrs.CONTENT_TYPE, hdrs.CONTENT_LENGTH)
_BODY_METHODS = frozenset({hdrs.METH_POST, hdrs.METH_PUT, hdrs.METH_PATCH})
_PUBLIC = "__synapsed_public__"
_SCRAPED = "__synapsed_scraped__"


def public(handler: Handler) -> Handler:
    """Marks a route that tells nothing of anybody (health, the card): answered without a token off loopback too."""
    setattr(handler, _PUBLIC, True)
    return handler


def is_public(handler: object) -> bool:
    return bool(getattr(handler, _PUBLIC, False))


def scraped(handler: Handler) -> Handler:
    """Marks the route that the metrics' token is for."""
    setattr(handler, _SCRAPED, True)
    return handler


def is_scraped(handler: object) -> bool:
    return bool(getattr(handler, _SCRAPED, False))


class Security:
    """What the gate knows: the control token, the names under which this host may be addressed, the peers."""

    def __init__(
        self,
        *,
        directory: Directory,
        token: str,
        peers: PeerLookup | None = None,
        allowed_hosts: Iterable[str] = (),
        trusted_proxies: Iterable[str] = (),
        metrics_token: str | None = None,
    ) -> None:
        self._token = token.encode()
        self._metrics_token = metrics_token.encode() if metrics_token is not None else None
        self._token_owner = directory.token_owner
        self._peers = peers or PeerLookup(directory.process_of)
        self._hosts = LOCAL_HOSTS | {host.lower().strip("[]") for host in allowed_hosts}
        self._proxies = Proxies(trusted_proxies)
        self._own_uid = os.getuid()
        self._known: WeakKeyDictionary[Any, Peer] = WeakKeyDictionary()

    def check_form(self, request: web.Request) -> None:
        """`Host`, `Origin`, doubled headers, names of parameters, content type and length. Raises Forbidden,
        InvalidRequest, TooLarge, UnsupportedMedia."""
        for name in _SINGLE_HEADERS:
            if len(request.headers.getall(name, ())) > 1:
                raise InvalidRequest(f"the header {name} came more than once", field=name)
        if not on_unix(request):
            self._check_host(request)
        self._check_origin(request)
        if (described := description_of(request.match_info.handler)) is not None:
            check_names(request, described.query)
        if request.method in _BODY_METHODS and request.body_exists:
            self._check_body(request)

    def host(self, request: web.Request) -> str:
        """The address that the client used, without scheme: `Host`, or what a trusted proxy says that it was."""
        forwarded = self._proxies.forwarded(request)
        said: str = request.headers.get(hdrs.HOST, "")
        return said if forwarded is None or forwarded.host is None else forwarded.host

    def origin(self, request: web.Request) -> str:
        """`scheme://host[:port][/prefix]` as the client has it."""
        forwarded = self._proxies.forwarded(request)
        scheme, prefix = (forwarded.scheme, forwarded.prefix) if forwarded is not None else (request.scheme, "")
        return f"{scheme}://{self.host(request)}{prefix}"

    def _check_host(self, request: web.Request) -> None:
        name = _hostname(said := self.host(request))
        if name not in self._hosts:
            if name:
                what = f"this server is not addressed as {name[:100]!r}; names are allowed under [api] allowed_hosts"
            else:
                what = f"{said[:100]!r} is no host" if said else "the request names no host"
                what += ": send 'Host: localhost:PORT'"
            raise Forbidden(what, host=name[:100])

    def _check_origin(self, request: web.Request) -> None:
        """Pages of this very server may talk to it, no others: not those of other ports of this machine either."""
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None:
            return
        host = self.host(request)
        if origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()) or not host:
            raise Forbidden("requests of foreign web pages are refused", origin=origin[:200])

    @staticmethod
    def _check_body(request: web.Request) -> None:
        limit = request.client_max_size
        if request.content_length is not None and request.content_length > limit:
            raise TooLarge(f"the body has {request.content_length} bytes, {limit} are taken", limit=limit)
        if request.headers.get(hdrs.CONTENT_TYPE) is None or request.content_type not in JSON_TYPES:
            sent = request.headers.get(hdrs.CONTENT_TYPE, "none")[:100]
            raise UnsupportedMedia(f"Content-Type must be application/json, not {sent}", offered=sorted(JSON_TYPES))

    async def rights(self, request: web.Request) -> Rights:
        """Whose rights the request has. Raises Unauthorized, Forbidden."""
        return decide(await self._peer(request), self._bearer(request), self._own_uid)

    async def _peer(self, request: web.Request) -> Peer:
        """Looked up once per connection."""
        transport = request.transport
        if transport is None:
            raise Forbidden("the connection is gone")
        if self._proxies.forwarded(request) is not None:
            return Peer(transport="tcp", loopback=False)  # somebody's behind the proxy, whoever runs that
        if (peer := self._known.get(transport)) is None:
            if on_unix(request):
                peer = await self._peers.unix(transport.get_extra_info("socket"))
            else:
                peer = await self._peers.tcp(
                    transport.get_extra_info("peername"), transport.get_extra_info("sockname"), own_uid=self._own_uid
                )
            self._known[transport] = peer
        return peer

    def _bearer(self, request: web.Request) -> Token:
        header = request.headers.get(hdrs.AUTHORIZATION)
        if header is None:
            return Token()
        scheme, _, value = header.partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthorized("Authorization must be 'Bearer <token>'")
        given = value.strip().encode("utf-8", "surrogateescape")
        if hmac.compare_digest(given, self._token):
            return Token(TokenKind.CONTROL)
        if self._metrics_token is not None and hmac.compare_digest(given, self._metrics_token):
            return Token(TokenKind.METRICS)
        owner = self._token_owner(value.strip())
        return Token(TokenKind.UNKNOWN) if owner is None else Token(TokenKind.AGENT, owner)

    def has_control_token(self, request: web.Request) -> bool:
        return self._bearer(request).kind is TokenKind.CONTROL


def on_unix(request: web.Request) -> bool:
    """Whether the request came over the Unix socket."""
    transport = request.transport
    sock = transport.get_extra_info("socket") if transport else None
    return sock is not None and sock.family == socket.AF_UNIX


@lru_cache(maxsize=256)
def _hostname(host: str) -> str:
    """The name in a `Host` header, lower-case, without port and brackets; empty for what is no host."""
    try:
        split = urlsplit(f"//{host}")
        if split.username is not None or split.path or split.query or split.fragment:
            return ""
        _ = split.port
    except ValueError:  # no port, or brackets that hold no address
        return ""
    return split.hostname or ""
