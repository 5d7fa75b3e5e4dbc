"""The daemon: the only place where the parts are put together, and the order in which they come up and go down.

Up: umask and directories, the lock, configuration and profiles, the store, the agents as they were, the listeners;
then, while requests are answered already, the living programs are adopted and the configured ones started. Down: the
agents (ended, or left running), the listeners, the store. After a failure on the way up everything that is up is taken
down, in the opposite order.
"""

import asyncio
import contextlib
import os
import random
import resource
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import structlog

from synapsed import __version__
from synapsed.agents.parking import check_parking
from synapsed.agents.views import figures_of, summary_of
from synapsed.aio import TaskSet
from synapsed.api.connection_limits import ConnectionLimiter, ConnectionLimits
from synapsed.api.context import ApiContext
from synapsed.api.listeners import Listeners, lead_here
from synapsed.api.peer_lookup import PeerLookup
from synapsed.api.security import Security
from synapsed.api.servers import ApiServers
from synapsed.clock import SystemClock
from synapsed.config.config import Config
from synapsed.config.config_files import load_config
from synapsed.config.paths import Paths
from synapsed.errors import InvalidRequest, StoreError, SynapsedError
from synapsed.interfaces import NewEvent
from synapsed.keepers.launch_plan import LateLinks, LinkFactory
from synapsed.kernel import Kernel, Parts, open_parts
from synapsed.model.attributes import ProcessAttributes
from synapsed.model.events import DaemonChanged
from synapsed.model.figures import FAST_S, DaemonFigures, Histogram
from synapsed.model.trace import Sampling
from synapsed.outgoing import proxies_in
from synapsed.outgoing.poster import HttpPoster
from synapsed.outgoing.posting import Posting
from synapsed.outgoing.screening import AddressScreen
from synapsed.outgoing.secrets import SecretPlaces
from synapsed.parts.loading import (
    LEFT_OUT,
    adapters,
    config_model,
    faces,
    load_late,
    log_left_out,
    stand_ins,
    unread_files,
)
from synapsed.process.collector import collecting
from synapsed.process.control_token import load_or_create
from synapsed.process.extras import has_mcp
from synapsed.process.installed import commit
from synapsed.process.open_files import OwnLog
from synapsed.process.orphans import Strays
from synapsed.process.service_manager import ServiceNotifier, inherited_sockets
from synapsed.process.state_lock import HomeLock, lock_home, prepare_directories, remove_stand_in
from synapsed.process.time_zone import LocalZone
from synapsed.profiles.library import ProfileLibrary
from synapsed.store.backups import Backups
from synapsed.store.store import SqliteStore
from synapsed.supervisor.carriers import Carriers
from synapsed.supervisor.hook_socket import HookSocket, answering, poked
from synapsed.supervisor.launch_planner import ManagerSettings
from synapsed.supervisor.manager import Manager
from synapsed.supervisor.task_expiry import Retention
from synapsed.supervisor.upkeep import DECIDE_SOCKET, HOOKS_SOCKET, Upkeep, watch_loop

if TYPE_CHECKING:
    from synapsed.keepers.launchers import Launcher

FAILED = 1
"""The exit code of a daemon that could not go on."""
FAILING_S = 10.0
"""Seconds for a failing daemon to end in order."""
TOLD_S = 2.0
"""Seconds for the database to record that the daemon came up, or goes."""

log = structlog.stdlib.get_logger("synapsed.daemon")


@dataclass(slots=True)
class _Stop:
    """The request that ends the daemon; `keep_agents`: the agents go on running."""

    keep_agents: bool
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    failure: str | None = None
    """Reason why it cannot go on."""

    def ask(self, keep_agents: bool) -> None:
        if not self.asked.is_set():
            self.keep_agents = keep_agents
            self.asked.set()

    def fail(self, failed: asyncio.Future[str]) -> None:
        """Ends the daemon with an error, soon even if something hangs; the agents stay for the next one."""
        if failed.cancelled():
            return
        self.failure, self.keep_agents = failed.result(), True
        self.asked.set()
        end = threading.Timer(FAILING_S, os._exit, (FAILED,))
        end.daemon = True
        end.start()


@dataclass(frozen=True, slots=True)
class _Parts:
    """The objects that `run` brings up once all of them are made."""

    manager: Manager
    servers: ApiServers
    retention: Retention
    store: SqliteStore
    token: str
    backups: Backups
    lag: Histogram
    parts: Parts
    hooks: Mapping[str, HookSocket]
    """Sockets of hooks, by the names that `upkeep` gives them."""


