"""Delivers messages over a program's own HTTP server (`channel`), to the session that its terminal shows.

Synapsed chooses the id of a message, and that of its one part: the server treats a second one with the same ids as the
same message. Ids are in order of time, as the program's own are: it orders messages by them.
"""

import asyncio
import hashlib
import string
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import aiohttp
import structlog

from synapsed.channels import Adapter, Channel, LaunchContext, at_path, reply_of
from synapsed.errors import ChannelAway, MessageRefused
from synapsed.interfaces import FoundTurn, Reach, Submitted
from synapsed.model.facts import PermissionOver, TurnEnded, TurnFailed, TurnInterrupted, TurnOver
from synapsed.parts.session_server.channel import SessionServerChannel
from synapsed.parts.session_server.messages import how_it_ended, id_of, objects, parsed, replies_to, text_of, word
from synapsed.shared.outside_json import NotJson
from synapsed.shared.regex import regex

OWN = "Syn"
"""Mark in the ids of synapsed's messages, at a place where the program's own have random letters: one in 238,328 of
those would be mistaken for synapsed's."""

REFUSED_MAX = 500
"""Characters of the server's reason for refusing a message."""

WRITES_S = 3.0
"""Seconds that a session after an error may take, from its first `session.idle` on, to record the error."""

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_OWN_ID = regex(rf"msg_[0-9a-f]{{12}}{OWN}[0-9A-Za-z]{{11}}")
_log = structlog.get_logger(__name__)


