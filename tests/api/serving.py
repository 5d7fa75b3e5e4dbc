"""Starts `ApiServers` on loopback and on a Unix socket, with clients for both."""

import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, TCPConnector, UnixConnector

from synapsed.api.connection_limits import ConnectionLimiter, ConnectionLimits
from synapsed.api.context import ApiContext, RequestLimits
from synapsed.api.security import Security
from synapsed.api.servers import ApiServers
from synapsed.clock import SystemClock
from synapsed.config.paths import Paths
from synapsed.kernel import Parts, Running
from synapsed.parts.a2a.a2a_loading import A2aSdk
from synapsed.parts.a2a.running import A2aPart
from synapsed.parts.attention.face import FACE as ATTENTION
from synapsed.parts.elsewhere.face import FACE as ELSEWHERE
from synapsed.parts.live_screens.face import FACE as LIVE_SCREENS
from synapsed.parts.loading import config_model, faces
from synapsed.parts.openapi.face import FACE as OPENAPI
from synapsed.parts.pictures.face import FACE as PICTURES
from synapsed.parts.web.face import FACE as WEB
from synapsed_fleet.face import FACE as FLEET
from tests.fakes.clock import FakeClock, until
from tests.fakes.control import FakeControl
from tests.support.kernels import kernel_of

TOKEN = "control-token-of-the-tests"

__all__ = [
    "TOKEN",
    "Api",
    "serving",
    "sse_events",
]


@dataclass
class Api:
    """`http` talks to the main listener, `unix` to the Unix socket, `agent` to an agent's own port."""

    control: FakeControl
    servers: ApiServers
    url: str
    port: int
    path: Path
    http: ClientSession
    unix: ClientSession
    agent: ClientSession
    agent_port: int

    async def json(self, client: ClientSession, method: str, path: str, **options: Any) -> tuple[int, Any]:
        async with client.request(method, path, **options) as response:
            return response.status, await response.json()

    async def streams(self, count: int) -> None:
        """Returns when so many streams are open."""
        await until(lambda: self.servers.context.streams.open == count, f"{count} streams are open")


@asynccontextmanager
async def serving(control: FakeControl, home: Path, **limits: Any) -> AsyncGenerator[Api]:
    """`limits` are those of `RequestLimits`; an agent's port is opened for the first agent. `running`: parts by
    their names.
    `pushes`: what tells receivers of push notifications."""
    door = limits.pop("door", None)
    running: Mapping[str, Running] = limits.pop("running", {})
    pushes = limits.pop("pushes", None)
    paths = Paths.from_environ({"SYNAPSED_HOME": str(home), "SYNAPSED_A2A_HOME": str(home / "a2a"), "HOME": str(home)})
    alerts: list[str] = []
    opened = AsyncExitStack()
    kernel = kernel_of(
        alerts=alerts,
        control=control,
        store=control.store,
        clock=SystemClock(),
        config=config_model().model_validate({"hosts": {"ssh": ["false"], "name": "here"}}),
        paths=paths,
        timers=FakeClock(),
    )
    parts = Parts((PICTURES, OPENAPI, LIVE_SCREENS, WEB, ATTENTION, ELSEWHERE, FLEET), kernel, opened)
    await parts.open_wanted(agents=True)
    control.elsewhere = parts.carriers[ELSEWHERE.name]
    parts.started()
    parts._order += ["a2a", *running]
    parts._running |= {"a2a": A2aPart(A2aSdk(control.tasks, control.events, pushes)), **running}
    security = limits.pop("security", None) or Security(
        directory=control.directory,
        token=TOKEN,
        route_tokens={path: f"token-{name}" for part in running.values() for path, name in part.tokens.items()},
        bearers=parts.bearers,
    )
    context = ApiContext(
        control=control,
        faces=faces(),
        parts=parts,
        security=security,
        clock=SystemClock(),
        paths=paths,
        version="1.2.3",
        limits=RequestLimits(**limits),
        alerts=alerts,
    )
    servers = ApiServers(context, ConnectionLimiter(door or ConnectionLimits.of(1024, proxied=False)))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(opened.aclose)
        stack.push_async_callback(servers.close)
        port = int((await servers.start_main("127.0.0.1", 0)).rpartition(":")[2])
        path = home / "run" / "control.sock"
        await servers.start_unix(path)
        sock = socket.create_server(("127.0.0.1", 0))
        agent_port = await servers.open_agent_port(sock)
        if control.views:
            control.ports[agent_port] = next(iter(control.views))
        url = f"http://127.0.0.1:{port}"
        http = await stack.enter_async_context(ClientSession(url, connector=TCPConnector(limit=0)))
        unix = await stack.enter_async_context(
            ClientSession("http://localhost", connector=UnixConnector(str(path), limit=0))
        )
        agent = await stack.enter_async_context(ClientSession(f"http://127.0.0.1:{agent_port}"))
        yield Api(control, servers, url, port, path, http, unix, agent, agent_port)


async def sse_events(response: Any, count: int | None = None) -> list[dict[str, str]]:
    """The stream's events as dicts of their fields, comments left out: `count` of them, or all up to its end."""
    events: list[dict[str, str]] = []
    event: dict[str, str] = {}
    async for raw in response.content:
        line = raw.decode().rstrip("\n")
        if not line and event:
            events.append(event)
            event = {}
            if len(events) == count:
                break
        elif line and not line.startswith(":"):
            field, _, value = line.partition(": ")
            event[field] = value
    return events
