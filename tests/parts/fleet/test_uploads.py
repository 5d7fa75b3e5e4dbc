"""Files that are given to be sent, in pieces."""

import asyncio
import errno
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from synapsed.errors import Busy, InvalidRequest, StoreError, TaskNotFound
from synapsed_fleet import parcel_spool
from synapsed_fleet.uploads import IDLE_S, OPEN_MAX, Uploads
from tests.parts.fleet.world import Host, World


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    world = World(tmp_path)
    yield await world.host("box")
    await world.close()


async def test_a_piece_that_is_said_again_changes_nothing_and_one_after_a_gap_is_refused(host: Host) -> None:
    uploads = Uploads(host.parcels, host.world.clock)
    begun = await uploads.begin("notes.txt")
    assert (begun.size, begun.whole) == (0, False)
    assert (await uploads.add(begun.id, 0, b"abcd", last=False)).size == 4
    assert (await uploads.add(begun.id, 0, b"abcd", last=False)).size == 4, "its answer was lost"
    assert (await uploads.add(begun.id, 2, b"cdef", last=False)).size == 6, "half of it is new"
    with pytest.raises(InvalidRequest) as refused:
        await uploads.add(begun.id, 9, b"x", last=False)
    assert refused.value.details["size"] == 6
    with pytest.raises(InvalidRequest):
        await uploads.add(begun.id, 0, b"ab", last=True)
    whole = await uploads.add(begun.id, 6, b"gh", last=True)
    assert (whole.size, whole.whole, whole.uri) == (8, True, f"syn-file:{begun.id}")
    assert await uploads.add(begun.id, 6, b"gh", last=True) == whole, "its answer was lost"
    assert (host.world.folder / "box.files" / "out" / begun.id).read_bytes() == b"abcdefgh"
    with pytest.raises(TaskNotFound):
        await uploads.add("ab" * 16, 0, b"x", last=True)
    await uploads.close()


async def test_who_begins_and_goes_away_keeps_nobody_out_for_long(host: Host) -> None:
    uploads = Uploads(host.parcels, host.world.clock)
    begun = [await uploads.begin(f"file{n}") for n in range(OPEN_MAX)]
    with pytest.raises(Busy):
        await uploads.begin("one more")
    host.world.clock.advance(IDLE_S)
    await uploads.add(begun[0].id, 0, b"x", last=False)
    more = await uploads.begin("one more")
    with pytest.raises(TaskNotFound):
        await uploads.add(begun[1].id, 0, b"x", last=False)
    assert (await uploads.add(begun[0].id, 1, b"y", last=True)).whole
    assert (await uploads.add(more.id, 0, b"", last=True)).size == 0
    await uploads.close()
    left = [path.name for path in (host.world.folder / "box.files" / "out").iterdir() if path.suffix != ".json"]
    assert sorted(left) == sorted([begun[0].id, more.id]), "what was not whole is gone"


async def test_a_last_piece_that_is_said_again_while_the_file_is_written_has_the_same_answer(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads = Uploads(host.parcels, host.world.clock)
    begun = await uploads.begin("notes.txt")
    end, second_waits = parcel_spool.Upload.end, threading.Event()

    def slow(upload: parcel_spool.Upload, **how: Any) -> parcel_spool.Parcel:
        assert second_waits.wait(300.0)
        return end(upload, **how)

    monkeypatch.setattr(parcel_spool.Upload, "end", slow)
    first = asyncio.ensure_future(uploads.add(begun.id, 0, b"abc", last=True))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(uploads.add(begun.id, 0, b"abc", last=True))
    await asyncio.sleep(0)
    second_waits.set()
    told = await asyncio.gather(first, second)
    assert told[0] == told[1]
    assert told[0].whole
    await uploads.close()


class FullDisk:
    """A file on a disk that is full: what is left of a piece cannot be written at its end either."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def write(self, piece: bytes) -> int:
        raise OSError(errno.ENOSPC, "no space")

    def close(self) -> None:
        self._real.close()
        raise OSError(errno.ENOSPC, "no space")


@pytest.mark.parametrize("fails", ["room", "write", "end"])
async def test_a_file_that_the_disk_refused_is_begun_again(
    host: Host, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """The rest of a piece that was half written must not be left out, nor a closed file be written to."""
    uploads = Uploads(host.parcels, host.world.clock)
    begun = await uploads.begin("notes.txt")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    def refused(*_: object) -> None:
        raise StoreError("no space")

    with monkeypatch.context() as patch:
        if fails == "room":
            patch.setattr(parcel_spool, "check_room", full)
        elif fails == "write":
            upload = uploads._begun[begun.id].upload
            patch.setattr(upload, "_file", FullDisk(upload._file))
        else:
            patch.setattr(parcel_spool, "write_private", refused)
        with pytest.raises(StoreError):
            await uploads.add(begun.id, 0, b"abc", last=True)
    with pytest.raises(TaskNotFound, match="begin again"):
        await uploads.add(begun.id, 0, b"abc", last=True)
    assert not [path for path in (host.world.folder / "box.files" / "out").iterdir() if path.name == begun.id]
    await uploads.close()
