"""One agent elsewhere that speaks the first A2A: JSON-RPC with `tasks/send`, `tasks/get`, `tasks/cancel`, and
`tasks/sendSubscribe` if its card says that it streams. There is no version in its card: `discovery` asks.

The sender of a task gives its id, here the key of our task. So a message whose answer was lost is searched by that id.
If the agent does not know it, that proves nothing, since such servers keep their tasks in memory: it is not sent again.
After a broken stream the task is requested, because hardly any such server lets a client subscribe again.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import count
from typing import Any, Final

import httpx

from synapsed.a2a_types.partial_answer import ArtifactPiece, Snapshot
from synapsed.a2a_types.snapshots import TEXT_SHOWN
from synapsed.documents.reading import read
from synapsed.errors import RemoteRefused, Unreachable
from synapsed.interfaces import headers_of
from synapsed.model.task import Message
from synapsed.outgoing import OutgoingConfig
from synapsed.parts.elsewhere.credentials import Credentials
from synapsed.parts.elsewhere.discovery import look_again
from synapsed.parts.elsewhere.external_agent import ExternalAgent
from synapsed.parts.elsewhere.first_a2a_json import event_of, params_of, task_of
from synapsed.parts.elsewhere.loop_thread import LoopThread, beside, streaming_beside
from synapsed.parts.elsewhere.remote_protocol import (
    CALL_S,
    CONNECT_S,
    EVENT_STREAM,
    LONGEST_PAUSE_S,
    SEND_S,
    SILENCE_S,
    Found,
    http_client,
    of_status,
    unreachable,
)
from synapsed.shared.sse_parser import SseParser, SseTooLarge

NAMES: Final = {-32001: "TASK_NOT_FOUND", -32002: "TaskNotCancelableError", -32004: "UnsupportedOperationError"}
"""Names of A2A's later versions for the refusals of an agent, by JSON-RPC's code."""

NOT_ITS_OWN: Final = frozenset({401, 403, 429, 502, 503, 504})
"""Status codes for which the body does not matter: wrong credentials, or an agent that is not ready."""


class FirstRemote:
    """Connection to an agent that speaks the first A2A; see `AgentConnection`."""

    own = False
    names_tasks = True
    streaming = False
    longest_pause_s = LONGEST_PAUSE_S

    def __init__(
        self, agent: ExternalAgent, credentials: Credentials, outgoing: OutgoingConfig, thread: LoopThread
    ) -> None:
        self.thread = thread
        self._agent = agent
        self._credentials = credentials
        self._outgoing = outgoing
        self._url = agent.endpoint
        self._http = http_client(credentials, outgoing)
        self._ids = count(1)

    @property
    def streams_sends(self) -> bool:
        return self._agent.streaming

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
        params = params_of(message, metadata, task_id or key, context_id)
        told = await self._call("tasks/send", params, asked=True, timeout=SEND_S, headers=headers_of(metadata))
        try:
            return task_of(told)
        except ValueError as error:
            raise self._invalid(error, asked=True) from error

    @streaming_beside
    async def stream(
        self, message: Message, *, metadata: dict[str, Any], task_id: str = "", context_id: str = "", key: str = ""
    ) -> AsyncGenerator[Snapshot | ArtifactPiece]:
        params = params_of(message, metadata, task_id or key, context_id)
        async with aclosing(self._events("tasks/sendSubscribe", params, headers_of(metadata))) as heard:
            async for told in heard:
                yield told

    @beside
    async def get(self, task_id: str) -> Snapshot:
        try:
            return task_of(await self._call("tasks/get", {"id": task_id}))
        except ValueError as error:
            raise self._invalid(error, asked=False) from error

    @beside
    async def cancel(self, task_id: str) -> Snapshot:
        try:
            return task_of(await self._call("tasks/cancel", {"id": task_id}))
        except ValueError as error:
            raise self._invalid(error, asked=False) from error

    @beside
    async def find(self, message_id: str, key: str = "") -> Snapshot | None:
        """Looks for the task of a lost answer; never returns None (see above)."""
        return await self.get(key)

    @streaming_beside
    async def follow(self, task_id: str) -> AsyncGenerator[Snapshot | ArtifactPiece]:
        """Yields the task as it is now, and nothing more."""
        yield await self.get(task_id)

    # --- requests ---

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}

    async def _call(
        self,
        method: str,
        params: dict[str, Any],
        *,
        asked: bool = False,
        timeout: float = CALL_S,
        headers: dict[str, str] | None = None,
    ) -> Any:
        """Calls a method and returns its result. `asked`: see `unreachable`. Raises RemoteRefused, Unreachable."""
        limits = httpx.Timeout(timeout, connect=CONNECT_S)
        request = self._request(method, params)
        try:
            async with self._http.stream("POST", self._url, json=request, headers=headers, timeout=limits) as response:
                return await self._result(response, await response.aread(), asked=asked)
        except httpx.HTTPError as error:
            raise unreachable(self._url, error, asked=asked) from error

    async def _result(self, response: httpx.Response, raw: bytes, *, asked: bool) -> Any:
        """Returns the result in an answer. Refusals come with a status of their own, too; a proxy before such an agent
        refuses in a JSON of its own."""
        if response.status_code in NOT_ITS_OWN:
            later = response.headers.get("Retry-After")
            raise of_status(self._url, response.status_code, asked=asked, later=later)
        try:
            told = await read(raw)
        except ValueError as error:
            if not response.is_success:
                said = self._credentials.covered(raw.decode("utf-8", "replace").strip())[:TEXT_SHOWN]
                raise of_status(self._url, response.status_code, asked=asked, said=said) from error
            raise self._invalid(error, asked=asked) from error
        self._check(told)
        if not response.is_success or not isinstance(told, dict) or "result" not in told:
            raise of_status(self._url, response.status_code, asked=asked)
        return told["result"]

    def _check(self, told: Any) -> None:
        """Raises RemoteRefused if the answer is an error of JSON-RPC."""
        error = told.get("error") if isinstance(told, dict) else None
        if isinstance(error, dict):
            code = error.get("code")
            raise RemoteRefused(
                f"{self._url} says: {self._credentials.covered(str(error.get('message') or code))[:TEXT_SHOWN]}",
                remote=NAMES.get(code, f"RPC_{code}") if isinstance(code, int) else "INVALID",
            )

    async def _events(
        self, method: str, params: dict[str, Any], headers: dict[str, str]
    ) -> AsyncGenerator[Snapshot | ArtifactPiece]:
        """Yields the updates of the task from a stream; if the answer is no stream, the task that it has."""
        limits, parser = httpx.Timeout(SILENCE_S, connect=CONNECT_S), SseParser()
        body, accept = self._request(method, params), {**headers, "Accept": EVENT_STREAM}
        try:
            async with self._http.stream("POST", self._url, json=body, headers=accept, timeout=limits) as response:
                if not response.headers.get("Content-Type", "").startswith(EVENT_STREAM):
                    told = await self._result(response, await response.aread(), asked=True)
                    yield task_of(told)
                    return
                async for piece in response.aiter_bytes():
                    for event in parser.feed(piece):
                        yield await self._heard(event.data, str(params["id"]))
        except httpx.HTTPError as error:
            raise unreachable(self._url, error, asked=True) from error
        except (ValueError, SseTooLarge) as error:
            raise self._invalid(error, asked=True) from error

    async def _heard(self, data: str, task_id: str) -> Snapshot | ArtifactPiece:
        """Returns the content of an event. Raises ValueError, RemoteRefused."""
        told = await read(data.encode())
        self._check(told)
        result = told.get("result") if isinstance(told, dict) else None
        return event_of(result, task_id)

    def _invalid(self, error: Exception, *, asked: bool) -> Unreachable | RemoteRefused:
        why = f"{self._url} answers what cannot be read: {str(error)[:TEXT_SHOWN]}"
        return Unreachable(why, sent=True) if asked else RemoteRefused(why, remote="INVALID")
