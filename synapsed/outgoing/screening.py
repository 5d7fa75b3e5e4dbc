"""Screens URLs and addresses of notifications: a sender of messages must not be able to make this machine connect to
services that only this machine can reach (server-side request forgery). Pure.

A URL is judged twice. When a config is made, its text is judged: scheme, user information, port, an address in place of
a name. When a connection is made, its very address is judged (`AddressScreen.permits`, called by the poster's socket
factory), because a name may mean another address by then. If a proxy makes the connection, only the proxy knows the
address: then the name is judged (`AddressScreen.permits_host`).
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from yarl import URL

from synapsed.errors import InvalidRequest
from synapsed.outgoing import LOOPBACK, address_of, is_number
from synapsed.shared.regex import regex

URL_MAX = 2048
"""Characters of a URL."""

WELL_KNOWN_PORTS = 1024
"""Port below which only the two of HTTP are allowed: the other services there are not webhooks, and some of them take a
POST for commands."""

type Address = IPv4Address | IPv6Address

_LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
_NAT64 = ip_network("64:ff9b::/96")
_TRANSITIONAL = (ip_network("::/96"), ip_network("2002::/16"), ip_network("2001::/32"))
"""IPv4-compatible, 6to4, Teredo: networks that lead to an IPv4 address by an unknown relay."""
_NOBODYS = ("local", "localdomain", "localhost", "lan", "home", "corp", "internal", "intranet", "private", "arpa")
"""Ends of names that have a meaning in a local network only, if any."""
_UNPRINTABLE = regex(r"[\x00-\x20\x7f-\x9f\\]")


class AddressScreen:
    """Decides about addresses. `allow` is the key of `[a2a.push]`: `loopback`, or networks."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._allowed: list[IPv4Network | IPv6Network] = []
        for text in allow:
            self._allowed.extend(_LOOPBACK if text == LOOPBACK else [ip_network(text)])

    def permits(self, address: Address) -> bool:
        """Returns True if a connection to `address` may be made, because it is public, or allowed."""
        address = _real(address)
        if any(address in network for network in self._allowed):
            return True
        if isinstance(address, IPv6Address) and any(address in network for network in _TRANSITIONAL):
            return False
        if isinstance(address, IPv6Address) and address.is_site_local:  # deprecated, so not among the private ones
            return False
        return address.is_global and not address.is_multicast and not address.is_reserved

    def permits_host(self, host: str) -> bool:
        """Returns True if a proxy may be asked for `host`: an allowed address, or a name of the public DNS."""
        if (address := address_of(host)) is not None:
            return self.permits(address)
        name = host.lower().removesuffix(".")
        return "." in name and not is_number(name) and name.rpartition(".")[2] not in _NOBODYS


def checked_url(text: str) -> URL:
    """Returns the URL as it will be used. Raises InvalidRequest, which says why the URL is refused and does not repeat
    it: there may be a secret in it."""
    if not text:
        raise _refused("is required")
    if len(text) > URL_MAX:
        raise _refused(f"must have at most {URL_MAX} characters")
    if _UNPRINTABLE.search(text):
        raise _refused("has blanks, control characters or a backslash")
    try:
        url = URL(text)
        host, port = url.host, url.port
    except ValueError:
        raise _refused("is not a URL") from None
    if url.scheme not in ("http", "https"):
        raise _refused("must begin with https:// or http://")
    if not host:
        raise _refused("names no host")
    if "@" in text.partition("://")[2].partition("/")[0].partition("?")[0]:
        raise _refused("must not have a user; use 'authentication'")
    if port is None or not (port in (80, 443) or WELL_KNOWN_PORTS <= port <= 65535):
        raise _refused(f"the port must be 80, 443 or from {WELL_KNOWN_PORTS} on")
    return url.with_fragment(None)


def literal_address(url: URL) -> Address | None:
    """Returns the address in the URL that stands in place of a name; None if there is a name."""
    try:
        return ip_address((url.host or "").partition("%")[0])
    except ValueError:
        return None


def origin_of(url: URL) -> str:
    """Returns scheme, host and port: the only parts of a URL that are shown to others."""
    return str(url.origin())


def _real(address: Address) -> Address:
    """Returns the IPv4 address that the system, or its network's gateway, makes of an IPv6 one."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFF_FFFF)
        if address.scope_id is not None:
            return IPv6Address(int(address))
    return address


def _refused(why: str) -> InvalidRequest:
    return InvalidRequest(f"url: {why}", field="url")
