"""Messages and updates between hosts in A2A's shapes: written and read. Does no I/O.

The module is imported when the first message is written or read (`a2a_types`). A message is A2A's SendMessage as it
goes over HTTP (`tenant` is the agent), an update A2A's Task. All that is read came from another host: it is checked,
and of its metadata only the keys are taken that another host may set. A long document takes seconds: call all of this
in a thread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format

import synapsed.a2a_types.free_json  # noqa: F401 - it changes protobuf
from synapsed.a2a_types.a2a_errors import A2aError
from synapsed.a2a_types.convert import message_dict, message_from, struct_dict, task_dict
from synapsed.a2a_types.extensions import taken
from synapsed.a2a_types.partial_answer import Snapshot
from synapsed.a2a_types.snapshots import snapshot_from
from synapsed.errors import InvalidRequest, RemoteRefused, TooLarge
from synapsed.interfaces import ADDRESS_MAX, SIZE, KeptFile, SendRequest, is_kept
from synapsed.model.external import KEY as EXTERNAL
from synapsed.model.external import host_of
from synapsed.model.sender import KEY as SENDER
from synapsed.model.sender import Sender, Tier
from synapsed.model.task import NEW_CONVERSATION, FilePart, Message, Part, Task, TextPart
from synapsed.tasks import COMMAND, DIRECTION, HOPS, IN_REPLY_TO, REPLY, REPLY_TO, RESPONSE_EXPECTED
from synapsed_fleet.envelope import BadEnvelope, encoded
from synapsed_fleet.fleet_rows import KEY as FLEET
from synapsed_fleet.fleet_rows import FleetOrigin
from synapsed_fleet.names import ANY
from synapsed_fleet.parcel import FILES, WHOLE_MAX, ParcelRef, files_of
from synapsed_fleet.receipts import GONE, PERSON, round_of

URGENT: Final = 5
_LOCAL: Final = frozenset(
    {DIRECTION, IN_REPLY_TO, REPLY, REPLY_TO, RESPONSE_EXPECTED, COMMAND, NEW_CONVERSATION, EXTERNAL, FLEET, SENDER}
)
"""Keys of metadata that have a meaning only on the host on which they were set."""


@dataclass(frozen=True, slots=True)
class Addressed:
    """A message that another host has sent, and its receiver: an agent, or `any:CLASS`."""

    to: str
    request: SendRequest


def message_body(task: Task, *, own_name: str, files: Sequence[Mapping[str, Any]] = ()) -> bytes:
    """Returns the body of a task's message; `files`: references to the files that go with it. Raises TooLarge."""
    to = task.agent_id if task.agent_id.startswith(ANY) else (host_of(task.agent_id) or ("",))[0]
    there = task.metadata.get(EXTERNAL)
    said_by = there.get("from") if isinstance(there, dict) else None
    metadata = {key: value for key, value in task.metadata.items() if key not in _LOCAL}
    if said_by:
        metadata[SENDER] = {"sender_id": f"{said_by}@{own_name}"}
    metadata["synapsed"] = {"priority": task.priority}
    document: dict[str, Any] = {
        "tenant": to,
        "message": message_dict(task.message, metadata=metadata),
        "configuration": {"returnImmediately": True},
        **({FILES: list(files)} if files else {}),
    }
    if (round_ := round_of(task)) > 1:
        document["round"] = round_
    body = encoded(document)
    if len(body) > WHOLE_MAX:
        raise TooLarge(
            f"the message has {len(body)} bytes as it goes to another host, {WHOLE_MAX} are allowed: give a file's "
            "address in place of the file",
            limit=WHOLE_MAX,
        )
    return body


