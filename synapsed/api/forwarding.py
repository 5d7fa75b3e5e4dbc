"""Behind a reverse proxy: what the client used as this server's address, as a proxy that is trusted tells it.

`X-Forwarded-Host`, `-Proto` and `-Prefix` count only where the connection comes from one of `[api] trusted_proxies`.
Such a request is somebody else's: it has the rights of its token, not those of the proxy's process.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from aiohttp import web

from synapsed.errors import InvalidRequest

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
