"""What the dialects share: how a request and an answer look to the rest, and helpers to read and write them."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.real.script import Refusal, ToolCall

__all__ = [
    "Api",
    "Call",
    "Conversation",
    "Encoder",
    "Json",
    "ToolResult",
    "blocks",
    "flat",
    "numbered",
    "resolved",
    "sse",
]

type Json = dict[str, Any]

# Text that programs add on their own under the user's role; everything else there is the user's.
_WRAPPERS = re.compile(
    r"\s*(?:<(?:system-reminder|environment_context|user_instructions|session_context|hook_context|permissions|turn_aborted|skills?_|"
    r"local-command|command-|collaboration_mode|apps_instructions|plugins_instructions|available-deferred-tools|model_switch|"
    r"INSTRUCTIONS|recommended_)"
    r"|# AGENTS\.md instructions|\[Request interrupted by user|This is the Gemini CLI)"
)
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """A tool's result as the program sent it back."""

    id: str
    text: str
    is_error: bool


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request, read.

    `users`: the user's texts in order, without what programs add (that is in `notes`). `results`: results of tools that
    came after the last of them; `all_results`: of the whole conversation. `side`: what kind of side call this is
    (``title``, ``count``, ``route``, …) or None for the conversation itself. `tools`: names offered; `arguments`: those
    of the tools that take no others.
    """

    model: str
    stream: bool
    users: tuple[str, ...]
    notes: tuple[str, ...]
    results: tuple[ToolResult, ...]
    all_results: tuple[ToolResult, ...]
    tools: tuple[str, ...]
    side: str | None
    wants_json: bool = False
    arguments: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def user(self) -> str:
        return self.users[-1] if self.users else ""


class Encoder(Protocol):
    """Writes one response: `start`, any number of `delta`, then `finish`; or all at once as `whole`."""

    def start(self) -> bytes: ...
    def delta(self, text: str) -> bytes: ...
    def finish(self, tools: Sequence[ToolCall]) -> bytes: ...
    def whole(self, text: str, tools: Sequence[ToolCall]) -> Json: ...


class Api(Protocol):
    name: str

    def read(self, path: str, body: Json) -> Call: ...
    def encoder(self, call: Call, number: int) -> Encoder: ...
    def error(self, status: int, message: str) -> Json: ...
    def refused(self, refusal: Refusal) -> tuple[int, Json, dict[str, str]]:
        """Status, body and headers with which the service refuses a request for that reason."""
        ...


@dataclass
class Conversation:
    """Collects a conversation's items in order."""

    users: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    all_results: list[ToolResult] = field(default_factory=list)
    since_user: int = 0

    def said(self, text: str) -> None:
        rest = _REMINDER.sub("", text).strip()
        if rest != text.strip():
            self.notes.append(text)
        if not rest:
            return
        if _WRAPPERS.match(rest):
            self.notes.append(rest)
            return
        self.users.append(rest)
        self.since_user = len(self.all_results)

    def returned(self, call_id: str, content: object, *, is_error: bool = False) -> None:
        self.all_results.append(ToolResult(id=call_id, text=flat(content), is_error=is_error))

    def call(
        self, *, model: str, stream: bool, tools: Iterable[str], side: str | None, wants_json: bool = False
    ) -> Call:
        return Call(
            model=model,
            stream=stream,
            users=tuple(self.users),
            notes=tuple(self.notes),
            results=tuple(self.all_results[self.since_user :]),
            all_results=tuple(self.all_results),
            tools=tuple(tools),
            side=side,
            wants_json=wants_json,
        )


def flat(content: object) -> str:
    """Text of a content that is a string, a list of text blocks, or any other JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            str(block.get("text", json.dumps(block))) if isinstance(block, dict) else str(block) for block in content
        )
    return json.dumps(content, ensure_ascii=False)


def blocks(content: object) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


_SHELLS: dict[str, Json] = {
    "Bash": {"command": "{}", "description": "Run a scripted command"},
    "exec_command": {"cmd": "{}"},
    "shell_command": {"command": "{}"},
    "shell": {"command": ["bash", "-lc", "{}"]},
    "run_shell_command": {"command": "{}", "description": "Run a scripted command"},
    "bash": {"command": "{}", "description": "Run a scripted command"},
    "run_commands": {"commands": ["{}"]},
    "Shell": {"command": "{}"},
}

_SANDBOXED = frozenset({"exec_command", "shell_command", "shell"})
_ESCALATED: Json = {"sandbox_permissions": "require_escalated", "justification": "Scripted: outside the sandbox"}


def resolved(
    tool: ToolCall,
    offered: tuple[str, ...],
    taken: Mapping[str, frozenset[str]] | None = None,
    shells: Mapping[str, Json] | None = None,
) -> tuple[str, Json]:
    """Name and arguments of a call, in terms of the tools that the program offered; `taken`: see `Call.arguments`.
    `shells`: the API's own shell tools, which run in no sandbox, before those of the table."""
    if tool.arguments is not None:
        # Programs put a server's name before the tools of MCP, each in its own way.
        ours = [name for name in offered if re.search(rf"synapsed_+{re.escape(tool.name)}$", name)]
        return (ours or [tool.name])[0], tool.arguments
    own = shells or {}
    for name, template in {**_SHELLS, **own}.items():
        if name in offered:
            known = (taken or {}).get(name, template.keys())
            filled = {key: _filled(value, tool.command) for key, value in template.items() if key in known}
            return name, {**filled, **(_ESCALATED if tool.escalated and name in _SANDBOXED.difference(own) else {})}
    raise ValueError(f"no shell tool among {', '.join(offered) or 'none'}")


def numbered(call_id: str, index: int) -> str:
    """The id of one of the calls in a request: the first has the request's."""
    return f"{call_id}_{index}" if index else call_id


def _filled(value: object, command: str) -> object:
    if isinstance(value, list):
        return [_filled(item, command) for item in value]
    return command if value == "{}" else value


def sse(data: Json, event: str | None = None) -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
