"""One run: the real kernel on the simulated machine, its clients, and the faults.

The daemon is `Manager`, `PtyLinkFactory`, `SqliteStore` and all below them, as `synapsed.daemon` puts them together,
without HTTP: a client calls the manager in a task of the daemon's life, and knows nothing when that ends first. The
store is the real one on a real file in memory: a commit of it takes less than the screens do, and a stub would have
to be held to it.
"""

import asyncio
import contextlib
import contextvars
import hashlib
import itertools
import sqlite3
import sys
from collections.abc import Callable, Coroutine, MutableMapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import structlog

from synapsed.agents.parking import Memory
from synapsed.channels import Adapter
from synapsed.clock import SettledDate
from synapsed.config.config import Config
from synapsed.config.paths import Paths
from synapsed.errors import StoreError, SynapsedError
from synapsed.interfaces import StartRequest
from synapsed.model.task import TaskState
from synapsed.parts.answer_blocks.reading import Reading
from synapsed.parts.history.face import FILE
from synapsed.parts.history.service import SqliteHistory
from synapsed.parts.hooks.channel import ADAPTERS
from synapsed.parts.work_events.reporting import WorkEvents
from synapsed.profiles.library import ProfileLibrary
from synapsed.pty.link_factory import PtyLinkFactory
from synapsed.pty.program_version import VersionReader
from synapsed.pty.shared_timer import Rounds
from synapsed.screens.pool import ScreenPool
from synapsed.store.store import SqliteStore
from synapsed.supervisor.hook_socket import _Pokes
from synapsed.supervisor.launch_planner import ManagerSettings
from synapsed.supervisor.manager import Manager
from tests.fakes.loop import _waits_in
from tests.fakes.screens import FakeScreenProcess
from tests.simulation.clients import Clients, Gone, fails
from tests.simulation.judge import Judge, Violation
from tests.simulation.loop import LIFE, Life, SimClock, SimLoop, SimTask
from tests.simulation.machine import Machine, SimKeeper
from tests.simulation.plan import Fault, Plan
from tests.simulation.programs import PROFILES, Lines, Program, Tui
from tests.simulation.served import Served, ServedChannel

__all__ = ["World"]

PATIENCE_S = 700.0
"""Virtual seconds after the last act and fault within which every task ends."""

HISTORY_S = 80.0
"""The same for the history to have all of it: it tries again half a minute after the disk refused."""


class Killed(BaseException):
    """The process is gone: what its thread was about to do is not done."""


class _Screens(FakeScreenProcess):
    """A process of screens, which others may kill."""

    world: "World"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.pid = next(self.world.pids)
        self.world.screens.append(self)

    def kill(self) -> None:
        self.ended_from_outside = True
        self.end("it was ended by signal 9")


class _Clock:
    """What the product is given as its clock."""

    def __init__(self, clock: SimClock) -> None:
        self._clock = clock
        self._date = SettledDate()
        self.monotonic, self.boot, self.wall = clock.monotonic, clock.boot, clock.wall

    def settled(self) -> float | None:
        return self._date.look(self.wall(), self.boot())


class Daemon:
    """One life of the daemon."""

    def __init__(self, number: int) -> None:
        self.life = Life(f"daemon {number}")
        self.context = contextvars.Context()
        self.context.run(LIFE.set, self.life)
        self.manager: Manager | None = None
        self.store: SqliteStore | None = None
        self.pokes: _Pokes | None = None
        self.up = False
        self.asked: set[asyncio.Future[Any]] = set()


