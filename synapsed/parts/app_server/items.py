"""Reads turns of an app server's thread, and their items: messages, errors, plans, limits. Pure.

A turn is `{id, status, error, items: [{type, id, …}]}`; a user's message among its items has `clientId`, the id that
its client gave it.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from synapsed.channels import Channel, ErrorCode, at_path, clean
from synapsed.model.facts import LimitWindow

OWN = "synapsed:"
"""Beginning of the ids of synapsed's messages."""

ERROR_MAX = 2000
"""Most characters of an error's text."""

SHELLS = frozenset({"bash", "dash", "sh", "zsh"})

LATEST = 4e9
"""Latest time, in Unix seconds, that is accepted from a server."""

_STATUS: dict[Any, Literal["pending", "in_progress", "completed"]] = {
    "inProgress": "in_progress",
    "completed": "completed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledTool:
    """A tool call that is one of a turn's items."""

    id: str
    tool: str
    input: dict[str, Any]
    output: dict[str, Any] | None
    error: str | None
    denied: bool
    duration_ms: int | None


def call_in(item: dict[str, Any], called: Mapping[str, str]) -> CalledTool | None:
    """Returns the item's tool call, None if it is something else. `called` has the names of tools by kinds of items."""
    kind, status, id_ = item.get("type"), item.get("status"), item.get("id")
    if not isinstance(id_, str):
        return None
    output: Any
    given: dict[str, Any]
    match kind:
        case "commandExecution":
            command = script_in(words_of(item, "command") or "")
            given, output = {"command": command, "cwd": words_of(item, "cwd")}, item.get("aggregatedOutput")
            name = called.get(kind, kind)
        case "fileChange":
            changes = [change for change in _listed(item.get("changes")) if isinstance(change, dict)]
            given, output = {"changes": changes}, None
            name = called.get(kind, kind)
        case "mcpToolCall":
            arguments = item.get("arguments")
            given, output = arguments if isinstance(arguments, dict) else {}, item.get("result")
            name = f"mcp__{words_of(item, 'server') or ''}__{words_of(item, 'tool') or ''}"
        case "webSearch":
            given, output, name = {"query": words_of(item, "query")}, None, called.get(kind, kind)
        case _:
            return None
    lasted, denied = item.get("durationMs"), status == "declined"
    failed = denied or status == "failed"
    error = words_of(item, "error.message") or ("declined" if denied else _exit(item, output)) if failed else None
    return CalledTool(
        id=id_,
        tool=name,
        input={key: value for key, value in given.items() if value is not None},
        output=None if failed or output in (None, "") else output if isinstance(output, dict) else {"text": output},
        error=error,
        denied=denied,
        duration_ms=int(lasted) if isinstance(lasted, int | float) and 0 <= lasted < LATEST else None,
    )


def script_in(command: str) -> str:
    """Returns the script in a command line that runs a shell (`bash -lc 'ls; date'` → `ls; date`); any other command
    line unchanged."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    shell = words[0].rpartition("/")[2] if words else ""
    return words[2] if len(words) == 3 and shell in SHELLS and words[1] in ("-c", "-lc") else command


def _exit(item: dict[str, Any], output: Any) -> str:
    code = item.get("exitCode")
    words = clean(output) if isinstance(output, str) else ""
    return words or (f"exit code {code}" if isinstance(code, int) else "the program does not say why")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def key_of(task_id: str, leg: int) -> str:
    return f"{OWN}{task_id}.{leg}"


def is_own(key: str | None) -> bool:
    return key is not None and key.startswith(OWN)


def words_of(value: Any, path: str) -> str | None:
    """Returns the text at the dotted `path`, None without one."""
    found = at_path(value, path)
    return found if isinstance(found, str) and found else None


def user_key(turn: dict[str, Any], key: str) -> bool:
    """Returns whether the turn has the message with that key."""
    return any(item.get("clientId") == key for item in items_of(turn))


def answer_in(turn: dict[str, Any], *, after: str | None = None) -> str:
    """Returns the program's last message in the turn; if `after` is given, the last one after that user's message."""
    answer, counts = "", after is None
    for item in items_of(turn):
        if item.get("type") == "userMessage" and item.get("clientId") == after:
            counts, answer = True, ""
        elif item.get("type") == "agentMessage" and counts:
            answer = clean(str(item.get("text") or ""))
    return answer


def answered(turn: dict[str, Any], key: str) -> str | None:
    """Returns the answer to the message with that key if a person wrote into the turn after it; None if there is no
    answer yet, or the turn's end has it."""
    answer, counts, whole = "", False, False
    for item in items_of(turn):
        if item.get("type") != "userMessage":
            whole = says_all(item)
            answer = clean(str(item.get("text"))) if whole else answer
        elif counts and whole and not is_own(words_of(item, "clientId")):
            return answer
        else:
            counts = counts or item.get("clientId") == key
    return None


def says_all(item: dict[str, Any]) -> bool:
    """Returns True for a program's message that may be an answer: a comment before further work is no answer."""
    return item.get("type") == "agentMessage" and bool(item.get("text")) and item.get("phase") != "commentary"


def text_of_message(item: dict[str, Any]) -> str:
    """Returns the text of a user's message."""
    content = item.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts = [part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str)]
    return clean("\n".join(texts))


def code_of(channel: Channel, error: Any) -> tuple[ErrorCode, str]:
    """Returns the code of a failed turn's error, by the profile's table, and its words."""
    message, info = words_of(error, "message") or "", at_path(error, "codexErrorInfo")
    more = words_of(error, "additionalDetails") or ""
    code = channel.error_code(f"{json.dumps(info)}\n{message}\n{more}")
    return code, clean(_plain(message) or more or "the program says no more")[:ERROR_MAX]


def _plain(message: str) -> str:
    """Returns the text of a message that may be a JSON document around that text."""
    if not message.lstrip().startswith("{"):
        return message
    try:
        inner = at_path(json.loads(message), "error.message")
    except (ValueError, RecursionError):
        return message
    return inner if isinstance(inner, str) and inner else message


def plan_in(params: dict[str, Any]) -> tuple[tuple[str, Literal["pending", "in_progress", "completed"]], ...]:
    steps = params.get("plan")
    found = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return tuple((clean(str(step.get("step") or "")), _STATUS.get(step.get("status"), "pending")) for step in found)


def limits_in(params: dict[str, Any]) -> tuple[LimitWindow, ...] | None:
    """Returns the windows of an account's limits; None if none are reported."""
    found = []
    for name in ("primary", "secondary"):
        window = at_path(params, f"rateLimits.{name}")
        share = at_path(window, "usedPercent")
        if isinstance(share, int | float):
            resets, minutes = at_path(window, "resetsAt"), at_path(window, "windowDurationMins")
            believed = isinstance(resets, int | float) and 0 < resets < LATEST
            known = isinstance(minutes, int) and 0 <= minutes < LATEST
            found.append(
                LimitWindow(
                    name=name,
                    used=float(share),
                    minutes=minutes if known else None,
                    resets_at=float(resets) if believed else None,
                )
            )
    return tuple(found) or None


def items_of(turn: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the turn's items."""
    items = turn.get("items")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
