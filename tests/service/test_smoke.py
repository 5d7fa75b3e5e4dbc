"""The service on a real `systemd --user`, in the gate: a restart in mid-turn. All else of it runs at night."""

import pytest

from tests.service.house import House
from tests.support.daemon import eventually

pytestmark = pytest.mark.timeout(300)


def test_a_restart_in_mid_turn(house: House) -> None:
    first = house.up()
    pid = house.daemon.start_agent(cwd=str(house.daemon.home))["pid"]
    task = house.daemon.send("until restarted\nonce")
    path = f"/agents/dummy/tasks/{task}/subscribe"
    with house.daemon.sse(path) as stream:
        begin = next(stream)
    eventually(lambda: house.daemon.agent()["activity"] == "busy", "the agent works")
    house.manager.systemctl("restart", "synapsed")
    assert house.pid != first
    (house.daemon.home / "restarted").touch()
    done = house.daemon.ended(task)
    assert done["status"] == "completed", done
    assert house.daemon.agent()["pid"] == pid
    assert house.daemon.agent()["restarts"] == 0
    assert house.daemon.get("/agents/dummy/status").json["context"].count("You said: ") == 1
    with house.daemon.sse(path, last_id=begin["id"]) as stream:
        rest = list(stream)
    with house.daemon.sse(path, last_id=0) as stream:
        assert [begin, *rest] == list(stream), "the stream resumes without gap or double"
