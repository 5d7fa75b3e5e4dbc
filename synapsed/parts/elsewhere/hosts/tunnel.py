"""Connection to one host: finds the control socket on that host, has ssh bring it here, checks that its daemon answers,
and does so again, with growing pauses, whenever the connection ends."""

import asyncio
import contextlib
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import structlog
from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, UnixConnector

from synapsed.clock import Clock
from synapsed.errors import InvalidRequest, NotReady
from synapsed.interfaces import AgentView, HostState
from synapsed.parts.elsewhere.hosts import listing, ssh
from synapsed.parts.elsewhere.hosts.host import Host
from synapsed.parts.elsewhere.hosts.ssh import Backoff
from synapsed.shared.outside_json import read_json

LOOK_UP_S: Final = 60.0
END_S: Final = 3.0
"""Seconds for ssh to end when it is asked to."""
ASK_S: Final = 5.0
"""Seconds for the other host's daemon to answer."""
CHECK_UP_S: Final = 15.0
CHECK_SILENT_S: Final = 0.25
CHECK_SLOWEST_S: Final = 5.0
SILENT_MAX_S: Final = 60.0
"""Seconds of silence after which the control socket is looked up again: the daemon may listen elsewhere."""
OUTPUT_MAX: Final = 64 * 1024
AGENTS_MAX: Final = 4 * 1024 * 1024
"""Most bytes of the list of agents."""
HEALTH_MAX: Final = 64 * 1024
"""Most bytes of a sign of life."""
POSTED_MAX: Final = 1024 * 1024
"""Most bytes of an answer to a POST."""

log = structlog.stdlib.get_logger("synapsed.hosts")


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelDeps:
    """Dependencies of every tunnel. `sockets` is the directory of the sockets here."""

    ssh: Sequence[str]
    environ: Mapping[str, str]
    sockets: Path
    clock: Clock
    rng: Callable[[], float]


class _Ended(Exception):
    """Error for a connection that has ended, or could not be made; its text says why."""


