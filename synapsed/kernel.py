"""The face of a part, that is, its description for the daemon; and the kernel that the part gets.

A part is one folder, `synapsed/parts/NAME/`, and a feature; the kernel knows none by name. Its `face` module has the
object FACE, which is always loaded, and has only data; the code of the part is loaded when it is opened. Beside the
libraries (`a2a_types`, `documents`, `outgoing`, `own_python`, `shared`), kernel modules that parts use:
`aio`, `api` (what the room exports), `api.operation`, `channels` (what the room exports), `clock`, `config.config` (for
sections), `errors`, `interfaces`, `model` (all of it), `profiles.library` (what it exports of the room),
`profiles.setting_spec`, `store.database`, `store.follower`, `store.idempotency`, `store.lookup`, `tasks` (what the room
exports), `tasks.transitions`, `terminal.sandboxed` (for programs without rights).
"""

import asyncio
import importlib
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol
from zoneinfo import ZoneInfo

import structlog
from pydantic import BaseModel, Field

from synapsed.aio import Timers, whole
from synapsed.clock import Clock
from synapsed.config.config import ConfigKey
from synapsed.config.paths import Paths
from synapsed.errors import NotReady
from synapsed.interfaces import Carrier, Control, Store
from synapsed.model.figures import DaemonFigures
from synapsed.model.grants import Grant, Token, TokenKind
from synapsed.model.released_names import AutomatedKind
from synapsed.model.trace import Sampling

if TYPE_CHECKING:
    from aiohttp import web

    from synapsed.documents.writing import Texts
    from synapsed.outgoing.posting import Posting

