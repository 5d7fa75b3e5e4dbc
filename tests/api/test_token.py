"""The token file."""

import errno
import os

import pytest

from synapsed.errors import ConfigError, StoreError
from synapsed.process.control_token import load_or_create


def test_created_once(tmp_path):
    path = tmp_path / "state" / "token"
    token = load_or_create(path)
    assert len(token) >= 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_or_create(path) == token
    assert [entry.name for entry in path.parent.iterdir()] == ["token"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_open_to_others(tmp_path, mode):
    path = tmp_path / "token"
    load_or_create(path)
    path.chmod(mode)
    with pytest.raises(ConfigError, match="others can read"):
        load_or_create(path)


@pytest.mark.parametrize("content", ["", "\n", "short", "x" * 20 + " " + "y" * 20])
def test_no_token_in_it(tmp_path, content):
    path = tmp_path / "token"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="holds no token"):
        load_or_create(path)


def test_a_state_directory_that_takes_none(tmp_path, monkeypatch):
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="token cannot be written: No space left"):
        load_or_create(tmp_path / "token")


def test_links_and_directories(tmp_path):
    real = tmp_path / "real"
    load_or_create(real)
    (tmp_path / "link").symlink_to(real)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_or_create(tmp_path / "link")
    (tmp_path / "directory").mkdir()
    with pytest.raises(ConfigError, match="not a regular file"):
        load_or_create(tmp_path / "directory")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_of_somebody_else(tmp_path):
    path = tmp_path / "token"
    load_or_create(path)
    os.chown(path, 65534, 65534)
    with pytest.raises(ConfigError, match="belongs to uid 65534"):
        load_or_create(path)
