"""The face of a part: its own words about itself, and the kernel that it is given.

A part is one folder, `synapsed/parts/NAME/`, and a feature; the kernel knows none by name. Its `face` module has the
object FACE, which is always loaded, and of data only; what the part does is loaded when it is opened. Beside the
libraries (`a2a_types`, `documents`, `outgoing`, `own_python`, `shared`), kernel modules that parts use: `aio`, `api`
(what the room exports), `api.operation`, `channels` (what the room exports), `clock`, `config.api_section`,
`config.config` (for sections), `errors`, `interfaces`, `model` (all of it), `store.database`, `store.follower`,
`store.idempotency`, `store.lookup`, `tasks` (what the room exports), `tasks.live_answer`, `tasks.transitions`.
"""

import asyncio
import importlib
import socket
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol
from zoneinfo import ZoneInfo

import structlog
from pydantic import BaseModel, Field

from synapsed.aio import Timers
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
    itself, and `refusing_as` at it says in which form it is told errors. `method`: `*` is any. `needs`: any of these
    rights is enough for a grant; None: it is closed to all. `of_caller`: it tells nothing of agents, so that a grant
    for some of them is enough. `public`: whoever may connect is answered."""

    method: str
    path: str
    handler: str
    needs: frozenset[str] | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The parameters of the path: what each is, for the OpenAPI document."""
    of_caller: bool = False
    public: bool = False
    at: Literal["daemon", "agent"] = "daemon"
    """`agent`: the path is below `/agents/{agent}` at the daemon's listeners, and at the root of the agent's port."""
    on_ports: bool = False
    """It is at the root of each agent's own port, too, while that agent runs."""
    described: bool = True
    """False: it is left out of the OpenAPI document, as a specification of its own describes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """`opened` of the module `opens` takes a `Kernel` and gives a context manager with what runs. A part that has verbs
    only opens nothing."""

    name: str
    opens: str = ""
    sections: Mapping[str, ConfigKey] = field(default_factory=dict)
    """At the top of the configuration. The names that were released stay; a new one begins with the part's name."""
    check: Callable[[Any], str | None] | None = None
    """Says what is wrong in the sections as a whole, and where (`name.1: …`); None if nothing is. Gets the
    configuration."""
    agent_settings: Mapping[str, ConfigKey] = field(default_factory=dict)
    """Keys in `[agents.NAME]`."""
    extends: Mapping[str, type[BaseModel]] = field(default_factory=dict)
    """By the name of a section of the kernel's, a model of it that has keys more."""
    routes: Sequence[Route] = ()
    """Requests that the part answers."""
    routes_in: str = ""
    adapters_in: str = ""
    """A module whose `ADAPTERS` has adapters of programs' side channels, by their names in profiles; it is loaded when
    the daemon begins."""
    profiles_in: str = ""
    """A module whose `stand_ins(state)` gives, of what is in the state directory, files in place of built-in profiles
    (`synapsed.profiles.library.StandIn`: path, and the version of synapsed since which there is that file), by their
    names. It never raises. Blocks."""
    extras_in: str = ""
    """A module whose `missing(config)` says what has to be installed for what is configured, or returns None."""
    findings_in: str = ""
    """A module whose `findings(config, state)` yields what `synapsectl doctor` tells of files, those in the state
    directory among them, as `synapsectl.checkup.finding` has it: what was looked at, `ok`, `note` or `wrong`, details,
    and what mends it. Blocks."""


@dataclass(slots=True, kw_only=True)
class Kernel:
    """All that a part is given. `config` is what counts now, with the part's sections."""

    control: Control
    store: Store
    clock: Clock
    timers: Timers
    config: Any
    paths: Paths
    figures: DaemonFigures
    sampling: Sampling
    """For whoever makes traces to set."""
    zone: Callable[[], ZoneInfo]
    """Returns the time zone of this machine as it is now."""
    environ: Mapping[str, str]
    """The daemon's own."""
    outgoing: "Posting"
    texts: "Texts"
    """The large texts that are being written, to whomever."""
    alert: Callable[[str], None]
    """Tells what a person has to mend, from then on; the same words once."""
    settle: Callable[[str], None]
    """Takes back what was told by `alert`."""
    all: Callable[[type], list[Any]] = field(default=lambda _: [])
    """Returns what the parts that are open by now provide of that type."""

    def agent_config(self, name: str) -> Any:
        """Returns what is configured for the agent; None if it is not in the configuration."""
        return self.config.agents.get(name)


# Of one thing that a part does by itself, for those who look after the daemon.
class Automated(BaseModel):
    """`ok`: it does what it is there for; `idle`: it does nothing, and `problem` says why; `wrong`: it cannot."""

    kind: AutomatedKind
    name: str
    state: Literal["ok", "idle", "wrong"] = "ok"
    problem: str = ""
    source: Literal["file", "verb"] = Field(default="file", description="`file`: it stands in config.toml")


class Bearers:
    """A part's knowledge of who is let in beside those whom the kernel knows, and under which names of this host.
    This one knows nobody. What a request may do is the kernel's to say, and an agent's process stays that agent."""

    @property
    def served(self) -> Collection[str]:
        """Names of this host for which a proxy on this machine may bring requests."""
        return ()

    def is_name(self, name: str, address: str | None) -> bool:
        """Returns whether a listener of the part's may be called so by who has come to it at `address`."""
        return False

    def authenticate(self, request: "web.Request", token: str | None) -> Token:
        """Returns what a token that the kernel does not know is good for, or, where none came, what else the request
        carries. Raises Forbidden."""
        return Token() if token is None else Token(TokenKind.UNKNOWN)

    def failed(self, request: "web.Request") -> None:
        """Counts that what nobody has came by TCP. Raises LockedOut."""

    def at_work(self, grant: Grant, request: "web.Request") -> AbstractContextManager[None]:
        """A request of that grant is worked on: the part ends it when the grant is good no more."""
        return nullcontext()


