"""`[outgoing]` of the configuration: the route of the daemon's own requests (docs/configuration.md). Pure.

The room also has tools for all senders of notifications:

- `screening` *(pure)*: the addresses that may be notified at all; `poster`: one POST, to an address that was screened;
- `retrying` *(pure)*: the time of the next try, and the end of trying;
- `secrets`: the places of secrets of the configuration; `signing` *(pure)*: signatures with them.

Variables such as HTTP_PROXY have no effect: they belong to the shell that started the daemon.
"""

import socket
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from synapsed.shared.regex import regex

VARIABLES: Final = ("http_proxy", "https_proxy", "all_proxy")
"""Variables by which most programs get a proxy, in small or capital letters."""
_NAME: Final = regex(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,62})\.)*[a-z0-9_](?:[a-z0-9_-]{0,62})")
_NUMBER: Final = regex(r"[0-9]+|0[xX][0-9a-fA-F]*")


def proxies_in(environ: Mapping[str, str]) -> list[str]:
    """Returns the variables of `environ` that name a proxy."""
    return [name for name in sorted(environ) if name.lower() in VARIABLES and environ[name]]


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """Returns the address, in any spelling that a look-up takes (`127.1`, `0x7f000001`); None for a name."""
    text = host.strip("[]").partition("%")[0].removesuffix(".")
    try:
        found = ip_address(text)
    except ValueError:
        if not _NUMBER.fullmatch(text.rpartition(".")[2]):
            return None
        try:
            return IPv4Address(socket.inet_aton(text))
        except OSError:
            return None
    return (found.ipv4_mapped if isinstance(found, IPv6Address) else None) or found


def is_number(host: str) -> bool:
    """Returns True if some programs would take `host` for an address, because it ends in a number."""
    return _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]) is not None


def _proxy(value: str) -> str:
    """Checks the address of a proxy. The error does not show the value: there may be a password in it."""
    wanted = "must be an address like 'http://proxy.example:3128', or 'http://NAME:PASSWORD@proxy.example:3128'"
    try:
        url = urlsplit(value)
        port = url.port
    except ValueError:
        raise ValueError(wanted) from None
    plain = value.isascii() and value.isprintable() and " " not in value
    if (
        url.scheme != "http"
        or not (url.hostname and port and plain)
        or url.path.strip("/")
        or url.query
        or url.fragment
    ):
        raise ValueError(wanted)
    return value.rstrip("/")


def _places(value: list[str]) -> list[str]:
    places = [place.lower() for place in value]
    for place in places:
        if _network(place) is None and (is_number(place) or not _NAME.fullmatch(place)):
            raise ValueError(f"{place[:100]!r} is neither a name like 'corp.example' nor a network like '10.0.0.0/8'")
    return places


def _network(place: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(place)
    except ValueError:
        return None


class OutgoingConfig(BaseModel):
    """`[outgoing]`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    proxy: Annotated[str, AfterValidator(_proxy)] | None = Field(default=None, repr=False)
    """Proxy of outgoing requests, with a password if the proxy wants one. None: requests go directly."""
    direct: Annotated[list[str], AfterValidator(_places)] = []
    """Names, with their subdomains, and networks that are reached without the proxy."""

    def proxy_for(self, host: str) -> str | None:
        """Returns the proxy for a request to `host`; None for none. This machine is never reached through the proxy."""
        name = host.lower().rstrip(".")
        if (address := address_of(name)) is None:
            direct = any(name == place or name.endswith(f".{place}") for place in ("localhost", *self.direct))
        else:
            networks = (network for place in self.direct if (network := _network(place)) is not None)
            direct = address.is_loopback or address.is_unspecified or any(address in network for network in networks)
        return None if direct else self.proxy

    @property
    def place(self) -> tuple[str, int] | None:
        """Host and port of the proxy: the only parts of its address that are shown."""
        if self.proxy is None:
            return None
        url = urlsplit(self.proxy)
        assert url.hostname is not None
        assert url.port is not None
        return url.hostname, url.port


DIRECTLY: Final = OutgoingConfig()


LOOPBACK = "loopback"
"""Word in `PushPolicy.allow` that means 127.0.0.0/8 and ::1."""


def _networks(value: list[str]) -> list[str]:
    for text in value:
        if text != LOOPBACK:
            try:
                ip_network(text)
            except ValueError as error:
                raise ValueError(f"{text!r} is neither {LOOPBACK!r} nor a network like 10.1.0.0/16 ({error})") from None
    return value


class PushPolicy(BaseModel):
    """`[a2a.push]`: the receivers elsewhere that may be notified, and the retries. Times are seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    allow: Annotated[list[str], AfterValidator(_networks)] = []
    """Networks that may be notified although they are not public."""
    timeout: float = Field(default=10.0, gt=0, le=120)
    """Time for one attempt, from the look-up of the name to the answer's head."""
    initial: float = Field(default=1.0, gt=0, le=3600)
    """Pause after the first failure; each further one is `factor` times as long, up to `maximum`."""
    factor: float = Field(default=2.0, ge=1, le=10)
    maximum: float = Field(default=300.0, gt=0, le=86_400)
    jitter: float = Field(default=0.5, ge=0, le=1)
    """Each pause is shortened by up to this share."""
    attempts: int = Field(default=1000, ge=1, le=1_000_000)
    """Failures in a row after which a receiver is given up."""
    give_up: float = Field(default=86_400.0, gt=0, le=30 * 86_400)
    """Time without a success after which a receiver is given up."""

    @model_validator(mode="after")
    def _ordered(self) -> "PushPolicy":
        if self.maximum < self.initial:
            raise ValueError("maximum must not be below initial")
        return self
