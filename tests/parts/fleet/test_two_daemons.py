"""Two real daemons, each a member, and a real broker between them. They are made once: each test looks at its own
messages only, and leaves all three up."""

import asyncio
import json
import os
import select
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from synapsed.clock import SystemClock
from synapsed.config.config_files import load_config
from synapsed.config.paths import Paths
from synapsed.parts.loading import config_model
from synapsed.store.store import SqliteStore
from synapsed_fleet.running import opened
from tests.parts.fleet.brokers import FleetHome, fleet, needs_broker
from tests.parts.fleet.member import Agents, Control, Plan
from tests.support.daemon import NO_PORTS, PATIENCE_S, Daemon, eventually
from tests.support.kernels import kernel_of

pytestmark = [needs_broker, pytest.mark.system, pytest.mark.slow]


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

    def said(self, daemon: Daemon, text: str) -> dict[str, Any]:
        """The one task there whose message is `text`."""
        (found,) = [one for one in daemon.get("/control/tasks").json if _text(one) == text]
        task: dict[str, Any] = found
        return task

    def task(self, daemon: Daemon, task_id: str) -> dict[str, Any]:
        found: dict[str, Any] = daemon.get(f"/control/tasks/{task_id}").json
        return found.get("task", found)


def _text(task: dict[str, Any]) -> str:
    return str(task["message"]["parts"][0].get("text"))