class Tunnel:
    """Keeps the connection to one host up. `on_up` is called whenever its daemon answers (again). `start` it, which
    has an effect once, and `close` it."""

    def __init__(self, host: Host, means: TunnelDeps, *, on_up: Callable[[], None]) -> None:
        self.host = host
        self.local = means.sockets / host.name
        self.state = HostState.CONNECTING
        self.since = means.clock.wall()
        self.error: str | None = None
        self.retry_at: float | None = None
        self._means = means
        self._on_up = on_up
        self._backoff = Backoff(means.rng)
        self._up = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._session: ClientSession | None = None
        self._given_up = False
        """True if ssh was ended because no daemon answered behind it."""

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"host {self.host.name}")

    async def close(self) -> None:
        """Ends the connection, and ssh with it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._session is not None:
            await self._session.close()
        self.local.unlink(missing_ok=True)

    @property
    def up(self) -> bool:
        return self._up.is_set()

    async def wait_up(self) -> None:
        await self._up.wait()

    async def ask(self, path: str, *, within: float, at_most: int) -> bytes:
        """Returns the daemon's answer at `path`; only one such request runs at a time, which bounds the memory for
        answers. Raises NotReady, which says why there is no answer."""
        name = self.host.name
        if not self.up:
            raise self._away()
        try:
            async with asyncio.timeout(within), self._one_at_a_time:
                return await self._read(path, at_most)
        except TimeoutError:
            raise NotReady(f"{name} did not answer within {within:g} s", host=name) from None
        except (OSError, ClientError, ValueError) as error:
            raise NotReady(f"{name} does not answer: {str(error)[:200]}", host=name) from None

    async def post(self, path: str, body: Any, *, key: str | None) -> tuple[int, bytes]:
        """Posts `body` and returns the status and the answer; `key` is the `Idempotency-Key`. Raises NotReady if there
        is no connection, OSError, ClientError, ValueError."""
        if not self.up:
            raise self._away()
        headers = {} if key is None else {"Idempotency-Key": key}
        unlimited = ClientTimeout(total=None)
        async with self._open().post(path, json=body, headers=headers, timeout=unlimited) as response:
            return response.status, await _within(response, POSTED_MAX)

    async def agents(self) -> list[AgentView]:
        """Returns the agents of the other host, by their names here; an empty list while the host does not answer."""
        if not self.up:
            return []
        try:
            answer = await self._read("/agents", AGENTS_MAX)
            found, left_out = await asyncio.to_thread(listing.agents, answer, self.host.name)
        except (OSError, ClientError, TimeoutError, ValueError) as error:
            log.info("a host does not tell its agents", host=self.host.name, why=str(error)[:200])
            return []
        if left_out:
            log.info("agents of a host are left out", host=self.host.name, count=left_out)
        return found

    # --- the connection ---

    async def _run(self) -> None:
        while True:
            try:
                await self._connect()
            except (_Ended, InvalidRequest, OSError) as error:
                why = error.message if isinstance(error, InvalidRequest) else str(error)
            except Exception:  # a bug here must not leave the host without a connection until the next start
                log.exception("the connection to a host failed", host=self.host.name)
                why = "the daemon failed on the connection; its log says why"
            pause = self._backoff.pause()
            self._become(HostState.DOWN, why[: ssh.SAID_MAX], retry_at=self._means.clock.wall() + pause)
            await asyncio.sleep(pause)
            self._become(HostState.CONNECTING, self.error)

    async def _connect(self) -> NoReturn:
        """Connects and watches the connection; never returns. Raises _Ended, or the error that ended it."""
        remote = self.host.socket or await self._look_up()
        local = ssh.check_socket(str(self.local))
        await asyncio.to_thread(self.local.parent.mkdir, mode=0o700, exist_ok=True)
        command = ssh.forward(self._means.ssh, self.host, local=local, remote=ssh.check_socket(remote))
        process = await self._spawn(command)
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch(process))
                try:
                    said, code = await _ending(process)
                finally:
                    watching.cancel()
            raise _Ended("its daemon did not answer for too long" if self._given_up else ssh.said(said, code))
        finally:
            self._up.clear()
            await _end(process)

    async def _look_up(self) -> str:
        process = await self._spawn(ssh.look_up(self._means.ssh, self.host), asked=True)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(LOOK_UP_S):
                output, (said, code) = await asyncio.gather(_all_of(process.stdout), _ending(process))
        except TimeoutError:
            raise _Ended(f"{self.host.target} did not say within {LOOK_UP_S:g} s where its daemon listens") from None
        finally:
            await _end(process)
        if code:
            hint = f"; where is {self.host.synapsectl}? 'host add --synapsectl PATH' says so" if code == 127 else ""
            raise _Ended(ssh.said(said, code) + hint)
        return ssh.socket_in(output)

    async def _spawn(self, command: Sequence[str], *, asked: bool = False) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *command,
            env=dict(self._means.environ),
            stdin=subprocess.DEVNULL if asked else subprocess.PIPE,
            stdout=subprocess.PIPE if asked else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C for a daemon in a terminal must not end ssh
        )

    # --- the daemon behind it ---

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Asks the daemon at intervals for an answer, while there is a connection."""
        clock, pause = self._means.clock, CHECK_SILENT_S
        heard = clock.monotonic()
        self._given_up = False
        while True:
            try:
                read_json(await self._read("/healthz", HEALTH_MAX))
            except (OSError, ClientError, TimeoutError, ValueError) as error:
                if self.up or self.state is HostState.CONNECTING:
                    pause = CHECK_SILENT_S
                    self._become(HostState.SILENT, f"its daemon does not answer: {str(error)[:200]}")
                if clock.monotonic() - heard > SILENT_MAX_S:
                    self._given_up = True
                    return await _end(process)
                await asyncio.sleep(pause)
                pause = min(pause * 2, CHECK_SLOWEST_S)
            else:
                heard = clock.monotonic()
                if not self.up:
                    self._become(HostState.UP, None)
                    self._backoff.reset()
                    self._on_up()
                await asyncio.sleep(CHECK_UP_S)

    async def _read(self, path: str, at_most: int) -> bytes:
        """Returns the answer at `path`. Raises ValueError for a refusal, or an answer that is too large."""
        async with self._open().get(path) as response:
            if response.status != 200:
                raise ValueError(f"HTTP {response.status}")
            return await _within(response, at_most)

    def _open(self) -> ClientSession:
        if self._session is None or self._session.closed:
            self._session = ClientSession(
                "http://localhost",
                connector=UnixConnector(str(self.local), force_close=True),
                timeout=ClientTimeout(total=ASK_S),
            )
        return self._session

    def _away(self) -> NotReady:
        name = self.host.name
        return NotReady(f"{name} is {self.state.value}: {self.error or 'it is being connected to'}", host=name)

    def _become(self, state: HostState, error: str | None, *, retry_at: float | None = None) -> None:
        if state is not self.state:
            self.since = self._means.clock.wall()
            log.info("host", host=self.host.name, state=state.value, why=error)
        self.state, self.error, self.retry_at = state, error, retry_at
        if state is HostState.UP:
            self._up.set()
        else:
            self._up.clear()


async def _within(response: ClientResponse, at_most: int) -> bytes:
    """Returns the body of a response. Raises ValueError if it is too large."""
    answer = bytearray()
    while piece := await response.content.readany():
        answer += piece
        if len(answer) > at_most:
            raise ValueError(f"its answer has more than {at_most // 1024} KiB")
    return bytes(answer)


async def _ending(process: asyncio.subprocess.Process) -> tuple[str, int]:
    """Waits for the end of ssh; returns its last output and its exit code."""
    assert process.stderr is not None
    text = await _all_of(process.stderr)
    return text, await process.wait()


async def _all_of(stream: asyncio.StreamReader) -> str:
    """Returns the last `OUTPUT_MAX` bytes as text; reads to the end, so that the writer is never blocked."""
    kept = b""
    while piece := await stream.read(OUTPUT_MAX):
        kept = (kept + piece)[-OUTPUT_MAX:]
    return kept.decode("utf-8", "replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(END_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
