"""Three brokers of one fleet, each with a real server."""

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.parts.fleet.brokers import FleetHome, fleet
from tests.support.ports import free_port

__all__ = ["Three", "added", "started", "three_brokers"]


@dataclass
class Three:
    """`box` has the keys; all are members."""

    box: FleetHome
    others: list[FleetHome]

    @property
    def all(self) -> list[FleetHome]:
        return [self.box, *self.others]

    def named(self, name: str) -> FleetHome:
        return next(one for one in self.all if one.home.identity().name == name)

    def scale(self, replicas: int) -> None:
        before = self.box.server_pid
        told = self.box.do("scale", replicas=replicas)
        assert not told["again"]
        self.box.signal_broker(signal.SIGHUP)
        self.box.do("settle", not_pid=before)

    def streams(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.box.do("status")["streams"] or []
        return found

    def current(self) -> bool:
        """Each stream has a leader and two copies that are up to date."""
        found = self.streams()
        return len(found) == 6 and all(
            one["leader"] and len([each for each in one["replicas"] if each["current"]]) == 2 for one in found
        )


def added(box: FleetHome, other: FleetHome) -> None:
    other.port = free_port()
    name = other.home.identity().name
    box.do("broker-add", name=name, address="127.0.0.1", port=other.port, route_port=free_port())


def started(other: FleetHome) -> None:
    other.do("broker-take", listen=f"127.0.0.1:{other.port}")
    other.start()


@contextlib.contextmanager
def three_brokers(folder: Path, *, apart: Path | None = None, **body: Any) -> Iterator[Three]:
    """All three run; the streams are at the first until it is told to `scale`. `apart`: where the last one is kept."""
    with fleet(folder, **body) as box, contextlib.ExitStack() as ends:
        made = Three(box, [box.joined(folder / "attic", "attic"), box.joined((apart or folder) / "barn", "barn")])
        for other in made.others:
            added(box, other)
        for other in made.others:
            started(other)
            ends.callback(other.close)
        yield made
