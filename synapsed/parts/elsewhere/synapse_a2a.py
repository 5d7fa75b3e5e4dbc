"""One agent elsewhere that speaks as synapse-a2a does, and no A2A: `POST /tasks/send`, `GET /tasks/{id}`, and optional
paths (`sendSubscribe`, `…/subscribe`, `…/input`, `…/cancel`). A missing path is noticed by its answer: after 404, 405
or 501 nothing has happened there.

Nothing is sent twice. A message whose answer was lost is searched in the agent's list of tasks, while it may still
become one. If the list does not have it, that proves nothing: such lists live in memory, and some servers take a
message long after its sender has gone. The error then says that it is not known.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

import httpx

from synapsed.a2a_types.partial_answer import ArtifactPiece, Snapshot
from synapsed.a2a_types.snapshots import TEXT_SHOWN
from synapsed.documents.reading import read
from synapsed.errors import RemoteRefused, Unreachable
from synapsed.model.task import INTERRUPTED_STATES, TERMINAL_STATES, Message, TaskState
from synapsed.outgoing import OutgoingConfig
from synapsed.outgoing.retrying import retry_after
from synapsed.parts.elsewhere.credentials import Credentials
from synapsed.parts.elsewhere.discovery import MISSING, look_again
from synapsed.parts.elsewhere.external_agent import ExternalAgent
from synapsed.parts.elsewhere.loop_thread import LoopThread, beside, streaming_beside
from synapsed.parts.elsewhere.remote_protocol import (
    CALL_S,
    CONNECT_S,
    EVENT_STREAM,
    KEY_HEADER,
    LONGEST_PAUSE_S,
    SEND_S,
    SILENCE_S,
    Found,
    http_client,
    of_status,
    unreachable,
)
from synapsed.parts.elsewhere.synapse_a2a_json import body_of, event_of, made_of, snapshot_of
from synapsed.shared.sse_parser import SseEvent, SseParser, SseTooLarge

LATE_S: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 16.0)
"""Seconds to pause before each search for a message whose answer was lost, 47 s together: synapse-a2a waits up to 30 s
for its program to start."""
POLL_S: Final = 3.0
"""Seconds between two requests for a task of an agent that has no streams."""
RETRY_S: Final = 1.0
"""Seconds until a busy agent that names no time is asked again."""
_YES: Final = frozenset({"approve", "allow", "ok", "y", "yes", "はい"})
_NO: Final = frozenset({"deny", "reject", "n", "no", "いいえ"})
_SETTLED: Final = TERMINAL_STATES | INTERRUPTED_STATES


class _Missing(RemoteRefused):
    """Error for a path that the agent does not have; nothing was done."""


class SynapseA2aConnection:
    """Connection to an agent that speaks as synapse-a2a does; see `AgentConnection`."""

    own = False
    """The agent is not on a host of the user's own."""
    names_tasks = False
    """The agent gives its tasks ids of its own."""

    def __init__(
        self, agent: ExternalAgent, credentials: Credentials, outgoing: OutgoingConfig, thread: LoopThread
    ) -> None:
        self.thread = thread
        self._agent = agent
        self._credentials = credentials
        self._outgoing = outgoing
        self._base = agent.endpoint.rstrip("/")
        self._http = http_client(credentials, outgoing)
        self._follows = agent.streaming
        self._streams = agent.streaming

    @property
    def streaming(self) -> bool:
        return self._follows

    @property
    def streams_sends(self) -> bool:
        return self._streams

    @property
    def longest_pause_s(self) -> float:
        return LONGEST_PAUSE_S if self._follows else POLL_S

    async def wait_up(self) -> None:
        """Returns at once: there is no tunnel to wait for."""

    @beside
    async def close(self) -> None:
        await self._http.aclose()

    @beside
    async def look(self) -> Found:
        return await look_again(self._agent, self._credentials, self._outgoing)

    @beside
    async def send(
        self, message: Message, *, metadata: dict[str, Any], task_id: str = "", context_id: str = "", key: str = ""
    ) -> Snapshot:
        if task_id:
            return await self._answer(task_id, message.text, metadata)
        body, priority = body_of(message, metadata), _priority(metadata)
        headers = {KEY_HEADER: key or message.message_id}
        url = f"{self._base}/tasks/send"
        if priority > 1:
            with suppress(_Missing):
                return await self._post_task(f"{url}-priority", body, headers, params={"priority": priority})
        return await self._post_task(url, body, headers)

    @streaming_beside
    async def stream(
        self, message: Message, *, metadata: dict[str, Any], task_id: str = "", context_id: str = "", key: str = ""
    ) -> AsyncGenerator[Snapshot | ArtifactPiece]:
        if task_id or _priority(metadata) > 1:
            yield await self.send(message, metadata=metadata, task_id=task_id, key=key)
            return
        try:
            async with aclosing(self._send_subscribe(message, metadata, key)) as updates:
                async for update in updates:
                    yield update
        except _Missing:
            self._streams = False
            yield await self.send(message, metadata=metadata, key=key)

    async def _send_subscribe(
        self, message: Message, metadata: dict[str, Any], key: str
    ) -> AsyncGenerator[Snapshot | ArtifactPiece]:
        url, known = f"{self._base}/tasks/sendSubscribe", ""
        headers = {KEY_HEADER: key or message.message_id, "Accept": f"{EVENT_STREAM}, application/json"}
        body = body_of(message, metadata)
        async with aclosing(self._events("POST", url, "", json=body, headers=headers)) as updates:
            async for update in updates:
                if not (known := update.id if isinstance(update, Snapshot) else update.task_id):
                    break
                yield _without_final_state(update)
                if _settled(update):
                    return
        if not known:
            raise Unreachable(f"{url} does not say which task it tells of", sent=True)

    @beside
    async def get(self, task_id: str) -> Snapshot:
        url = self._task(task_id)
        try:
            return snapshot_of(await self._json_of("GET", url))
        except _Missing as error:
            raise RemoteRefused(f"{url} says: there is no such task", remote="TASK_NOT_FOUND") from error
        except ValueError as error:
            raise RemoteRefused(f"{url} answers what is no task: {error}", remote="INVALID") from error

    @beside
    async def cancel(self, task_id: str) -> Snapshot:
        await self._json_of("POST", f"{self._task(task_id)}/cancel", json={})
        return await self.get(task_id)

    @beside
    async def find(self, message_id: str, key: str = "") -> Snapshot | None:
        """Searches the agent's list of tasks for a message whose answer was lost. Raises RemoteRefused (LOST) if the
        list never has it: that does not prove that the message was not accepted, so None is never returned."""
        for pause in LATE_S:
            await asyncio.sleep(pause)
            answer = await self._json_of("GET", f"{self._base}/tasks")
            try:
                found = _found(answer, message_id)
            except ValueError as error:
                raise RemoteRefused(f"{self._base}/tasks lists what is no task: {error}", remote="INVALID") from error
            if found is not None:
                return found
        raise RemoteRefused(f"{self._base}/tasks does not list it, which may change at any time", remote="LOST")

    @streaming_beside
    async def follow(self, task_id: str) -> AsyncGenerator[Snapshot | ArtifactPiece]:
        url = f"{self._task(task_id)}/subscribe"
        try:
            async with aclosing(self._events("GET", url, task_id, headers={"Accept": EVENT_STREAM})) as updates:
                async for update in updates:
                    yield _without_final_state(update)
                    if _settled(update):
                        return
        except _Missing:
            self._follows = False

    # --- requests ---

    def _said(self, raw: bytes) -> str:
        """Returns the beginning of the agent's words about a request that it refuses."""
        return self._credentials.covered(raw.decode("utf-8", "replace").strip())[:TEXT_SHOWN]

    def _task(self, task_id: str) -> str:
        return f"{self._base}/tasks/{quote(task_id, safe='')}"

    async def _answer(self, task_id: str, text: str, metadata: dict[str, Any]) -> Snapshot:
        """Answers a question of a task by `…/input`. synapse-a2a itself has no such path: it only takes a yes or a no
        to a permission."""
        task = self._task(task_id)
        given = metadata.get("synapsed")
        asked = given.get("prompt_id") if isinstance(given, dict) else None
        body = {"input": text, **({"prompt_id": asked} if asked else {})}
        try:
            await self._json_of("POST", f"{task}/input", json=body, asked=True)
        except _Missing:
            word = text.strip().lower()
            verb = "approve" if word in _YES else "deny" if word in _NO else None
            if verb is None:
                raise RemoteRefused(
                    f"{task} can be answered with 'approve' or 'deny' only", remote="UNSUPPORTED"
                ) from None
            await self._json_of("POST", f"{task}/permission/{verb}", json={}, asked=True)
        return await self.get(task_id)

    async def _post_task(self, url: str, body: Any, headers: dict[str, str], **options: Any) -> Snapshot:
        answer = await self._json_of("POST", url, json=body, headers=headers, asked=True, timeout=SEND_S, **options)
        try:
            return snapshot_of(answer)
        except ValueError as error:
            raise Unreachable(f"{url} has taken it and answers what is no task: {error}", sent=True) from error

    async def _json_of(
        self, method: str, url: str, *, asked: bool = False, timeout: float = CALL_S, **options: Any
    ) -> Any:
        """Returns the JSON of an answer. `asked`: see `unreachable`. Raises _Missing, RemoteRefused, Unreachable."""
        limits = httpx.Timeout(timeout, connect=CONNECT_S)
        try:
            async with self._http.stream(method, url, timeout=limits, **options) as response:
                raw = await response.aread()
        except httpx.HTTPError as error:
            raise unreachable(url, error, asked=asked) from error
        if not response.is_success:
            raise _refused(url, response, self._said(raw), asked=asked)
        try:
            return await read(raw)
        except ValueError as error:
            if asked:
                raise Unreachable(f"{url} has taken it and answers what is no JSON", sent=True) from error
            raise RemoteRefused(f"{url} answers what is no JSON", remote="INVALID") from error

    async def _events(
        self, method: str, url: str, task_id: str, **options: Any
    ) -> AsyncGenerator[Snapshot | ArtifactPiece]:
        """Yields the updates of the task from a stream; if the answer is no stream, the task that it has. Raises the
        same errors as `_json_of`."""
        asked, parser = method == "POST", SseParser()
        limits = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
        try:
            async with self._http.stream(method, url, timeout=limits, **options) as response:
                if not response.is_success:
                    raise _refused(url, response, self._said(await response.aread()), asked=asked)
                if not response.headers.get("Content-Type", "").startswith(EVENT_STREAM):
                    yield snapshot_of(await read(await response.aread()))
                    return
                async for piece in response.aiter_bytes():
                    for event in parser.feed(piece):
                        update = await _heard(event, task_id)
                        if update is not None:
                            task_id = update.id if isinstance(update, Snapshot) else update.task_id
                            yield update
        except httpx.HTTPError as error:
            raise unreachable(url, error, asked=asked) from error
        except (ValueError, SseTooLarge) as error:
            why = f"{url} answers what cannot be read: {str(error)[:TEXT_SHOWN]}"
            raise (Unreachable(why, sent=True) if asked else RemoteRefused(why, remote="INVALID")) from error


