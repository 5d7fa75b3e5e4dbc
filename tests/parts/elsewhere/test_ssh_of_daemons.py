"""Two daemons as on two machines, and a real ssh between them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import NO_PORTS, eventually
from tests.support.namespaces import NETWORK, Housed, inside, needs_namespaces, two_houses
from tests.support.sshd import Sshd, needs_ssh, synapsectl_in

pytestmark = [needs_namespaces, needs_ssh, pytest.mark.system, pytest.mark.night]

PATIENCE_S = 180.0


@pytest.fixture
def houses() -> Iterator[tuple[int, int]]:
    with two_houses() as both:
        yield both


def host(daemon: Housed) -> dict[str, Any]:
    (found,) = daemon.get("/hosts").json
    return dict(found)


def becomes(daemon: Housed, state: str) -> None:
    eventually(lambda: host(daemon)["state"] == state, f"the host is {state}", patience=PATIENCE_S)


def test_a_host_by_real_ssh(houses, tmp_path: Path):
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    there = Housed(tmp_path / "there", config=NO_PORTS, house=houses[1]).start()
    environ = f"SYNAPSED_HOME={there.home} SYNAPSED_A2A_HOME={there.home}/a2a"
    sshd = Sshd(tmp_path, f"{NETWORK}.2", environ, within=["nsenter", f"--net=/proc/{houses[1]}/ns/net"])
    sshd.prepare()
    sshd.start()
    here = Housed(
        tmp_path / "here", config=f'{NO_PORTS}[hosts]\nname = "laptop"\nssh = {sshd.ssh}\n', house=houses[0]
    ).start()
    synapsectl = synapsectl_in(tmp_path)
    try:
        there.start_agent()
        added = here.ctl("host", "add", "buildbox", f"ssh://root@{NETWORK}.2", "--synapsectl", str(synapsectl))
        assert added.code == 0, added.err
        # ssh decides about trust.
        becomes(here, "down")
        assert "Host key verification failed" in here.ctl("host", "list").out
        sshd.trust()
        becomes(here, "up")
        (listed,) = here.ctl("list", "--json").json
        assert (listed["name"], listed["host"]) == ("dummy@buildbox", "buildbox")
        sent = here.ctl("send", "dummy@buildbox", "--wait", "hello")
        assert sent.code == 0, sent.err
        assert "hello" in sent.out

        # It is switched off; a message waits, also for another daemon here; it is switched on again.
        sshd.stop()
        there.kill9()
        becomes(here, "down")
        waits = here.send("while it was off", "dummy@buildbox")
        here.kill9()
        here.start()
        assert here.task(waits)["status"] == "submitted"
        there.start()
        sshd.start()
        assert here.task_in(waits, "completed", "failed", patience=PATIENCE_S)["status"] == "completed"

        # The wire is cut in the middle of a turn: nobody says goodbye.
        cut = here.send("sleep 3", "dummy@buildbox")
        eventually(lambda: here.task(cut)["metadata"].get("external", {}).get("task_id"), "it is known there")
        inside(houses[1], "ip", "link", "set", "wire1", "down")
        while_cut = here.send("while it was cut off", "dummy@buildbox")
        becomes(here, "down")
        inside(houses[1], "ip", "link", "set", "wire1", "up")
        for task_id in (cut, while_cut):
            assert here.task_in(task_id, "completed", "failed", patience=PATIENCE_S)["status"] == "completed"
        assert len(there.get("/control/tasks").json) == 4, "each arrived once"
    finally:
        assert here.end() == 0
        sshd.stop()
        assert there.end() == 0
