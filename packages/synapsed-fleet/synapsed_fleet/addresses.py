"""Addresses at which other hosts find this one."""

import ipaddress
import socket
from collections.abc import Iterable, Mapping
from typing import Any, Final

ADDRESSES_MAX: Final = 4
_ELSEWHERE: Final = ("192.0.2.1", 9)
"""An address that is reserved for documents. Nothing is sent there: the kernel only says from which own address it
would send."""


def reachable(interfaces: Mapping[str, Iterable[Any]], listen: str) -> list[str]:
    """Returns addresses of this host that others may reach: `listen`'s if it is one address, else that of the default
    route, else those of `interfaces` (as `psutil.net_if_addrs` returns them). It is never empty: without a network it
    holds loopback."""
    host = listen.rpartition(":")[0].strip("[]")
    if host not in ("0.0.0.0", "::", ""):  # noqa: S104 - compared only
        return [host]
    if (first := _by_default_route()) is not None:
        return [first]
    found = []
    for addresses in interfaces.values():
        for one in addresses:
            if one.family not in (socket.AF_INET, socket.AF_INET6):
                continue
            address = ipaddress.ip_address(one.address.partition("%")[0])
            if not (address.is_loopback or address.is_link_local or address.is_unspecified):
                found.append(address)
    found.sort(key=lambda address: address.version)
    return [str(address) for address in found[:ADDRESSES_MAX]] or ["127.0.0.1"]


def local_url(listen: str) -> str:
    """Returns the address of the broker that listens at `listen`, for its own host."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    if host in ("0.0.0.0", ""):  # noqa: S104 - compared only
        host = "127.0.0.1"
    elif host == "::":
        host = "::1"
    return f"tls://{f'[{host}]' if ':' in host else host}:{port}"


def _by_default_route() -> str | None:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(_ELSEWHERE)
            address = str(probe.getsockname()[0])
    except OSError:
        return None
    return None if ipaddress.ip_address(address).is_loopback else address
