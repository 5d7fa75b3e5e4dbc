"""Checks for the gate (docs/security.md): the origin and the form of a request, and its rights.

Behind a reverse proxy, the address that the client used is the one in the trusted proxy's headers.

`X-Forwarded-Host`, `-Proto` and `-Prefix` count only if the connection comes from one of `[api] trusted_proxies`. Such
a request comes from a client of the proxy: it has the rights of its token, not those of the proxy's process.
"""

import hmac
import os
import socket
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from aiohttp import hdrs, web

from synapsed.api.describe import description_of
from synapsed.api.peer_lookup import PeerLookup
from synapsed.api.problems import Handler
from synapsed.api.query import check_names
from synapsed.api.rights import Peer, Rights, decide
from synapsed.errors import Forbidden, InvalidRequest, TooLarge, Unauthorized, UnsupportedMedia
from synapsed.interfaces import Directory, Token, TokenKind
from synapsed.kernel import Bearers
from synapsed.shared.regex import regex

_MARKS: Final = ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Prefix", "Forwarded")
_PREFIX: Final = regex(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]{1,64}){0,8}/?")
"""A path of at most eight names, none of which leads up."""
_HOST: Final = regex(r"[A-Za-z0-9._:\[\]-]{1,255}")


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The address that a client has used, by a proxy's headers. `host` has a port, unless it is the scheme's default;
    None if the proxy passes on the client's `Host`."""

    scheme: str
    host: str | None
    prefix: str


