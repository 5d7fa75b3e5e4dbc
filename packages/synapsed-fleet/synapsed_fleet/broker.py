"""The broker of a fleet: `synapsed broker` keeps one nats-server, in a unit of its own that outlives every daemon.

It writes the server's configuration, starts the server again when it ends, and watches its health (`watchdog`).
state/fleet/broker has all that it needs, without any key of the fleet: the operator's token, a certificate, and in
`jwt/` the accounts' tokens.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import structlog

from synapsed.errors import AlreadyRunning, ConfigError, LaunchError, StoreError, Unreachable
from synapsed.shared.files import write_private
from synapsed_fleet import jwt, tls
from synapsed_fleet.addresses import local_url
from synapsed_fleet.admin import Admin
from synapsed_fleet.broker_scaling import Moving
from synapsed_fleet.fleet_config import FleetBroker, FleetConfig
from synapsed_fleet.member_files import Home
from synapsed_fleet.natsserver import ClusterPlace, NatsServer, configuration, find
from synapsed_fleet.watchdog import FREE_MIN, BrokerHealth, Watchdog

LOOK_S: Final = 3.0
FIRST_LOOK_S: Final = 0.2
"""Seconds between looks at the server until it is healthy: a person who has just started it waits."""
HEALTH_S: Final = 3.0
"""Seconds for one answer."""
BACKOFF_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before a server that has ended is started again; the last number holds from then on."""
STABLE_S: Final = 60.0
LAME_S: Final = 8.0
"""Seconds in which a server of a cluster, before it ends, hands over what it leads to the others."""
STOP_S: Final = 30.0
"""Seconds for a server to end once it is asked to; it syncs its data then."""

log = structlog.get_logger(__name__)


