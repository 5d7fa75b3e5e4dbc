"""The text of a program in one turn: its messages, of which the last is the answer; and how the turn ended, by the
response to its prompt. Pure.

The protocol does not say which text is an answer: every text comes as a chunk of a message, warnings and notices too.
In the known programs, a notice says that it is informational, or has no `messageId` while the program's own messages
have one.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from synapsed.model.facts import TurnEnded, TurnFailed, TurnInterrupted, TurnOver
from synapsed.pipes.acp_reports import CHANNEL
from synapsed.profiles.screen_spec import ErrorPattern

MESSAGES_MAX = 1000
"""Largest number of messages of a turn that are kept; further ones go into the last."""


class _Message:
    """A message. `name` is its id; without one, a name made here."""

    __slots__ = ("_marks", "_said", "_size", "has_id", "name")

    def __init__(self, name: str, *, has_id: bool) -> None:
        self.name = name
        self.has_id = has_id
        self._said = io.StringIO()
        self._size = 0
        self._marks: list[tuple[int, int]] = []
        """Offsets of its pieces in the program's output, each with the number of characters before it."""

    def add(self, text: str, place: int | None) -> None:
        if place is not None:
            self._marks.append((place, self._size))
        self._size += self._said.write(text)

    @property
    def text(self) -> str:
        return self._said.getvalue()

    def cut(self, begin: int) -> bool:
        """Forgets the text before `begin`; returns whether something is left."""
        kept = next((size for place, size in self._marks if place >= begin), self._size)
        rest, self._said, self._marks = self.text[kept:], io.StringIO(), []
        self._size = self._said.write(rest)
        return bool(rest)


@dataclass(slots=True)
class TurnSpeech:
    """The text of one turn. `ids`: the program has given a message an id before, so that text without one is no message
    of its own."""

    ids: bool = False
    messages: list[_Message] = field(default_factory=list)
    missed: bool = False
    """True if earlier text is gone."""
    kept: bool = True
    """True if a caller may ask for it later: then its text is kept."""
    _names: int = 0
    """Number of messages without an id so far."""
    _heard_at: int = -1
    """Offset of the program's last action: it said, thought, planned or called something."""
    _stirred_at: int = -1
    """Offset of its last report of any kind about a turn, such as the message that it works on."""
    _begin: int | None = None
    """Offset at which the turn begins; None while that is not known."""
    _broken: bool = False
    """True after something other than text: text without an id is another message from here on."""

    @property
    def heard(self) -> bool:
        """Returns whether the program did something in the turn, as far as that is known."""
        return self.missed or self._heard_at >= (self._begin or 0)

    @property
    def begun(self) -> bool:
        """Returns whether the program has reported something of the turn, and so has begun with it."""
        return self.missed or self._stirred_at >= (self._begin or 0)

    def stir(self, place: int) -> None:
        """Notes a report of the program about a turn, at that offset of its output."""
        self._stirred_at = max(self._stirred_at, place)

    def hear(self, place: int) -> None:
        """Notes an action of the program, at that offset of its output."""
        self.stir(place)
        self._heard_at = max(self._heard_at, place)

    def cut(self, begin: int) -> None:
        """Sets the offset at which the turn's message was given: earlier text is no answer."""
        self._begin = begin
        self.messages = [message for message in self.messages if message.cut(begin)]

    def gap(self) -> "TurnSpeech":
        """Output is gone: the same turn's speech from here on."""
        return TurnSpeech(ids=self.ids, missed=True, kept=self.kept, _begin=self._begin)

    def goes_on(self, place: int) -> bool:
        """Returns whether the program has reported something since that offset."""
        return self._stirred_at >= place

    def chunk(self, update: dict[str, Any], place: int) -> tuple[str, str] | None:
        """Handles an `agent_message_chunk`; returns the message's name and the piece, None for text that belongs to no
        answer."""
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
        """Returns the program's messages, without notices, in order."""
        return [message for message in self.messages if message.text.strip() and (message.has_id or not self.ids)]

    @property
    def notices(self) -> str:
        """Returns the notices."""
        return "\n".join(message.text for message in self.messages if self.ids and not message.has_id)

    @property
    def answer(self) -> str | None:
        return self.own[-1].text if self.own else None


