"""Items that wait for a person here and on other hosts (`GET /inbox?hosts=1`), and the hosts that do not answer."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from synapsectl.client import Client
from synapsectl.inbox.items import Item, order


class Everywhere(NamedTuple):
    """Items that wait, in their order (`inbox.items.order`); `hosts` has the state of each other host."""

    items: list[dict[str, Any]]
    hosts: list[dict[str, Any]]


def look(client: Client) -> Everywhere:
    """Returns the items that wait for a person here, and on other hosts that answer. Raises NoDaemon, ApiError."""
    told = client.get("/inbox", {"hosts": 1})
    return Everywhere(sorted(told["items"], key=order), told["hosts"])


def missing(hosts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns a line for each host that has not answered, or not completely."""
    lines = [f"{host['name']}: {host['error']}" for host in hosts if host["error"]]
    return lines + [f"{host['name']}: {host['left_out']} more are not shown" for host in hosts if host["left_out"]]


class Merged:
    """Items of this host and of others, kept apart, so that no host delays those of this one. The rows of a host that
    does not answer stay as they were."""

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
        """Items in their order; None until this daemon has sent some."""
        if self._here is None:
            return None
        every = [*self._here, *(item for items in self._there.values() for item in items)]
        return sorted(every, key=order)
