"""Schedules of a real daemon: made by the verb and by the file, over `kill -9` and a reload."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.fakes.served import Served
from tests.support.daemon import NO_PORTS, Daemon, eventually

FILE = """[[schedule]]
name = "nightly"
at = "0 3 * * *"
zone = "Europe/Berlin"
agent = "dummy"
message = "echo night"
"""


@pytest.fixture
def daemon(tmp_path: Path):
    daemon = Daemon(tmp_path, config=NO_PORTS + FILE)
    yield daemon
    daemon.end()


@pytest.mark.night
def test_the_verb_and_the_file(daemon: Daemon) -> None:
    daemon.start()
    assert daemon.ctl("start", "dummy").code == 0
    added = daemon.ctl("schedule", "add", "dummy", "Mon..Fri 08:00", "echo", "day", "--name", "daily", "--json")
    assert added.code == 0, added.err
    assert len(added.json["next"]) == 5
    shown = daemon.ctl("schedule", "list")
    assert [line.split("\t")[0] for line in shown.out.splitlines()] == ["daily", "nightly"]
    assert daemon.ctl("schedule", "remove", "nightly").code == 2
    assert daemon.ctl("schedule", "add", "dummy", "tomorrow", "echo day").code == 2
    assert daemon.ctl("schedule", "add", "nobody", "08:00", "echo day").code == 4
    ran = daemon.ctl("schedule", "run", "nightly")
    assert ran.code == 0, ran.err
    task = daemon.ctl("task", ran.out.strip(), "--wait", "--json").json["task"]
    assert task["metadata"]["sender"]["sender_id"] == "schedule-nightly"
    assert task["artifacts"][0]["parts"][0]["text"] == "night", "typed without a mark"
    daemon.config_file.write_text(NO_PORTS + FILE.replace("0 3 * * *", "0 25 * * *"))
    refused = daemon.ctl("reload")
    assert refused.code == 2
    assert "config.toml:6: schedule.0.at: cron's hour" in refused.err
    daemon.config_file.write_text(NO_PORTS)
    assert "[[schedule]] nightly is gone" in daemon.ctl("reload").out
    assert [one["name"] for one in daemon.ctl("schedule", "list", "--json").json] == ["daily"]
    assert daemon.ctl("schedule", "remove", "daily").code == 0
    assert daemon.ctl("schedule", "remove", "daily").code == 4


def test_the_verb(served_daemon: Served) -> None:
    """The same without a file, and without a process."""
    daemon = served_daemon
    added = daemon.ctl("schedule", "add", "dummy", "Mon..Fri 08:00", "echo", "day", "--name", "daily", "--json")
    assert added.code == 0, added.err
    assert len(added.json["next"]) == 5
    assert [line.split("\t")[0] for line in daemon.ctl("schedule", "list").out.splitlines()] == ["daily"]
    assert daemon.ctl("schedule", "add", "dummy", "tomorrow", "echo day").code == 2
    assert daemon.ctl("schedule", "add", "nobody", "08:00", "echo day").code == 4
    assert daemon.ctl("schedule", "add", "dummy", "08:00", "echo day", "--name", "daily").code == 6
    for verb in ("remove", "run"):
        offered = daemon.ctl("completion", "--words", "--", "schedule", verb, "d")
        assert offered.out == "daily\techo day\n"
    assert daemon.ctl("completion", "--words", "--", "schedule", "add", "dummy", "08:00", "x", "--name", "").out == ""
    ran = daemon.ctl("schedule", "run", "daily")
    assert ran.code == 0, ran.err
    task = daemon.ctl("task", ran.out.strip(), "--wait", "--json").json["task"]
    assert task["metadata"]["sender"]["sender_id"] == "schedule-daily"
    assert task["artifacts"][0]["parts"][0]["text"] == "day", "typed without a mark"
    assert [one["name"] for one in daemon.ctl("schedule", "list", "--json").json] == ["daily"]
    assert daemon.ctl("schedule", "remove", "daily").code == 0
    assert daemon.ctl("schedule", "remove", "daily").code == 4


@pytest.mark.night
@pytest.mark.slow
def test_a_killed_daemon_sends_each_once(daemon: Daemon) -> None:
    """One that comes while it lives, one that comes while it is dead; killed again behind each."""
    daemon.start()
    assert daemon.ctl("start", "dummy").code == 0
    added(daemon, "alive")
    eventually(lambda: texts(daemon) == ["echo alive"], "the first one is sent")
    at = added(daemon, "dead")
    daemon.kill9()
    eventually(lambda: datetime.now(UTC) > at, "the second one's time has passed")
    daemon.start()
    eventually(lambda: texts(daemon) == ["echo alive", "echo dead"], "the second one is sent")
    daemon.kill9()
    daemon.start()
    eventually(lambda: all(outcome(daemon, name) == "sent" for name in ("alive", "dead")), "both are told")
    assert texts(daemon) == ["echo alive", "echo dead"]
    assert all(one["next"] == [] for one in daemon.ctl("schedule", "list", "--json").json if one["source"] == "verb")


def added(daemon: Daemon, name: str) -> datetime:
    """Returns when it is to be sent: soon, and not before the verb is done on a machine that is busy."""
    at = (datetime.now(UTC) + timedelta(seconds=6)).replace(microsecond=0)
    text = f"{at:%Y-%m-%d %H:%M:%S} UTC"
    done = daemon.ctl("schedule", "add", "dummy", text, f"echo {name}", "--name", name, "--missed", "once")
    assert done.code == 0, done.err
    return at


def texts(daemon: Daemon) -> list[str]:
    tasks = daemon.get("/control/tasks").json
    scheduled = [task for task in tasks if "scheduled" in task["metadata"]]
    return sorted(task["message"]["parts"][0]["text"] for task in scheduled)


def outcome(daemon: Daemon, name: str) -> str | None:
    (one,) = [one for one in daemon.ctl("schedule", "list", "--json").json if one["name"] == name]
    return one["last"]["outcome"] if one["last"] else None
