"""A daemon in a thread of the test: all of it is real but its programs, which are played (`tests.fakes.played`).

For what a verb, a route or the manager decides. It costs a tenth of a process with its keepers; who needs a kill, a
signal, a process or a terminal takes `tests.support.daemon`. The tool is called in this process, unless `spawn` is.
"""

import asyncio
import contextlib
import gc
import io
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest
import structlog

import synapsed.daemon
from synapsectl.__main__ import main
from synapsed.api.peer_lookup import PeerLookup
from synapsed.config.paths import Paths
from synapsed.keepers.launch_plan import LateLinks, LaunchPlan
from synapsed.supervisor.manager import Manager
from tests.fakes.played import PlayedFactory, PlayedLink
from tests.support.daemon import PATIENCE_S, Ctl, Daemon, eventually

__all__ = ["KINDS", "ThreadedDaemon", "in_a_thread", "real_one"]


class _Played(synapsed.daemon.Daemon):
    """Runs `programs`, and gets no signals, as they are the process'. Its clients are in this process too: to a daemon
    its own process is not a person, so that it does not look whether they are."""

    def __init__(self, paths: Paths, *, environ: Mapping[str, str], programs: PlayedFactory) -> None:
        super().__init__(paths, environ=environ, keep_agents=False)
        self._programs = programs

    async def _build(self, *parts: Any) -> Any:
        with (
            mock.patch.object(synapsed.daemon, LateLinks.__name__, return_value=self._programs),
            mock.patch.object(synapsed.daemon, PeerLookup.__name__, lambda find, **_: PeerLookup(find)),
        ):
            return await super()._build(*parts)

    @contextlib.contextmanager
    def _signals(self, stop: Any, manager: Manager) -> Iterator[None]:
        yield


class _Process:
    """What daemons change of this process: it is as it was once the last of them has ended. The log of each is told
    by its thread."""

    def __init__(self) -> None:
        self._logs: dict[int, Any] = {}
        self._put_back = contextlib.ExitStack()

    @contextlib.contextmanager
    def running(self, log: Any) -> Iterator[None]:
        if not self._logs:
            self._put_back.callback(os.umask, os.umask(0o077))
            self._put_back.callback(gc.set_threshold, *gc.get_threshold())
            self._put_back.callback(structlog.configure, **structlog.get_config())
            structlog.configure(logger_factory=self._logger)
        self._logs[threading.get_ident()] = log
        try:
            yield
        finally:
            del self._logs[threading.get_ident()]
            if not self._logs:
                self._put_back.close()

    def _logger(self, *_: Any) -> Any:
        return structlog.PrintLogger(self._logs.get(threading.get_ident(), sys.__stderr__))


_process = _Process()


@dataclass
class ThreadedDaemon(Daemon):
    """See the module. `programs` has what was launched, by `link`."""

    programs: PlayedFactory = field(default_factory=PlayedFactory)
    _thread: threading.Thread | None = None
    _failed: BaseException | None = None

    def start(self, *arguments: str) -> "ThreadedDaemon":
        assert not arguments, "a real daemon takes options"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        eventually(self._up, "the daemon answers")
        return self

    def _up(self) -> bool:
        if self._failed is not None:
            raise self._failed
        with contextlib.suppress(OSError):
            return self.get("/healthz").status == 200
        return False

    def _serve(self) -> None:
        daemon = _Played(Paths.from_environ(self.env), environ=self.env, programs=self.programs)
        with (self.home / "daemon.log").open("a") as log, _process.running(log), asyncio.Runner(debug=False) as runner:
            try:
                runner.run(daemon.run())
            except BaseException as error:
                self._failed = error

    def end(self) -> int:
        thread, self._thread = self._thread, None
        if thread is None:
            return 0
        if thread.is_alive():
            with contextlib.suppress(OSError):
                self.post("/control/shutdown", {})
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "the daemon does not end"
        if self._failed is not None:
            raise self._failed
        return 0

    def ctl(self, *arguments: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> Ctl:
        given = io.TextIOWrapper(io.BytesIO((stdin or "").encode()), "utf-8")
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with (
            mock.patch.dict(os.environ, {**self.env, **(env or {})}, clear=True),
            mock.patch.object(sys, "stdin", given),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                code = main(arguments)
            except SystemExit as end:
                code = int(end.code or 0)
        return Ctl(code, *(one.buffer.getvalue().decode() for one in (out, err)))  # type: ignore[attr-defined]

    def link(self, name: str = "dummy") -> PlayedLink:
        """The agent's newest program."""
        link = self.programs.links[self._newest(name)]
        assert isinstance(link, PlayedLink)
        return link

    def plan(self, name: str = "dummy") -> LaunchPlan:
        """What that was launched with."""
        return self.programs.launched[self._newest(name)][1]

    def _newest(self, name: str) -> int:
        return max(number for number, (record, _) in enumerate(self.programs.launched) if record.name == name)


KINDS = [pytest.param(ThreadedDaemon, id="thread"), pytest.param(Daemon, id="process", marks=pytest.mark.night)]
"""What a daemon is where both will do: at night the same tests judge the played programs by real ones."""

real_one = pytest.mark.parametrize("kind", [pytest.param(Daemon, id="process")])
"""A mark of tests that need a process, where a fixture `kind` says what a daemon is."""

in_a_thread = pytest.mark.parametrize("kind", [pytest.param(ThreadedDaemon, id="thread")])
"""A mark of tests that look at what a played program was given."""
