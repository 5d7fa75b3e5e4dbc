"""The file of devices and tokens: the user's alone, or it counts for nothing, and written no oftener than must be."""

from pathlib import Path

import pytest

from synapsed.clock import SystemClock
from synapsed.errors import ConfigError
from synapsed.parts.web.book import SEEN_EVERY_S, AccessBook
from synapsed.parts.web.records import DESK
from tests.fakes.clock import FakeClock


async def kept(path: Path) -> None:
    await AccessBook(path, SystemClock()).pair("a browser", DESK)


async def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    await kept(path := tmp_path / "access.json")
    book = AccessBook(path, SystemClock())
    await book.load()
    assert [one.name for one in book.devices] == ["a browser"]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o602])
async def test_a_file_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    await kept(path := tmp_path / "access.json")
    path.chmod(mode)
    with pytest.raises(ConfigError, match="chmod 600"):
        await AccessBook(path, SystemClock()).load()


async def test_a_link_is_not_followed(tmp_path: Path) -> None:
    await kept(tmp_path / "elsewhere.json")
    (path := tmp_path / "access.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(ConfigError, match=r"access\.json"):
        await AccessBook(path, SystemClock()).load()


async def test_a_device_that_is_seen_is_written_now_and_then(tmp_path: Path) -> None:
    book = AccessBook(path := tmp_path / "access.json", clock := FakeClock())
    device, _ = await book.pair("a browser", DESK)
    path.unlink()
    clock.jump(SEEN_EVERY_S - 1)
    await book.seen(device.id)
    assert not path.exists(), "each request would write the file"
    clock.jump(1)
    await book.seen(device.id)
    assert path.exists()
    assert [one.seen for one in book.devices] == [clock.wall()]


async def test_a_visit_that_cannot_be_noted_is_no_error_of_the_visitor(tmp_path: Path) -> None:
    book = AccessBook((folder := tmp_path / "state") / "access.json", clock := FakeClock())
    device, session = await book.pair("a browser", DESK)
    (folder / "access.json").unlink()
    folder.rmdir()
    folder.write_text("in the way")
    clock.jump(SEEN_EVERY_S)
    await book.seen(device.id)
    assert book.device_of(session) is not None
    folder.unlink()
    await book.seen(device.id)
    assert [one.seen for one in book.devices] == [clock.wall()]


async def test_a_removed_device_is_seen_no_more(tmp_path: Path) -> None:
    book = AccessBook(tmp_path / "access.json", clock := FakeClock())
    device, _ = await book.pair("a browser", DESK)
    await book.remove_device(device.id)
    clock.jump(SEEN_EVERY_S)
    await book.seen(device.id)
    assert book.devices == []
