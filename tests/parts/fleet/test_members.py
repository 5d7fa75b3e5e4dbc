"""Members as processes, over a real broker and wires that are cut: killed under load, counted by their stores."""

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.parts.fleet.brokers import FleetHome, fleet, needs_broker, until
from tests.parts.fleet.member import Member, counted
from tests.parts.fleet.proxy import Proxy

pytestmark = [needs_broker, pytest.mark.night, pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(7200)]

KILLS = int(os.environ.get("FLEET_KILLS", "6"))
MESSAGES = int(os.environ.get("FLEET_MESSAGES", "300"))
WORK = 1000 if MESSAGES > 10_000 else 60
TURN_S = 1.0
"""So long that a host that was killed is back while there is still work to give out."""
PATIENCE_S = 1_800.0 if MESSAGES > 10_000 else 600.0
"""Until the next step is done, at whatever speed: who is at it may have a small part of a slow machine."""


@contextmanager
def members(folder: Path, home: FleetHome, plans: dict[str, dict[str, Any]]) -> Iterator[dict[str, Member]]:
    """Members that have joined and run."""
    found = {name: Member(home.joined(folder / name, name), plan) for name, plan in plans.items()}
    try:
        for each in found.values():
            each.start()
        yield found
    finally:
        for each in found.values():
            if each.process is not None and each.process.poll() is None:
                each.process.kill()
                each.process.wait()


def settled(found: Sequence[Member]) -> bool:
    """Returns True if everybody has sent everything, and nothing is open. They are asked one after the other, and what
    is under way may be at one that was asked already: so all are asked as often as a message goes to and fro."""
    return all(
        each.sent() >= each.plan.get("count", 0) and each.open_rows() == 0 and each.undone() == 0
        for _ in range(3)
        for each in found
    )


def said(found: dict[str, Member]) -> list[str]:
    return [f"{name} {number}" for name, each in found.items() for number in range(each.plan.get("count", 0))]


def faults(found: dict[str, Member]) -> dict[str, Any]:
    """What is not as it should be, once all have ended; the stores say so."""
    for each in found.values():
        each.end()
    return asyncio.run(counted(list(found.values()))).faults(said(found))


def test_daemons_and_the_broker_are_killed_under_load(tmp_path: Path) -> None:
    """Three hosts that write to each other as fast as they can. As many kills as KILLS, over MESSAGES messages."""
    random = Random(16)
    names = ["attic", "cellar", "shed"]
    each = MESSAGES // len(names)
    plans = {name: {"to": [f"codex@{other}" for other in names if other != name], "count": each} for name in names}
    with fleet(tmp_path) as home, members(tmp_path, home, plans) as found:
        until(lambda: sum(one.sent() for one in found.values()) > 0, "the first is sent", PATIENCE_S)
        began, broker_kills = time.monotonic(), 0
        for kill in range(KILLS):
            goal = MESSAGES * kill // KILLS
            until(lambda goal=goal: sum(one.sent() for one in found.values()) >= goal, f"{goal} are sent", PATIENCE_S)
            time.sleep(random.random() * 0.4)  # the moment of the kill
            if kill % 3 == 0:
                home.kill()
                broker_kills += 1
                home.start()
            else:
                victim = random.choice(list(found.values()))
                victim.kill()
                victim.start()
        last = time.monotonic()
        until(lambda: all(one.sent() >= each for one in found.values()), "everything is sent", PATIENCE_S)
        sent = time.monotonic()
        until(lambda: settled(list(found.values())), "nothing is open", PATIENCE_S)
        print(
            f"{each * len(names)} messages, {broker_kills} kills of the broker, {KILLS - broker_kills} of daemons; "
            f"sent in {sent - began:.0f} s, nothing open {time.monotonic() - sent:.1f} s after the last was sent, "
            f"{time.monotonic() - last:.1f} s after the last kill"
        )
        assert faults(found) == {}


