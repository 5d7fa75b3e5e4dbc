"""Reads messages of a program's session, as its server sends them: `{"info": {id, role, parentID, finish, error, time:
{created, completed}}, "parts": [{type, text}]}`. Pure, except that long texts are parsed in a thread."""

import asyncio
import math
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

from synapsed.channels import at_path, clean
from synapsed.shared.outside_json import NotJson, read_json
from synapsed.shared.sse_parser import SseEvent

LONG = 64 * 1024
"""Bytes, or characters, above which a text is parsed in a thread."""

type Message = dict[str, Any]

SILENT = "the program ended the turn without a word"
REPEATED = "the program asked its model for the same answer again and again, so the turn was stopped"
BEHIND = (
    ": the clock was set back, and its conversation has messages that are dated later than now; "
    "'synapsectl send --new-conversation' begins another one"
)
AHEAD_MS = 1000
"""Milliseconds by which a message may be dated later than now without being treated as dated before the clock was set
back."""
DATE_MAX_MS = 1 << 53
"""Latest date that is accepted from a program, in Unix milliseconds; a later one is replaced by it."""
ANSWERS_MAX = 3
"""Complete answers to one message after which the program is held to repeat itself. A message has one answer."""


@dataclass(frozen=True, slots=True)
class RepeatedAnswers:
    """The answers to the message that the program answers now, as far as they may be complete: its id, and theirs."""

    parent: str | None = None
    answers: frozenset[str] = frozenset()

    @property
    def found(self) -> bool:
        """True if the program may repeat itself."""
        return len(self.answers) >= ANSWERS_MAX

    def after(self, message: Message) -> "RepeatedAnswers":
        """Returns what is known after an assistant's message, which may be reported several times."""
        if how_it_ended(message) != "answered" or (parent := parent_of(message)) is None:
            return self
        return RepeatedAnswers(parent, (self.answers if parent == self.parent else frozenset()) | {id_of(message)})

    def are_in(self, messages: list[Message]) -> bool:
        """Returns True if `messages` have as many complete answers."""
        return self.parent is not None and sum(map(is_complete, replies_to(messages, self.parent))) >= ANSWERS_MAX


def id_of(message: Message) -> str:
    return word(message, "info.id") or ""


def role_of(message: Message) -> str:
    return word(message, "info.role") or ""


def parent_of(message: Message) -> str | None:
    return word(message, "info.parentID")


def created_ms(message: Message) -> int:
    return number(at_path(message, "info.time.created"))


def completed_ms(message: Message) -> int:
    return number(at_path(message, "info.time.completed"))


def updated(session: dict[str, Any]) -> float:
    """Returns the time of a session's last message, milliseconds since 1970; 0 if that is unknown."""
    at = at_path(session, "time.updated")
    return at if isinstance(at, int | float) else 0


def how_it_ended(message: Message) -> str:
    """Returns `answered`, `goes on` (it called a tool), or `stopped`: it failed, was aborted, or has no end."""
    reason = word(message, "info.finish")
    if reason is None or at_path(message, "info.error") is not None:
        return "stopped"
    return "goes on" if reason == "tool-calls" else "answered"


def is_complete(message: Message) -> bool:
    """Returns True if the program has nothing more to do after this reply. Some models end a reply that calls a tool in
    the same way as an answer; the program goes on then."""
    tools = any(part.get("type") == "tool" for part in objects(message.get("parts")))
    return how_it_ended(message) == "answered" and word(message, "info.finish") != "unknown" and not tools


def text_of(message: Message) -> str:
    parts = objects(message.get("parts"))
    texts = [p["text"] for p in parts if p.get("type") == "text" and not p.get("synthetic") and p.get("text")]
    return clean("\n\n".join(text for text in texts if isinstance(text, str)))


def replies_to(messages: list[Message], *users: str) -> list[Message]:
    return [m for m in messages if role_of(m) == "assistant" and parent_of(m) in users]


def newest(messages: list[Message], given: str | None) -> list[Message]:
    """Returns the last prompt, and before it the one that was given last, if that has no reply: after the clock was set
    back it is sorted before older ones."""
    users = [message for message in messages if role_of(message) == "user"]
    return [*(user for user in users[:-1] if id_of(user) == given and not replies_to(messages, given)), *users[-1:]]


def up_to_answer(replies: list[Message]) -> list[Message]:
    """Returns the replies up to the first complete answer; none if none is complete."""
    ends = [n for n, reply in enumerate(replies, 1) if is_complete(reply)]
    return replies[: ends[0]] if ends else []


def is_ahead(messages: list[Message], now_ms: float) -> bool:
    """Returns True if a message is dated later than now, so the clock was set back."""
    return max(map(created_ms, messages), default=0) > now_ms + AHEAD_MS


def why_no_answer(*, repeated: bool, ahead: bool) -> str:
    """Returns the words for a turn that ended without an answer to its message and without an error."""
    return (REPEATED if repeated else SILENT) + (BEHIND if ahead else "")


async def parsed(text: bytes | str) -> Any:
    """Returns the value of a JSON text. Raises NotJson."""
    return await asyncio.to_thread(read_json, text) if len(text) > LONG else read_json(text)


async def objects_in(events: Iterable[SseEvent]) -> AsyncIterator[dict[str, Any]]:
    """Yields the JSON objects in the events' data."""
    for event in events:
        try:
            told = await parsed(event.data)
        except NotJson:
            continue
        if isinstance(told, dict):
            yield told


def objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def word(value: Any, path: str) -> str | None:
    found = at_path(value, path)
    return found if isinstance(found, str) and found else None


def number(value: Any) -> int:
    """Returns a time in Unix milliseconds, at most DATE_MAX_MS; 0 for any other value."""
    return min(int(value), DATE_MAX_MS) if isinstance(value, int | float) and math.isfinite(value) else 0
