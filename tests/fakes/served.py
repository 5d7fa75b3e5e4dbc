"""The real API in a thread of its own, over a fake control, asked as a real daemon is: through its sockets, and by
`synapsectl`, which runs in the test's own thread.

For tests of verbs and routes. No process is started, and agents do what the fake's script has them do.
"""

import asyncio
import io
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO
from unittest import mock

import structlog

from synapsectl.__main__ import main
from synapsed.model.agent import AgentView
from synapsed.model.task import Prompt, PromptOption, Task
from synapsed.supervisor.environment import agent_token
from tests.api.serving import TOKEN, Api, serving
from tests.fakes.control import FakeControl
from tests.support.daemon import PATIENCE_S, Ctl, Daemon

__all__ = ["Beside", "Served", "logged_to", "scripted", "served"]

type Serve = Callable[[Any, Path], AbstractAsyncContextManager[Api]]

QUESTION = Prompt(
    prompt_id="p1",
    type="permission",
    prompt="Go on?",
    options=[PromptOption(key="y", label="Yes"), PromptOption(key="n", label="No")],
)


async def scripted(control: FakeControl, task: Task) -> None:
    """As much of the language of `examples/dummy_agent.py` as tests of routes need."""
    verb, _, rest = task.message.text.partition("\n")[0].partition(" ")
    await control.work(task.id)
    if verb == "echo":
        await control.complete(task.id, rest)
    elif verb == "ask":
        await control.ask(task.id, QUESTION)
    elif verb != "busy":
        await control.complete(task.id, f"You said: {task.message.text}")


class Beside:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> "Beside":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def do[T](self, wanted: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(wanted, self._loop).result(PATIENCE_S)

    @contextmanager
    def within[T](self, entered: AbstractAsyncContextManager[T]) -> Iterator[T]:
        value = self.do(_entered(entered))
        try:
            yield value
        finally:
            self.do(_left(entered))


async def _entered[T](manager: AbstractAsyncContextManager[T]) -> T:
    return await manager.__aenter__()


async def _left(manager: AbstractAsyncContextManager[Any]) -> None:
    await manager.__aexit__(None, None, None)


@dataclass
class Served(Daemon):
    """A `Daemon` without a process; `control` is what its API asks."""

    control: Any = None
    beside: Beside | None = None
    api: Api | None = None

    @property
    def port(self) -> int:
        assert self.api is not None
        return self.api.port

    @property
    def pid(self) -> int:
        return os.getpid()

    def do[T](self, wanted: Coroutine[Any, Any, T]) -> T:
        """What the coroutine gives, in the thread of the API."""
        assert self.beside is not None
        return self.beside.do(wanted)

    def token_of(self, agent_id: str) -> str:
        tokens: dict[str, str] = self.control.tokens or self.control.directory._tokens
        return next(token for token, known in tokens.items() if known == agent_id)

    def add(self, name: str = "dummy", **facts: Any) -> AgentView:
        """An agent of the fake control, which has a token as a program has it."""
        view: AgentView = self.control.add(name, port=8190 + len(self.control.views), **facts)
        self.control.tokens[agent_token(TOKEN, view.id)] = view.id
        return view

    def ctl(self, *arguments: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> Ctl:
        """In this thread: its stdin is no terminal, and neither is what it writes to."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        given = io.TextIOWrapper(io.BytesIO((stdin or "").encode()), encoding="utf-8")
        with (
            mock.patch.dict(os.environ, {**self.env, **(env or {})}, clear=True),
            mock.patch.object(sys, "stdin", given),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            try:
                code = main(arguments)
            except SystemExit as end:
                code = int(end.code or 0)
        return Ctl(code, _written(out), _written(err))


def _written(text: io.TextIOWrapper) -> str:
    text.flush()
    buffer = text.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


@contextmanager
def logged_to(path: Path) -> Iterator[None]:
    """What the rooms log is written there, a JSON document a line, as a daemon's log has it."""
    before = structlog.get_config()
    with path.open("a", encoding="utf-8") as file:
        structlog.configure(
            processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)],
            logger_factory=_factory(file),
        )
        try:
            yield
        finally:
            structlog.configure(**before)


def _factory(file: TextIO) -> Callable[..., Any]:
    def make(*_: Any) -> Any:
        return structlog.WriteLogger(file)

    return make


@contextmanager
def served(
    home: Path, serve: Serve = serving, *, control: Any = None, environ: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """The API as `serve` makes it, of a fake whose agents are `scripted`. Its token is where a daemon has it."""
    control = control or FakeControl(scripted)
    made = Served(home, environ=dict(os.environ) if environ is None else environ, control=control)
    (home / "state").mkdir(mode=0o700, exist_ok=True)
    (home / "state" / "token").write_text(TOKEN)
    (home / "state" / "token").chmod(0o600)
    with logged_to(home / "daemon.log"), Beside() as beside, beside.within(serve(control, home)) as api:
        made.beside, made.api = beside, api
        if made.socket != api.path:  # where that is too long a name for a daemon's sockets
            beside.do(api.servers.start_unix(made.socket))
        yield made
