"""A password that a person gives to an agent's program is nowhere but in the program."""

import contextlib
import json
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from threading import Thread

import pytest

from tests.support.daemon import ANY_PORTS, Daemon, eventually

SECRET = "hunter2-Geheimnis"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=ANY_PORTS).start()
    yield daemon
    daemon.end()


@pytest.mark.parametrize("way", ["task", "agent", "http"])
def test_a_password_is_neither_kept_nor_told(daemon: Daemon, way: str) -> None:
    daemon.start_agent()
    streamed: list[str] = []

    def listen(path: str) -> None:
        with contextlib.suppress(OSError, HTTPException), daemon.sse(path, last_id=0) as events:
            streamed.extend(json.dumps(event, ensure_ascii=False) for event in events)

    for path in ("/events", "/agents/dummy/events"):
        Thread(target=listen, args=(path,), daemon=True).start()
    task = daemon.send("ask password")
    Thread(target=listen, args=(f"/agents/dummy/tasks/{task}/subscribe",), daemon=True).start()
    asked = daemon.task_in(task, "input_required", "completed", "failed")
    assert asked["prompt"]["type"] == "password", asked
    if way == "http":
        given = {"input": SECRET, "prompt_id": asked["prompt"]["prompt_id"]}
        assert daemon.post(f"/agents/dummy/tasks/{task}/input", given).status == 200
    else:
        assert daemon.ctl("input", task if way == "task" else "dummy", "-", stdin=SECRET + "\n").code == 0
    done = daemon.ended(task)
    assert f"{len(SECRET)} characters" in done["artifacts"][0]["parts"][0]["text"], "the program has it"
    eventually(lambda: any('"completed"' in event for event in streamed), "the end is streamed")
    for look in ("/agents/dummy/status", "/agents/dummy/screen", f"/agents/dummy/tasks/{task}", "/control/status"):
        assert SECRET not in daemon.get(look).body.decode()
    assert daemon.ctl("logs", "dummy").out.count(SECRET) == 0
    daemon.end()
    assert not [event for event in streamed if SECRET in event]
    written = [path for path in daemon.home.rglob("*") if path.is_file()]
    assert any(path.name == "synapsed.db" for path in written)
    assert not [str(path) for path in written if SECRET.encode() in path.read_bytes()]
