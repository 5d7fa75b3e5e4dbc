"""Moods of a real daemon: told once over `kill -9`, switched off by `reload`."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from synapsed.config.paths import Paths
from tests.support.daemon import NO_PORTS, Daemon, eventually

ANGRY = "echo wtf, this is useless"


@pytest.fixture
def daemon(tmp_path: Path):
    daemon = Daemon(tmp_path, config=NO_PORTS, environ={**os.environ})
    yield daemon
    daemon.end()


def levels(daemon: Daemon) -> list[tuple[str, int]]:
    lines = daemon.ctl("events", "--after", "0", "--types", "emotionUpdate", "--json").out.splitlines()
    return [(event["data"]["emotion_type"], event["data"]["level"]) for event in map(json.loads, lines)]


def kept(daemon: Daemon) -> int:
    """Of how many agents something is kept."""
    with closing(sqlite3.connect(Paths.from_environ(daemon.env).database)) as connection:
        return int(connection.execute("SELECT count(*) FROM followers WHERE name LIKE 'mood:%'").fetchone()[0])


@pytest.mark.night
def test_moods_over_kills(daemon: Daemon) -> None:
    daemon.start()
    assert daemon.ctl("start", "dummy").code == 0
    assert daemon.ctl("send", "dummy", ANGRY, "--wait").code == 0
    eventually(lambda: levels(daemon) == [("frustration", 2)], "it is told")
    for _ in range(3):
        daemon.kill9()
        daemon.start()
    assert daemon.ctl("send", "dummy", "echo stupid. I told you. This is ridiculous", "--wait").code == 0
    eventually(lambda: levels(daemon) == [("frustration", 2), ("frustration", 3)], "no level is told twice")
    daemon.config_file.write_text(NO_PORTS + "[moods]\nenabled = false\n")
    reloaded = daemon.ctl("reload")
    assert reloaded.code == 0
    assert "[moods] changed" in reloaded.out
    assert daemon.ctl("send", "dummy", "echo I am so tired, call it a day", "--wait").code == 0
    eventually(lambda: kept(daemon) == 0, "what was kept is forgotten")
    daemon.config_file.write_text(NO_PORTS)
    assert daemon.ctl("reload").code == 0
    assert daemon.ctl("send", "dummy", ANGRY, "--wait").code == 0
    eventually(lambda: len(levels(daemon)) == 3, "switched on again, it begins with nothing")
    assert levels(daemon)[-1] == ("frustration", 2)
