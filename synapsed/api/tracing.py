"""Which trace a message belongs to, as its sender says or as the evidence has it (`model.trace`).

What the message itself says (`metadata.traceparent`, where A2A's clients put it) counts first, then the headers of the
request, which a client that is traced sends along; else an agent's message is part of the task that the agent works on.
What is not well-formed is passed over, as the recommendation wants it.
"""

from dataclasses import replace

from aiohttp import web

from synapsed.api.context import CONTEXT
from synapsed.errors import SynapsedError
from synapsed.interfaces import Directory, SendRequest, Tasks
from synapsed.model.sender import Sender
from synapsed.model.trace import TRACEPARENT, TRACESTATE, TraceContext, context_of, parent_of


async def traced(request: web.Request, directory: Directory, tasks: Tasks, wanted: SendRequest) -> SendRequest:
    """The request with the place in a trace to which its task belongs, where there is one."""
    if parent_of(wanted.metadata) is not None:
        return wanted
    place = TraceContext.parse(request.headers.get(TRACEPARENT), ",".join(request.headers.getall(TRACESTATE, ())))
    if place is None and (share := request.app[CONTEXT].traced) is not None:
        place = await _place_of(directory, tasks, Sender.of(wanted.metadata), share)
    if place is None:
        return wanted
    return replace(wanted, metadata={**wanted.metadata, **place.metadata()})


async def _place_of(directory: Directory, tasks: Tasks, sender: Sender | None, share: float) -> TraceContext | None:
    """The task that the agent works on now."""
    if sender is None:
        return None
    try:
        task_id = directory.view(sender.id).task
        task = await tasks.find(task_id) if task_id is not None else None
    except SynapsedError:  # it is no agent of ours, or was until just now
        return None
    return None if task is None else context_of(task.id, task.metadata, share=share)