class CountedConnection(asyncio.Protocol):
    """A connection that is counted, and speaks HTTP with the daemon once it is `made`."""

    made = False

    def forget(self) -> None:
        """Counts it no more; nothing happens if it was made."""


class PartListener(Protocol):
    async def close(self) -> None: ...


class Serving(Protocol):
    """The daemon's listeners, for a part that has some of its own."""

    @property
    def head(self) -> float:
        """Seconds from a connection to the end of its first request's headers."""
        ...

    @property
    def handshakes(self) -> int:
        """At most so many connections of a listener may be not made yet."""
        ...

    def bind(self, address: str, port: int) -> list[socket.socket]:
        """Returns sockets that listen: at both addresses of `localhost` where one is meant, at `::` for IPv4, too.
        Raises OSError."""
        ...

    def admit(self, peer: Any, own: Any, listener: str) -> CountedConnection | None:
        """Returns a connection between these two ends, counted; None where it is one too many."""
        ...

    def is_host(self, host: str) -> bool:
        """Returns whether a `Host` may mean this server."""
        ...

    def refusal(self, message: str) -> bytes:
        """Returns the body of an answer that says what is wrong with a request, in JSON."""
        ...

    def add(self, listener: PartListener) -> None:
        """It is closed with the daemon's own."""
        ...


class Running:
    """A part at work. What it does not need of this it leaves as it is."""

    provides: Mapping[type, object] = {}
    """By its type: what handlers of requests get that ask for that."""
    tokens: Mapping[str, str] = {}
    """By the path of a route of the part, a file in the state directory with a token that opens this route and nothing
    else; it is made if it is not there."""
    bearers: Bearers | None = None
    carrier: Carrier | None = None
    """What brings messages to agents elsewhere. `metadata.external.via` of their tasks is the part's name."""
    addresses: Sequence[str] = ()
    """URLs at which listeners of the part's serve what the daemon serves, those first that others reach by them."""
    off: str = ""
    """Why it does nothing, in words for whoever asks it for something; empty if it works."""

    async def listening(self, serving: Serving) -> None:
        """The main listener is there, and nobody is told yet that the daemon is: listeners of the part's come up."""

    def started(self) -> None:
        """The agents are there: it may act from here on."""

    async def stopping(self) -> None:
        """The agents are about to go: it does nothing from here on. May be called again."""

    def reconfigured(self) -> None:
        """Another configuration counts."""

    def acted(self) -> None:
        """The person has asked for something to be done."""

    async def automated(self) -> Sequence[Automated]:
        """Returns what it does by itself."""
        return ()

    async def seen(self, agent_id: str) -> None:
        """Returns once it has seen to all that has happened by now, if it may answer what the agent asks."""


class Parts:
    """The parts that are open, in the order of their list. `problems` has by name why one is not."""

    def __init__(self) -> None:
        self._running: dict[str, Running] = {}
        self.problems: dict[str, str] = {}

    async def listening(self, serving: Serving) -> None:
        for name, running in self._running.items():
            try:
                await running.listening(serving)
            except Exception:
                log.exception("a part does not listen", part=name)

    def started(self) -> None:
        self._each(lambda running: running.started())

    def reconfigured(self) -> None:
        self._each(lambda running: running.reconfigured())

    def acted(self) -> None:
        self._each(lambda running: running.acted())

    async def stopping(self) -> None:
        for name, running in reversed(self._running.items()):
            try:
                await running.stopping()
            except Exception:
                log.exception("a part does not end as it should", part=name)

    async def automated(self) -> list[Automated]:
        """Returns what parts do by themselves, and what keeps it from its work."""
        found: list[Automated] = []
        for name, running in self._running.items():
            try:
                found += await running.automated()
            except Exception:
                log.exception("a part has a fault", part=name)
        return found

    async def seen(self, agent_id: str) -> None:
        """Returns once what the agent still asks is for a person."""
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
        """Returns those of the first part that knows some."""
        return next((running.bearers for running in self._running.values() if running.bearers is not None), Bearers())

    @property
    def carriers(self) -> dict[str, Carrier]:
        """Returns those of all parts, by their names."""
        return {name: part.carrier for name, part in self._running.items() if part.carrier is not None}

    @property
    def addresses(self) -> list[str]:
        return [address for running in self._running.values() for address in running.addresses]

    def check(self, name: str) -> None:
        """Raises NotReady if the part cannot answer."""
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

    async def open(self, face: Face, kernel: Kernel, up: AsyncExitStack) -> None:
        """A part that does not open is left out: agents are worth more."""
        try:
            module = importlib.import_module(face.opens)
            self._running[face.name] = await up.enter_async_context(module.opened(kernel))
        except Exception as error:
            log.exception("a part is left out", part=face.name)
            self.problems[face.name] = f"{type(error).__name__}: {error}"

    def _each(self, told: Callable[[Running], None]) -> None:
        for name, running in self._running.items():
            try:
                told(running)
            except Exception:
                log.exception("a part has a fault", part=name)


@asynccontextmanager
async def open_parts(faces: Sequence[Face], kernel: Kernel) -> AsyncIterator[Parts]:
    """All of them, until the end; they are closed in the opposite order."""
    parts = Parts()
    kernel.all = parts.all
    async with AsyncExitStack() as up:
        for face in (face for face in faces if face.opens):
            await parts.open(face, kernel, up)
        try:
            yield parts
        finally:
            await parts.stopping()
