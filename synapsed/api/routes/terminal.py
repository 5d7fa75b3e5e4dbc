"""`…/terminal`: a person's terminal on an agent.

Over a WebSocket binary frames are bytes both ways, the first from the server is the redraw. Text frames are JSON:
`resize` {cols, rows}, `signal` {signal}, `detach` from the client; `exit` {exit_code} and `error` {error} from the
server. On the Unix socket the same can be had as frames of our own (`shared.attach_frames`), which cost less.
"""

from typing import Annotated

from aiohttp import web
from pydantic import Field

from synapsed.api.attached_terminals import FramedTerminal, WebSocketTerminal
from synapsed.api.context import ApiContext, agent_id_of, rights_of
from synapsed.api.describe import Streamed
from synapsed.api.framed_terminal import wants_frames
from synapsed.api.operation import operation, person
from synapsed.api.query import Flag, Query, between, flag
from synapsed.api.request_models import VIEWER_MAX
from synapsed.api.websocket import is_upgrade
from synapsed.errors import InvalidRequest, NotReady, QueueFull


class TerminalQuery(Query):
    cols: Annotated[int, between(1, VIEWER_MAX)] = Field(80, description="columns of the viewer's window")
    rows: Annotated[int, between(1, VIEWER_MAX)] = Field(24, description="rows of the viewer's window")
    read_only: Flag = flag("keys are refused, and the window keeps its size")
    keep_size: Flag = flag(
        "while another terminal is attached, the window takes this one's size only when a key is typed here"
    )
    one_screen: Flag = flag(
        "the program's main and alternate screen are shown on the same one, and nothing above it is erased; "
        "not as frames where `[attach] scrollback` says that the rows above are the program's too"
    )


def routes(prefix: str) -> list[web.RouteDef]:
    return [web.get(f"{prefix}/terminal", terminal)]


@operation(
    "A person's terminal on the agent",
    Streamed("binary frames are bytes both ways, text frames JSON", websocket=True, sse=False),
    allowed=person("use a terminal"),
    errors=(NotReady, QueueFull),
)
async def terminal(request: web.Request, query: TerminalQuery, context: ApiContext) -> web.StreamResponse:
    framed = wants_frames(request)
    if not framed and not is_upgrade(request):
        raise InvalidRequest("this path is a WebSocket: send an upgrade")
    if not query.read_only:
        rights_of(request).require_right("type", "use a terminal but to look: read_only=1")
    agent_id = agent_id_of(request)
    with context.streams.opened():
        cursor = context.control.events.last_id
        attachment = await context.control.terminals.attach(
            agent_id,
            cols=query.cols,
            rows=query.rows,
            read_only=query.read_only,
            keep_size=query.keep_size,
            reach=rights_of(request).reach,
        )
        try:
            kind = FramedTerminal if framed else WebSocketTerminal
            session = kind(request, context, agent_id, cursor, attachment)
            return await session.serve(request, one_screen=query.one_screen)
        finally:
            await attachment.close()
