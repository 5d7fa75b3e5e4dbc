"""Collects the messages of a program in one turn (the last is the answer), and decides how the turn ended, by the
response to its prompt. Pure.

The protocol does not say which text is an answer: every text comes as a chunk of a message, warnings and notices too.
In the known programs, a notice is marked as informational, or has no `messageId` while the program's own messages have
one.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from synapsed.model.facts import TurnEnded, TurnFailed, TurnInterrupted, TurnOver
from synapsed.pipes.acp_reports import CHANNEL
from synapsed.profiles.screen_spec import ErrorPattern
from synapsed.shared.regex import regex

MESSAGES_MAX = 1000
"""Largest number of messages kept of a turn; the text of further ones is added to the last."""


class _Message:
    """A message. `name` is its id; if it has none, a name that `TurnSpeech` makes."""

    __slots__ = ("_marks", "_said", "_size", "has_id", "name")

    def __init__(self, name: str, *, has_id: bool) -> None:
        self.name = name
        self.has_id = has_id
        self._said = io.StringIO()
        self._size = 0
        self._marks: list[tuple[int, int]] = []
        """Offsets of the message's pieces in the program's output, each with the number of characters before it."""

    def add(self, text: str, place: int | None) -> None:
        if place is not None:
            self._marks.append((place, self._size))
        self._size += self._said.write(text)

    @property
    def text(self) -> str:
        return self._said.getvalue()

    def cut(self, begin: int) -> bool:
        """Forgets the text before the offset `begin`. Returns True if some text is left."""
        kept = next((size for place, size in self._marks if place >= begin), self._size)
        rest, self._said, self._marks = self.text[kept:], io.StringIO(), []
        self._size = self._said.write(rest)
        return bool(rest)


@dataclass(slots=True)
class TurnSpeech:
    """The text of one turn. `ids`: the program gives its messages ids, and text without an id is a notice."""

    ids: bool = False
    messages: list[_Message] = field(default_factory=list)
    missed: bool = False
    """True if earlier text is gone."""
    kept: bool = True
    """True if the text is kept, because a caller may need it later."""
    _names: int = 0
    """Number of messages without an id so far."""
    _heard_at: int = -1
    """Offset of the program's last action: a text, a thought, a plan or a tool call."""
    _stirred_at: int = -1
    """Offset of the program's last report of any kind about a turn; this may be the repeated user's message."""
    _begin: int | None = None
    """Offset at which the turn begins; None while it is not known."""
    _broken: bool = False
    """True after a report other than text: the next text without an id is another message."""

    @property
    def heard(self) -> bool:
        """Returns True if the program did something in the turn, or may have done (output is missing)."""
        return self.missed or self._heard_at >= (self._begin or 0)

    @property
    def begun(self) -> bool:
        """Returns True if the program has reported some of the turn, and so has begun it; or if output is missing."""
        return self.missed or self._stirred_at >= (self._begin or 0)

    def stir(self, place: int) -> None:
        """Notes a report of the program about a turn, at that offset of the output."""
        self._stirred_at = max(self._stirred_at, place)

    def hear(self, place: int) -> None:
        """Notes an action of the program, at that offset of the output."""
        self.stir(place)
        self._heard_at = max(self._heard_at, place)

    def cut(self, begin: int) -> None:
        """Sets the offset at which the turn's message was given: earlier text is no answer."""
        self._begin = begin
        self.messages = [message for message in self.messages if message.cut(begin)]

    def gap(self) -> "TurnSpeech":
        """Returns the speech of the same turn from now on, after output is gone."""
        return TurnSpeech(ids=self.ids, missed=True, kept=self.kept, _begin=self._begin)

    def goes_on(self, place: int) -> bool:
        """Returns True if the program has reported something since that offset."""
        return self._stirred_at >= place

    def chunk(self, update: dict[str, Any], place: int) -> tuple[str, str] | None:
        """Handles an `agent_message_chunk`. Returns the message's name and the piece of text; None for a notice."""
        self.hear(place)
        content = update.get("content")
        text = content.get("text") if isinstance(content, dict) and content.get("type") == "text" else None
        if not isinstance(text, str) or not text or _informational(update) or _informational(content):
            return None
        given = update.get("messageId")
        has_id = isinstance(given, str) and bool(given)
        self.ids = self.ids or has_id
        message = self._message(given if has_id else None)
        if self.kept:
            message.add(text, place if self._begin is None else None)
        return None if self.ids and not has_id else (message.name, text)

    def _message(self, given: str | None) -> _Message:
        if given is not None:
            found = next((message for message in reversed(self.messages) if message.name == given), None)
        else:
            last = self.messages[-1] if self.messages else None
            found = last if last is not None and not last.has_id and not self._broken else None
        if found is None and len(self.messages) >= MESSAGES_MAX:
            found = self.messages[-1]
        if found is None:
            self._names += 1
            found = _Message(given or f"m{self._names}", has_id=given is not None)
            self.messages.append(found)
        self._broken = False
        return found

    def interlude(self, place: int) -> None:
        """Notes a tool call or a plan between two texts."""
        self.hear(place)
        self._broken = True

    @property
    def own(self) -> list[_Message]:
        """Returns the program's own messages, without notices, in order."""
        return [message for message in self.messages if message.text.strip() and (message.has_id or not self.ids)]

    @property
    def notices(self) -> str:
        """Returns the text of the notices: messages without an id, if the program's own have one."""
        return "\n".join(message.text for message in self.messages if self.ids and not message.has_id)

    @property
    def answer(self) -> str | None:
        return self.own[-1].text if self.own else None


