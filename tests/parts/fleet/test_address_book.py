"""A host that is known by ssh becomes a member of a fleet: one address, each task with its first carrier."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.parts.fleet.brokers import FleetHome, fleet, needs_broker
from tests.support.daemon import NO_PORTS, Daemon, eventually

pytestmark = [needs_broker, pytest.mark.fleet, pytest.mark.timeout(400)]

FAKE_SSH = Path(__file__).parents[2] / "fakes" / "ssh.py"


@pytest.fixture
def box(tmp_path: Path) -> Iterator[tuple[FleetHome, Daemon]]:
    with fleet(tmp_path) as home:
        daemon = Daemon(home.folder, config=NO_PORTS).start()
        daemon.start_agent()
        yield home, daemon
        assert daemon.end() == 0, daemon.log()[-3000:]


@pytest.fixture
def laptop(tmp_path: Path, box: tuple[FleetHome, Daemon]) -> Iterator[tuple[FleetHome, Daemon]]:
    hosts = tmp_path / "hosts"
    hosts.mkdir()
    (hosts / "box.lan").symlink_to(box[0].folder)
    home = FleetHome(tmp_path / "laptop")
    ssh = [sys.executable, str(FAKE_SSH), str(hosts)]
    daemon = Daemon(home.folder, config=f'{NO_PORTS}[hosts]\nname = "laptop"\nssh = {ssh}\n').start()
    synapsectl = home.folder / "synapsectl"
    synapsectl.write_text(f'#!/bin/sh\nexec {sys.executable} -m synapsectl "$@"\n')
    synapsectl.chmod(0o700)
    added = daemon.ctl("host", "add", "box", "ssh://me@box.lan:22", "--synapsectl", str(synapsectl))
    assert added.code == 0, added.err
    eventually(lambda: daemon.get("/hosts").json[0]["state"] == "up", "the host is up over ssh")
    yield home, daemon
    assert daemon.end() == 0, daemon.log()[-3000:]


def external(daemon: Daemon, task_id: str) -> tuple[str, Any]:
    """The task's status, and what carries it."""
    found: dict[str, Any] = daemon.get(f"/control/tasks/{task_id}").json["task"]
    return found["status"], (found["metadata"].get("external") or {}).get("via")


def listed(daemon: Daemon) -> list[tuple[str, str]]:
    return [(row["name"], row["evidence"]) for row in daemon.ctl("list", "--json").json]


def test_a_host_known_by_ssh_joins_with_a_task_under_way(
    box: tuple[FleetHome, Daemon], laptop: tuple[FleetHome, Daemon], tmp_path: Path
) -> None:
    (there, box_daemon), (home, daemon) = box, laptop
    by_ssh = daemon.ctl("send", "dummy@box", "--wait", "by ssh")
    assert by_ssh.code == 0, by_ssh.err
    asleep = tmp_path / "hosts" / "box.lan.asleep"
    asleep.touch()
    eventually(lambda: daemon.get("/hosts").json[0]["state"] != "up", "ssh does not reach it any more")
    first = daemon.ctl("send", "dummy@box", "first", "--json").json["task"]["id"]

    home.do("join", line=there.do("invite", name="laptop")["line"])
    assert daemon.end() == 0
    daemon.start()
    eventually(lambda: [name for name, _ in listed(daemon)] == ["dummy@box"], "the fleet tells of it")
    assert "as box told it" in listed(daemon)[0][1]
    second = daemon.ctl("send", "dummy@box", "--wait", "second")
    assert second.code == 0, second.err
    (newest, *_) = daemon.get("/control/tasks").json
    assert external(daemon, newest["id"]) == ("completed", "fleet")
    assert external(daemon, first) == ("submitted", None), "it stays with ssh, which does not reach the host"

    asleep.unlink()
    eventually(lambda: external(daemon, first) == ("completed", None), "ssh brings it, once it is there again")
    eventually(lambda: daemon.get("/hosts").json[0]["state"] == "up", "the host is up over ssh")
    assert [name for name, _ in listed(daemon)] == ["dummy@box"], "listed once"
    typed = [task["message"]["parts"][0]["text"] for task in box_daemon.get("/control/tasks").json]
    assert sorted(typed) == ["by ssh", "first", "second"], "each was taken once"
    hosts = [(one["name"], one["error"]) for one in daemon.get("/inbox?hosts=1").json["hosts"]]
    assert hosts == [("box", None)], "one host, whichever way it is asked"

    there.kill()  # what waits for the fleet stays with it, though ssh would reach the host
    third = daemon.ctl("send", "dummy@box", "third", "--json").json["task"]["id"]
    assert external(daemon, third) == ("submitted", "fleet")
    home.do("leave", force=True)
    assert daemon.end() == 0
    daemon.start()
    eventually(lambda: daemon.get("/hosts").json[0]["state"] == "up", "the host is up over ssh")
    fourth = daemon.ctl("send", "dummy@box", "--wait", "fourth")
    assert fourth.code == 0, "without the fleet the same address is reached by ssh"
    assert external(daemon, third) == ("submitted", "fleet")
    assert daemon.ctl("cancel", third).code == 0, "what a fleet would have brought can still be given up"
    assert external(daemon, third) == ("canceled", "fleet")
