"""The simulated machine: keepers with their programs, sockets, and what the kernel tells of processes.

A keeper here is the real one's inside (frames, requests, the journal of inputs, the spool: `synapsed.keeper`) without
its selector, its signals and its terminal. It outlives the daemon; it may be killed, stopped, or lose its socket.
"""

import asyncio
import contextvars
import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from synapsed.errors import LaunchError
from synapsed.keeper import frames
from synapsed.keeper.frames import Frame, ProtocolError
from synapsed.keeper.inputs import Entry, InputQueue, Journal, Pending
from synapsed.keeper.requests import Connection, Refusal, Requests, outcome, refuse
from synapsed.keeper.spool import Spool
from synapsed.keepers.launchers import LaunchedKeeper, LaunchSpec
from synapsed.pty.foreground import Word
from tests.simulation.loop import LIFE, Life, SimLoop

if TYPE_CHECKING:
    from tests.simulation.programs import Program

SOCKET_MAX = 256 * 1024
"""Bytes that wait for a client that does not read."""

TERMINAL_MAX = 4096
"""Bytes that wait for a program that does not read."""


class KeeperSocket:
    """The keeper's end of a connection: what `Connection` takes for a socket."""

    def __init__(self, end: "DaemonEnd") -> None:
        self.end = end
        self.came = bytearray()
        self.over = False

    def recv(self, size: int) -> bytes:
        if self.came:
            data = bytes(self.came[:size])
            del self.came[:size]
            return data
        if self.over:
            return b""
        raise BlockingIOError

    def send(self, data: bytes | bytearray) -> int:
        if self.over:
            raise BrokenPipeError
        if self.end.waiting >= SOCKET_MAX:
            raise BlockingIOError
        self.end.take(bytes(data))
        return len(data)


class DaemonEnd(asyncio.Transport):
    """The daemon's end of a connection: a transport. What comes is given to its protocol in pieces, each a step of the
    daemon's life."""

    def __init__(self, machine: "Machine", keeper: "SimKeeper", protocol: Any) -> None:
        super().__init__()
        self._machine = machine
        self._keeper = keeper
        self._protocol = protocol
        self.life = LIFE.get()
        self._came: deque[bytes] = deque()
        self.waiting = 0
        self._reading = True
        self._closing = False
        self._giving = False
        self._eof = False
        self._out: list[bytes] = []
        self.socket = KeeperSocket(self)

    # --- of the daemon ---

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._out:
            self._machine.later(self._machine.latency(), self._arrive)
        self._out.append(bytes(data))

    def _arrive(self) -> None:
        data, self._out = b"".join(self._out), []
        if not self.socket.over:
            self.socket.came += data
            self._keeper.turn()

    def is_closing(self) -> bool:
        return self._closing

    def get_extra_info(self, _name: str, default: Any = None) -> Any:
        return default

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._go_on()

    def abort(self) -> None:
        if not self._closing:
            self._closing = True
            self._machine.loop.call_soon(self._protocol.connection_lost, None)
            self._machine.later(self._machine.latency(), self.hang_up)

    close = abort

    def hang_up(self) -> None:
        """The keeper finds that nobody is there."""
        self.socket.over = True
        self._keeper.turn()

    # --- of the keeper ---

    def take(self, data: bytes) -> None:
        self._came.append(data)
        self.waiting += len(data)
        self._go_on()

    def keeper_gone(self) -> None:
        self._eof = True
        self._go_on()

    def _go_on(self) -> None:
        if self._giving or not self._reading or self._closing or not (self._came or self._eof):
            return
        if self.life is not None and self.life.over:
            return
        self._giving = True
        self._machine.later(self._machine.latency(), self._give, life=self.life)

    def _give(self) -> None:
        self._giving = False
        if self._closing or not self._reading:
            return
        if self._came:
            data = self._came.popleft()
            while self._came and len(data) < 32768 and self._machine.rng.random() < 0.7:
                data += self._came.popleft()
            view = self._protocol.get_buffer(-1)
            size = min(len(data), len(view))
            if size > 8 and self._machine.rng.random() < 0.05:
                size = self._machine.rng.randrange(1, size)
            view[:size] = data[:size]
            if size < len(data):
                self._came.appendleft(data[size:])
            self.waiting -= size
            self._protocol.buffer_updated(size)
            if self.waiting < SOCKET_MAX // 2:
                self._machine.later(0, self._keeper.turn)
        elif self._eof:
            self._closing = True
            self._protocol.connection_lost(None)
            return
        self._go_on()


