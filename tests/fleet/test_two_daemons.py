"""Two real daemons, each a member, and a real broker between them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.brokers import FleetHome, fleet, needs_broker
from tests.support.daemon import NO_PORTS, Daemon, eventually

pytestmark = [needs_broker, pytest.mark.slow]


@dataclass
class Pair:
    """`box` has the broker, and `laptop` has joined."""

    broker: FleetHome
    box: Daemon
    laptop: Daemon

    def known(self, daemon: Daemon, address: str) -> None:
        eventually(
            lambda: address in [row["name"] for row in daemon.ctl("list", "--json").json], f"{address} is in the list"
        )

    def task(self, daemon: Daemon, task_id: str) -> dict[str, Any]:
        found: dict[str, Any] = daemon.get(f"/control/tasks/{task_id}").json
        return found.get("task", found)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with fleet(tmp_path) as home:
        joined = home.joined(tmp_path / "laptop", "laptop")
        box = Daemon(home.folder, config=NO_PORTS).start()
        laptop = Daemon(joined.folder, config=NO_PORTS).start()
        box.start_agent()
        made = Pair(home, box, laptop)
        made.known(laptop, "dummy@box")
        yield made
        for daemon in (laptop, box):
            assert daemon.end() == 0, (daemon.home / "daemon.log").read_text()[-3000:]


def test_a_message_goes_there_and_its_answer_comes_back(pair: Pair) -> None:
    sent = pair.laptop.ctl("send", "dummy@box", "--wait", "hello over there")
    assert sent.code == 0, sent.err
    (there,) = pair.box.get("/control/tasks").json
    assert sent.out.strip() == there["artifacts"][0]["parts"][0]["text"]
    assert there["metadata"]["sender"]["sender_id"] == "person@laptop", (
        "a person is one there by the configuration only"
    )
    (row,) = pair.laptop.ctl("tasks", "--json").json
    assert (row["agent_id"], row["status"]) == ("dummy@box", "completed")
    assert row["metadata"]["external"]["via"] == "fleet"