def _informational(told: Any) -> bool:
    """Returns True if `_meta` marks the update or content as informational."""
    meta = told.get("_meta") if isinstance(told, dict) else None
    if not isinstance(meta, dict):
        return False
    kinds = [meta.get("kind"), *(each.get("kind") for each in meta.values() if isinstance(each, dict))]
    return "informational" in kinds


MESSAGE_MAX = 2000
"""Largest number of characters kept of a failure's message."""

_CODES = {401: "AUTH_REQUIRED", 403: "AUTH_REQUIRED", -32000: "AUTH_REQUIRED", 429: "RATE_LIMITED"}
_LIMIT = regex(r"\b429\b|rate.?limit|too many requests|quota", re.IGNORECASE)
_SIGN_IN = regex(r"\b40[13]\b|unauthori[sz]ed|authenticat|not logged in|api key", re.IGNORECASE)
_FULL = regex(r"context (?:length|window)|too long|maximum context", re.IGNORECASE)


def outcome(
    answer: dict[str, Any], speech: TurnSpeech, failures: Sequence[ErrorPattern], *, turn: str, at_ns: int
) -> TurnOver:
    """Returns the end of the turn with the id `turn`, by the response `answer` to its prompt. `failures`: the profile's
    patterns of texts that are errors."""

    def failed(code: str, words: str) -> TurnFailed:
        return TurnFailed(channel=CHANNEL, at_ns=at_ns, turn=turn, code=code, message=words[:MESSAGE_MAX])

    error, result = answer.get("error"), answer.get("result")
    if isinstance(error, dict):
        return failed(*_failure(error))
    stop = result.get("stopReason") if isinstance(result, dict) else None
    if stop == "cancelled":
        return TurnInterrupted(channel=CHANNEL, at_ns=at_ns, turn=turn)
    if stop != "end_turn":
        return failed("CONTEXT_FULL" if stop == "max_tokens" else "MODEL_ERROR", f"the program stopped: {stop}")
    said = speech.answer or ""
    for pattern in failures:
        if pattern.pattern.search(said or speech.notices):
            if pattern.code == "INTERRUPTED":
                return TurnInterrupted(channel=CHANNEL, at_ns=at_ns, turn=turn)
            return failed(pattern.code, said or speech.notices)
    # A program that reports tokens, but none for a turn whose messages have no id, has not asked its model.
    if isinstance(result, dict) and result.get("usage", 0) is None and not any(one.has_id for one in speech.messages):
        words = (said or speech.notices).strip()
        if words:
            return failed(code_of(words), words)
    return TurnEnded(channel=CHANNEL, at_ns=at_ns, turn=turn, answer=said)


def _failure(error: dict[str, Any]) -> tuple[str, str]:
    data = error.get("data")
    details = [str(error.get("message") or "")]
    if isinstance(data, dict):
        details += [str(value) for value in data.values() if isinstance(value, str)]
    elif isinstance(data, str):
        details.append(data)
    words = ": ".join(dict.fromkeys(filter(None, details))) or "the program gave no reason"
    number = error.get("code")
    code = _CODES.get(number) if isinstance(number, int) else None
    return code or code_of(words[:MESSAGE_MAX]), words


def code_of(words: str) -> str:
    """Returns the code of a failure, from its text alone."""
    if _LIMIT.search(words):
        return "RATE_LIMITED"
    if _SIGN_IN.search(words):
        return "AUTH_REQUIRED"
    return "CONTEXT_FULL" if _FULL.search(words) else "MODEL_ERROR"


CANCELS_MAX = 3
"""Largest number of cancel messages after one request to stop a turn."""

CANCELS_EARLY = 1
"""The same before the program has begun with the turn: it may ignore a message that it reads too early."""

CANCEL_AGAIN_S = 1.0
"""Seconds after a cancel message until a program that goes on with the turn gets another one."""

LAST_CANCEL_S = 5.0
"""The same for a program that reports nothing; the program is killed after twice these seconds."""


@dataclass(frozen=True, slots=True)
class PromptResponse:
    """The program's response to a prompt. `live` is True if it was not reported yet."""

    message: dict[str, Any]
    at_ns: int
    live: bool


@dataclass(slots=True)
class PromptedTurn:
    """A turn that a message began."""

    id: str
    """Id of the request that gives the message."""
    text: str = ""
    own: bool = False
    """True for the turn of a task, False for that of a person at an attached terminal."""
    before: list[str] = field(default_factory=list)
    """Blocks that the request has before the message."""
    speech: TurnSpeech = field(default_factory=TurnSpeech)
    told: str | None = None
    """Name of the message whose text was shown last."""
    taken: bool = False
    """True once it is known that the program has the message, and which output is older."""
    response: PromptResponse | None = None
    """The response, if it came before it was known that the program has the message."""
    cancels: int = 0
    """Number of cancel messages to the program."""
    asked_at: int = 0
    """Value of `cancels` at the last request to stop the turn."""
    canceled: tuple[float, int] | None = None
    """Time of the last cancel message (monotonic seconds), and the end of the output at that time."""

    def may_cancel(self, now: float) -> bool:
        """Returns True if the program gets a cancel message now: the first one, or another one because it goes on with
        the turn, has begun with it, or has reported nothing for LAST_CANCEL_S. Finally the program itself is killed."""
        if self.canceled is None:
            return True
        last, place = self.canceled
        wait = CANCEL_AGAIN_S if self.speech.goes_on(place) else LAST_CANCEL_S
        most = CANCELS_MAX if self.speech.begun else CANCELS_EARLY
        return self.cancels - self.asked_at < most and now - last >= wait

    @property
    def is_command(self) -> bool:
        """Returns True if the message is one of the program's own commands: such a turn may end without text."""
        return self.text.startswith("/")
