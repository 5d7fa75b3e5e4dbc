"""Sends the messages and replies of requests: decides their sender, checks the caller's rights, and refuses messages
that cannot be typed.

All requests with a message for an agent's mailbox come through this module. It also decides the trace that a message
belongs to (`model.trace`).

The message's own trace (`metadata.traceparent`) counts first, then the headers of the request, which a traced client
sends along; else an agent's message is part of the task that the agent works on. Malformed values are ignored, as the
recommendation requires.
"""

from collections.abc import Awaitable, Coroutine
from dataclasses import replace
from typing import Any

from aiohttp import web

from synapsed.api.context import CONTEXT, agent_id_of, origin_of, rights_of, to_the_end
from synapsed.api.memory_reservation import others_first, release_body, with_room
from synapsed.api.response_models import TaskAnswer
from synapsed.api.rights import Rights
from synapsed.errors import (
    AmbiguousAddress,
    Forbidden,
    HopLimit,
    InvalidRequest,
    NotReady,
    NotWaiting,
    QueueFull,
    SynapsedError,
    TaskNotFound,
    UnknownAgent,
    WouldDeadlock,
)
from synapsed.interfaces import Control, Directory, SendRequest, Tasks
from synapsed.model.agent import AgentView
from synapsed.model.sender import KEY, SENDER_TASK, Sender, Tier
from synapsed.model.task import Task
from synapsed.model.trace import TRACEPARENT, TRACESTATE, TraceContext, context_of, parent_of
from synapsed.tasks.replies import IN_REPLY_TO
from synapsed.tasks.sender_verdict import Caller, settle_sender

__all__ = [
    "INTERRUPTS",
    "KEY_HEADER",
    "OF_REPLIES",
    "REPLY_ERRORS",
    "SEND_ERRORS",
    "TaskAnswer",
    "answered",
    "expect_reply",
    "key_of",
    "reply",
    "send",
    "signed",
    "traced",
]

SEND_ERRORS: tuple[type[SynapsedError], ...] = (TaskNotFound, NotWaiting, QueueFull, NotReady, WouldDeadlock, HopLimit)
"""Errors of a send besides those of the request itself."""


INTERRUPTS = 5
"""Priority that cancels the turn that runs."""
OF_REPLIES = (IN_REPLY_TO, SENDER_TASK)
"""Keys of metadata by which a message, or the answer to it, completes an agent's task."""
KEY_HEADER = "Idempotency-Key"
KEY_MAX = 256

REPLY_ERRORS: tuple[type[SynapsedError], ...] = (TaskNotFound, NotWaiting, AmbiguousAddress)
"""Errors of a reply besides those of the request itself."""


def signed(request: SendRequest, rights: Rights, directory: Directory) -> SendRequest:
    """Returns the request with its sender, by the evidence. Raises the errors of `settle_sender`."""

    def find(address: str) -> AgentView:
        return directory.view(directory.resolve(address))

    visitor = None if rights.grant is None else f"{rights.grant.kind}-{rights.grant.id}"
    caller = Caller(person=rights.person, agent_id=rights.agent_id, remote=rights.remote, visitor=visitor)
    sender = settle_sender(caller, request.metadata.get(KEY), find)
    metadata = {key: value for key, value in request.metadata.items() if key != KEY}
    metadata |= {} if sender is None else {KEY: sender.metadata()}
    # A message of another host's agent comes from a process of the person's, but counts as an agent's.
    of_agent = not rights.person or (sender is not None and sender.tier is Tier.EXTERNAL and "@" in sender.id)
    return replace(request, metadata=metadata, of_agent=of_agent)


async def send(request: web.Request, control: Control, agent_id: str, wanted: SendRequest) -> Task:
    """Gives a message to the agent's mailbox. Raises InvalidRequest for a blank message; Forbidden if an agent tries to
    answer a prompt or to give another agent's program a command, or claims to be another sender."""
    rights = rights_of(request)
    rights.require_send()
    await others_first(request)
    if wanted.message.blank:
        raise InvalidRequest("message.parts: the message is blank", field="message.parts")
    if any(wanted.metadata.get(key) for key in OF_REPLIES):
        rights.require_whole("speak in what agents ask each other")
    if wanted.metadata.get("new_conversation"):
        rights.require_person("begin a new conversation of an agent")
        rights.require_right("answer", "begin a new conversation of an agent")
    if wanted.command:
        rights.require_person("give a program its own commands")
        rights.require_right("type", "give a program its own commands")
    if wanted.task_id is not None:
        rights.require("answer_prompts", "answer prompts", of=agent_id)
        rights.require_right("answer", "answer prompts")
    if wanted.task_id is not None and rights.scope is not None:
        wanted = replace(wanted, task_id=await control.tasks.find_id(wanted.task_id, agent_id, rights.scope))
    wanted = replace(wanted, key=key_of(request), where=wanted.where or origin_of(request).where)
    wanted = signed(wanted, rights, control.directory)
    if wanted.priority >= INTERRUPTS:
        rights.require_right("answer", f"interrupt what an agent does, which priority {INTERRUPTS} would")
    if wanted.priority >= INTERRUPTS and wanted.of_agent:
        _require_interruption(rights, agent_id)
    wanted = await traced(request, control.directory, control.tasks, wanted)
    # A client that leaves in the middle must not leave a message half accepted.
    return await _taken(request, control.tasks.send(agent_id, wanted))