async def _heard(event: SseEvent, task_id: str) -> Snapshot | ArtifactPiece | None:
    """Returns the content of an event."""
    data = await read(event.data.encode())
    return event_of(event.event, data, task_id)


def _found(answer: Any, message_id: str) -> Snapshot | None:
    """Returns the task that was made of this message, from a list of tasks."""
    tasks = answer.get("tasks") if isinstance(answer, dict) else answer
    listed = tasks if isinstance(tasks, list) else []
    return next((snapshot_of(task) for task in listed if made_of(task, message_id)), None)


def _settled(update: Snapshot | ArtifactPiece) -> bool:
    """Returns True if the task is at its end or waits for an answer: nothing useful follows, even if the stream stays
    open."""
    return isinstance(update, Snapshot) and update.state in _SETTLED


def _without_final_state(update: Snapshot | ArtifactPiece) -> Snapshot | ArtifactPiece:
    """Returns a final status as WORKING, and everything else unchanged: in a stream, a status comes without the task's
    artifacts, so the caller has to read the whole task afterwards."""
    if isinstance(update, Snapshot) and update.artifacts is None and _settled(update):
        return replace(update, state=TaskState.WORKING)
    return update


def _priority(metadata: dict[str, Any]) -> int:
    given = metadata.get("synapsed")
    priority = given.get("priority") if isinstance(given, dict) else None
    return priority if isinstance(priority, int) else 1


def _refused(url: str, response: httpx.Response, said: str, *, asked: bool) -> Unreachable | RemoteRefused:
    status = response.status_code
    if status in MISSING:
        return _Missing(f"{url} has nothing (HTTP {status}): {said}", remote="UNSUPPORTED", status=status)
    later = response.headers.get("Retry-After")
    if status == 429 or (status in (409, 503) and later):
        wait = retry_after(later, now=time.time())
        after = RETRY_S if wait is None else wait
        return Unreachable(f"{url} takes it later (HTTP {status}): {said}", sent=False, busy=True, after=after)
    return of_status(url, status, asked=asked, said=said)