class World(Clients):
    def __init__(
        self, plan: Plan, root: Path, loop: SimLoop, clock: SimClock, story: Callable[[str], None] | None
    ) -> None:
        super().__init__()
        self.plan, self.root, self.loop, self.clock = plan, root, loop, clock
        self._story = story
        self._hash = hashlib.sha256()
        self.rng = Random(f"world {plan.seed}")
        self.machine = Machine(loop, clock, Random(f"machine {plan.seed}"))
        self.machine.program = self._program
        self.machine.trace = self.trace
        self.machine.poke = self._poke
        self.paths = Paths(config=root / "config", state=root / "state", run=root / "run", a2a=root / "a2a")
        self.history_file = self.paths.state / FILE
        profiles = root / "profiles"
        profiles.mkdir(parents=True)
        for name, text in PROFILES.items():
            (profiles / f"{name}.toml").write_text(text)
        self.paths.state.mkdir(parents=True)
        self.library = ProfileLibrary([profiles])
        self.pids = itertools.count(40_000_000)
        self.screens: list[_Screens] = []
        self.connections: dict[Life | None, list[sqlite3.Connection]] = {}
        self.judge = Judge(self, self.paths.database)
        self.machine.typed = self._typed
        self.tasks: set[asyncio.Task[Any]] = set()
        self._daemons = 0
        self.daemon: Daemon | None = None
        self.ids: dict[int, str] = {}
        self._slow_until = self._full_until = 0.0
        self._strike: tuple[int, Callable[[], None]] | None = None
        self._commits_left: int | None = None
        self._inputs_left: tuple[int, int] | None = None
        self.failure: BaseException | None = None
        self.commits = 0
        self._over = loop.create_future()
        loop.delay = self._delay
        loop.stepped = self._stepped
        loop.set_exception_handler(self._loop_error)

    # --- the trace ---

    def trace(self, line: str) -> None:
        told = f"{self.clock.monotonic() - 1000:9.4f} {line}"
        self._hash.update(told.replace(str(self.root), "ROOT").encode())
        if self._story is not None:
            self._story(told)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()[:16]

    def logged(self, _logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
        """What the product logs (structlog's processor)."""
        error = event.pop("exc_info", None)
        rest = " ".join(f"{name}={value}" for name, value in sorted(event.items()) if name not in ("event", "agent_id"))
        if method != "debug":
            self.trace(f"  log {event['event']} {rest}")
        if error not in (None, False):
            self._defect(event["event"], error)
        raise structlog.DropEvent

    def _defect(self, what: str, error: Any) -> None:
        if error is True:
            error = sys.exc_info()[1]
        if isinstance(error, SynapsedError | asyncio.CancelledError):
            return
        self.fail(Violation("no defect", f"{what}: {error!r}"), error if isinstance(error, BaseException) else None)

    def _loop_error(self, _loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Violation):
            self.fail(error)
        elif error is not None and not isinstance(error, Gone):
            self._defect(context.get("message", "a callback"), error)

    def fail(self, error: BaseException, cause: BaseException | None = None) -> None:
        if self.failure is None:
            self.failure = error
            error.__cause__ = cause
            self.trace(f"FAILED {error}")
            if not self._over.done():
                self._over.set_result(None)

    # --- the disk ---

    def _delay(self, name: str) -> float:
        pause = 0.0002 if self.machine.rng.random() < 0.7 else self.machine.rng.uniform(0, 0.004)
        if self.clock.monotonic() < self._slow_until and name.startswith("store"):
            pause += self.machine.rng.uniform(0.1, 2.0)
        return pause

    def connect(self, real: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
        """In the place of `sqlite3.connect`."""
        world = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                if sql == "COMMIT" and self.in_transaction and self.total_changes > getattr(self, "_changes", 0):
                    if world.clock.monotonic() < world._full_until:
                        super().execute("ROLLBACK")
                        error = sqlite3.OperationalError("database or disk is full")
                        error.sqlite_errorcode = sqlite3.SQLITE_FULL
                        raise error
                    done = super().execute(sql, *values)
                    self._changes = self.total_changes
                    world._committed()
                    return done
                return super().execute(sql, *values)

        def connect(*args: Any, **more: Any) -> sqlite3.Connection:
            connection = real(*args, **{"factory": Connection, **more})
            self.connections.setdefault(LIFE.get(), []).append(connection)
            return connection

        self._real_connect = real
        return connect

    def connect_aside(self, path: Path) -> sqlite3.Connection:
        return self._real_connect(path, autocommit=True)

    def _committed(self) -> None:
        self.commits += 1
        if self._commits_left is not None:
            self._commits_left -= 1
            if self._commits_left <= 0:
                self._commits_left = None
                self.trace("FAULT the daemon is killed behind a commit")
                self.kill_daemon()
                raise Killed

    # --- the daemon ---

    def start_daemon(self) -> None:
        self._daemons += 1
        self.daemon = daemon = Daemon(self._daemons)
        self.trace(f"daemon {self._daemons} begins")
        self.spawn(self._run_daemon(daemon), daemon.context)

    def spawn(self, work: Coroutine[Any, Any, Any], context: contextvars.Context | None = None) -> asyncio.Task[Any]:
        context = context if context is not None else contextvars.Context()
        task = SimTask(work, loop=self.loop, context=context)
        self.tasks.add(task)
        task.add_done_callback(self._task_done, context=contextvars.Context())
        return task

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, Violation):
                self.fail(error)
            elif not isinstance(error, Gone):
                self.fail(Violation("no defect", repr(error)), error)

    async def _run_daemon(self, daemon: Daemon) -> None:
        clock: Any = _Clock(self.clock)
        for tries in itertools.count():
            try:
                daemon.store = store = await SqliteStore.open(self.paths.database, clock=clock)
                break
            except StoreError as error:
                if tries > 60:
                    raise
                self.trace(f"the daemon cannot begin: {error.message}")
                await asyncio.sleep(1.0)
        rounds = Rounds(self.loop)
        screens = ScreenPool(processes=1, program=["screens"])
        settings = ManagerSettings(
            paths=self.paths,
            config=Config(),
            control_token="t" * 43,
            environ={"PATH": "/usr/bin:/bin", "HOME": str(self.root), "TERM": "dumb"},
            tool_dir=None,
        )
        server = partial(ServedChannel, self.machine)
        factory = PtyLinkFactory(
            paths=self.paths,
            launcher=self.machine,
            store=store,
            clock=clock,
            versions=VersionReader(self.paths.versions),
            screens=screens,
            rounds=rounds,
            adapters={**ADAPTERS, "session-server": Adapter(server, server)},
        )
        history = SqliteHistory(self.paths.database, self.history_file, store.events)
        await history.open()
        manager = Manager(
            settings,
            store=store,
            profiles=self.library,
            factory=factory,
            clock=clock,
            timers=self.loop,
            rng=Random(f"daemon {self.plan.seed}").random,
            on_shutdown=lambda _keep: None,
            memory=lambda: Memory(total=100, available=100),
        )
        at_agents = {**Reading().provides, **WorkEvents(store, clock).provides}
        manager.doors.become(lambda kind: [at_agents[kind]] if kind in at_agents else [])
        while True:
            try:
                await manager.restore()
                await manager.parts_opened()
                break
            except StoreError:  # the real one ends, and is begun again
                await asyncio.sleep(1.0)
                self.trace("the daemon could not restore, and is begun again")
                self.later(0, self.kill_daemon)
                return
        daemon.manager = manager
        daemon.pokes = _Pokes(manager.directory)
        self.trace("the daemon listens")
        await manager.adopt()
        await manager.autostart()
        daemon.up = True
        self.trace("the daemon is up")

    def later(self, delay: float, call: Callable[..., Any], *args: Any) -> None:
        self.machine.later(delay, call, *args)

    def kill_daemon(self, pause: float | None = None) -> None:
        """SIGKILL; a new one comes."""
        daemon, self.daemon = self.daemon, None
        if daemon is None:
            return
        daemon.life.over = True
        for keeper in self.machine.keepers:
            for _, end in list(keeper._clients):
                if end.life is daemon.life:
                    self.later(0.0001, end.hang_up)
        for connection in self.connections.pop(daemon.life, []):
            with contextlib.suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.rollback()
                connection.close()
        for screens in self.screens:  # they end with their daemon
            screens.ended = True
        for future in daemon.asked:
            self.later(0, _break, future)
        self.trace(f"{daemon.life.name} is gone")
        self.later(self.rng.uniform(0.05, 1.5) if pause is None else pause, self.start_daemon)

    def _stepped(self) -> None:
        if self._strike is not None:
            left, strike = self._strike
            self._strike = (left - 1, strike) if left > 0 else None
            if left <= 0:
                strike()

    # --- programs ---

    def _typed(self, keeper: SimKeeper, pending: Any) -> None:
        self.judge.typed(keeper, pending)
        if self._inputs_left is not None and pending.input_id is not None:
            left, steps = self._inputs_left
            self._inputs_left = (left - 1, steps) if left > 1 else None
            if left <= 1:
                self.trace(f"FAULT the daemon is killed {steps} steps behind {pending.data[-20:]!r}")
                self._strike = (steps, self.kill_daemon)

    def _program(self, keeper: SimKeeper) -> Program:
        number = next((n for n, agent in self.ids.items() if agent == keeper.agent_id), None)
        if number is None:
            number = len(self.ids)
            self.ids[number] = keeper.agent_id
        player = self.plan.players[number]
        rng = Random(f"program {self.plan.seed} {keeper.pid}")
        kind = {"lines": Lines, "served": Served}.get(player.profile, Tui)
        program: Any = kind(self.machine, keeper, rng, dict(player.tricks))
        program.given = lambda text: self.judge.submitted(keeper, text)
        if player.profile == "hooked":
            program.hooks = Path(keeper.spec.state_dir) / "hooks"
        return program  # type: ignore[no-any-return]

    def _poke(self, agent_id: str) -> None:
        daemon = self.daemon
        if daemon is not None and daemon.pokes is not None:
            self.machine.later(0.0001, daemon.pokes.datagram_received, agent_id.encode(), None, life=daemon.life)

    def standing(self, agent_id: str) -> str:
        """What the agent does, for who reads a failure."""
        manager = self.daemon.manager if self.daemon is not None else None
        if manager is None:
            return "no daemon"
        agent = manager._agents.get(agent_id)
        if agent is None:
            return "no such agent"
        link: Any = agent.process.last_link
        turn = link._session.turn if link is not None else None
        where = sorted(_waits_in(task) for task in asyncio.all_tasks(self.loop) if _alive(task))
        for line in where:
            self.trace(f"  a task waits in {line}")
        return f"it is {agent.state.value}, {agent.seen}, its turn is {turn and turn.state}"

    # --- faults ---

    def _fault(self, fault: Fault) -> None:
        agent = self.ids.get(fault.agent)
        keeper = self.machine.living(agent) if agent is not None else None
        if fault.kind == "daemon":
            self.trace(f"FAULT the daemon is killed {fault.skew} steps from now")
            self._strike = (fault.skew, self.kill_daemon)
            return
        if fault.kind == "typed":
            self._inputs_left = (1 + fault.skew % 4, fault.skew // 8)
            self.trace("FAULT the daemon is to be killed over what it types")
            return
        if fault.kind == "commit":
            self._commits_left = 1 + fault.skew % 8
            self.trace(f"FAULT the daemon is to be killed behind its {self._commits_left}. commit")
            return
        self.trace(f"FAULT {fault.kind} {agent} {fault.amount:.2f}")
        match fault.kind:
            case "keeper" if keeper is not None:
                keeper.kill()
            case "frozen" if keeper is not None:
                keeper.freeze(fault.amount)
            case "program" if keeper is not None:
                keeper.program.kill(9)
            case "screens":
                for screens in [one for one in self.screens if not one.ended]:
                    self.machine.later(0, screens.kill, life=self.daemon.life if self.daemon else None)
            case "sockets":
                for one in self.machine.keepers:
                    one.listening = False
                self._strike = (fault.skew, self.kill_daemon)
            case "jump":
                self.clock.jump((fault.amount - 4) * 40_000)
            case "sleep":
                self.clock.sleep(fault.amount * 3000)
            case "slow-disk":
                self._slow_until = self.clock.monotonic() + fault.amount
            case "full-disk":
                self._full_until = self.clock.monotonic() + fault.amount

    # --- the run ---

    async def run(self) -> None:
        """Raises the first Violation."""
        self.start_daemon()
        self.spawn(self._play())
        self.spawn(self.persons())
        self.spawn(self.follow())
        await self._over
        if self.failure is not None:
            raise self.failure

    async def _play(self) -> None:
        for number, player in enumerate(self.plan.players):
            while number not in self.ids:
                request = StartRequest(profile=player.profile, name=f"a{number}", cwd="/", port=False, cols=80, rows=24)
                await self.insist(lambda m: m.processes.start(request))  # noqa: B023
                views = await self.insist(_agents) or []
                self.ids.update((number, one.id) for one in views if one.name == f"a{number}")
                if number not in self.ids:
                    await asyncio.sleep(0.5)
        begun = self.clock.monotonic()
        for fault in self.plan.faults:
            self.later(fault.at, self._fault, fault)
        acting = []
        for act in self.plan.acts:
            await asyncio.sleep(max(0.0, begun + act.at - self.clock.monotonic()))
            acting.append(self.spawn(self.act(act)))
        last = max([begun, *(begun + fault.at + fault.amount for fault in self.plan.faults)])
        await asyncio.sleep(max(0.0, last - self.clock.monotonic()))
        for task in acting:
            await asyncio.wait([task])
        self.trace("all faults are over")
        self._slow_until = self._full_until = 0.0
        self._commits_left = self._inputs_left = None
        await self._settle()
        if not self._over.done():
            self.judge.finish(self.history_file)
            self._over.set_result(None)

    async def _settle(self) -> None:
        """Until every task has ended, and a moment longer."""
        until = self.clock.monotonic() + PATIENCE_S
        waiting = dict(self.judge.accepted)
        while waiting and self.clock.monotonic() < until:
            for token, task_id in list(waiting.items()):
                task = await self.insist(lambda m: m.tasks.find(task_id), tries=1)  # noqa: B023
                if task is not None and task.status in (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED):
                    self.trace(f"{token} is {task.status.value}")
                    self.judge.told(token, task)
                    del waiting[token]
            await asyncio.sleep(1.0)
        await asyncio.sleep(1.5)
        until = self.clock.monotonic() + HISTORY_S
        while self.judge.history_behind(self.history_file) and self.clock.monotonic() < until:
            await asyncio.sleep(1.0)


def _alive(task: asyncio.Task[Any]) -> bool:
    life = task.get_context().get(LIFE)
    return life is not None and not life.over


async def _agents(manager: Manager) -> list[Any]:
    return manager.directory.agents()


def _break(future: asyncio.Future[Any]) -> None:
    fails(future, Gone())
