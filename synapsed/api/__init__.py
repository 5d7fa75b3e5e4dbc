"""HTTP, SSE and WebSocket in front of the supervisor's `Control` (docs/http-api.md, docs/security.md).

There is one application for the main listener and the Unix socket, and a second one, with an agent's routes at the
root, for the ports of all agents. A request passes, in this order:

1. `problems`, which turns every exception of the steps below into the one form of error;
2. `gate`, which checks `Host`, `Origin`, content type and length (`security`), then the owner of the connection
   (`peer_lookup`, `rights`);
3. the route (`routes/`, one file per resource), which asks `Control` and writes the answer.

Handlers of parts, the optional modules of the daemon, are `operation`s (`synapsed.api.operation`) and use the names
that this module lists. A grant gives a client some of the person's rights.
"""

from synapsed.api.body import parse_json, read_body
from synapsed.api.caching import document
from synapsed.api.context import (
    CONTEXT,
    ApiContext,
    agent_id_of,
    agent_of,
    origin_of,
    port_of,
    read_task,
    rights_of,
    to_the_end,
)
from synapsed.api.describe import Description, description_of, route_of
from synapsed.api.gate import base_url
from synapsed.api.memory_reservation import others_first, release, reserve_page, reserve_task, with_room
from synapsed.api.problems import refusal_headers, refusing_as
from synapsed.api.query import Flag, Query, Resumed, Text, Time, between, flag, one_of, some_of, text_like
from synapsed.api.request_models import WAIT_MAX, SendBody, Whole
from synapsed.api.response_models import ErrorAnswer, InputProvided, ShownTask
from synapsed.api.rights import Rights, Standing
from synapsed.api.routes import tasks as task_routes
from synapsed.api.security import JSON_TYPES, is_public, on_unix
from synapsed.api.sending import SEND_ERRORS, TaskAnswer, answered, key_of, send, sent_before
from synapsed.api.slow_readers import respond
from synapsed.api.sse import SseFrame, serve
from synapsed.api.task_stream import frames_until_end, frames_until_settled
from synapsed.api.websocket import is_upgrade, push

__all__ = [
    "CONTEXT",
    "JSON_TYPES",
    "SEND_ERRORS",
    "WAIT_MAX",
    "ApiContext",
    "Description",
    "ErrorAnswer",
    "Flag",
    "InputProvided",
    "Query",
    "Resumed",
    "Rights",
    "SendBody",
    "ShownTask",
    "SseFrame",
    "Standing",
    "TaskAnswer",
    "Text",
    "Time",
    "Whole",
    "agent_id_of",
    "agent_of",
    "answered",
    "base_url",
    "between",
    "description_of",
    "document",
    "flag",
    "frames_until_end",
    "frames_until_settled",
    "is_public",
    "is_upgrade",
    "key_of",
    "on_unix",
    "one_of",
    "origin_of",
    "others_first",
    "parse_json",
    "port_of",
    "push",
    "read_body",
    "read_task",
    "refusal_headers",
    "refusing_as",
    "release",
    "reserve_page",
    "reserve_task",
    "respond",
    "rights_of",
    "route_of",
    "send",
    "sent_before",
    "serve",
    "some_of",
    "task_routes",
    "text_like",
    "to_the_end",
    "with_room",
]
