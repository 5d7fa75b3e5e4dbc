"""A real daemon that lives through a night of its machine, or a clock that is set, with all that waits for a time: an
agent, a schedule, a usage limit, an open question and a stream."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.clock import DAY_S
from tests.support.daemon import NO_PORTS, Daemon, eventually
from tests.support.set_clock import SetClock

pytestmark = [
    pytest.mark.night,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler, and nobody else sets a clock for one process"),
]

HOUR_S = 3600.0
LIMITED = """extends = "dummy"
ports = [8200, 8209]

[[limit]]
pattern = '!! usage limit, try again in (?P<until>.+)'
"""
LOOK_S = 180.0
"""Three looks of a usage limit at the clock, and more for a busy machine."""


class Open:
    """All that waits, on one daemon."""

    def __init__(self, daemon: Daemon, clock: SetClock) -> None:
        self.daemon = daemon
        self.clock = clock
        self.pids = {name: daemon.start_agent(name=name)["pid"] for name in ("worker", "asker")}
        self.pids["limited"] = daemon.start_agent(name="limited", profile="limited")["pid"]
        due = datetime.now(UTC) + timedelta(hours=1)
        at = f"{due:%H:%M}"
        more = ("--zone", "UTC", "--missed", "once", "--name", "hourly")
        assert daemon.ctl("schedule", "add", "worker", at, "echo scheduled", *more).code == 0
        daemon.send("fail usage limit, try again in 2 hours", "limited")
        eventually(lambda: daemon.agent("limited")["activity"] == "limited", "the limit is reached")
        self.held = daemon.send("echo after the limit", "limited")
        self.question = daemon.send("ask y/n", "asker")
        daemon.task_in(self.question, "input_required")

    def scheduled(self) -> list[dict[str, Any]]:
        """Tasks of the schedule, however they ended."""
        rows: list[dict[str, Any]] = self.daemon.ctl("tasks", "worker", "--json").json
        found = [self.daemon.task(row["id"]) for row in rows]
        return [one for one in found if one["metadata"].get("sender", {}).get("sender_id") == "schedule-hourly"]

    def check(self, follow: Iterator[dict[str, Any]], last: int) -> int:
        """Everybody is there and answers, the question stands, the stream tells on, and a second one that goes on from
        `last` has each event once. Returns the id of the last."""
        for name, pid in self.pids.items():
            assert self.daemon.agent(name)["pid"] == pid, "no program was ended or started again"
        assert self.daemon.task(self.question)["status"] == "input_required"
        done = self.daemon.send("echo here", "worker")
        assert self.daemon.ended(done)["status"] == "completed"
        seen: list[dict[str, Any]] = []
        while not seen or not _is_end(seen[-1], done):
            seen.append(next(follow))
        with self.daemon.sse("/events", last_id=last) as again:
            other: list[dict[str, Any]] = []
            while not other or not _is_end(other[-1], done):
                other.append(next(again))
        assert [one["id"] for one in other] == [one["id"] for one in seen], "no gap, and nothing twice"
        return int(seen[-1]["id"])


def _is_end(event: dict[str, Any], task: str) -> bool:
    data = event["data"]
    return event["event"] == "taskStatus" and data["task"] == task and data["data"]["state"] == "completed"


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Open]:
    clock = SetClock(tmp_path, Daemon(tmp_path / "unused").environ)
    home = tmp_path / "home"
    profiles = home / "config" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "limited.toml").write_text(LIMITED)
    daemon = Daemon(home, clock.env, config=NO_PORTS).start()
    try:
        yield Open(daemon, clock)
    finally:
        daemon.end()


@contextmanager
def followed(daemon: Daemon) -> Iterator[tuple[Iterator[dict[str, Any]], int]]:
    """A stream that is read up to the end of a task, and the id of the last event."""
    with daemon.sse("/events") as follow:
        done = daemon.send("echo now", "worker")
        for event in follow:
            if _is_end(event, done):
                yield follow, int(event["id"])
                return


def test_a_daemon_lives_through_a_night_of_its_machine(waiting: Open) -> None:
    daemon = waiting.daemon
    with followed(daemon) as (follow, begin):
        waiting.clock.sleep(8 * HOUR_S)
        waiting.check(follow, begin)
        (missed,) = eventually(waiting.scheduled, "one message for the time that was slept through")
        assert daemon.ended(missed["id"])["status"] == "completed"
        eventually(lambda: daemon.task(waiting.held)["status"] == "completed", "the limit is over", patience=LOOK_S)
        assert daemon.ctl("approve", waiting.question).code == 0
        assert daemon.ended(waiting.question)["status"] == "completed"
        assert len(waiting.scheduled()) == 1


@pytest.mark.parametrize("days", [-20, 20])
def test_a_daemon_lives_through_a_clock_that_is_set(waiting: Open, days: int) -> None:
    daemon = waiting.daemon
    with followed(daemon) as (follow, begin):
        waiting.clock.to(days * DAY_S)
        last = waiting.check(follow, begin)
        if days > 0:
            (missed,) = eventually(waiting.scheduled, "one message for all days")
            assert daemon.ended(missed["id"])["status"] == "completed"
            eventually(lambda: daemon.task(waiting.held)["status"] == "completed", "tried out", patience=LOOK_S)
        before = len(waiting.scheduled())
        waiting.clock.to(0)
        waiting.check(follow, last)
        assert len(waiting.scheduled()) == before, "a time that is told again has its message once"
        if days < 0:
            assert daemon.task(waiting.held)["status"] == "submitted", "it lasts as long as it was to"
        assert daemon.ctl("approve", waiting.question).code == 0
        assert daemon.ended(waiting.question)["status"] == "completed"


@pytest.mark.parametrize("year", [1970, 2038, 2105])
def test_a_machine_without_a_battery_for_its_clock(tmp_path: Path, year: int) -> None:
    """A small board begins in 1970, and has the date once it has a network; another one's clock is far ahead."""
    clock = SetClock(tmp_path, Daemon(tmp_path / "unused").environ)
    wrong = datetime(year, 3, 1, tzinfo=UTC) - datetime.now(UTC)
    clock.to(wrong.total_seconds())
    home = tmp_path / "home"
    home.mkdir()
    daemon = Daemon(home, clock.env, config=NO_PORTS).start()
    try:
        pid = daemon.start_agent()["pid"]
        early = daemon.ended(daemon.send("echo early", "dummy"))
        assert (early["status"], early["created_at"][:4]) == ("completed", str(year))
        for arguments in (("schedule", "add", "dummy", "hourly", "echo scheduled"), ("list",), ("inbox", "--json")):
            assert daemon.ctl(*arguments).code == 0, arguments
        clock.to(0)
        assert daemon.ended(daemon.send("echo late", "dummy"))["status"] == "completed"
        daemon.kill9()
        daemon.start()
        assert daemon.agent("dummy")["pid"] == pid
        assert daemon.ended(daemon.send("echo later", "dummy"))["status"] == "completed"
        kept = [row["id"] for row in daemon.ctl("tasks", "dummy", "--json").json]
        assert early["id"] in kept, "nothing goes for its age"
        assert len(kept) <= 4, "and no message comes for each hour of all those years"
    finally:
        daemon.end()