class BrokerFolder:
    """The directory state/fleet/broker."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.settings = folder / "broker.json"
        self.lock = folder / "lock"
        self.moving = Moving(folder / "moving")

    def prepare(self, *, name: str, tokens: Mapping[str, str], certificate: tls.Pem, authority: str) -> None:
        """Writes everything that a broker needs. `tokens` are those of operator, system and account. Raises
        StoreError."""
        account, system = (jwt.read(tokens[kind]).subject for kind in ("account", "system"))
        self._write("ca.pem", authority)
        self.keep_certificate(certificate)
        self._write("operator.jwt", tokens["operator"])
        self._write(f"jwt/{system}.jwt", tokens["system"])
        self.keep_account(tokens["account"])
        told = {"name": name, "fleet": account, "system": system}
        with contextlib.suppress(ConfigError):  # its store and its cluster stay
            told |= {key: value for key, value in self.read().items() if key in ("store", "cluster")}
        self._write("broker.json", json.dumps(told, indent=1))

    def regroup(self, cluster: ClusterPlace | None, *, empty: bool) -> None:
        """Makes the broker one of a cluster, or a single one, from its next start on; `empty`: with an empty store.
        Raises ConfigError, StoreError."""
        told = self.read()
        told["cluster"] = None if cluster is None else cluster._asdict()
        if empty:
            told["store"] = f"store-{secrets.token_hex(4)}"
        self._write("broker.json", json.dumps(told, indent=1))

    def is_outdated(self) -> bool:
        """Returns True if the server that runs, or ran last, has another store than the next one will have."""
        try:
            last = json.loads((self.path / "nats.conf").read_bytes())["jetstream"]["store_dir"]
        except (OSError, ValueError, KeyError, TypeError):  # none has run yet
            return False
        return Path(str(last)).name != _store(self.read())

    def replicas(self, planned: int) -> int:
        """Returns the replicas of each stream at the present brokers: `planned`, unless a `scale` was interrupted."""
        if not self.settings.exists():  # another owner keeps the broker
            return planned
        return 3 if self.read().get("cluster") else 1

    async def unpack(self, admin: Admin, *, replicas: int, store: int) -> list[str]:
        """Calls `Moving.unpack`, but only at the server that the copies are for: the one before it has all streams, and
        there the copies would be deleted. Raises Unreachable while the earlier server runs, RemoteRefused,
        StoreError."""
        if self.is_outdated():
            raise Unreachable("the broker is to be started again: 'synapsectl fleet broker restart'", sent=False)
        return await self.moving.unpack(admin, replicas=replicas, store=store)

    def keep_certificate(self, made: tls.Pem) -> None:
        self._write("key.pem", made.key)
        self._write("cert.pem", made.certificate)

    def keep_account(self, token: str) -> None:
        """Saves the fleet's token, unless a newer one is there: a broker that was down reads it at its start."""
        account = jwt.read(token)
        place = self.path / "jwt" / f"{account.subject}.jwt"
        with contextlib.suppress(OSError, ValueError):
            if jwt.read(place.read_text(encoding="ascii").strip()).issued >= account.issued:
                return
        self._write(f"jwt/{account.subject}.jwt", token)

    def read(self) -> dict[str, Any]:
        """Returns `broker.json`. Raises ConfigError."""
        try:
            found = json.loads(self.settings.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigError(
                f"{self.settings} is not there: no broker runs on this host. 'synapsectl fleet create' makes one",
                file=str(self.settings),
            ) from None
        except (OSError, ValueError) as error:
            raise ConfigError(f"{self.settings} cannot be read: {error}", file=str(self.settings)) from None
        if not isinstance(found, dict) or not {"name", "fleet", "system"} <= found.keys():
            raise ConfigError(f"{self.settings} is damaged: take it from a copy", file=str(self.settings))
        return found

    def text(self, name: str) -> str:
        try:
            return (self.path / name).read_text(encoding="ascii")
        except OSError as error:
            raise ConfigError(f"{self.path / name} cannot be read: {error.strerror}") from None

    def free(self) -> int:
        """Returns the free bytes of its disk."""
        return shutil.disk_usage(self.path).free

    def pid(self) -> int | None:
        """Returns the process id of the broker's keeper, None if there is no such process."""
        try:
            with self.lock.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return int(file.read() or b"0") or None
        except (OSError, ValueError):
            return None
        return None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Holds the lock by which only one process keeps this broker. Raises AlreadyRunning."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.lock.open("a+b") as file:
            self.lock.chmod(0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                pid = file.read().decode("ascii", "replace")
                raise AlreadyRunning(f"the broker of {self.path} runs already, kept by pid {pid}") from None
            file.truncate(0)
            file.write(str(os.getpid()).encode())
            file.flush()
            yield

    def server_pid(self) -> int | None:
        """Returns the process id of the server that runs, or ran when its keeper was killed."""
        for path in self.path.glob("*.ports"):
            with contextlib.suppress(ValueError):
                return int(path.stem.rpartition("_")[2])
        return None

    def destroy(self) -> None:
        """Destroys the broker and its stored data. Raises StoreError."""
        try:
            shutil.rmtree(self.path)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be removed: {error.strerror}", file=str(self.path)) from error

    def monitoring(self) -> tuple[str, int] | None:
        """Returns the address at which the running server reports its health."""
        for path in self.path.glob("*.ports"):
            with contextlib.suppress(OSError, ValueError, KeyError, IndexError, TypeError):
                told = urlsplit(json.loads(path.read_text(encoding="ascii"))["monitoring"][0])
                if told.hostname and told.port:
                    return told.hostname, told.port
        return None

    def _write(self, name: str, text: str) -> None:
        write_private(self.path / name, text.encode("ascii"))


def ask_health(folder: BrokerFolder) -> BrokerHealth:
    """Asks the server for its health; blocks for at most `HEALTH_S`."""
    free = folder.free()
    place = folder.monitoring()
    if place is None:
        return BrokerHealth(healthy=False, told=None, free=free)
    connection = HTTPConnection(*place, timeout=HEALTH_S)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        said = answer.read(4096).decode("utf-8", "replace")
    except (OSError, HTTPException):
        return BrokerHealth(healthy=False, told=None, free=free)
    finally:
        connection.close()
    return BrokerHealth(healthy=answer.status == 200, told=said, free=free)


class ReadyNotifier(Protocol):
    """Reports the state of this process to the service manager, where there is one."""

    def ready(self, status: Callable[[], str]) -> None: ...

    def stopping(self) -> None: ...

    def close(self) -> None: ...

    def beating(self) -> contextlib.AbstractAsyncContextManager[None]: ...


class BrokerUnit:
    """Keeps one server until `end` is called."""

    def __init__(
        self,
        home: Home,
        config: FleetBroker,
        *,
        server: NatsServer,
        notifier: ReadyNotifier,
        clock: Callable[[], float] = time.monotonic,
        free_min: int = FREE_MIN,
    ) -> None:
        self._home = home
        self._folder = BrokerFolder(home.broker)
        self._config = config
        self._server = server
        self._notifier = notifier
        self._clock = clock
        self._watchdog = Watchdog(free_min=free_min)
        self._process: asyncio.subprocess.Process | None = None
        self._ending = asyncio.Event()
        self._again = asyncio.Event()
        """Set when the server is to be started again without a fault."""
        self._failures = 0
        self._well = False
        """True once the server was healthy since its last start."""
        self._among_others = False
        """True while the server is one of a cluster."""

    def end(self) -> None:
        self._ending.set()

    def restart(self) -> None:
        self._again.set()

    async def run(self) -> None:
        """Returns when `end` was called and the server has ended. Raises ConfigError, StoreError, LaunchError."""
        with self._folder.held():
            self._renew_certificate()
            async with self._notifier.beating():
                while not self._ending.is_set():
                    began = self._clock()
                    self._again.clear()
                    await self._one_life()
                    if self._clock() - began > STABLE_S or self._again.is_set():
                        self._failures = 0
                    if not self._ending.is_set() and not self._again.is_set():
                        await self._pause()
            self._notifier.close()

    async def _one_life(self) -> None:
        """Runs the server once, from its start to its end."""
        self._well = False
        self._write_configuration()
        try:
            self._process = await asyncio.create_subprocess_exec(
                self._server.path,
                "--config",
                str(self._folder.path / "nats.conf"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=self._folder.path,
                env=_environment(),
            )
        except OSError as error:
            raise LaunchError(f"{self._server.path} cannot be started: {error.strerror}") from None
        log.info("broker started", pid=self._process.pid, server=self._server.release, listen=self._config.listen)
        ended = asyncio.ensure_future(self._process.wait())
        try:
            while not await self._looked_at(ended):
                pass
        finally:
            await self._stop(ended)
            log.info("broker ended", code=self._process.returncode)
            self._process = None

    async def _looked_at(self, ended: "asyncio.Future[int]") -> bool:
        """Waits for the next look and takes it; returns True if this run of the server is over."""
        told = [asyncio.ensure_future(event.wait()) for event in (self._ending, self._again)]
        waited: set[asyncio.Future[Any]] = {ended, *told}
        try:
            await asyncio.wait(
                waited, timeout=LOOK_S if self._well else FIRST_LOOK_S, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for one in told:
                one.cancel()
        if ended.done() or self._ending.is_set() or self._again.is_set():
            return True
        health = await asyncio.to_thread(ask_health, self._folder)
        self._well = self._well or health.healthy
        if health.healthy:
            self._failures = 0
            self._notifier.ready(lambda: f"broker {self._server.release} at {self._config.listen}")
        if self._watchdog.seen(health, now=self._clock()):
            log.warning("broker is started again: it has not been healthy", told=(health.told or "")[:500])
            self._again.set()
            return True
        return False

    async def _stop(self, ended: "asyncio.Future[int]") -> None:
        """Ends the server, which syncs its data first."""
        process = self._process
        if process is None or ended.done():
            return
        if self._among_others:  # lame duck: it hands over what it leads, and its clients
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGUSR2)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(ended), LAME_S)
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(asyncio.shield(ended), STOP_S)
        except TimeoutError:
            log.warning("broker does not end, and is killed", pid=process.pid)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await ended

    async def _pause(self) -> None:
        pause = BACKOFF_S[min(self._failures, len(BACKOFF_S) - 1)]
        self._failures += 1
        log.warning("broker ended by itself", again_in_s=pause, log=str(self._folder.path / "log"))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), pause)

    def _write_configuration(self) -> None:
        """Writes the configuration for each start: the free disk space and the removed hosts may have changed."""
        folder, told = self._folder, self._folder.read()
        store = _store(told)
        for name in ("log", store, "jwt"):
            _directory(folder.path / name)
        if not folder.moving.is_packed():
            for left in folder.path.glob("store*"):
                if left.name != store:
                    shutil.rmtree(left, ignore_errors=True)
        for left in folder.path.glob("*.ports"):
            left.unlink(missing_ok=True)
        if self._home.keyring.exists():
            folder.keep_account(self._home.keyring.account_token)
        document = configuration(
            folder.path,
            name=str(told["name"]),
            listen=self._config.listen,
            operator_token=folder.text("operator.jwt").strip(),
            system_account=str(told["system"]),
            store=store,
            cluster=ClusterPlace(**told["cluster"]) if told.get("cluster") else None,
        )
        self._among_others = bool(told.get("cluster"))
        write_private(folder.path / "nats.conf", json.dumps(document, indent=1).encode())

    def _renew_certificate(self) -> None:
        """Renews the certificate if this host has the authority's key; on other hosts `doctor` warns in time."""
        now = datetime.now(UTC)
        certificate = self._folder.text("cert.pem")
        keyring = self._home.keyring
        if not keyring.exists():
            return
        whole = tls.is_pair(tls.Pem(certificate, self._folder.text("key.pem")))
        if whole and tls.days_left(certificate, now=now) > tls.RENEW_DAYS:
            return
        names = tls.names_in(certificate)
        self._folder.keep_certificate(tls.make_broker(keyring.authority, sorted(names), now=now))
        log.info("broker's certificate was made again", names=sorted(names))


