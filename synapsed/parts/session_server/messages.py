"""Reads messages of a program's session, as its server sends them: `{"info": {id, role, parentID, finish, error, time:
{created, completed}}, "parts": [{type, text}]}`. Pure, except that long texts are parsed in a thread."""

import asyncio
import math
from collections.abc import AsyncIterator, Iterable
from typing import Any

from synapsed.channels import at_path, clean
from synapsed.shared.outside_json import NotJson, read_json
from synapsed.shared.sse_parser import SseEvent

LONG = 64 * 1024
"""Bytes, or characters, above which a text is parsed in a thread."""

type Message = dict[str, Any]


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


def text_of(message: Message) -> str:
    parts = objects(message.get("parts"))
    texts = [p["text"] for p in parts if p.get("type") == "text" and not p.get("synthetic") and p.get("text")]
    return clean("\n\n".join(text for text in texts if isinstance(text, str)))


def replies_to(messages: list[Message], *users: str) -> list[Message]:
    return [m for m in messages if role_of(m) == "assistant" and parent_of(m) in users]


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
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else 0