log = structlog.stdlib.get_logger("synapsed.parts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A request that the part answers. `handler` is the name of an `operation` in the module `Face.routes_in`, loaded
    when it is first asked for; `MODULE.NAME` where that is a package; any other handler of aiohttp writes its answer
    itself, and its attribute `refusing_as` says in which form it gets errors. `method`: `*` is any. `needs`: any of
    these rights is enough for a grant; None: it is closed to all grants. `of_caller`: it reveals nothing about agents,
    so that a grant for some of them is enough. `public`: it answers every client that may connect."""

    method: str
    path: str
    handler: str
    needs: frozenset[str] | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the path, each with its description for the OpenAPI document."""
    of_caller: bool = False
    public: bool = False
    at: Literal["daemon", "agent"] = "daemon"
    """`agent`: the path is below `/agents/{agent}` at the daemon's listeners, and at the root of the agent's port."""
    on_ports: bool = False
    """It is at the root of each agent's own port, too, while that agent runs."""
    described: bool = True
    """False: it is left out of the OpenAPI document, as a specification of its own describes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedBy:
    """Conditions that open a part: at the start if one of them holds, else with the first agent, a change of the
    configuration, or the first request to one of its routes. Until then it costs its face. The daemon asks for tokens,
    bearers, carriers and listeners at the start only, so a part with one of these has to be opened then."""

    config: Callable[[Any], bool] = lambda _: False
    """Returns True if something in the configuration needs it."""
    agents: Callable[[Any], bool] = lambda _: False
    """Returns True if, with this configuration, agents need it."""
    rows: Sequence[str] = ()
    """Queries of the database; one row is enough."""
    files: Callable[[Paths], Sequence[Path]] | None = None
    """Returns its files and folders; one file is enough."""


WITH_AGENTS: Final = WantedBy(agents=lambda _: True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """Describes a part to the daemon, which reads this without loading the part's code. The function `opened` in the
    module `opens` takes a `Kernel` and returns a context manager with what runs; a part that only has verbs has no such
    module."""

    name: str
    opens: str = ""
    wanted: WantedBy | None = None
    """Conditions that open it; None: each start does."""
    sections: Mapping[str, ConfigKey] = field(default_factory=dict)
    """Sections at the top of the configuration. The released names stay; a new one begins with the part's name."""
    check: Callable[[Any], str | None] | None = None
    """Returns an error in the sections as a whole, with its place (`name.1: …`), or None. Gets the configuration."""
    agent_settings: Mapping[str, ConfigKey] = field(default_factory=dict)
    """Keys in `[agents.NAME]`."""
    guards: bool = False
    """True if `agent_settings` forbid something: an agent that has them is not started while the part is not open."""
    extends: Mapping[str, type[BaseModel]] = field(default_factory=dict)
    """Models with further keys for sections of the kernel, by the section's name."""
    routes: Sequence[Route] = ()
    """Requests that the part answers."""
    routes_in: str = ""
    adapters_in: str = ""
    """Module whose `ADAPTERS` has side channels' adapters, by their names in profiles; loaded with the first agent."""
    late: Sequence[str] = ()
    """Modules that the start leaves out: they are loaded in a thread before the first agent is adopted or started."""
    profiles_in: str = ""
    """A module whose `stand_ins(state)` returns files in the state directory that replace built-in profiles
    (`synapsed.profiles.library.StandIn`: path, and the version of synapsed since which there is that file), by the
    profiles' names. The function never raises, and blocks."""
    extras_in: str = ""
    """Module whose `missing(config)` returns the extra to install for a configured feature, or None."""
    findings_in: str = ""
    """Module whose `findings(config, state)` yields findings about files (some in the state directory) for `synapsectl
    doctor`, in the form of `synapsectl.checkup.finding`: the subject, `ok`, `note` or `wrong`, details, and the fix.
    The function blocks."""


@dataclass(slots=True, kw_only=True)
class Kernel:
    """All that a part gets. `config` is the present configuration, with the part's sections."""

    control: Control
    store: Store
    clock: Clock
    timers: Timers
    config: Any
    paths: Paths
    figures: DaemonFigures
    sampling: Sampling
    """Settings of sampling, for a part that makes traces."""
    zone: Callable[[], ZoneInfo]
    """Returns the present time zone of this machine."""
    environ: Mapping[str, str]
    """Environment of the daemon."""
    outgoing: "Posting"
    texts: "Texts"
    """The large texts that are being written anywhere."""
    alert: Callable[[str], None]
    """Reports a problem to people until `settle` withdraws it; the same words are reported once."""
    settle: Callable[[str], None]
    """Withdraws a report of `alert`."""
    all: Callable[[type], list[Any]] = field(default=lambda _: [])
    """Returns all objects of that type that the open parts provide."""

    def agent_config(self, name: str) -> Any:
        """Returns the configuration of the agent; None if it is not in the configuration."""
        return self.config.agents.get(name)


# One automatic function of a part, for administrators of the daemon.
class Automated(BaseModel):
    """State of a function: `ok`: it works; `idle`: it does nothing, and `problem` says why; `wrong`: it cannot work."""

    kind: AutomatedKind
    name: str
    state: Literal["ok", "idle", "wrong"] = "ok"
    problem: str = ""
    source: Literal["file", "verb"] = Field(default="file", description="`file`: it stands in config.toml")


class Bearers:
    """A part's knowledge of clients besides those that the kernel knows, and of further names of this host. This base
    class knows none. The kernel decides the rights of a request, and an agent's process stays that agent."""

    @property
    def served(self) -> Collection[str]:
        """Names of this host for which a proxy on this machine may bring requests."""
        return ()

    def is_name(self, name: str, address: str | None) -> bool:
        """Returns True if a client that came to the part's listener at `address` may call it by `name`."""
        return False

    def authenticate(self, request: "web.Request", token: str | None) -> Token:
        """Returns the grant of a token that the kernel does not know, or, without a token, of the request's other
        credentials. Raises Forbidden."""
        return Token() if token is None else Token(TokenKind.UNKNOWN)

    def failed(self, request: "web.Request") -> None:
        """Counts an unknown credential that came by TCP. Raises LockedOut."""

    def at_work(self, grant: Grant, request: "web.Request") -> AbstractContextManager[None]:
        """Returns a context for the work on a request of that grant: the part ends the request when the grant ends."""
        return nullcontext()


class CountedConnection(asyncio.Protocol):
    """A connection that is counted, and speaks HTTP with the daemon once it is `made`."""

    made = False

    def forget(self) -> None:
        """Stops counting the connection; does nothing if it was made."""


class PartListener(Protocol):
    async def close(self) -> None: ...


class Serving(Protocol):
    """The daemon's listeners, for a part that has some of its own."""

    @property
    def head(self) -> float:
        """Limit in seconds from a connection to the end of its first request's headers."""

    @property
    def handshakes(self) -> int:
        """Limit for the number of a listener's connections that are not made yet."""

    def bind(self, address: str, port: int) -> list[socket.socket]:
        """Returns sockets that listen: at both addresses of `localhost` if one of them is meant; `::` is for IPv4, too.
        Raises OSError."""

    def admit(self, peer: Any, own: Any, listener: str) -> CountedConnection | None:
        """Returns a connection between these two ends, counted; None if it is one too many."""

    def is_host(self, host: str) -> bool:
        """Returns True if a `Host` may mean this server."""

    def refusal(self, message: str) -> bytes:
        """Returns the body of an answer about an error in a request, in JSON."""

    def add(self, listener: PartListener) -> None:
        """Adds a listener, which is closed with the daemon's own."""


class Running:
    """A running part. It overrides only the members that it needs."""

    provides: Mapping[type, object] = {}
    """Objects for handlers of requests, by the type that they ask for."""
    tokens: Mapping[str, str] = {}
    """Files in the state directory, by the path of a route of the part: each has a token that opens only this route; a
    missing one is made."""
    bearers: Bearers | None = None
    carrier: Carrier | None = None
    """Carrier of messages to agents elsewhere. `metadata.external.via` of their tasks is the part's name."""
    addresses: Sequence[str] = ()
    """URLs of the part's listeners that serve the daemon's routes, those first by which other hosts reach them."""
    off: str = ""
    """Reason why it does nothing, for users of the part; empty if it works."""

    async def listening(self, serving: Serving) -> None:
        """Called when the main listener is up, before the daemon is announced: listeners of the part come up."""

    def started(self) -> None:
        """Called when the agents are there: the part may act from here on."""

    async def stopping(self) -> None:
        """Called before the agents go: the part does nothing from here on. May be called again."""

    def reconfigured(self) -> None:
        """Called after a change of the configuration."""

    def acted(self) -> None:
        """Called when the person has requested an action."""

    async def automated(self) -> Sequence[Automated]:
        """Returns the states of its automatic functions."""
        return ()

    async def seen(self, agent_id: str) -> None:
        """Returns once the part has handled all events so far, if it may answer the agent's questions."""


class Parts:
    """The open parts, in the order of their list, and those that wait until they are wanted. `problems` has the reason
    why a part is not open, by its name; `closed` has it by the keys with which the part guards agents."""

    def __init__(self, faces: Sequence[Face], kernel: Kernel, up: AsyncExitStack) -> None:
        """`up` gets the end of each part."""
        self._kernel = kernel
        self._up = up
        self._waiting = {face.name: face for face in faces if face.opens}
        self._order = list(self._waiting)
        self._opening = asyncio.Lock()
        self._running: dict[str, Running] = {}
        self._looked = self._started = self._ends = False
        self.problems: dict[str, str] = {}
        self.closed: dict[str, str] = {}
        for face in faces:
            self._close(face, "not open")

    async def listening(self, serving: Serving) -> None:
        for name, running in self._running.items():
            try:
                await running.listening(serving)
            except Exception:
                log.exception("a part does not listen", part=name)

    def started(self) -> None:
        self._started = True
        self._each(lambda running: running.started())

    def reconfigured(self) -> None:
        self._each(lambda running: running.reconfigured())

    def acted(self) -> None:
        self._each(lambda running: running.acted())

    async def stopping(self) -> None:
        async with self._opening:
            self._ends = True
        for name, running in reversed(self._running.items()):
            try:
                await running.stopping()
            except Exception:
                log.exception("a part does not end as it should", part=name)

    async def automated(self) -> list[Automated]:
        """Returns the states of the parts' automatic functions, and the problems of parts."""
        found: list[Automated] = []
        for name, running in self._running.items():
            try:
                found += await running.automated()
            except Exception:
                log.exception("a part has a fault", part=name)
        return found

    async def seen(self, agent_id: str) -> None:
        for name, running in self._running.items():
            try:
                await running.seen(agent_id)
            except Exception:
                log.exception("a part has a fault", part=name)

    @property
    def tokens(self) -> dict[str, str]:
        """Returns the files of tokens of all parts, by the path of the route that each opens."""
        return {path: token for running in self._running.values() for path, token in running.tokens.items()}

    @property
    def bearers(self) -> Bearers:
        """Returns the bearers of the first part that has any."""
        return next((running.bearers for running in self._running.values() if running.bearers is not None), Bearers())

    @property
    def carriers(self) -> dict[str, Carrier]:
        return {name: part.carrier for name, part in self._running.items() if part.carrier is not None}

    @property
    def addresses(self) -> list[str]:
        return [address for running in self._running.values() for address in running.addresses]

    async def check(self, name: str) -> None:
        """Opens the part if it waits. Raises NotReady if it cannot answer."""
        if name in self._waiting:
            await whole(self._open(name))
        if (problem := self.problems.get(name)) is not None:
            raise NotReady(f"the part {name} is left out: {problem}; the daemon's log says more", part=name)
        if name not in self._running:
            raise NotReady(f"the part {name} is not open", part=name)
        if off := self._running[name].off:
            raise NotReady(off, part=name)

    def all(self, kind: type) -> list[Any]:
        """Returns what the open parts provide of that type."""
        return [running.provides[kind] for running in self._running.values() if kind in running.provides]

    def provided(self, kind: type, why_not: str = "") -> Any:
        """Returns what an open part provides of that type. Raises NotReady, in the words `why_not`, if none does."""
        if found := self.all(kind):
            return found[0]
        raise NotReady(why_not or f"no part that is open has a {kind.__name__}")

    async def open_wanted(self, *, agents: bool) -> None:
        """Opens the parts that are wanted now; `agents`: there are agents, or one is about to come."""
        for face in list(self._waiting.values()):
            if await self._is_wanted(face, agents=agents):
                await whole(self._open(face.name))
        self._looked = True

    async def _is_wanted(self, face: Face, *, agents: bool) -> bool:
        if (wanted := face.wanted) is None:
            return True
        config, paths = self._kernel.config, self._kernel.paths
        try:
            if wanted.config(config) or (agents and wanted.agents(config)):
                return True
            for query in () if self._looked else wanted.rows:  # only the part itself writes them
                if await self._kernel.store.read(partial(_has_row, query)):
                    return True
            files = wanted.files(paths) if wanted.files is not None else ()
            return bool(files) and await asyncio.to_thread(lambda: any(map(_is_there, files)))
        except Exception:
            log.exception("a part is opened: whether anything wants it cannot be known", part=face.name)
            return True

    async def _open(self, name: str) -> None:
        """Opens a part that waits. One that does not open is left out, because the agents are more important."""
        async with self._opening:
            if self._ends or (face := self._waiting.get(name)) is None:
                return
            try:
                module = await asyncio.to_thread(importlib.import_module, face.opens)
                running = await self._up.enter_async_context(module.opened(self._kernel))
            except Exception as error:
                log.exception("a part is left out", part=name)
                self.problems[name] = problem = f"{type(error).__name__}: {error}"
                self._kernel.alert(f"the part {name} is left out: {problem}; the daemon's log says more")
                self._close(face, f"left out: {problem}")
            else:
                opened = {**self._running, name: running}
                self._running = {one: opened[one] for one in self._order if one in opened}
                for key in face.agent_settings:
                    self.closed.pop(key, None)
                if self._started:
                    self._tell(name, lambda running: running.started())
            del self._waiting[name]

    def _close(self, face: Face, why: str) -> None:
        if face.guards:
            self.closed |= dict.fromkeys(face.agent_settings, f"the part {face.name} is {why}")

    def _each(self, told: Callable[[Running], None]) -> None:
        for name in self._running:
            self._tell(name, told)

    def _tell(self, name: str, told: Callable[[Running], None]) -> None:
        try:
            told(self._running[name])
        except Exception:
            log.exception("a part has a fault", part=name)


@asynccontextmanager
async def open_parts(faces: Sequence[Face], kernel: Kernel, *, agents: bool = True) -> AsyncIterator[Parts]:
    """Opens the parts that are wanted, until the end; they are closed in reverse order. `agents`: there are some."""
    async with AsyncExitStack() as up:
        parts = Parts(faces, kernel, up)
        kernel.all = parts.all
        try:
            await parts.open_wanted(agents=agents)
            yield parts
        finally:
            await parts.stopping()


def _has_row(query: str, connection: sqlite3.Connection) -> bool:
    return connection.execute(query).fetchone() is not None


def _is_there(path: Path) -> bool:
    """Returns True if that is a file, or a folder with something in it, or cannot be read."""
    try:
        return any(path.iterdir()) if path.is_dir() else path.exists()
    except OSError:
        return True