def addressed(request: web.Request) -> object:
    """Raises UnknownAgent for an address that means no agent, unless the request has a key: then the message may have
    come before, which `send_to` looks up first."""
    try:
        return agent_id_of(request)
    except UnknownAgent:
        if KEY_HEADER not in request.headers:
            raise
        return None


async def send_to(request: web.Request, control: Control, wanted: SendRequest) -> Task:
    """Does the same as `send` for the agent of the path. A message that was accepted under its key before is answered
    with its task even if the address means no agent now: the host is not known yet, or the agent was removed."""
    try:
        agent_id = agent_id_of(request)
    except UnknownAgent:
        if (known := await sent_before(request, control, request.match_info.get("agent", ""), wanted)) is None:
            raise
        return known
    return await send(request, control, agent_id, wanted)


async def sent_before(request: web.Request, control: Control, address: str, wanted: SendRequest) -> Task | None:
    """Returns the task of the message that came to `address` under this key before; None if none did. Raises
    InvalidRequest if the key stands for another message."""
    rights = rights_of(request)
    rights.require_send()
    wanted = signed(replace(wanted, key=key_of(request)), rights, control.directory)
    return await control.tasks.sent_before(address, wanted)


def _require_interruption(rights: Rights, agent_id: str) -> None:
    """Raises Forbidden unless the agent that sends may stop others: priority 5 cancels the turn that runs, of any
    sender, with or without a message."""
    if "stop_agents" not in rights.granted or rights.agent_id in (None, agent_id):
        raise Forbidden(
            f"an agent may not interrupt what {agent_id} does, which priority {INTERRUPTS} would: send with priority "
            f"{INTERRUPTS - 1} at most, or ask a person for 'rights = [\"stop_agents\"]' in your profile",
            agent=agent_id,
            rights=rights.standing.value,
        )


def key_of(request: web.Request) -> str | None:
    """Returns `Idempotency-Key`: requests of one sender with the same key are the same task. Raises InvalidRequest."""
    key = request.headers.get(KEY_HEADER)
    if key is not None and not (0 < len(key) <= KEY_MAX and key.isascii() and key.isprintable()):
        raise InvalidRequest(f"{KEY_HEADER}: must be 1 to {KEY_MAX} printable ASCII characters", field=KEY_HEADER)
    return key


async def answered(request: web.Request, control: Control, act: Awaitable[Task]) -> TaskAnswer:
    """Returns the answer with the task that `act` makes, once there is room for it."""
    return TaskAnswer.of(rights_of(request).shown(await with_room(request, control, act)))


async def expect_reply(
    request: web.Request, control: Control, agent_id: str, wanted: SendRequest, limit: float | None
) -> Task:
    """Makes a task of the agent's own that a reply will complete. Raises Forbidden if another agent tries to."""
    rights = rights_of(request)
    if wanted.message.blank:
        raise InvalidRequest("message.parts: the message is blank", field="message.parts")
    if rights.agent_id not in (None, agent_id):
        raise Forbidden("an agent may not make tasks that belong to other agents", agent=agent_id)
    return await _taken(
        request, control.tasks.expect_reply(agent_id, _with_sender(agent_id, wanted, rights, control.directory), limit)
    )


async def reply(request: web.Request, control: Control, agent_id: str, wanted: SendRequest) -> Task:
    """Sends the reply of the path's agent. Raises Forbidden if another agent tries to."""
    rights = rights_of(request)
    if wanted.message.blank:
        raise InvalidRequest("message.parts: the message is blank", field="message.parts")
    return await _taken(
        request, control.tasks.reply(agent_id, _with_sender(agent_id, wanted, rights, control.directory))
    )


async def _taken(request: web.Request, act: Coroutine[Any, Any, Task]) -> Task:
    """Performs `act`, and releases the body's room once the message is in its mailbox: the answer may come late."""
    await others_first(request)
    try:
        return await to_the_end(act)
    finally:
        release_body(request)


def _with_sender(agent_id: str, wanted: SendRequest, rights: Rights, directory: Directory) -> SendRequest:
    """Returns the request with the agent as its sender, by evidence or by claim."""
    return signed(replace(wanted, metadata={**wanted.metadata, KEY: agent_id}), rights, directory)


async def traced(request: web.Request, directory: Directory, tasks: Tasks, wanted: SendRequest) -> SendRequest:
    """Returns the request with the place in a trace to which its task belongs, if there is one."""
    if parent_of(wanted.metadata) is not None:
        return wanted
    place = TraceContext.parse(request.headers.get(TRACEPARENT), ",".join(request.headers.getall(TRACESTATE, ())))
    if place is None and (share := request.app[CONTEXT].sampling.share) is not None:
        place = await _place_of(directory, tasks, Sender.of(wanted.metadata), share)
    if place is None:
        return wanted
    return replace(wanted, metadata={**wanted.metadata, **place.metadata()})


async def _place_of(directory: Directory, tasks: Tasks, sender: Sender | None, share: float) -> TraceContext | None:
    """Returns the place of the task that the agent works on now."""
    if sender is None:
        return None
    try:
        task_id = directory.view(sender.id).task
        task = await tasks.find(task_id) if task_id is not None else None
    except SynapsedError:  # it is no agent of ours, or was until just now
        return None
    return None if task is None else context_of(task.id, task.metadata, share=share)
