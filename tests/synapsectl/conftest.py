"""Fixtures: a home of its own, the fake daemon in it, and the tool called in this process."""

import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from synapsectl.__main__ import main
from synapsed.config.paths import Paths
from tests.synapsectl.fake_daemon import FakeDaemon


class Result(NamedTuple):
    code: int
    out: str
    err: str


Ctl = Callable[..., Result]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """SYNAPSED_HOME: short, so that sockets fit into it."""
    for name in [name for name in os.environ if name.startswith("SYNAPSE")]:
        monkeypatch.delenv(name)
    with tempfile.TemporaryDirectory(prefix="ctl-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("SYNAPSED_HOME", folder)
        yield Path(folder)


@pytest.fixture
def daemon(home: Path) -> Iterator[FakeDaemon]:
    socket = Paths.from_environ().control_socket
    socket.parent.mkdir(parents=True, mode=0o700)
    fake = FakeDaemon(socket).start()
    yield fake
    fake.die()


@pytest.fixture
def ctl(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ctl:
    """`synapsectl` with these arguments."""

    def call(*arguments: str, stdin: bytes = b"", **environ: Any) -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call
