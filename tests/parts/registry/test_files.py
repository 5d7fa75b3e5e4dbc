"""Registry files: atomic, only on change, the latest state winning, stale ones removed."""

import asyncio
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from synapsed.interfaces import RegistryEntry
from synapsed.parts.registry.files import Registry, RegistryFiles


def entry(status: str = "IDLE", name: str = "a") -> RegistryEntry:
    return RegistryEntry(
        agent_id=f"synapse-{name}-1",
        agent_type=name,
        name=name,
        port=1,
        status=status,
        pid=os.getpid(),
        working_dir="/",
        endpoint="http://localhost:1",
    )


def test_an_agent_that_comes_while_stale_entries_are_searched_stays(tmp_path: Path) -> None:
    """Those that live were asked for before; its program may have ended, and the next is on its way."""
    files = RegistryFiles(tmp_path)
    files.write(replace(entry(), pid=4_194_305))
    assert files.sweep(frozenset(), frozenset()) == []
    assert (tmp_path / "synapse-a-1.json").exists()


def test_write_only_on_change(tmp_path: Path) -> None:
    files = RegistryFiles(tmp_path / "registry")
    path = tmp_path / "registry" / "synapse-a-1.json"
    files.write(entry())
    first = path.stat().st_ino
    files.write(entry())
    assert path.stat().st_ino == first
    files.write(entry("BUSY"))
    assert path.stat().st_ino != first
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text())["status"] == "BUSY"
    files.remove("synapse-a-1")
    files.remove("synapse-a-1")
    assert list(path.parent.iterdir()) == []


async def test_the_last_state_told_is_the_one_that_stays(tmp_path: Path) -> None:
    registry = Registry(RegistryFiles(tmp_path))
    for n in range(200):
        registry.publish(entry(str(n)))
        registry.publish(entry(str(n), name="b"))
        if n % 7 == 0:
            await asyncio.sleep(0)
    registry.withdraw("synapse-b-1")
    await registry.flush()
    assert json.loads((tmp_path / "synapse-a-1.json").read_text())["status"] == "199"
    assert [path.name for path in tmp_path.iterdir()] == ["synapse-a-1.json"]


async def test_a_directory_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    registry = Registry(RegistryFiles(tmp_path / "file"))
    registry.publish(entry())
    await registry.flush()


@pytest.mark.parametrize(
    ("content", "stays"),
    [
        (json.dumps({"pid": os.getpid()}), True),
        (json.dumps({"pid": 2**22 + 7}), False),
        (json.dumps({"pid": None}), True),
        (json.dumps([1]), True),
        ("{", True),
        ("[" * 60_000, True),
        ('{"pid":' + "9" * 5000 + "}", True),
        ('{"pid":' + "9" * 200 + "}", True),
        (json.dumps({"pid": 2**31}), True),
        ('{"pid": "\\ud800"}', True),
    ],
    ids=["alive", "gone", "no process", "a list", "cut off", "deep", "digits", "large", "no pid", "half a character"],
)
def test_sweep_of_entries_that_are_not_ours(tmp_path: Path, content: str, stays: bool) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    (tmp_path / "y.json").write_text(json.dumps({"pid": 2**22 + 7}))
    removed = RegistryFiles(tmp_path).sweep(frozenset(), frozenset())
    assert path.exists() is stays
    assert "y" in removed, "no file keeps another one"


def test_sweep_of_our_own(tmp_path: Path) -> None:
    """A file with a living pid that was not written here is another daemon's, with an agent of the same id."""
    files = RegistryFiles(tmp_path)
    files.write(entry(name="stopped"))
    (own,) = (path.stem for path in tmp_path.glob("*.json"))
    for name, pid in (("live", 2**22 + 7), ("theirs", os.getpid()), ("dead", 2**22 + 7)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"pid": pid}))
    removed = files.sweep(frozenset({"live"}), frozenset({"live", "theirs", "dead", own}))
    assert sorted(removed) == sorted(["dead", own])


async def test_what_somebody_else_did_to_a_file_is_undone_at_the_next_look(tmp_path: Path) -> None:
    folder = tmp_path / "registry"
    path = folder / "synapse-a-1.json"
    registry = Registry(RegistryFiles(folder))
    registry.publish(entry())
    registry.publish(entry(name="b"))
    await registry.flush()

    async def looked() -> str:
        registry.look()
        await registry.flush()
        return path.read_text()

    written = path.read_text()
    kept = path.stat()
    assert await looked() == written
    assert path.stat() == kept, "nothing is written where nothing was done"
    path.unlink()
    assert await looked() == written
    path.write_text("{}")
    assert await looked() == written
    shutil.rmtree(folder)
    assert await looked() == written
    assert (folder / "synapse-b-1.json").exists()
    registry.withdraw("synapse-a-1")
    registry.look()
    await registry.flush()
    assert [path.name for path in folder.iterdir()] == ["synapse-b-1.json"]


async def test_what_could_not_be_written_is_written_when_it_can_be(tmp_path: Path) -> None:
    (tmp_path / "registry").write_text("a file where the directory should be")
    registry = Registry(RegistryFiles(tmp_path / "registry"))
    registry.publish(entry())
    with capture_logs() as logs:
        for _ in range(3):
            registry.look()
            await registry.flush()
    assert [line["event"] for line in logs].count("the registry cannot be mended") == 1
    (tmp_path / "registry").unlink()
    registry.look()
    await registry.flush()
    assert json.loads((tmp_path / "registry" / "synapse-a-1.json").read_text())["status"] == "IDLE"


async def test_what_no_thread_could_write_is_written_at_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    registry = Registry(RegistryFiles(tmp_path))
    with monkeypatch.context() as patched, capture_logs():
        patched.setattr(asyncio, "to_thread", refused)
        registry.publish(entry())
        await registry.flush()
    registry.look()
    await registry.flush()
    assert [path.name for path in tmp_path.iterdir()] == ["synapse-a-1.json"]