class Daemon:
    """One daemon for one home. `run` returns when it has ended.

    `started_with`: the umask, limits and so on of the process that started it, which agents without known attributes
    get. `files`: the limit of open files before this process raised it (`open_files`), which its programs get, and the
    present limit. `keep_agents`: a signal that ends the daemon leaves the agents running. `agent_units`: each agent is
    a unit of systemd's user manager. `late_port`: if the main port is in use, the daemon serves all else and waits for
    the port; without it, that is an error. `takes_orphans`: it becomes the parent of orphans below this process
    (`orphans`).
    """

    def __init__(
        self,
        paths: Paths,
        *,
        environ: Mapping[str, str],
        keep_agents: bool,
        agent_units: bool = False,
        started_with: ProcessAttributes | None = None,
        files: tuple[int, int] | None = None,
        late_port: bool = False,
        takes_orphans: bool = False,
    ) -> None:
        self._paths = paths
        self._environ = environ
        self._keep_agents = keep_agents
        self._started_with = started_with or ProcessAttributes()
        self._agent_units = agent_units
        self._clock = SystemClock()
        self._zone = LocalZone(environ)
        self._service = ServiceNotifier(environ)
        self._late_port = late_port
        self._takes_orphans = takes_orphans
        self._files = files or (0, resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    async def run(self) -> None:
        """Runs the daemon. Raises AlreadyRunning, ConfigError, StoreError, LaunchError before anything is served."""
        os.umask(0o077)
        prepare_directories(self._paths)
        stop = _Stop(self._keep_agents)
        async with AsyncExitStack() as up:
            lock = up.enter_context(lock_home(self._paths))
            up.callback(remove_stand_in, self._paths)
            up.callback(self._service.close)
            up.enter_context(collecting(asyncio.get_running_loop()))
            await up.enter_async_context(self._service.beating())
            config = await asyncio.to_thread(_configuration, self._paths)
            parts = await self._build(up, config, stop)
            manager, servers = parts.manager, parts.servers
            up.enter_context(self._signals(stop, manager))  # before any client can find the daemon
            listeners = Listeners(servers, config, self._paths, late_port=self._late_port)
            listen = await self._listen(up, listeners, parts, config)
            if lock.before is not None:
                await asyncio.to_thread(lead_here, Path(lock.before.socket), self._paths)
            upkeep = self._upkeep(lock, parts)
            parts.store.failed.add_done_callback(stop.fail)
            own_log = OwnLog(self._paths.logs / "daemon.log")
            async with asyncio.TaskGroup() as group:
                background = [
                    group.create_task(self._come_up(parts)),
                    group.create_task(upkeep.run()),
                    group.create_task(watch_loop(self._clock, parts.lag, own_log.rotate)),
                    group.create_task(parts.backups.run()),
                    *([] if listen else [group.create_task(listeners.main_later())]),
                    *([group.create_task(Strays().reap())] if self._takes_orphans else []),
                ]
                self._service.ready(lambda: summary_of(manager.directory.all()))
                await _tell(parts, "started")
                log.info("daemon ready", version=__version__, commit=commit(), pid=os.getpid(), listen=listen)
                await stop.asked.wait()
                await _tell(parts, "stopping")
                self._service.stopping()
                log.info("daemon stopping", keep_agents=stop.keep_agents)
                for task in background:
                    task.cancel()
            # Before the agents: attached terminals learn that the daemon goes, not that their programs ended.
            servers.end_streams()
            await parts.parts.stopping()
            await manager.close(keep_agents=stop.keep_agents)
            if stop.failure is not None:
                raise StoreError(f"{stop.failure}; the next daemon finds its agents running", reason="failed")
            if not stop.keep_agents:
                up.callback(lock.leave)
        log.info("daemon ended")

    async def _listen(self, up: AsyncExitStack, listeners: Listeners, parts: _Parts, config: Config) -> str:
        """Brings up the listeners. Returns the address of the main one; empty if its port is to be taken later."""
        manager = parts.manager
        inherited = inherited_sockets(self._environ)
        listen = await listeners.main(inherited.pop("http", []))
        await parts.parts.listening(parts.servers)
        # A port that another program has is announced all the same: it is taken as soon as it is free.
        await manager.serve_ports(parts.servers, listen=listen or config.api.listen)
        # Last: a process that starts a daemon waits until this socket answers, and then finds the other listeners.
        await listeners.control(inherited.pop("control", []))
        for name, others in inherited.items():
            log.warning("a socket that is not known was handed over", name=name)
            for sock in others:
                sock.close()
        for hook in parts.hooks.values():
            await hook.make()
            up.push_async_callback(hook.close)
        return listen

    def _upkeep(self, lock: HomeLock, parts: _Parts) -> Upkeep:
        return Upkeep(
            self._paths,
            lock=lock,
            store=parts.store,
            servers=parts.servers,
            hooks=parts.hooks,
            token=parts.token,
            launches=lambda: [root.launch for root in parts.manager.directory.roots()],
        )

    async def _links(self, store: SqliteStore, up: AsyncExitStack) -> LinkFactory:
        """Returns the factory of links; their common resources are closed with `up`."""
        await asyncio.to_thread(load_late)
        from synapsed.keepers.launchers import LaunchQueue
        from synapsed.pipes.acp_link_factory import AcpLinks
        from synapsed.pty.link_factory import PtyLinkFactory
        from synapsed.pty.program_version import VersionReader
        from synapsed.pty.shared_timer import Rounds
        from synapsed.screens.pool import ScreenPool

        up.push_async_callback((screens := ScreenPool()).close)
        rounds = Rounds(asyncio.get_running_loop())
        return PtyLinkFactory(
            paths=self._paths,
            launcher=LaunchQueue(self._launcher()),
            store=store,
            clock=self._clock,
            versions=VersionReader(self._paths.versions),
            screens=screens,
            rounds=rounds,
            pipes=AcpLinks(paths=self._paths, store=store, clock=self._clock, screens=screens, rounds=rounds),
            adapters=adapters(),
        )

    def _launcher(self) -> "Launcher":
        from synapsed.keepers.launchers import ProcessLauncher
        from synapsed.keepers.systemd_launcher import SystemdLauncher

        if self._agent_units:
            if (program := shutil.which("systemd-run")) is not None:
                return SystemdLauncher(systemd_run=program, environ=self._environ)
            log.error("there is no systemd-run: the agents will end when the service is restarted")
        return ProcessLauncher(open_files=self._files[0])

    async def _build(self, up: AsyncExitStack, config: Config, stop: _Stop) -> _Parts:
        paths = self._paths
        profiles = await asyncio.to_thread(
            ProfileLibrary.standard, paths.user_profiles, partial(stand_ins, paths.state)
        )
        check_parking(config, profiles, paths)
        token = await asyncio.to_thread(load_or_create, paths.token)
        store = await SqliteStore.open(paths.database, clock=self._clock)
        up.push_async_callback(store.close)
        sampling = Sampling()
        carriers = Carriers(store, self._clock)
        of_links = await up.enter_async_context(AsyncExitStack())  # closed after the manager, which closes the links
        manager = Manager(
            ManagerSettings(
                paths=paths,
                config=config,
                control_token=token,
                environ=self._environ,
                tool_dir=_tool_directory(),
                attributes=self._started_with,
                mcp=has_mcp(),
                adapters=adapters,
                on_config=lambda config: _reconfigure(config, kernel, parts),
            ),
            store=store,
            profiles=profiles,
            factory=LateLinks(lambda: self._links(store, of_links), paths.state / "agents"),
            clock=self._clock,
            timers=asyncio.get_running_loop(),
            rng=random.random,
            on_shutdown=lambda keep_agents: self._shut_down(stop, keep_agents),
            carriers=carriers,
        )
        # Only matters where something fails on the way up: else the manager is closed before the listeners.
        up.push_async_callback(manager.close, keep_agents=True)
        await manager.restore()
        alerts: list[str] = []
        kernel = Kernel(
            control=manager,
            store=store,
            clock=self._clock,
            timers=asyncio.get_running_loop(),
            config=config,
            paths=paths,
            figures=DaemonFigures(
                version=__version__,
                store=store.database,
                lag=Histogram(FAST_S),
                agents=lambda: figures_of(manager.directory.all()),
                streams=lambda: context.streams.open,
            ),
            sampling=sampling,
            zone=self._zone,
            environ=self._environ,
            outgoing=self._outgoing(config),
            texts=store.texts,
            alert=lambda message: None if message in alerts else alerts.append(message),
            settle=lambda message: alerts.remove(message) if message in alerts else None,
        )
        agents = bool(manager.directory.all())
        parts = await up.enter_async_context(open_parts(faces(), kernel, agents=agents))
        carriers.become(parts.carriers)
        manager.doors.become(parts.all, parts.closed, lambda agents: parts.open_wanted(agents=agents))
        await manager.parts_opened()
        security = Security(
            directory=manager.directory,
            bearers=parts.bearers,
            token=token,
            allowed_hosts=config.api.allowed_hosts,
            trusted_proxies=config.api.trusted_proxies,
            peers=PeerLookup(manager.directory.process_of, own_pid=os.getpid()),
            route_tokens={
                path: await asyncio.to_thread(load_or_create, paths.state / name) for path, name in parts.tokens.items()
            },
        )
        context = ApiContext(
            control=manager,
            security=security,
            clock=self._clock,
            paths=paths,
            version=__version__,
            commit=await asyncio.to_thread(commit),
            proxies=[] if config.outgoing.proxy else proxies_in(self._environ),
            sampling=sampling,
            texts=store.texts,
            faces=faces(),
            parts=parts,
            alerts=alerts,
        )
        limits = ConnectionLimits.of(self._files[1], proxied=bool(config.api.trusted_proxies))
        servers = ApiServers(context, ConnectionLimiter(limits))
        up.push_async_callback(servers.close)
        for alert in _left_out(paths):
            servers.alert(alert)
        retention = Retention(
            store, config.store.keep, inbox=paths.inbox, clock=self._clock, timers=asyncio.get_running_loop()
        )
        backups = Backups(paths.database, paths.backups, days=config.store.backup_days, clock=self._clock)
        hooks = {
            HOOKS_SOCKET: HookSocket(lambda: poked(paths.hooks_socket, manager.directory)),
            DECIDE_SOCKET: HookSocket(lambda: answering(paths.decide_socket, manager.terminals.decide)),
        }
        return _Parts(
            manager=manager,
            servers=servers,
            retention=retention,
            store=store,
            token=token,
            backups=backups,
            lag=kernel.figures.lag,
            parts=parts,
            hooks=hooks,
        )

    def _outgoing(self, config: Config) -> Posting:
        policy = config.a2a.push
        return Posting(
            poster=lambda: HttpPoster(AddressScreen(policy.allow), timeout=policy.timeout, outgoing=config.outgoing),
            policy=policy,
            secrets=SecretPlaces(environ=self._environ, config=self._paths.config),
            clock=self._clock,
            rng=random.random,
            user_agent=f"synapsed/{__version__}",
        )

    def _shut_down(self, stop: _Stop, keep_agents: bool) -> None:
        if keep_agents and self._agent_units:
            raise InvalidRequest(
                "the agents of a service that has ended are ended by systemd: 'systemctl --user restart synapsed' "
                "changes the daemon and leaves them alone"
            )
        stop.ask(keep_agents)

    async def _come_up(self, parts: _Parts) -> None:
        try:
            await parts.manager.adopt()
            await parts.manager.autostart()
            parts.parts.started()
        except Exception:  # the agents that did come up, and the API, are worth more than a clean end
            log.exception("not every agent came up")
        try:
            await parts.retention.run()
        except Exception:  # as above; a store that refuses for a while is waited for
            log.exception("nothing old is removed until the daemon is restarted")

    @contextlib.contextmanager
    def _signals(self, stop: _Stop, manager: Manager) -> Iterator[None]:
        """Handles signals: SIGTERM and SIGINT end the daemon; SIGHUP makes it read the configuration again, and does no
        harm if it only means that a terminal was closed."""
        loop = asyncio.get_running_loop()
        reloads = TaskSet()
        handlers: dict[int, Callable[[], object]] = {
            signal.SIGTERM: lambda: stop.ask(self._keep_agents),
            signal.SIGINT: lambda: stop.ask(self._keep_agents),
            signal.SIGHUP: lambda: reloads.spawn(self._reload(manager)),
        }
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)

    async def _reload(self, manager: Manager) -> None:
        with self._service.reloading():
            try:
                changes = await manager.reload()
            except SynapsedError as error:
                log.error("the configuration is not changed", why=error.message)  # noqa: TRY400
            else:
                log.info("configuration read again", changes=len(changes))