async def serve(home: Home, config: FleetConfig | None, environ: Mapping[str, str], notifier: ReadyNotifier) -> None:
    """Runs `synapsed broker`: this host's broker, or, if another owner keeps the broker, only the answers to hosts that
    join. Raises SynapsedError."""
    folder = BrokerFolder(home.broker)
    if home.keyring.exists() and (urls := _elsewhere(home)):
        await _only_answer(home, folder, urls, notifier)
        return
    folder.read()
    free_min = int(environ.get("SYNAPSED_BROKER_FREE_MIN") or FREE_MIN)
    settings = (config.broker if config else None) or FleetBroker()
    broker = BrokerUnit(home, settings, server=find(environ), notifier=notifier, free_min=free_min)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, broker.end)
    loop.add_signal_handler(signal.SIGHUP, broker.restart)
    answers = home.keyring.exists()
    registrar = asyncio.ensure_future(_registrar(home, [local_url(settings.listen)])) if answers else None
    try:
        await broker.run()
    finally:
        if registrar is not None:
            registrar.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await registrar


def _elsewhere(home: Home) -> tuple[str, ...]:
    """Returns the addresses of the broker if another owner keeps it; empty if the fleet has its own."""
    plan = home.keyring.members().plan
    return plan.urls if plan.account else ()


async def _only_answer(home: Home, folder: BrokerFolder, urls: Sequence[str], notifier: ReadyNotifier) -> None:
    """Answers for the fleet until SIGTERM or SIGINT."""
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)  # there is no server to start again
    with folder.held():
        registrar = asyncio.ensure_future(_registrar(home, urls))
        async with notifier.beating():
            notifier.ready(lambda: f"answers for the fleet at {', '.join(urls)}")
            await ending.wait()
        notifier.close()
        registrar.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await registrar


async def _registrar(home: Home, urls: Sequence[str]) -> None:
    """Answers hosts that join, on the host that has the fleet's keys."""
    from synapsed_fleet.registrar import Registrar

    await Registrar(home.keyring, urls, BrokerFolder(home.broker)).run()


def _environment() -> dict[str, str]:
    """Returns only the environment variables that the server needs: all else is in its configuration file."""
    kept = ("PATH", "HOME", "TZ", "TMPDIR", "LANG", "GOMAXPROCS", "GOMEMLIMIT")
    return {name: os.environ[name] for name in kept if name in os.environ}


def _store(told: Mapping[str, Any]) -> str:
    return str(told.get("store") or "store")


def _directory(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path} cannot be made: {error.strerror}", file=str(path)) from error
