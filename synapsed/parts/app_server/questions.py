"""Keeps the questions of an app server to its clients until one of them has answered: takes the server's requests,
makes facts and replies. Pure, except the clock."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from synapsed.channels import Channel, about_of, options_of, question_of, reply_of, tool_of
from synapsed.model.facts import ChannelFact, PermissionAsked, PermissionOver
from synapsed.parts.app_server.items import script_in, words_of

ASKED_AGAIN_S = 1.0
"""Seconds after the beginning of a connection in which a question without a date counts as an earlier one."""

EDITS_MAX = 20
"""Most begun edits that are remembered; the oldest are forgotten."""

type _Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Question:
    id: Any
    """The server's own id, of any type."""
    method: str
    params: _Json


class AppQuestions:
    """The questions of a thread; `say` gets the facts. A question is identified by the server's id as text."""

    def __init__(self, name: str, channel: Channel, say: Callable[[ChannelFact], None]) -> None:
        self._name = name
        self._channel = channel
        self._say = say
        self._open: dict[str, _Question] = {}
        self._edits: dict[str, _Json] = {}
        self._since = 0.0
        self._connected = 0.0
        """Time of the connection by the monotonic clock."""

    def began(self, item: object) -> None:
        """Notes that an item of a turn began: the item describes an edit, and the question about the edit has the same
        id."""
        if isinstance(item, dict) and item.get("type") == "fileChange":
            self._edits[str(item.get("id"))] = item
            while len(self._edits) > EDITS_MAX:
                del self._edits[next(iter(self._edits))]

    @property
    def are_open(self) -> bool:
        return bool(self._open)

    def connected(self) -> None:
        """Notes a new connection: it brings the open questions again."""
        self._since, self._connected = time.time(), time.monotonic()

    def forget(self) -> None:
        """Drops the questions, because they belonged to another thread."""
        self._open.clear()

    def hear(self, id_: Any, method: str, params: _Json, *, thread: str | None) -> None:
        """Handles a request from the server. A request for which the profile has no decisions is left to the
        terminal."""
        spec, request = self._channel.decisions.get(method), str(id_)
        if spec is None or request in self._open:
            return
        if (command := words_of(params, "command")) is not None:
            params = {**params, "command": script_in(command)}
        if (item := self._edits.get(str(params.get("itemId")))) is not None:
            params = {**params, "item": item}
        told = about_of(spec, params)
        self._open[request] = _Question(id_, method, params)
        self._say(
            PermissionAsked(
                channel=self._name,
                at_ns=time.monotonic_ns(),
                session=thread,
                turn=words_of(params, "turnId"),
                tool=tool_of(spec, params),
                input={key: value for key, value in params.items() if key in ("command", "cwd", "reason")},
                request=request,
                event=method,
                told=params,
                question=question_of(spec, params),
                options=options_of(spec, params),
                command=told.command,
                diff=told.diff,
                again=self._was_asked(params),
            )
        )

    def _was_asked(self, params: _Json) -> bool:
        """Returns True if the question is older than this connection: each new client gets the open questions again."""
        at_ms = params.get("startedAtMs")
        if isinstance(at_ms, int | float):
            return at_ms < self._since * 1000
        return time.monotonic() - self._connected < ASKED_AGAIN_S

    def reply(self, request: str, option: str) -> Mapping[str, Any] | None:
        """Returns the reply to the server for the option with that key; None if the question is no longer open, or has
        no such option."""
        asked = self._open.get(request)
        spec = self._channel.decisions.get(asked.method) if asked is not None else None
        return reply_of(spec, asked.params, option) if asked is not None and spec is not None else None

    def response(self, request: str, reply: Mapping[str, Any]) -> _Json | None:
        """Returns the message that answers an open question; None if it is no longer open."""
        asked = self._open.get(request)
        return {"id": asked.id, "result": dict(reply)} if asked is not None else None

    def close(self, request: str) -> None:
        """Closes a question that another client has answered."""
        if self._open.pop(request, None) is not None:
            self._say(PermissionOver(channel=self._name, at_ns=time.monotonic_ns(), request=request))

    def close_all(self) -> None:
        """Closes all questions: the thread waits for no answer."""
        for request in list(self._open):
            self.close(request)

    def close_turn(self, turn: str) -> None:
        """Closes the questions of a turn that is over."""
        for request in [request for request, asked in self._open.items() if asked.params.get("turnId") == turn]:
            self.close(request)
