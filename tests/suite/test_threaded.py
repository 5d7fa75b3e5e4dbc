"""Daemons in threads of the tests' process: what they change of it is put back."""

import gc
import os
from pathlib import Path

import pytest
import structlog

from synapsed.errors import ConfigError
from tests.support.threaded import ThreadedDaemon


def umask() -> int:
    os.umask(now := os.umask(0))
    return now


def test_the_process_is_as_it_was_once_the_last_has_ended(tmp_path: Path) -> None:
    before = umask(), gc.get_threshold(), structlog.get_config()
    first, second = (ThreadedDaemon(tmp_path / name).start() for name in ("one", "two"))
    assert umask() == 0o077
    assert first.end() == second.end() == 0
    assert (umask(), gc.get_threshold(), structlog.get_config()) == before
    for daemon in (first, second):
        assert daemon.log().count("daemon ended") == 1


def test_one_that_cannot_come_up_says_why(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'api\.listn'"):
        ThreadedDaemon(tmp_path, config="[api]\nlistn = 1\n").start()
