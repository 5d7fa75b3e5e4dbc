"""Files that are whole or not there."""

import errno
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from synapsed.shared.files import open_regular, write_whole


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    return path


@contextmanager
def no_room() -> Iterator[None]:
    """Every write beyond the first 4 KiB of a file fails, as on a full disk.

    It holds for the test runner's own output too, so it must be over before a result is printed: a runner whose output
    is a file would end there without a word.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was made to outlive a loss of power, in order."""
    done: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: done.append("names" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file"))
    return done


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_mode_is_the_one_asked_for(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "file", b"x", mode=mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_a_file_is_replaced_and_not_written_over(old: Path) -> None:
    with old.open("rb") as reader:
        write_whole(old, b"new")
        assert reader.read() == b"old"
    assert old.read_bytes() == b"new"
    assert stat.S_IMODE(old.stat().st_mode) == 0o600
    assert list(old.parent.iterdir()) == [old]


def test_nobody_else_can_read_it_before_it_is_whole(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look(fd: int, mode: int) -> None:
        seen.append((stat.S_IMODE(os.fstat(fd).st_mode), mode, old.read_bytes()))

    monkeypatch.setattr(os, "fchmod", look)
    write_whole(old, b"new", mode=0o644)
    assert seen == [(0o600, 0o644, b"old")]


def test_a_disk_that_fills_up_leaves_the_old_file_and_nothing_beside_it(old: Path) -> None:
    with no_room(), pytest.raises(OSError) as caught:
        write_whole(old, b"x" * 100_000)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(old))
    assert old.read_bytes() == b"old"
    assert list(old.parent.iterdir()) == [old]


def test_an_interruption_leaves_the_old_file_and_nothing_beside_it(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(fd: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(old, b"new")
    assert old.read_bytes() == b"old"
    assert list(old.parent.iterdir()) == [old]


def test_what_cannot_be_replaced_is_named_and_left(tmp_path: Path) -> None:
    directory = tmp_path / "directory"
    directory.mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_whole(directory, b"new")
    assert caught.value.filename == str(directory)
    assert list(tmp_path.iterdir()) == [directory]


def test_a_directory_that_is_missing_is_named_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(tmp_path / "gone" / "file", b"new")
    assert caught.value.filename == str(tmp_path / "gone" / "file")


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing"])
def test_a_link_is_replaced_and_what_it_points_to_left_alone(tmp_path: Path, there: bool) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    if there:
        target.write_bytes(b"somebody's")
    link.symlink_to(target)
    write_whole(link, b"new")
    assert not link.is_symlink()
    assert link.read_bytes() == b"new"
    assert (target.read_bytes() if there else target.exists()) == (b"somebody's" if there else False)


def test_what_is_durable_is_so_with_its_name(old: Path, synced: list[str]) -> None:
    write_whole(old, b"new", durable=False)
    assert synced == []
    write_whole(old, b"newer")
    assert synced == ["file", "names"]


def test_a_directory_whose_names_cannot_be_secured_is_no_failure(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def only_files(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "fsync", only_files)
    write_whole(old, b"new")
    assert old.read_bytes() == b"new"


def test_what_is_no_file_is_not_opened(tmp_path: Path, old: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nothing").symlink_to(os.devnull)
    for name in ("pipe", "folder", "nothing"):
        with pytest.raises(OSError, match="is not a regular file"):
            open_regular(tmp_path / name)
    (tmp_path / "link").symlink_to(old)
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"old"
