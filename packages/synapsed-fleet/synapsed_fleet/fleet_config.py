"""`[fleet]`: this host's membership of a fleet, and the broker that it may keep (docs/fleet.md).

`synapsectl fleet create` and `fleet join` write `fleet.toml` beside `config.toml`, with these keys at the top level; a
key under `[fleet]` of `config.toml` has precedence. Without keys in either file there is no fleet. Credentials are in
neither file: they are in the state directory.
"""

import re
from typing import Annotated, Literal, Protocol
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from synapsed.config.config import Section
from synapsed.shared.regex import regex

HOST_NAME = regex(r"[a-z0-9][a-z0-9-]{0,30}")
"""Pattern of a host's name, which is a token of subjects, and stands behind the `@` of an address."""
CLASS_NAME = regex(r"[a-z0-9][a-z0-9-]{0,62}")
"""Pattern of the class in `any:CLASS`: a profile or a skill."""
SCHEMES = frozenset({"tls", "nats", "ws", "wss"})
ACCEPT_MAX = 200
URLS_MAX = 16


def _host(value: str) -> str:
    if value and HOST_NAME.fullmatch(value) is None:
        raise ValueError("must be at most 31 letters a-z, digits and '-', and begin with a letter or digit")
    return value


def _class(value: str) -> str:
    if CLASS_NAME.fullmatch(value) is None:
        raise ValueError("must be at most 63 letters a-z, digits and '-', and begin with a letter or digit")
    return value


def is_url(value: str) -> bool:
    """Returns True if `value` can be the address of a broker: a scheme, a host and a port, and nothing else."""
    if not value.isascii() or not value.isprintable() or " " in value:
        return False
    try:
        split = urlsplit(value)
        port = split.port
    except ValueError:
        return False
    plain = not (split.username or split.password or split.query or split.fragment or split.path.strip("/"))
    return split.scheme in SCHEMES and bool(split.hostname) and port is not None and port > 0 and plain


def _url(value: str) -> str:
    if not is_url(value):
        raise ValueError("must be like tls://box.lan:4222: tls, nats, wss or ws, a host, a port, and no user")
    return value


def _accepted(value: str) -> str:
    name = value.removeprefix("team:")
    if value != "*" and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name) is None:
        raise ValueError("must be '*', the name of an agent, or 'team:NAME'")
    return value


def _listen(value: str) -> str:
    host, colon, port = value.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) <= 65535:
        raise ValueError("must be an address and a port, like 0.0.0.0:4222")
    return value


_SIZE = regex(r"([1-9][0-9]{0,8})(MiB|GiB|TiB)")
_UNITS = {"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def _size(value: str) -> str:
    if _SIZE.fullmatch(value) is None:
        raise ValueError("must be a size like '512MiB' or '20GiB'")
    return value


def bytes_of(size: str) -> int:
    """Returns a size of this section in bytes."""
    number, unit = _SIZE.fullmatch(size).groups()  # type: ignore[union-attr]  # it was validated
    return int(number) * _UNITS[unit]


HostName = Annotated[str, AfterValidator(_host)]


class FleetWork(Section):
    """`[fleet.work]`: the work for any host that this one takes."""

    classes: list[Annotated[str, AfterValidator(_class)]] = Field(default=[], max_length=64)
    """Names of profiles or skills; by default there are no classes."""
    on_loss: Literal["wait", "again"] = "wait"
    """Treatment of work that was sent from here when its host is lost: it waits for that host, or is sent again, and
    may then be done twice."""
    lost_after: float = Field(default=900.0, ge=60.0, le=7 * 86_400.0, allow_inf_nan=False)
    """Seconds without a sign of life after which work at a host is treated as lost."""
    unclaimed_after: float = Field(default=14 * 86_400.0, ge=60.0, le=365 * 86_400.0, allow_inf_nan=False)
    """Seconds after which work that this host has sent, and that no host has taken, is taken back."""


class FleetEvents(Section):
    """`[fleet.events]`: what other hosts learn of events on this host."""

    publish: bool = True
    """True if events and waiting items are published at all."""
    content: bool = False
    """True if they include texts: questions, answers, tools' inputs. Every member and the broker's owner reads them."""


class FleetBroker(Section):
    """`[fleet.broker]`: the broker that this host keeps, in a unit of its own."""

    listen: Annotated[str, AfterValidator(_listen)] = "0.0.0.0:4222"
    cluster: Annotated[str, AfterValidator(_listen)] | None = None
    """Address at which the others of three brokers reach this one; default: the address of `listen`, its port +
    2000."""
    max_store: Annotated[str, AfterValidator(_size)] | None = None
    """Most bytes on disk; default: half of the free space when it starts, at most 20 GiB."""


class FleetConfig(Section):
    """`[fleet]`, or `fleet.toml`."""

    name: HostName = ""
    """Name of this host, the same as in its credentials."""
    urls: list[Annotated[str, AfterValidator(_url)]] = Field(default=[], max_length=URLS_MAX)
    """Addresses of brokers; any of them is enough."""
    persons: list[HostName] = Field(default=[], max_length=ACCEPT_MAX)
    """Hosts whose persons count as persons here too."""
    accept: list[Annotated[str, AfterValidator(_accepted)]] = Field(default=["*"], max_length=ACCEPT_MAX)
    """Agents that other hosts may send to: agents by name, or all of a team's."""
    work: FleetWork = FleetWork()
    events: FleetEvents = FleetEvents()
    broker: FleetBroker | None = None


class DaemonSettings(Protocol):
    """The part of the configuration that the fleet's verbs need."""

    @property
    def fleet(self) -> FleetConfig | None: ...