OF_BOX = """
[agents.dummy]
profile = "dummy"
autostart = true
[teams.review]
members = ["dummy"]
[fleet.work]
classes = ["dummy"]
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    with fleet(folder) as home:
        joined = home.joined(folder / "laptop", "laptop")
        box = Daemon(home.folder, config=NO_PORTS + OF_BOX).start()
        laptop = Daemon(joined.folder, config=NO_PORTS).start()
        box.ready("dummy")
        made = Pair(home, box, laptop)
        made.known(laptop, "dummy@box")
        yield made
        for daemon in (laptop, box):
            assert daemon.end() == 0, (daemon.home / "daemon.log").read_text()[-3000:]


def test_a_message_goes_there_and_its_answer_comes_back(pair: Pair) -> None:
    sent = pair.laptop.ctl("send", "dummy@box", "--wait", "hello over there")
    assert sent.code == 0, sent.err
    there = pair.said(pair.box, "hello over there")
    assert sent.out.strip() == there["artifacts"][0]["parts"][0]["text"]
    assert there["metadata"]["sender"]["sender_id"] == "person@laptop", (
        "a person is one there by the configuration only"
    )
    row = pair.said(pair.laptop, "hello over there")
    assert (row["agent_id"], row["status"]) == ("dummy@box", "completed")
    assert row["metadata"]["external"]["via"] == "fleet"
    _told_on_the_other(pair)


def _told_on_the_other(pair: Pair) -> None:
    """What happens on one host, and nothing of what was said."""

    def told() -> list[dict[str, Any]]:
        shown = pair.laptop.ctl("events", "--fleet", "--host", "box", "--json")
        assert shown.code == 0, shown.err
        return [json.loads(line) for line in shown.out.splitlines()]

    eventually(
        lambda: [one["data"] for one in told() if one["event"] == "taskStatus"][-1:] == [{"state": "completed"}],
        "laptop hears that it is completed",
    )
    found = told()
    assert {one["agent"] for one in found if one["event"] == "taskStatus"} == {"dummy@box"}
    assert "hello over there" not in json.dumps(found)
    rest = pair.laptop.ctl("events", "--fleet", "--host", "box", "--after", found[0]["id"], "--json")
    assert [json.loads(line)["id"] for line in rest.out.splitlines()][: len(found) - 1] == [
        one["id"] for one in found[1:]
    ]
    shown = pair.box.ctl("events", "--fleet", "--types", "taskStatus")
    assert "dummy@box" in shown.out
    assert pair.box.ctl("events", "--fleet", "--after", "x").code == 2
    pair.broker.kill()
    away = pair.laptop.ctl("events", "--fleet")
    assert away.code == 6, away.err
    assert "not reached now" in away.err
    pair.broker.up()


@pytest.mark.night
def test_what_is_said_there_is_printed_here_while_it_is_said(pair: Pair, tmp_path: Path) -> None:
    """The agent says the rest once some of it is printed on the other host."""
    printed, message = tmp_path / "printed", f"lines 30\nuntil {tmp_path / 'printed'}\nlines 2"
    tool = pair.laptop.spawn("send", "dummy@box", "--follow", message)
    assert tool.stdout is not None
    try:
        assert select.select([tool.stdout], [], [], PATIENCE_S)[0], "nothing is printed while the agent works"
        printed.touch()
        out, err = tool.communicate(timeout=PATIENCE_S)
    finally:
        printed.touch()
        tool.kill()
    assert tool.returncode == 0, err
    (answer,) = [one for one in pair.said(pair.laptop, message)["artifacts"] if one["artifact_id"] == "answer"]
    assert out.strip() == answer["parts"][0]["text"].strip()
    assert out.count("line 30\n") == 1


@pytest.mark.night
def test_a_file_too_large_for_a_message_is_in_the_inbox_of_the_agent_there(pair: Pair, tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"
    content = os.urandom(9_000_001)
    film.write_bytes(content)
    sent = pair.laptop.ctl("send", "dummy@box", "--wait", "--file", str(film), "what is in this?")
    assert sent.code == 0, sent.err
    (there,) = pair.box.home.glob("**/inbox/*-film.mp4")
    assert there.read_bytes() == content
    assert there.stat().st_mode & 0o777 == 0o600
    assert "9000001" in str(pair.said(pair.box, "what is in this?")["message"]), "its size is told"


@pytest.mark.night
@pytest.mark.fleet
def test_a_file_comes_whole_though_both_daemons_are_killed_while_it_is_under_way(pair: Pair, tmp_path: Path) -> None:
    film = tmp_path / "long.mp4"
    content = os.urandom(48 << 20)
    film.write_bytes(content)
    pair.box.kill9()
    sent = pair.laptop.ctl("send", "dummy@box", "--json", "--file", str(film), "and in this?")
    assert sent.code == 0, sent.err
    task_id = sent.json["task"]["id"]
    pair.box.start()
    coming = pair.box.home / "state/fleet/files/in/laptop"

    def so_far() -> int:
        return sum(path.stat().st_size for path in coming.glob("*"))

    for daemon, share in ((pair.box, 0.1), (pair.laptop, 0.3), (pair.box, 0.5)):
        eventually(lambda share=share: so_far() > share * len(content), f"{share:.0%} is there")
        daemon.kill9()
        before = so_far()
        daemon.start()
        assert before >= share * len(content)
    eventually(lambda: pair.task(pair.laptop, task_id)["status"] == "completed", "it is answered", patience=120)
    (there,) = pair.box.home.glob("**/inbox/*-long.mp4")
    assert there.read_bytes() == content


@pytest.mark.night
def test_a_host_that_nobody_knows_is_told_with_where_the_known_ones_are(pair: Pair) -> None:
    sent = pair.laptop.ctl("send", "dummy@nowhere", "hello")
    assert sent.code == 4
    assert "no host 'nowhere'" in sent.err
    assert "'synapsectl fleet hosts'" in sent.err


async def test_hosts_are_known_before_the_agents_are_there(pair: Pair) -> None:
    """Messages are taken as soon as there are listeners, which is seconds before the last program is adopted."""
    assert await asyncio.to_thread(pair.laptop.end) == 0
    paths, clock = Paths.from_environ(pair.laptop.env), SystemClock()
    store = await SqliteStore.open(paths.database, clock=clock)
    agents = Agents(store, clock, Plan())
    config = await asyncio.to_thread(load_config, paths, config_model())
    kernel = kernel_of(
        control=Control(agents, agents), store=store, clock=clock, timers=None, config=config, paths=paths
    )
    try:
        async with opened(kernel) as running:
            assert running.carrier is not None
            assert running.carrier.find("dummy@box") == "dummy@box"
    finally:
        await store.close()
        await asyncio.to_thread(pair.laptop.start)


def test_what_is_sent_while_the_other_daemon_is_away_is_done_when_it_is_back(pair: Pair) -> None:
    pair.box.kill9()
    sent = pair.laptop.ctl("send", "dummy@box", "hello", "--json")
    assert sent.code == 0, sent.err
    task_id = sent.json["task"]["id"]
    assert sent.json["task"]["status"] == "submitted"
    (row,) = pair.laptop.get("/fleet/outbox").json
    assert (row["dst"], row["kind"], row["task"]) == ("box", "msg", task_id)
    pair.box.start()
    eventually(lambda: pair.task(pair.laptop, task_id)["status"] == "completed", "it is answered")
    eventually(lambda: pair.laptop.get("/fleet/outbox").json == [], "and nothing is under way any more")


@pytest.mark.night
def test_what_is_sent_without_a_broker_goes_when_it_is_there(pair: Pair) -> None:
    pair.broker.kill()
    sent = pair.laptop.ctl("send", "dummy@box", "hello", "--json")
    assert sent.code == 0, sent.err
    eventually(lambda: not pair.laptop.get("/fleet").json["connected"], "it is told that there is no broker")
    pair.broker.up()
    task_id = sent.json["task"]["id"]
    eventually(lambda: pair.task(pair.laptop, task_id)["status"] == "completed", "it is answered")


@pytest.mark.night
def test_daemons_and_the_broker_are_killed_at_random_and_each_message_is_done_once(pair: Pair) -> None:
    random = Random(7)
    sent = []
    for n in range(int(os.environ.get("FLEET_KILLS", "4"))):
        told = pair.laptop.ctl("send", "dummy@box", f"message {n}", "--json")
        assert told.code == 0, told.err
        sent.append(told.json["task"]["id"])
        time.sleep(random.random() * 0.5)  # the moment of the kill
        match n % 3:
            case 0:
                pair.box.kill9()
                pair.box.start()
            case 1:
                pair.laptop.kill9()
                pair.laptop.start()
            case _:
                pair.broker.kill()
                pair.broker.up()
    done = {"completed"}
    eventually(
        lambda: {pair.task(pair.laptop, one)["status"] for one in sent} == done, "each is answered", patience=180
    )
    there = [text for text in map(_text, pair.box.get("/control/tasks").json) if text.startswith("message ")]
    assert sorted(there) == sorted(f"message {n}" for n in range(len(sent))), "each was taken once"
    eventually(lambda: pair.laptop.get("/fleet/outbox").json == [], "nothing is under way any more")
    assert pair.laptop.get("/fleet/quarantine").json == []


@pytest.mark.night
def test_work_for_any_goes_to_a_host_that_takes_the_class(pair: Pair) -> None:
    refused = pair.laptop.ctl("send", "any:nothing", "hello")
    assert (refused.code, "no host of the fleet takes work" in refused.err) == (4, True)
    eventually(
        lambda: ["dummy"] in [host["classes"] for host in pair.laptop.get("/fleet/hosts").json],
        "box says what it takes",
    )
    sent = pair.laptop.ctl("send", "any:dummy", "--wait", "hello whoever you are")
    assert sent.code == 0, sent.err
    row = pair.said(pair.laptop, "hello whoever you are")
    assert (row["agent_id"], row["status"]) == ("any:dummy", "completed")
    assert row["metadata"]["external"]["host"] == "box", "who has it is told"


@pytest.mark.night
def test_a_team_is_its_members_on_all_hosts(pair: Pair) -> None:
    eventually(lambda: pair.laptop.get("/teams?hosts=1").json, "the team is known here")
    sent = pair.laptop.ctl("send", "team:review", "--wait", "hello all")
    assert sent.code == 0, sent.err
    nobody = pair.laptop.ctl("send", "team:nobody", "hello")
    assert nobody.code == 2
    assert "nobody" in nobody.err
