"""What `doctor` finds in a fleet: all is well, and each thing that is not, with what mends it."""

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from synapsed_fleet import tls
from tests.parts.fleet.brokers import FleetHome, fleet, needs_broker
from tests.support.daemon import eventually

pytestmark = [needs_broker, pytest.mark.night, pytest.mark.system, pytest.mark.timeout(300)]


@pytest.fixture
def box(tmp_path: Path) -> Iterator[FleetHome]:
    with fleet(tmp_path) as made:
        yield made


def checked(home: FleetHome) -> dict[str, tuple[str, str, str]]:
    return {one["what"]: (one["status"], one["detail"], one["mend"]) for one in home.do("check")["found"]}


def test_without_a_fleet_nothing_is_said(tmp_path: Path) -> None:
    assert FleetHome(tmp_path).do("check")["found"] == []


def test_all_is_well(box: FleetHome, tmp_path: Path) -> None:
    laptop = box.joined(tmp_path / "laptop", "laptop")
    box.healthy()
    found = checked(box)
    assert {status for status, _, _ in found.values()} == {"ok"}, found
    assert set(found) == {
        "broker's program",
        "broker",
        "broker's disk",
        "broker's certificate",
        "fleet",
        "fleet's broker",
        "fleet's streams",
    }
    assert "the mail of 2 hosts" in found["fleet's streams"][1]
    assert checked(laptop).keys() == {"fleet", "fleet's broker"}
    assert {status for status, _, _ in checked(laptop).values()} == {"ok"}


@pytest.mark.fleet
def test_what_is_not_well(box: FleetHome, tmp_path: Path) -> None:
    laptop = box.joined(tmp_path / "laptop", "laptop")
    removed = box.joined(tmp_path / "removed", "removed")
    box.do("remove", name="removed")
    status, detail, _ = checked(removed)["fleet's broker"]
    assert status == "wrong"
    assert "revoked or expired, or a clock is wrong" in detail

    asyncio.run(_break_a_stream(box))
    status, detail, mend = checked(box)["fleet's streams"]
    assert (status, mend) == ("wrong", "synapsectl fleet repair")
    assert "SYN_CLAIM: allow_direct is False, should be True" in detail
    assert "the mail of laptop has no consumer" in detail

    box.home.config_file.rename(box.home.config_file.with_suffix(".away"))
    assert "no [fleet] in its configuration" in checked(box)["fleet"][1]
    box.home.config_file.with_suffix(".away").rename(box.home.config_file)

    box.kill()
    found = checked(box)
    assert found["broker"][:2] == ("wrong", "it does not run")
    assert found["fleet's broker"][0] == "wrong"
    assert "fleet's streams" not in found, "nothing is said of what cannot be asked"
    assert checked(laptop)["fleet's broker"][0] == "wrong"

    soon = datetime.now(UTC) - timedelta(days=tls.BROKER_DAYS - 10)
    box.broker_folder.keep_certificate(tls.make_broker(box.home.keyring.authority, ["127.0.0.1"], now=soon))
    assert checked(box)["broker's certificate"][1] == "it is valid for 10 days"
    laptop.home.credentials.unlink()
    assert "this host has no credentials" in checked(laptop)["fleet"][1]


async def _break_a_stream(box: FleetHome) -> None:
    admin = await box.connect_admin()
    config = json.loads((await admin.request("$JS.API.STREAM.INFO.SYN_CLAIM", b"")).data)["config"]
    changed = json.dumps({**config, "allow_direct": False}).encode()
    assert "error" not in json.loads((await admin.request("$JS.API.STREAM.UPDATE.SYN_CLAIM", changed)).data)
    await admin.request("$JS.API.CONSUMER.DELETE.SYN_IN.laptop", b"")
    await admin.close()


@pytest.mark.fleet
def test_a_server_that_hangs_is_told(box: FleetHome) -> None:
    box.healthy()
    pid = box.server_pid
    os.kill(pid, signal.SIGSTOP)
    try:
        status, detail, _ = checked(box)["broker"]
        assert status == "wrong"
        assert "does not answer" in detail
    finally:
        os.kill(pid, signal.SIGCONT)
    box.healthy()


@pytest.mark.fleet
def test_a_host_at_another_fleets_broker(box: FleetHome, tmp_path: Path) -> None:
    """The address leads to a broker of other people now."""
    with fleet(tmp_path / "others", "others") as others:
        text = box.home.config_file.read_text().replace(str(box.port), str(others.port))
        box.home.config_file.write_text(text)
        status, detail, _ = checked(box)["fleet's broker"]
        assert status == "wrong"
        assert "certificate" in detail.lower()


@pytest.mark.fleet
def test_a_broker_moves_to_another_host(box: FleetHome, tmp_path: Path) -> None:
    """With its keys and without its store, as docs/fleet.md says."""
    laptop = box.joined(tmp_path / "laptop", "laptop")
    assert box.stop() == 0
    there = FleetHome(tmp_path / "there")
    shutil.copytree(box.paths.state, there.paths.state)
    shutil.copytree(box.paths.config, there.paths.config)
    shutil.rmtree(there.home.broker / "store")
    assert there.do("create", name="box")["again"] is True
    there.port = box.port
    there.start()
    try:
        there.do("settle")
        eventually(lambda: checked(laptop)["fleet's broker"][0] == "ok", "laptop reaches it")
        assert {status for status, _, _ in checked(there).values()} == {"ok"}
    finally:
        there.close()