def read_message(document: Mapping[str, Any], origin: FleetOrigin, *, persons: frozenset[str]) -> Addressed:
    """Reads a message. Raises BadEnvelope if it is no message, InvalidRequest if it cannot be taken. A person of
    another host counts as a person here only if this host says so (`persons`); an agent is `name@host`, whatever the
    message says."""
    try:
        asked = json_format.ParseDict(dict(document), pb.SendMessageRequest(), ignore_unknown_fields=True)
    except (json_format.ParseError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise BadEnvelope("it is no A2A message") from error
    if not asked.tenant or len(asked.tenant) > ADDRESS_MAX:
        raise BadEnvelope("it names no agent")
    try:
        message = _arrived(message_from(asked.message), document, origin.src)
        told = {**(message.metadata or {}), **struct_dict(asked.metadata)}
        priority, metadata = taken(told)
    except A2aError as error:
        raise InvalidRequest(str(error)) from error
    sender = _sender(metadata.get(SENDER), origin.src)
    person = sender is None and origin.src in persons
    metadata = {key: value for key, value in metadata.items() if key not in _LOCAL}
    hops = metadata.get(HOPS)
    if not isinstance(hops, int) or isinstance(hops, bool) or hops < 0:
        metadata.pop(HOPS, None)
    if not person:
        sender = sender or Sender(id=f"{PERSON}@{origin.src}", tier=Tier.EXTERNAL)
        metadata[SENDER] = sender.metadata()
        if priority >= URGENT:
            raise InvalidRequest(f"a message from another host has priority {URGENT - 1} at most", field="priority")
    request = SendRequest(
        message=message.model_copy(update={"metadata": None}),
        priority=priority,
        metadata=metadata,
        key=f"{origin.src}/{origin.id}",
        of_agent=not person,
        marks={FLEET: origin._asdict()},
    )
    return Addressed(asked.tenant, request)


def _arrived(message: Message, document: Mapping[str, Any], src: str) -> Message:
    """Returns the message with its files under their addresses here. Raises InvalidRequest, BadEnvelope."""
    refs = {ref.id: ref for ref in files_of(document)}
    return message.model_copy(update={"parts": [_here(part, refs, src) for part in message.parts]})


def _here(part: Part, refs: Mapping[str, ParcelRef], src: str) -> Part:
    """Returns the part with its file under its address here. Raises InvalidRequest for a file that is not among
    `refs`."""
    if not isinstance(part, FilePart) or not is_kept(part):
        return part
    kept = KeptFile.of(part.file.uri)
    ref = refs.get(kept.id) if kept is not None and kept.host is None else None
    if ref is None:
        raise InvalidRequest("a file of the message did not come with it", field="message.parts")
    file = part.file.model_copy(update={"uri": KeptFile(src, ref.id).uri})
    return part.model_copy(update={"file": file, "metadata": {**(part.metadata or {}), SIZE: ref.size}})


def _sender(claimed: Any, src: str) -> Sender | None:
    """Returns the agent of the host `src` that sent the message; None for its person. A claimed host behind an `@` is
    replaced by `src`: a host cannot claim agents of another."""
    named = Sender.of({SENDER: claimed}) if claimed is not None else None
    if named is None:
        return None
    name = named.id.partition("@")[0][:80] or "agent"
    return Sender(id=f"{name}@{src}", tier=Tier.EXTERNAL)


# --- updates ---------------------------------------------------------------------------------------------------------


def update_body(task: Task, files: Sequence[Mapping[str, Any]] = ()) -> bytes:
    """Returns the body of an update: the task as it is here, with references to the files of its answer. If the answer
    does not fit, the body has its beginning (`truncated`)."""
    attached = {FILES: list(files)} if files else {}
    body = encoded({"task": _shown(task), **attached})
    if len(body) <= WHOLE_MAX:
        return body
    room = WHOLE_MAX // 8
    cut = task.model_copy(
        update={
            "artifacts": [
                artifact.model_copy(update={"parts": [part.model_copy(update={"text": part.text[:room]})]})
                for artifact in task.artifacts
                if artifact.artifact_id == "answer"
                for part in artifact.parts[:1]
                if part.type == "text"
            ],
            "truncated": True,
        }
    )
    return encoded({"task": _shown(cut)})


def _shown(task: Task) -> dict[str, Any]:
    told = task.model_copy(update={"metadata": {}})
    return task_dict(told, history_length=0)


def read_update(document: Mapping[str, Any], src: str) -> Snapshot | None:
    """Returns the update of host `src` about the task, with the files under their addresses here; None if the task is
    not known there any more. Raises BadEnvelope."""
    if document == GONE:
        return None
    task = document.get("task")
    try:
        if isinstance(task, dict):
            return _with_files(snapshot_from(task), document, src)
    except RemoteRefused as error:
        raise BadEnvelope("it is no A2A task") from error
    raise BadEnvelope("it has no task")


def _with_files(there: Snapshot, document: Mapping[str, Any], src: str) -> Snapshot:
    refs = {ref.id: ref for ref in files_of(document)}
    artifacts = [
        artifact.model_copy(update={"parts": [_here_or_named(part, refs, src) for part in artifact.parts]})
        for artifact in there.artifacts or ()
    ]
    return replace(there, artifacts=artifacts) if there.artifacts else there


def _here_or_named(part: Part, refs: Mapping[str, ParcelRef], src: str) -> Part:
    """Returns the part with its file under its address here, or a text with the name of a file that did not come: the
    rest of the answer is worth more than that file."""
    try:
        return _here(part, refs, src)
    except InvalidRequest:
        name = (part.file.name or "a file") if isinstance(part, FilePart) else "a file"
        return TextPart(text=f"({name}: {src} has it no more)")
