"""Names and addresses by which others reach this machine. Pure but for `announced` and `by_default_route`."""

import socket
import sys
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, Final

from synapsed.parts.web.certificates import is_private
from synapsed.shared.regex import regex

_ELSEWHERE: Final = ("192.0.2.1", 9)
"""An address for documentation: nothing is sent, the kernel only returns the source address that it would use."""
_NAME: Final = regex(
    r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)
_RESPONDERS: Final = (Path("/run/avahi-daemon/socket"), Path("/var/run/avahi-daemon/socket"))
ADDRESSES_MAX: Final = 12


def names_here(
    host: str,
    *,
    allowed: Iterable[str],
    hostname: str,
    interfaces: Mapping[str, Iterable[Any]],
    first: str | None,
    announced: bool,
) -> list[str]:
    """Returns names and addresses for a listener at `host`, the best ones for other machines first.

    `allowed`: those that the user gave. `interfaces` is the result of `psutil.net_if_addrs`, `first` the address of the
    default route; of the others only private ones count. `announced`: the name is announced in the network (mDNS).
    """
    given = [name.lower().strip("[]") for name in allowed if is_name(name) or _address(name) is not None]
    at = _address(host)
    if at is not None and not at.is_unspecified:
        own = [str(at)] if not at.is_loopback else ["localhost", str(at)]
        return list(dict.fromkeys([*given, *own]))
    short = hostname.partition(".")[0].lower()
    told = [f"{short}.local"] if is_name(short) else []
    known = [name for name in (short, hostname.lower()) if is_name(name)]
    addresses = _of_interfaces(interfaces)
    if first is not None:
        addresses.insert(0, first)
    between = [*told, *addresses] if announced else [*addresses, *told]
    return list(dict.fromkeys([*given, *between, *known, "localhost", "127.0.0.1", "::1"]))


def addresses(names: Iterable[str], port: int) -> list[str]:
    """Returns `https://NAME:PORT/` for the names that others may use; for this machine's own if there are no others."""
    names = [name for name in names if "*" not in name]
    others = [name for name in names if "." in name or ":" in name]
    far = [name for name in others if (at := _address(name)) is None or not at.is_loopback]
    tail = "/" if port == 443 else f":{port}/"
    return [f"https://{f'[{name}]' if ':' in name else name}{tail}" for name in far or names]


def is_name(text: str) -> bool:
    """Returns True if it can be the name of a host, and no address."""
    return _NAME.fullmatch(text) is not None and _address(text) is None


def announced() -> bool:
    """Returns True if this machine announces its name with `.local` in the network."""
    return sys.platform == "darwin" or any(path.exists() for path in _RESPONDERS)


def by_default_route() -> str | None:
    """Returns this machine's address towards the Internet; None if there is no way there."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(_ELSEWHERE)
            address = str(probe.getsockname()[0])
    except OSError:
        return None
    return None if ip_address(address).is_loopback else address


def _of_interfaces(interfaces: Mapping[str, Iterable[Any]]) -> list[str]:
    """Returns the addresses, IPv4 before IPv6."""
    found: list[IPv4Address | IPv6Address] = []
    for addresses in interfaces.values():
        for one in addresses:
            if one.family not in (socket.AF_INET, socket.AF_INET6):
                continue
            address = ip_address(one.address.partition("%")[0])
            if not (address.is_loopback or address.is_link_local) and is_private(str(address)):
                found.append(address)
    found.sort(key=lambda address: address.version)
    return [str(address) for address in found[:ADDRESSES_MAX]]


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
