"""Daemons, as their room's tests have them, with an agent and an editor."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.conftest import kind
from tests.support.acp import Editor, editor
from tests.support.daemon import Daemon

__all__ = ["agent", "daemon", "folder", "kind", "one"]


@pytest.fixture
def daemon(tmp_path: Path, kind: type[Daemon]) -> Iterator[Daemon]:
    daemon = kind(tmp_path / "home")
    yield daemon.start()
    assert daemon.end() == 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


@pytest.fixture
def agent(daemon: Daemon, folder: Path) -> dict[str, Any]:
    daemon.start_agent(name="ann", cwd=str(folder))
    return daemon.ready("ann")


@pytest.fixture
def one(daemon: Daemon, agent: dict[str, Any], folder: Path) -> Iterator[Editor]:
    """An editor with a session of the agent's."""
    with editor(daemon, "ann") as opened:
        assert opened.new(folder) == agent["id"]
        yield opened