class SessionDelivery(SessionServerChannel):
    """Implements `interfaces.Delivering`."""

    coming = False
    settles_s = 0.0
    """Zero, because a message that is sent again under its id counts as the same one."""

    def __init__(self, *, name: str, channel: Channel, context: LaunchContext) -> None:
        super().__init__(name=name, channel=channel, context=context)
        self._connected = False
        self._busy: set[str] = set()
        """Sessions in which a turn runs."""
        self._wrong: dict[str, asyncio.Task[None] | None] = {}
        """Sessions whose turn ended with an error. Such a session is reported as idle before its end is written, and
        once more afterwards; a prompt between the two reports does not run, and the second report ends it. The value is
        the task that waits for the second report."""
        self._asked: dict[str, dict[str, Any]] = {}
        """Open questions, as they came, by id."""
        self._changed: Callable[[], None] = lambda: None
        self._reached: Reach = "away"

    # --- Delivering ---

    @property
    def gone(self) -> str | None:
        """Returns None: the server starts and ends with the terminal's program."""
        return None

    def watch(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def reach(self) -> Reach:
        if not self._connected:
            return "away"
        if self._asked:
            return "asking"
        return "busy" if self._session in self._busy or self._session in self._wrong else "idle"

    def key(self, task_id: str, leg: int) -> str:
        return f"msg_{_stamp(time.time_ns() // 1_000_000)}{OWN}{_letters(f'{task_id}.{leg}', 11)}"

    async def submit(self, key: str, text: str, *, new: bool = False) -> Submitted:
        session = await self._session_for(key, new=new)
        with suppress(ChannelAway, MessageRefused):  # an older program has no such route, and shows the session anyway
            await self._post("/tui/select-session", {"sessionID": session})
        part = {"id": f"prt_{key.removeprefix('msg_')}", "type": "text", "text": text}
        await self._post(f"/session/{session}/prompt_async", {"messageID": key, "parts": [part]})
        self._busy.add(session)
        return Submitted(turn=key)

    async def find(self, key: str, turn: str | None = None) -> FoundTurn | None:
        session = self._of(key)
        if session is None:
            return None
        try:
            messages = await self._messages(session, key)
            status = at_path(await self._get("/session/status"), session)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ChannelAway(f"its server does not answer: {error}", sent=True) from None
        if not any(id_of(message) == key for message in messages):
            return None
        if at_path(status, "type") not in (None, "idle"):
            return FoundTurn(turn=key)
        replies = replies_to(messages, key, *self._continued.get(key, ()))
        return FoundTurn(turn=key, over=self._end_by(key, replies[-1]) if replies else None)

    def _end_by(self, key: str, last: dict[str, Any]) -> TurnOver:
        common: dict[str, Any] = {"channel": self.name, "at_ns": time.monotonic_ns(), "turn": key}
        if how_it_ended(last) == "answered":
            return TurnEnded(**common, answer=text_of(last))
        if (failure := self._failure(at_path(last, "info.error"))) is not None:
            return TurnFailed(**common, code=failure[0], message=failure[1])
        return TurnInterrupted(**common)

    async def interrupt(self, turn: str | None) -> bool:
        session = self._session if turn is None else self._of(turn)
        if session is None:
            return False
        with suppress(MessageRefused):  # a person has removed that session, for example
            return await self._post(f"/session/{session}/abort", {}) is True
        return False

    async def answer(self, request: str, option: str) -> bool:
        asked, spec = self._asked.get(request), self._channel.decisions.get("permission.asked")
        if asked is None or spec is None or (reply := reply_of(spec, asked, option)) is None:
            return False
        try:
            await self._post(f"/permission/{request}/reply", reply)
        except MessageRefused:
            return False
        self._close(request)
        return True

    # --- the connection ---

    async def _session_for(self, key: str, *, new: bool) -> str:
        """Returns the session that the message goes to: always the same for the same key, so that the next daemon finds
        the message there."""
        if self._given is not None and self._given[0] == key:
            return self._given[1]
        session = self._session
        opening = self._given is None and bool(self._context.chosen_by)  # the terminal is about to show the chosen one
        if session is None or (new and not opening):
            session = await self._new_session()
        self._given = (key, session)
        await asyncio.to_thread(self._remember)
        return session

    def _of(self, turn: str) -> str | None:
        """Returns the session of a message, the present session if it is not known."""
        if self._given is not None and self._given[0] == turn:
            return self._given[1]
        return self._open.get(turn, self._session)

    async def _new_session(self) -> str:
        made = await self._post("/session", {})
        if (session := word(made, "id")) is None:
            raise MessageRefused("its server made a session without an id")
        self._session = session
        return session

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        """Returns the server's answer. Raises ChannelAway, MessageRefused."""
        if self._client is None:
            raise ChannelAway("its server is not connected", sent=False)
        try:
            async with self._client.post(f"{self._base}{path}", json=body) as response:
                text = (await self._body(response)).decode("utf-8", "replace")
        except aiohttp.ClientConnectorError as error:
            raise ChannelAway(f"its server cannot be reached: {error}", sent=False) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ChannelAway(f"its server does not answer: {type(error).__name__} {error}", sent=True) from None
        if response.status >= 500:
            raise ChannelAway(f"its server answers {response.status}: {text[:REFUSED_MAX]}", sent=True)
        if not response.ok:
            raise MessageRefused(f"its server answers {response.status}: {text[:REFUSED_MAX]}")
        try:
            return await parsed(text) if text else None
        except NotJson:
            return None

    async def _listen(self) -> None:
        self.coming = True
        try:
            await super()._listen()
        finally:
            self.coming = self._connected = False
            self._tell()

    async def _catch_up(self) -> None:
        await super()._catch_up()
        found = await self._get("/session/status")
        statuses = found if isinstance(found, dict) else {}
        self._wrong.clear()
        self._busy = {str(id_) for id_, status in statuses.items() if at_path(status, "type") not in (None, "idle")}
        asked = {str(each.get("id")): each for each in objects(await self._get("/permission"))}
        for request in [request for request in self._asked if request not in asked]:
            self._close(request)
        for request, each in asked.items():
            if request not in self._asked:
                self._hear_permission(each, again=True)
        self._connected = True
        self._tell()

    async def _hear(self, event: Mapping[str, Any]) -> None:
        given = event.get("properties")
        given = given if isinstance(given, dict) else {}
        session = word(given, "sessionID")
        match event.get("type"):
            case "session.status" if session is not None:
                idle = at_path(given, "status.type") in (None, "idle")
                (self._busy.discard if idle else self._busy.add)(session)
            case "session.idle" if session is not None:
                self._busy.discard(session)
                self._write_down(session)
            case "session.error" if session is not None:
                self._wrong.setdefault(session, None)
            case "session.compacted" if session is not None:  # the error was a too long conversation: the turn goes on
                self._wrong.pop(session, None)
            case "permission.replied":
                self._close(word(given, "requestID") or word(given, "permissionID") or "")
        await super()._hear(event)
        self._tell()

    def _write_down(self, session: str) -> None:
        """Handles a report of an idle session: after an error it is the second report, or a second one follows."""
        if session not in self._wrong:
            return
        if (waits := self._wrong[session]) is not None:
            waits.cancel()
            del self._wrong[session]
        else:
            self._wrong[session] = self._looks.spawn(self._written(session), name=f"{self._context.agent_id} writes")

    async def _written(self, session: str) -> None:
        """Waits for the second report, which may never come."""
        await asyncio.sleep(WRITES_S)
        self._wrong.pop(session, None)
        self._tell()

    def _hear_permission(self, given: dict[str, Any], *, again: bool = False) -> None:
        if (request := word(given, "id")) is not None:
            self._asked[request] = given
        super()._hear_permission(given, again=again)

    def _close(self, request: str) -> None:
        if self._asked.pop(request, None) is not None:
            self._say(PermissionOver(channel=self.name, at_ns=time.monotonic_ns(), request=request))

    def _tell(self) -> None:
        if (reach := self.reach()) != self._reached:
            self._reached = reach
            self._changed()

    def _is_own(self, message: str) -> bool | None:
        return _OWN_ID.fullmatch(message) is not None


def _stamp(wall_ms: int) -> str:
    """Returns a time in the format of the program's ids."""
    return f"{(wall_ms << 12) & ((1 << 48) - 1):012x}"


def _letters(text: str, count: int) -> str:
    """Returns `count` letters and digits that are always the same for the same text."""
    number, letters = int.from_bytes(hashlib.sha256(text.encode()).digest()), ""
    for _ in range(count):
        number, rest = divmod(number, len(_DIGITS))
        letters += _DIGITS[rest]
    return letters


ADAPTERS = {
    "session-server": Adapter(SessionServerChannel, SessionDelivery, is_there=lambda context: context.port is not None)
}
"""The adapters by their names in profiles."""
