"""Who needs a person here and on other hosts (`GET /inbox?hosts=1`), and which hosts do not say so."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from synapsectl.client import Client
from synapsectl.inbox.items import Item, order


class Everywhere(NamedTuple):
    """Items that wait, in their order (`inbox.items.order`); `hosts` has what each other host said."""

    items: list[dict[str, Any]]
    hosts: list[dict[str, Any]]


def look(client: Client) -> Everywhere:
    """What waits for a person here, and on other hosts that answer. Raises NoDaemon, ApiError."""
    told = client.get("/inbox", {"hosts": 1})
    return Everywhere(sorted(told["items"], key=order), told["hosts"])


def missing(hosts: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each host that has said nothing, or not everything."""
    lines = [f"{host['name']}: {host['error']}" for host in hosts if host["error"]]
    return lines + [f"{host['name']}: {host['left_out']} more are not shown" for host in hosts if host["left_out"]]


class Merged:
    """What waits here and what waits elsewhere are told apart: no host holds up what is news here. The rows of a host
    that does not answer stay as it told them last."""

    def __init__(self) -> None:
        self._here: Sequence[Item] | None = None
        self._there: dict[str, list[Item]] = {}
        self.hosts: Sequence[Mapping[str, Any]] = ()

    def here(self, items: Sequence[Item]) -> None:
        self._here = items

    def there(self, told: Everywhere) -> None:
        before, self.hosts = self._there, told.hosts
        self._there = {
            host["name"]: before.get(host["name"], [])
            if host["error"]
            else [item for item in told.items if item["host"] == host["name"]]
            for host in told.hosts
        }

    @property
    def items(self) -> list[Item] | None:
        """In their order; None while this daemon has told nothing."""
        if self._here is None:
            return None
        every = [*self._here, *(item for items in self._there.values() for item in items)]
        return sorted(every, key=order)