class Proxies:
    """The trusted proxies."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        """`trusted`: addresses and networks (`10.0.0.0/8`). Raises ValueError for any other text."""
        self._trusted: list[IPv4Network | IPv6Network] = [ip_network(each) for each in trusted]

    def forwarded(self, request: web.Request, served: Collection[str] = ()) -> Forwarded | None:
        """Returns the client's address; None for a request that no trusted proxy passed on. `served`: names for which
        any process on this machine may pass on requests, because this gives it fewer rights than its own. Raises
        InvalidRequest for a wrong address."""
        if not any(name in request.headers for name in _MARKS):
            return None
        trusted = self._is_trusted(request)
        if not trusted and not self._is_served(request, served):
            return None
        scheme = request.headers.get("X-Forwarded-Proto", request.scheme).lower()
        host = request.headers.get("X-Forwarded-Host")
        prefix = request.headers.get("X-Forwarded-Prefix", "") if trusted else ""
        if scheme not in ("http", "https"):
            raise InvalidRequest("X-Forwarded-Proto: must be http or https", field="X-Forwarded-Proto")
        if host is not None and not _HOST.fullmatch(host):
            raise InvalidRequest("X-Forwarded-Host: must be one host", field="X-Forwarded-Host")
        if not _PREFIX.fullmatch(prefix):
            raise InvalidRequest(
                "X-Forwarded-Prefix: must be a path of at most 8 names of letters, digits and ._~-, as /lab",
                field="X-Forwarded-Prefix",
            )
        return Forwarded(scheme, host, prefix.rstrip("/"))

    def _is_trusted(self, request: web.Request) -> bool:
        address = peer_address(request)
        return address is not None and any(address in network for network in self._trusted)

    @staticmethod
    def _is_served(request: web.Request, served: Collection[str]) -> bool:
        if not served:
            return False
        address = peer_address(request)
        said = request.headers.get("X-Forwarded-Host", request.headers.get(hdrs.HOST, ""))
        return address is not None and address.is_loopback and _hostname(said) in served


def peer_address(request: web.Request) -> IPv4Address | IPv6Address | None:
    """Returns the address of the other end of a TCP connection."""
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    return ip_address(peer[0].partition("%")[0]) if isinstance(peer, tuple) else None


LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
JSON_TYPES: Final = frozenset({"application/json", "application/a2a+json"})
_SINGLE_HEADERS = (hdrs.HOST, hdrs.ORIGIN, hdrs.AUTHORIZATION, hdrs.CONTENT_TYPE, hdrs.CONTENT_LENGTH)
_BODY_METHODS = frozenset({hdrs.METH_POST, hdrs.METH_PUT, hdrs.METH_PATCH})
_PUBLIC = "__synapsed_public__"


def public(handler: Handler) -> Handler:
    """Marks a route without private data (health, the card): other machines get an answer without a token, too."""
    setattr(handler, _PUBLIC, True)
    return handler


def is_public(handler: object) -> bool:
    return bool(getattr(handler, _PUBLIC, False))


class Security:
    """Checks requests by the control token, the names under which this host may be addressed, and the peers."""

    def __init__(
        self,
        *,
        directory: Directory,
        token: str,
        peers: PeerLookup | None = None,
        allowed_hosts: Iterable[str] = (),
        trusted_proxies: Iterable[str] = (),
        route_tokens: Mapping[str, str] = MappingProxyType({}),
        bearers: Bearers | None = None,
    ) -> None:
        """`route_tokens`: tokens that each open only one route, by its path."""
        self._token = token.encode()
        self._route_tokens = [(token.encode(), path) for path, token in route_tokens.items()]
        self._token_owner = directory.token_owner
        self._peers = peers or PeerLookup(directory.process_of)
        self._hosts = LOCAL_HOSTS | {host.lower().strip("[]") for host in allowed_hosts}
        self._proxies = Proxies(trusted_proxies)
        self.bearers = bearers or Bearers()
        self._own_uid = os.getuid()
        self._known: WeakKeyDictionary[Any, Peer] = WeakKeyDictionary()

    def check_form(self, request: web.Request) -> None:
        """Checks `Host`, `Origin`, doubled headers, names of parameters, content type, coding and length. Raises
        Forbidden, InvalidRequest, TooLarge, UnsupportedMedia."""
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
        """Returns the address that the client used, without scheme: `Host`, or the one in a trusted proxy's headers."""
        forwarded = self.forwarded(request)
        said: str = request.headers.get(hdrs.HOST, "")
        return said if forwarded is None or forwarded.host is None else forwarded.host

    def origin(self, request: web.Request) -> str:
        """Returns `scheme://host[:port][/prefix]` as the client has it."""
        return f"{self.scheme(request)}://{self.host(request)}{self.prefix(request)}"

    def prefix(self, request: web.Request) -> str:
        """Returns the path under which a trusted proxy has this server, as `/lab`; empty if it has none."""
        forwarded = self.forwarded(request)
        return "" if forwarded is None else forwarded.prefix

    def scheme(self, request: web.Request) -> str:
        """Returns `http` or `https`, as the client has it."""
        forwarded = self.forwarded(request)
        return request.scheme if forwarded is None else forwarded.scheme

    def forwarded(self, request: web.Request) -> Forwarded | None:
        """Returns a trusted proxy's headers about the request; None if none has passed it on."""
        return self._proxies.forwarded(request, self.bearers.served)

    def source(self, request: web.Request) -> tuple[str, str]:
        """Returns the source of the request, as far as it is known: its way (a proxy, by its user, or the user whose
        process has connected), and its address."""
        at = str(peer_address(request) or "unix")
        peer = self._known.get(request.transport)
        by = None if peer is None or peer.uid is None else f"uid {peer.uid}"
        if self.forwarded(request) is None:
            return by or "elsewhere", at
        said = request.headers.get("X-Forwarded-For", "proxy").rpartition(",")[2].strip()[:64]
        return f"proxy, {by or at}", said

    def _check_host(self, request: web.Request) -> None:
        name = _hostname(said := self.host(request))
        if not (self._is_ours(name) or self._is_of_part(request, name)):
            if name:
                what = f"{name[:100]!r} is not a name of this server: add it to allowed_hosts under [api]"
            else:
                what = f"{said[:100]!r} is no host" if said else "the request names no host"
                what += ": send 'Host: localhost:PORT'"
            raise Forbidden(what, host=name[:100])

    def _is_ours(self, name: str) -> bool:
        return name in self._hosts or name in self.bearers.served

    def _is_of_part(self, request: web.Request, name: str) -> bool:
        """Returns True if the request came encrypted to a listener of a part that has this name. A foreign page whose
        name was made to mean this machine does not get so far, because the browser ends the handshake."""
        if not name or request.scheme != "https":
            return False
        own = request.transport.get_extra_info("sockname") if request.transport is not None else None
        return self.bearers.is_name(name, own[0].partition("%")[0] if isinstance(own, tuple) else None)

    def is_host(self, host: str) -> bool:
        """Returns whether a `Host` may mean this server, or a listener of a part's."""
        name = _hostname(host)
        return self._is_ours(name) or (bool(name) and self.bearers.is_name(name, None))

    def _check_origin(self, request: web.Request) -> None:
        """Refuses pages of other origins, also those of other ports of this machine."""
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
        coding = request.headers.get(hdrs.CONTENT_ENCODING, "identity")
        if coding.strip().lower() != "identity":
            raise UnsupportedMedia(f"the body is compressed ({coding[:20]!r}): send it as it is", offered=["identity"])

    async def rights(self, request: web.Request) -> Rights:
        """Returns the rights of the request. Raises Unauthorized, Forbidden, LockedOut."""
        peer = await self._peer(request)
        token, value = self._bearer(request)
        # On a public route, other credentials that a request carries make no difference.
        looks = token.kind is TokenKind.ABSENT and not is_public(request.match_info.handler)
        if looks or token.kind is TokenKind.UNKNOWN:
            token = self.bearers.authenticate(request, value)
            if token.kind is TokenKind.UNKNOWN and not on_unix(request):
                self.bearers.failed(request)
        return decide(peer, token, self._own_uid)

    def is_here(self, request: web.Request) -> bool:
        """Returns True if the request comes from this machine, and no proxy has passed it on."""
        address = peer_address(request)
        return self.forwarded(request) is None and address is not None and address.is_loopback

    async def _peer(self, request: web.Request) -> Peer:
        """Returns the peer, looked up once per connection."""
        transport = request.transport
        if transport is None:
            raise Forbidden("the connection is gone")
        if (peer := self._known.get(transport)) is None:
            if on_unix(request):
                peer = await self._peers.unix(transport.get_extra_info("socket"))
            else:
                peer = await self._peers.tcp(
                    transport.get_extra_info("peername"), transport.get_extra_info("sockname"), own_uid=self._own_uid
                )
            self._known[transport] = peer
        if self.forwarded(request) is not None and not peer.own and peer.agent_id is None:
            return Peer(transport="tcp", loopback=False)  # it belongs to a client behind the proxy
        return peer

    def _bearer(self, request: web.Request) -> tuple[Token, str | None]:
        """Returns the token as far as the kernel knows it, and its text, or None without one. Raises Unauthorized."""
        header = request.headers.get(hdrs.AUTHORIZATION)
        if header is None:
            return Token(), None
        scheme, _, value = header.partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthorized("Authorization must be 'Bearer <token>'")
        return self._known_token(value.strip()), value.strip()

    def _known_token(self, value: str) -> Token:
        given = value.encode("utf-8", "surrogateescape")
        if hmac.compare_digest(given, self._token):
            return Token(TokenKind.CONTROL)
        for token, path in self._route_tokens:
            if hmac.compare_digest(given, token):
                return Token(TokenKind.ROUTE, route=path)
        owner = self._token_owner(value)
        return Token(TokenKind.UNKNOWN) if owner is None else Token(TokenKind.AGENT, owner)

    def has_control(self, request: web.Request) -> bool:
        """Returns True if the request comes over the Unix socket, or with the control token."""
        return on_unix(request) or self._bearer(request)[0].kind is TokenKind.CONTROL


def on_unix(request: web.Request) -> bool:
    """Returns True if the request came over the Unix socket."""
    transport = request.transport
    sock = transport.get_extra_info("socket") if transport else None
    return sock is not None and sock.family == socket.AF_UNIX


@lru_cache(maxsize=256)
def _hostname(host: str) -> str:
    """Returns the name in a `Host` header, lower-case, without port and brackets; empty if it is no host."""
    try:
        split = urlsplit(f"//{host}")
        if split.username is not None or split.path or split.query or split.fragment:
            return ""
        _ = split.port
    except ValueError:  # a wrong port, or brackets without an address
        return ""
    return split.hostname or ""
