"""When a broker is started again, and which program may be one."""

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest

from synapsed.errors import ProgramNotFound
from synapsed_fleet.natsserver import configuration, find, version_in
from synapsed_fleet.watchdog import FREE_MIN, OF_OTHERS_S, PAUSE_S, UNHEALTHY_S, BrokerHealth, Watchdog

ROOM = 10 << 30
FINE = BrokerHealth(healthy=True, told="", free=ROOM)
SICK = BrokerHealth(healthy=False, told='{"status":"unavailable","error":"JetStream disabled"}', free=ROOM)
FULL = SICK.__class__(healthy=False, told=SICK.told, free=FREE_MIN - 1)
SILENT = BrokerHealth(healthy=False, told=None, free=ROOM)


def starts(looks: list[tuple[float, BrokerHealth]]) -> list[float]:
    dog = Watchdog()
    return [now for now, health in looks if dog.seen(health, now=now)]


def every(seconds: float, health: BrokerHealth, *, begin: float, end: float) -> list[tuple[float, BrokerHealth]]:
    return [(begin + n * seconds, health) for n in range(int((end - begin) / seconds))]


def test_one_that_has_been_sick_for_long_is_started_again() -> None:
    looks = every(3, FINE, begin=0, end=30) + every(3, SICK, begin=30, end=90)
    assert starts(looks) == [30 + UNHEALTHY_S]


def test_a_short_sickness_is_left_alone() -> None:
    looks = [*every(3, SICK, begin=0, end=27), (27, FINE), *every(3, SICK, begin=30, end=57)]
    assert starts(looks) == []


def test_a_full_disk_is_waited_for_and_then_it_is_started_at_once() -> None:
    looks = every(3, FULL, begin=0, end=600) + every(3, SICK, begin=600, end=640)
    assert starts(looks) == [600]


@pytest.mark.parametrize(
    "error",
    [
        "JetStream has not established contact with a meta leader",
        "JetStream is still recovering meta layer",
        "JetStream consumer 'A > SYN_IN > laptop' is not current: group node unhealthy",
    ],
)
def test_one_that_waits_for_the_others_is_left_to_their_election(error: str) -> None:
    alone = BrokerHealth(healthy=False, told=json.dumps({"status": "unavailable", "error": error}), free=ROOM)
    assert starts(every(3, alone, begin=0, end=OF_OTHERS_S)) == []
    assert starts(every(3, alone, begin=0, end=OF_OTHERS_S + 4)) == [OF_OTHERS_S]


def test_one_that_stays_sick_is_not_started_all_the_time() -> None:
    times = starts(every(3, SICK, begin=0, end=1000))
    assert len(times) > 3
    assert min(b - a for a, b in pairwise(times)) >= PAUSE_S


def test_who_says_nothing_is_not_judged() -> None:
    assert starts(every(3, SILENT, begin=0, end=600)) == []


def program(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "nats-server"
    path.write_text(f"#!/bin/sh\necho 'nats-server: {version}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No server beside this Python."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    return tmp_path


def test_the_first_that_is_new_enough_is_taken(alone: Path) -> None:
    old, new = program(alone / "a", "v2.10.3"), program(alone / "b", "v2.15.1")
    path = os.pathsep.join([str(old.parent), str(new.parent), os.environ["PATH"]])
    assert find({"PATH": path}) == (str(new), (2, 15, 1))


@pytest.mark.parametrize("version", ["v2.15.0", "v2.9.99", "v1.99.9", "a word"])
def test_an_older_one_is_refused_by_name(alone: Path, version: str) -> None:
    old = program(alone / "a", version)
    with pytest.raises(ProgramNotFound, match=rf"2\.15\.1 or newer: {old} is .*synapsed\[broker\]"):
        find({"PATH": str(old.parent)})


def test_without_one_it_is_said_what_installs_it(alone: Path) -> None:
    with pytest.raises(ProgramNotFound, match=r"needs nats-server 2\.15\.1 or newer; pip install"):
        find({"PATH": str(alone / "bin")})


@pytest.mark.parametrize(
    ("text", "version"),
    [("nats-server: v2.15.1\n", (2, 15, 1)), ("nats-server: v2.16.0-RC.2", (2, 16, 0)), ("", None), ("v2.15", None)],
)
def test_versions_are_read(text: str, version: tuple[int, int, int] | None) -> None:
    assert version_in(text) == version


def test_what_must_always_stand_in_the_configuration(tmp_path: Path) -> None:
    made = configuration(tmp_path, name="box", listen="0.0.0.0:4222", operator_token="o", system_account="A")
    assert made["jetstream"]["sync_interval"] == "always"
    assert made["tls"]["handshake_first"] is True
    assert "resolver_preload" not in made  # it would undo what was revoked since, at each start
    assert made["http"].startswith("127.0.0.1:")
    json.dumps(made)