def test_work_for_any_is_done_once_by_six_hosts_that_die_and_whose_acks_are_lost(tmp_path: Path) -> None:
    random = Random(17)
    hosts = [f"host{n}" for n in range(6)]
    with fleet(tmp_path) as home, ExitStack() as stack:
        wires = [stack.enter_context(Proxy(home.port)) for _ in hosts]
        plans: dict[str, dict[str, Any]] = {
            name: {"classes": ["codex"], "turn_s": TURN_S, "urls": [wire.url]}
            for name, wire in zip(hosts, wires, strict=True)
        }
        plans["laptop"] = {"to": ["any:codex"], "count": WORK}
        found = stack.enter_context(members(tmp_path, home, plans))
        laptop = found["laptop"]
        until(lambda: laptop.sent() > 0, "the first is sent", PATIENCE_S)
        began, kills = time.monotonic(), 0
        while not settled(list(found.values())):
            assert time.monotonic() - began < PATIENCE_S, "it never settles"
            time.sleep(random.random() * 0.5)  # the moment of the next one
            random.choice(wires).cut()
            if kills < KILLS:
                victim = found[random.choice(hosts)]
                victim.kill()
                victim.start()
                kills += 1
            elif random.random() < 0.9:
                time.sleep(0.2)
        for each in found.values():
            each.end()
        told = asyncio.run(counted(list(found.values())))
        print(
            f"{WORK} pieces of work, {kills} deaths, {sum(wire.cuts for wire in wires)} wires cut, "
            f"{time.monotonic() - began:.0f} s; by host {dict(told.by_host)}"
        )
        assert told.faults(said(found)) == {}
        assert len(told.by_host) == len(hosts), "each host had a share"


@pytest.mark.fleet
def test_long_messages_and_answers_come_whole_though_daemons_and_the_broker_are_killed(tmp_path: Path) -> None:
    """Each of 700 kB: every one goes in chunks, and so does its answer."""
    random = Random(18)
    plans: dict[str, dict[str, Any]] = {
        name: {"to": [f"codex@{other}"], "count": 60, "size": 700_000}
        for name, other in (("laptop", "shed"), ("shed", "laptop"))
    }
    with fleet(tmp_path) as home, members(tmp_path, home, plans) as found:
        kills = 0
        while not settled(list(found.values())):
            time.sleep(random.random() * 2)  # the moment of the kill
            kills += 1
            if kills > 12:
                until(lambda: settled(list(found.values())), "nothing is open", PATIENCE_S)
            elif kills % 4 == 0:
                home.kill()
                home.start()
            else:
                victim = random.choice(list(found.values()))
                victim.kill()
                victim.start()
        until(lambda: len(left(tmp_path)) <= 8, "what is done with is removed from the disks", PATIENCE_S)
        assert faults(found) == {}


def left(folder: Path) -> list[Path]:
    """Files of parcels, of all members."""
    found = []
    for path in folder.glob("*/**/files/*/**/*"):
        with suppress(FileNotFoundError):  # it is removed at this moment
            if path.is_file() and path.stat().st_size:
                found.append(path)
    return found


def test_a_host_that_is_cut_off_loses_nothing(tmp_path: Path) -> None:
    """For a minute at length; what waits for it comes soon after its return."""
    away = 60.0 if MESSAGES > 10_000 else 8.0
    count = 600 if MESSAGES > 10_000 else 120
    with fleet(tmp_path) as home, Proxy(home.port) as wire:
        plans: dict[str, dict[str, Any]] = {
            "laptop": {"to": ["codex@shed"], "count": count, "urls": [wire.url], "per_second": count / (away / 2)},
            "shed": {"to": ["codex@laptop"], "count": count, "per_second": count / (away / 2)},
        }
        with members(tmp_path, home, plans) as found:
            until(lambda: found["shed"].sent() > 0 and found["laptop"].sent() > 0, "both send", PATIENCE_S)
            wire.hold()
            time.sleep(away)  # so long it is out of reach
            assert not settled(list(found.values()))
            wire.release()
            took = until(lambda: settled(list(found.values())), "nothing is open", PATIENCE_S)
            print(f"cut off for {away:.0f} s, {2 * count} messages; nothing open {took:.1f} s after")
            assert faults(found) == {}