class _Requests(Requests):
    """Without a terminal."""

    def _resize(self, _client: Connection, _request: int, frame: Frame) -> dict[str, object]:
        keeper: Any = self._keeper
        keeper.size = (frame.integer("cols", 1, 10000), frame.integer("rows", 1, 10000))
        keeper.program.resized(*keeper.size)
        return {"cols": keeper.size[0], "rows": keeper.size[1]}

    def _join(self, client: Connection, _request: int, frame: Frame) -> dict[str, object]:
        raise Refusal("terminals", "no terminal is joined to a simulated keeper")


class _Channel:
    def __init__(self, spool: Spool) -> None:
        self.name = "pty"
        self.spool = spool


class _Input:
    def __init__(self, queue: InputQueue) -> None:
        self.queue = queue


class SimKeeper:
    def __init__(self, machine: "Machine", spec: LaunchSpec, pid: int) -> None:
        self.machine = machine
        self.spec: Any = _Spec(spec)
        self.agent_id = spec.state_dir.name
        self.pid, self.start = pid, pid * 7
        self.program_pid = pid + 1
        self.size = (spec.cols, spec.rows)
        self.alive, self.listening, self.frozen_until = True, True, 0.0
        self.exit_record: dict[str, object] | None = None
        self.started_at = machine.clock.wall()
        spec.state_dir.mkdir(parents=True, exist_ok=True)
        spool = Spool(str(spec.state_dir / "spool"), at_least=spec.spool_at_least)
        self.channels: Any = {"pty": _Channel(spool)}
        self.launch_start = spool.end
        self.input = _Input(InputQueue(Journal(str(spec.state_dir / "input.journal"), spec.launch_id)))
        self._requests = _Requests(self)  # type: ignore[arg-type]
        self._clients: list[tuple[Connection, DaemonEnd]] = []
        self._stop_waiters: list[tuple[Connection, int]] = []
        self._stopping = False
        self._leaving = False
        self._turning = False
        self.program: Program = machine.program(self)

    # --- connections ---

    def connect(self, protocol: Any) -> DaemonEnd:
        end = DaemonEnd(self.machine, self, protocol)
        self._clients.append((Connection(end.socket), end))  # type: ignore[arg-type]
        return end

    def turn(self) -> None:
        if not self.alive or self._turning or self.frozen_until > self.machine.clock.monotonic():
            return
        self._turning = True
        try:
            for client, end in list(self._clients):
                self._serve(client, end)
        finally:
            self._turning = False

    def _serve(self, client: Connection, end: DaemonEnd) -> None:
        try:
            while not client.closing:
                before = len(end.socket.came)
                client.receive()
                while client.backlog and client.has_room and not client.closing:
                    self._requests.serve(client, client.backlog.popleft())
                if len(end.socket.came) in (0, before):
                    break
        except ProtocolError as error:
            client.dismiss(error.code, str(error))
        while not client.broken and client.pump(self.channels, self.exit_record):
            pass
        if client.broken or (client.closing and not client.wants_writing):
            self._clients.remove((client, end))
            end.socket.over = True
            end.keeper_gone()

    def freeze(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after so long."""
        self.frozen_until = self.machine.clock.monotonic() + seconds
        self.machine.later(seconds + 0.001, self.turn)

    # --- what `Requests` asks of it ---

    def describe(self) -> dict[str, object]:
        spool = self.channels["pty"].spool
        return {
            "launch_id": self.spec.launch_id,
            "keeper_pid": self.pid,
            "keeper_start": self.start,
            "pid": self.program_pid,
            "pid_start": self.program_pid * 7 if self.exit_record is None else None,
            "transport": "pty",
            "cols": self.size[0],
            "rows": self.size[1],
            "spool_start": spool.start,
            "spool_end": spool.end,
            "launch_start": self.launch_start,
            "input_pending": self.input.queue.size,
            "input_unread": len(self.program.unread),
            "line_mode": self.program.foreground[0] if self.exit_record is None else None,
            "foreground": self.program_pid if self.exit_record is None else None,
            "alert": None,
            "started_at": self.started_at,
            "exit": self.exit_record,
            "terminals": False,
            "withheld": [],
        }

    @property
    def takes_input(self) -> bool:
        return self.exit_record is None and self.program.alive

    def put_input(self, pending: Pending) -> None:
        self.input.queue.put(pending)
        self.resume()

    def resume(self) -> None:
        """Write what the program takes."""
        queue, spool = self.input.queue, self.channels["pty"].spool
        while queue and self.program.alive:
            pending = queue.head()
            if not pending.begun:
                self.machine.typed(self, pending)
                queue.begin(pending, spool.end)
            room = max(0, TERMINAL_MAX - len(self.program.unread))
            piece = pending.data[pending.done : pending.done + room]
            if pending.data and not piece:
                return
            pending.done += len(piece)
            if pending.entry is not None:
                pending.entry.written = pending.done
            self.program.receive(piece)
            if pending.done == len(pending.data):
                queue.take(spool.end)
                entry = pending.entry or Entry(len(pending.data), pending.at, pending.done, spool.end)
                for client, request in pending.waiters:
                    client.send(frames.REPLY, {"req": request, **outcome("written", entry), "hidden": False})

    def discard_input(self) -> int:
        return self._discard("discarded")

    def _discard(self, code: str) -> int:
        dropped, queue = 0, self.input.queue
        while queue:
            dropped += len(queue.head().data) - queue.head().done
            pending = queue.take(self.channels["pty"].spool.end)
            for client, request in pending.waiters:
                refuse(client, request, code, "it was not written", written=pending.done)
        return dropped

    def signal_program(self, number: int, *, foreground: bool) -> None:
        if not self.program.alive:
            raise ProcessLookupError
        self.machine.later(0.0005, self.program.signalled, number)

    def stop(self, grace: float, waiter: tuple[Connection, int] | None) -> None:
        if waiter is not None:
            self._stop_waiters.append(waiter)
        if not self._stopping:
            self._stopping = True
            self.machine.later(0.0005, self.program.signalled, 15)
            self.machine.later(grace + 0.001, self.program.signalled, 9)

    def terminal(self, _name: str) -> None:
        return None

    def close_input(self) -> None:
        raise AssertionError("a terminal")

    def leave(self) -> None:
        self._leaving = True
        for client, _ in self._clients:
            client.closing = True
        self.machine.later(0.01, self.gone)

    @property
    def end(self) -> int:
        """Where the program's output ends."""
        return int(self.channels["pty"].spool.end)

    # --- of the program ---

    def output(self, data: bytes) -> None:
        if self.alive:
            self.channels["pty"].spool.append(data)
            self.machine.later(0.0001, self.turn)

    def ended(self, code: int | None, signum: int | None) -> None:
        if not self.alive:
            return
        self._discard("exited")
        spool = self.channels["pty"].spool
        self.exit_record = {
            "launch_id": self.spec.launch_id,
            "pid": self.program_pid,
            "code": code,
            "signal": signum,
            "stopped": self._stopping,
            "leftover": 0,
            "output_lost": 0,
            "final_offset": spool.end,
            "started_at": self.started_at,
            "exited_at": self.machine.clock.wall(),
        }
        (Path(self.spec.state_dir) / "exit.json").write_text(json.dumps(self.exit_record))
        for client, request in self._stop_waiters:
            client.send(frames.REPLY, {"req": request, "status": "stopped", "leftover": 0})
        self.machine.later(0.0005, self.turn)

    def gone(self) -> None:
        """The keeper's process is no more."""
        if not self.alive:
            return
        self.alive = self.listening = False
        for _, end in self._clients:
            end.socket.over = True
            end.keeper_gone()
        self._clients.clear()
        self.channels["pty"].spool.close()

    def kill(self) -> None:
        """SIGKILL; its terminal is gone with it, which ends most programs."""
        self.gone()
        self.machine.later(0.001, self.program.hung_up)


class _Spec:
    """A launch specification as the keeper's inside has it."""

    channels = ("pty",)

    def __init__(self, spec: LaunchSpec) -> None:
        self.launch_id = spec.launch_id
        self.term_grace_s = spec.term_grace_s
        self.state_dir = str(spec.state_dir)
        self.env = dict(spec.env)
        self.argv = list(spec.argv)


class SimForeground:
    """In the place of `Foreground`; `machine` is set for a run."""

    machine: "Machine"

    def look(self, group: int | None, *, line_mode: bool | None, now: float) -> Word | None:
        return self.machine.word_of(group)

    def computes(self, group: int) -> bool:
        return False

    def computes_or_relays(self, group: int) -> tuple[bool, bool]:
        return self.computes(group), False

    def acts(self, group: int, since: float) -> bool:
        return False


class Machine:
    """What outlives daemons. `program` makes what a keeper runs; `typed` is told of each input that is about to be
    written."""

    def __init__(self, loop: SimLoop, clock: Any, rng: Random) -> None:
        self.loop, self.clock, self.rng = loop, clock, rng
        self.keepers: list[SimKeeper] = []
        self.program: Callable[[SimKeeper], Program]
        self.poke: Callable[[str], None] = lambda _agent: None
        """A hook has left a report of that agent."""
        self.typed: Callable[[SimKeeper, Pending], None] = lambda _keeper, _pending: None
        self.trace: Callable[[str], None] = lambda _line: None
        self._pids = 1000
        loop.connect = self._reach

    def later(self, delay: float, call: Callable[..., Any], *args: Any, life: Life | None = None) -> Any:
        """Something outside of every life, or within `life`."""
        context = contextvars.Context()
        context.run(LIFE.set, life)
        return self.loop.call_later(delay, call, *args, context=context)

    def latency(self) -> float:
        return 0.00005 if self.rng.random() < 0.8 else self.rng.uniform(0, 0.003)

    def _reach(self, path: str) -> Callable[[Any], DaemonEnd]:
        for keeper in self.keepers:
            if keeper.socket_path == path and keeper.alive:  # type: ignore[attr-defined]
                if not keeper.listening:
                    raise FileNotFoundError(path)
                return keeper.connect
        raise ConnectionRefusedError(path)

    # --- the launcher ---

    async def launch(self, spec: LaunchSpec) -> LaunchedKeeper:
        """A keeper comes up although whoever asked for it may be gone by then."""
        done = self.loop.create_future()
        life = LIFE.get()

        def begin() -> None:
            if any(
                one.alive and one.exit_record is None and one.agent_id == spec.state_dir.name for one in self.keepers
            ):
                self.later(0, _fail, done, LaunchError("another keeper has it", reason="locked"), life=life)
                return
            self._pids += 10
            keeper = SimKeeper(self, spec, self._pids)
            keeper.socket_path = str(spec.socket_path)  # type: ignore[attr-defined]
            self.keepers.append(keeper)
            self.trace(f"keeper {keeper.pid} of {keeper.agent_id} runs its program")
            launched = LaunchedKeeper(
                launch_id=spec.launch_id,
                socket_path=spec.socket_path,
                keeper_pid=keeper.pid,
                keeper_start=keeper.start,
                pid=keeper.program_pid,
                pid_start=keeper.program_pid * 7,
                spool_start=keeper.launch_start,
                started_at=keeper.started_at,
            )
            self.later(self.rng.uniform(0.001, 0.02), _succeed, done, launched, life=life)

        self.later(self.rng.uniform(0.02, 0.1), begin)
        return await done  # type: ignore[no-any-return]

    # --- what the kernel tells of processes ---

    def start_mark(self, pid: int) -> int | None:
        keeper = next((one for one in self.keepers if one.pid == pid and one.alive), None)
        return None if keeper is None else keeper.start

    def find_keepers(self, addresses: Any) -> dict[str, bool]:
        return {one.launch_id: self.start_mark(one.keeper_pid) == one.keeper_start for one in addresses}

    def call_keeper(self, pid: int) -> bool:
        for keeper in self.keepers:
            if keeper.pid == pid and keeper.alive:
                keeper.listening = True
                return True
        return False

    def keeper_of(self, launch_id: str) -> tuple[int | None, bool]:
        keeper = self._of(launch_id)
        if keeper is None:
            return None, False
        return (keeper.pid if keeper.alive else None), keeper.program.alive

    def word_of(self, group: int | None) -> Word | None:
        """What the kernel tells of the process group that has a terminal."""
        found = (one.program for one in self.keepers if one.program_pid == group and one.program.alive)
        return next((program.foreground[1] for program in found), None)

    async def sweep(self, launch_id: str) -> int:
        keeper = self._of(launch_id)
        if keeper is None:
            return 0
        found = keeper.alive + keeper.program.alive
        self.trace(f"what is left of {keeper.agent_id}'s launch is ended ({found})") if found else None
        keeper.gone()
        keeper.program.kill(9)
        return int(found)

    def _of(self, launch_id: str) -> SimKeeper | None:
        return next((one for one in self.keepers if one.spec.launch_id == launch_id), None)

    def living(self, agent_id: str) -> SimKeeper | None:
        """The keeper of the agent's program that runs."""
        found = [one for one in self.keepers if one.agent_id == agent_id and one.alive and one.program.alive]
        return found[-1] if found else None


def _succeed(future: Any, value: Any) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: Any, error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