def _informational(told: Any) -> bool:
    """Returns whether `_meta` calls it informational."""
    meta = told.get("_meta") if isinstance(told, dict) else None
    if not isinstance(meta, dict):
        return False
    kinds = [meta.get("kind"), *(each.get("kind") for each in meta.values() if isinstance(each, dict))]
    return "informational" in kinds


MESSAGE_MAX = 2000
"""Characters of a failure's message that are kept."""

_CODES = {401: "AUTH_REQUIRED", 403: "AUTH_REQUIRED", -32000: "AUTH_REQUIRED", 429: "RATE_LIMITED"}
_LIMIT = re.compile(r"\b429\b|rate.?limit|too many requests|quota", re.IGNORECASE)
_SIGN_IN = re.compile(r"\b40[13]\b|unauthori[sz]ed|authenticat|not logged in|api key", re.IGNORECASE)
_FULL = re.compile(r"context (?:length|window)|too long|maximum context", re.IGNORECASE)


def outcome(
    answer: dict[str, Any], speech: TurnSpeech, failures: Sequence[ErrorPattern], *, turn: str, at_ns: int
) -> TurnOver:
    """Returns what the response `answer` makes of the turn of that id."""

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
            return failed(pattern.code, said or speech.notices)
    # A program that counts its tokens, and counts none for a turn of which it has no message, has not asked its model.
    if isinstance(result, dict) and "usage" in result and result["usage"] is None and not _has_id(speech):
        words = (said or speech.notices).strip()
        if words:
            return failed(code_of(words), words)
    return TurnEnded(channel=CHANNEL, at_ns=at_ns, turn=turn, answer=said)


def _has_id(speech: TurnSpeech) -> bool:
    return any(message.has_id for message in speech.messages)


def _failure(error: dict[str, Any]) -> tuple[str, str]:
    """Returns code and words of an error."""
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
    """Returns the code of a failure that only has words."""
    if _LIMIT.search(words):
        return "RATE_LIMITED"
    if _SIGN_IN.search(words):
        return "AUTH_REQUIRED"
    return "CONTEXT_FULL" if _FULL.search(words) else "MODEL_ERROR"


CANCELS_MAX = 3
"""Largest number of cancel messages for one turn, after each request to stop it."""

CANCELS_EARLY = 1
"""Number of them before the program has begun with the turn: one that read them earlier may have ignored them."""

CANCEL_AGAIN_S = 1.0
"""Seconds after a cancel message until a program that goes on gets another one."""

LAST_CANCEL_S = 5.0
"""The same for a program that says nothing; it is ended after twice that."""


@dataclass(frozen=True, slots=True)
class PromptResponse:
    """The program's response to a prompt; `live`: it was not reported yet."""

    message: dict[str, Any]
    at_ns: int
    live: bool


@dataclass(slots=True)
class PromptedTurn:
    """A turn: of a task (`own`), or of a person at an attached terminal. `id` is that of the request that gives its
    message, `before` the blocks in front of it."""

    id: str
    text: str = ""
    own: bool = False
    before: list[str] = field(default_factory=list)
    speech: TurnSpeech = field(default_factory=TurnSpeech)
    told: str | None = None
    """The message that is being reported."""
    taken: bool = False
    """True once it is known that the program has it, and how much it had written by then."""
    response: PromptResponse | None = None
    """The response, if it came before it was known that the program has the message."""
    cancels: int = 0
    """Number of cancel messages to the program."""
    asked_at: int = 0
    """Their number at the last request to stop the turn."""
    canceled: tuple[float, int] | None = None
    """Time of the last one (monotonic), and the size of the output by then."""

    def may_cancel(self, now: float) -> bool:
        """Returns whether the program gets a cancel message now: once, and again only if it goes on with the turn, or
        begins with it, or has not ended it for long; afterwards the program itself is ended."""
        if self.canceled is None:
            return True
        last, place = self.canceled
        wait = CANCEL_AGAIN_S if self.speech.goes_on(place) else LAST_CANCEL_S
        most = CANCELS_MAX if self.speech.begun else CANCELS_EARLY
        return self.cancels - self.asked_at < most and now - last >= wait

    @property
    def is_command(self) -> bool:
        """Returns whether it is one of the program's own commands, which may end without a word."""
        return self.text.startswith("/")