async def _tell(parts: _Parts, state: Literal["started", "stopping"]) -> None:
    """Records the event that the daemon came up, or goes. A database that refuses, or hangs, does not delay it."""
    told = DaemonChanged(state=state, version=__version__, pid=os.getpid(), agents=len(parts.manager.directory.all()))
    try:
        async with asyncio.timeout(TOLD_S):
            await parts.store.commit(events=[NewEvent("", told)])
    except (StoreError, TimeoutError) as error:
        log.warning("the daemon's state is not in the log of events", state=state, why=str(error))


def _reconfigure(config: Config, kernel: Kernel, parts: Parts) -> None:
    kernel.config = config
    parts.reconfigured()


def _configuration(paths: Paths) -> Config:
    """Returns the configuration. Raises ConfigError, after the log has the names of the parts that are left out."""
    model = config_model()
    log_left_out()
    return load_config(paths, model)


def _left_out(paths: Paths) -> Iterator[str]:
    """Yields, in words for people, each part that cannot be opened, as its face or the part itself is not there."""
    for name, problem in LEFT_OUT.items():
        yield f"the part {name} is left out: {problem}; the daemon's log says more"
    yield from unread_files(paths)


def _tool_directory() -> Path | None:
    """Returns the directory of synapsectl: beside this interpreter, else the one that PATH has."""
    beside = Path(sys.executable).parent
    if (beside / "synapsectl").is_file():
        return beside
    found = shutil.which("synapsectl")
    return Path(found).parent if found else None
