"""The model endpoint's dialects: what a request says (`Call`) and how an answer is written, for each API.

Pure: bytes and dictionaries in, bytes and dictionaries out; the server in `model` does the waiting and sending.
"""

import itertools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from tests.real.script import ToolCall

__all__ = ["APIS", "Api", "Call", "Encoder", "ToolResult", "api_named"]

type Json = dict[str, Any]

# Text that programs add on their own under the user's role; everything else there is the user's.
_WRAPPERS = re.compile(
    r"\s*(?:<(?:system-reminder|environment_context|user_instructions|session_context|permissions|turn_aborted|skills?_|"
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
    (``title``, ``count``, ``route``, …) or None for the conversation itself. `tools`: names offered.
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

    @property
    def user(self) -> str:
        return self.users[-1] if self.users else ""


class Encoder(Protocol):
    """Writes one response: `start`, any number of `delta`, then `finish`; or all at once as `whole`."""

    def start(self) -> bytes: ...
    def delta(self, text: str) -> bytes: ...
    def finish(self, tool: ToolCall | None) -> bytes: ...
    def whole(self, text: str, tool: ToolCall | None) -> Json: ...


class Api(Protocol):
    name: str

    def read(self, path: str, body: Json) -> Call: ...
    def encoder(self, call: Call, number: int) -> Encoder: ...
    def error(self, status: int, message: str) -> Json: ...


@dataclass
class _Conversation:
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
        self.all_results.append(ToolResult(id=call_id, text=_flat(content), is_error=is_error))

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


def _flat(content: object) -> str:
    """Text of a content that is a string, a list of text blocks, or any other JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            str(block.get("text", json.dumps(block))) if isinstance(block, dict) else str(block) for block in content
        )
    return json.dumps(content, ensure_ascii=False)


def _blocks(content: object) -> list[Json]:
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
}

_SANDBOXED = frozenset({"exec_command", "shell_command", "shell"})
_ESCALATED: Json = {"sandbox_permissions": "require_escalated", "justification": "Scripted: outside the sandbox"}


def _resolved(tool: ToolCall, offered: tuple[str, ...]) -> tuple[str, Json]:
    """Name and arguments of a call, in terms of the tools that the program offered."""
    if tool.arguments is not None:
        return tool.name, tool.arguments
    for name, template in _SHELLS.items():
        if name in offered:
            filled = {key: _filled(value, tool.command) for key, value in template.items()}
            return name, {**filled, **(_ESCALATED if tool.escalated and name in _SANDBOXED else {})}
    raise ValueError(f"no shell tool among {', '.join(offered) or 'none'}")


def _filled(value: object, command: str) -> object:
    if isinstance(value, list):
        return [_filled(item, command) for item in value]
    return command if value == "{}" else value


def _sse(data: Json, event: str | None = None) -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


# --- Anthropic messages ---------------------------------------------------------------------------


class Anthropic:
    """`POST /v1/messages`, `POST /v1/messages/count_tokens`."""

    name = "anthropic"

    def read(self, path: str, body: Json) -> Call:
        talk = _Conversation()
        for message in body.get("messages", []):
            if message.get("role") != "user":
                continue
            for block in _blocks(message.get("content")):
                if block.get("type") == "tool_result":
                    talk.returned(
                        block.get("tool_use_id", ""), block.get("content"), is_error=bool(block.get("is_error"))
                    )
                elif block.get("type") == "text":
                    talk.said(block["text"])
        tools = tuple(tool.get("name", "") for tool in body.get("tools", []))
        return talk.call(
            model=body.get("model", ""),
            stream=bool(body.get("stream")),
            tools=tools,
            side=self._side(path, body, tools),
            wants_json="format" in body.get("output_config", {}) or "output_format" in body,
        )

    @staticmethod
    def _side(path: str, body: Json, tools: tuple[str, ...]) -> str | None:
        if path.endswith("/count_tokens"):
            return "count"
        system = _flat(body.get("system", ""))
        if "title" in system and not tools:
            return "title"
        if body.get("max_tokens") == 1:
            return "probe"
        return None if tools else "other"

    def encoder(self, call: Call, number: int) -> Encoder:
        return _AnthropicEncoder(call, number)

    def error(self, status: int, message: str) -> Json:
        kinds = {
            400: "invalid_request_error",
            401: "authentication_error",
            403: "permission_error",
            404: "not_found_error",
            413: "request_too_large",
            429: "rate_limit_error",
            529: "overloaded_error",
        }
        return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}


class _AnthropicEncoder:
    def __init__(self, call: Call, number: int) -> None:
        self._call = call
        self._id = f"msg_{number:06d}"
        self._tool_id = f"toolu_{number:06d}"
        self._text_open = False

    def _message(self, content: list[Json], stop: str | None) -> Json:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._call.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 10},
        }

    def start(self) -> bytes:
        return _sse({"type": "message_start", "message": self._message([], None)}, "message_start")

    def delta(self, text: str) -> bytes:
        out = b""
        if not self._text_open:
            self._text_open = True
            block = {"type": "text", "text": ""}
            out = _sse({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start")
        delta = {"type": "text_delta", "text": text}
        return out + _sse({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")

    def finish(self, tool: ToolCall | None) -> bytes:
        out, index = b"", 0
        if self._text_open:
            out += _sse({"type": "content_block_stop", "index": 0}, "content_block_stop")
            index = 1
        if tool is not None:
            name, arguments = _resolved(tool, self._call.tools)
            block = {"type": "tool_use", "id": self._tool_id, "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
            out += _sse({"type": "content_block_start", "index": index, "content_block": block}, "content_block_start")
            out += _sse({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
            out += _sse({"type": "content_block_stop", "index": index}, "content_block_stop")
        stop = "tool_use" if tool else "end_turn"
        delta_end = {"stop_reason": stop, "stop_sequence": None}
        out += _sse({"type": "message_delta", "delta": delta_end, "usage": {"output_tokens": 10}}, "message_delta")
        return out + _sse({"type": "message_stop"}, "message_stop")

    def whole(self, text: str, tool: ToolCall | None) -> Json:
        content: list[Json] = [{"type": "text", "text": text}] if text else []
        if tool is not None:
            name, arguments = _resolved(tool, self._call.tools)
            content.append({"type": "tool_use", "id": self._tool_id, "name": name, "input": arguments})
        return self._message(content, "tool_use" if tool else "end_turn")


# --- OpenAI responses -----------------------------------------------------------------------------


class Responses:
    """`POST /v1/responses`."""

    name = "responses"

    def read(self, path: str, body: Json) -> Call:
        talk = _Conversation()
        given = body.get("input", [])
        for item in [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given:
            if str(item.get("type", "")).endswith("call_output"):
                talk.returned(item.get("call_id", ""), item.get("output"))
            elif item.get("role") == "user":
                for block in _blocks(item.get("content")):
                    if "text" in block:
                        talk.said(block["text"])
        tools = tuple(tool.get("name") or tool.get("type", "") for tool in body.get("tools", []))
        side = None if tools else "title" if "title" in json.dumps(body) else "other"
        return talk.call(model=body.get("model", ""), stream=bool(body.get("stream")), tools=tools, side=side)

    def encoder(self, call: Call, number: int) -> Encoder:
        return _ResponsesEncoder(call, number)

    def error(self, status: int, message: str) -> Json:
        return {
            "error": {
                "message": message,
                "type": "invalid_request_error" if status < 500 else "server_error",
                "code": None,
            }
        }


class _ResponsesEncoder:
    def __init__(self, call: Call, number: int) -> None:
        self._call = call
        self._number = number
        self._text = ""
        self._output: list[Json] = []
        self._sequence = itertools.count()

    def _event(self, kind: str, **data: object) -> bytes:
        return _sse({"type": kind, "sequence_number": next(self._sequence), **data}, kind)

    def _response(self, status: str) -> Json:
        usage = {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 20,
        }
        return {
            "id": f"resp_{self._number:06d}",
            "object": "response",
            "created_at": 0,
            "status": status,
            "model": self._call.model,
            "output": self._output,
            "usage": usage if status == "completed" else None,
        }

    def _message(self, status: str) -> Json:
        part = {"type": "output_text", "text": self._text, "annotations": []}
        content = [part] if status == "completed" else []
        return {
            "type": "message",
            "id": f"msg_{self._number:06d}",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def start(self) -> bytes:
        return self._event("response.created", response=self._response("in_progress"))

    def delta(self, text: str) -> bytes:
        out, place = b"", {"item_id": f"msg_{self._number:06d}", "output_index": 0}
        if not self._text:
            part = {"type": "output_text", "text": "", "annotations": []}
            out += self._event("response.output_item.added", output_index=0, item=self._message("in_progress"))
            out += self._event("response.content_part.added", **place, content_index=0, part=part)
        self._text += text
        return out + self._event("response.output_text.delta", **place, content_index=0, delta=text)

    def finish(self, tool: ToolCall | None) -> bytes:
        out = b""
        if self._text:
            item = self._message("completed")
            place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            out += self._event("response.output_text.done", **place, text=self._text)
            out += self._event("response.content_part.done", **place, part=item["content"][0])
            out += self._event("response.output_item.done", output_index=0, item=item)
            self._output.append(item)
        if tool is not None:
            item = self._call_item(tool)
            index = len(self._output)
            out += self._event(
                "response.output_item.added",
                output_index=index,
                item={**item, "arguments": "", "status": "in_progress"},
            )
            out += self._event(
                "response.function_call_arguments.delta",
                item_id=item["id"],
                output_index=index,
                delta=item["arguments"],
            )
            out += self._event(
                "response.function_call_arguments.done",
                item_id=item["id"],
                output_index=index,
                arguments=item["arguments"],
            )
            out += self._event("response.output_item.done", output_index=index, item=item)
            self._output.append(item)
        return out + self._event("response.completed", response=self._response("completed"))

    def _call_item(self, tool: ToolCall) -> Json:
        name, arguments = _resolved(tool, self._call.tools)
        return {
            "type": "function_call",
            "id": f"fc_{self._number:06d}",
            "call_id": f"call_{self._number:06d}",
            "name": name,
            "arguments": json.dumps(arguments),
            "status": "completed",
        }

    def whole(self, text: str, tool: ToolCall | None) -> Json:
        self._text = text
        self._output = ([self._message("completed")] if text else []) + ([self._call_item(tool)] if tool else [])
        return self._response("completed")


# --- OpenAI chat completions ----------------------------------------------------------------------


class Chat:
    """`POST /v1/chat/completions`."""

    name = "chat"

    def read(self, path: str, body: Json) -> Call:
        talk = _Conversation()
        system = ""
        for message in body.get("messages", []):
            role = message.get("role")
            if role == "tool":
                talk.returned(message.get("tool_call_id", ""), message.get("content"))
            elif role == "user":
                for block in _blocks(message.get("content")):
                    if block.get("type") == "text":
                        talk.said(block["text"])
            elif role in ("system", "developer"):
                system += _flat(message.get("content"))
        tools = tuple(tool.get("function", {}).get("name", "") for tool in body.get("tools") or [])
        side = None if tools else "title" if "title" in system else "other"
        return talk.call(model=body.get("model", ""), stream=bool(body.get("stream")), tools=tools, side=side)

    def encoder(self, call: Call, number: int) -> Encoder:
        return _ChatEncoder(call, number)

    def error(self, status: int, message: str) -> Json:
        return {
            "error": {
                "message": message,
                "type": "invalid_request_error" if status < 500 else "server_error",
                "code": status,
            }
        }


class _ChatEncoder:
    def __init__(self, call: Call, number: int) -> None:
        self._call = call
        self._number = number

    def _chunk(self, delta: Json, finish: str | None = None, usage: Json | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _sse({**self._head("chat.completion.chunk"), "choices": [choice], "usage": usage})

    def _head(self, kind: str) -> Json:
        return {"id": f"chatcmpl-{self._number:06d}", "object": kind, "created": 0, "model": self._call.model}

    def start(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def delta(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def finish(self, tool: ToolCall | None) -> bytes:
        out = b""
        if tool is not None:
            out += self._chunk({"tool_calls": [{"index": 0, **self._tool(tool)}]})
        out += self._chunk({}, "tool_calls" if tool else "stop", self._usage)
        return out + b"data: [DONE]\n\n"

    _usage: ClassVar[Json] = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}

    def _tool(self, tool: ToolCall) -> Json:
        name, arguments = _resolved(tool, self._call.tools)
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"id": f"call_{self._number:06d}", "type": "function", "function": function}

    def whole(self, text: str, tool: ToolCall | None) -> Json:
        message: Json = {"role": "assistant", "content": text or None}
        if tool is not None:
            message["tool_calls"] = [self._tool(tool)]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if tool else "stop"}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._usage}


# --- Gemini ---------------------------------------------------------------------------------------


class Gemini:
    """`POST /v1beta/models/M:streamGenerateContent?alt=sse`, `:generateContent`, `:countTokens`."""

    name = "gemini"

    def read(self, path: str, body: Json) -> Call:
        talk = _Conversation()
        for content in body.get("contents", []):
            if content.get("role") not in ("user", "function", None):
                continue
            for part in content.get("parts", []):
                if "functionResponse" in part:
                    answer = part["functionResponse"]
                    talk.returned(answer.get("id", answer.get("name", "")), answer.get("response"))
                elif "text" in part:
                    talk.said(part["text"])
        declared = (d for tool in body.get("tools", []) for d in tool.get("functionDeclarations", []))
        tools = tuple(declaration.get("name", "") for declaration in declared)
        model, _, method = path.rpartition("/")[2].partition(":")
        return talk.call(
            model=model, stream=method == "streamGenerateContent", tools=tools, side=self._side(method, body, tools)
        )

    @staticmethod
    def _side(method: str, body: Json, tools: tuple[str, ...]) -> str | None:
        if method == "countTokens":
            return "count"
        schema = body.get("generationConfig", {}).get("responseJsonSchema") or body.get("generationConfig", {}).get(
            "responseSchema"
        )
        if schema is not None:
            return "route" if "complexity_score" in json.dumps(schema) else "json"
        return None if tools else "other"

    def encoder(self, call: Call, number: int) -> Encoder:
        return _GeminiEncoder(call, number)

    def error(self, status: int, message: str) -> Json:
        names = {
            400: "INVALID_ARGUMENT",
            401: "UNAUTHENTICATED",
            403: "PERMISSION_DENIED",
            429: "RESOURCE_EXHAUSTED",
            503: "UNAVAILABLE",
        }
        return {"error": {"code": status, "message": message, "status": names.get(status, "INTERNAL")}}


class _GeminiEncoder:
    def __init__(self, call: Call, number: int) -> None:
        self._call = call
        self._number = number

    def _response(self, parts: list[Json], finish: str | None) -> Json:
        candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": self._call.model,
            "responseId": f"r{self._number}",
        }

    def start(self) -> bytes:
        return b""

    def delta(self, text: str) -> bytes:
        return _sse(self._response([{"text": text}], None))

    def _parts(self, tool: ToolCall | None) -> list[Json]:
        if tool is None:
            return []
        name, arguments = _resolved(tool, self._call.tools)
        return [{"functionCall": {"id": f"call{self._number}", "name": name, "args": arguments}}]

    def finish(self, tool: ToolCall | None) -> bytes:
        return _sse(self._response(self._parts(tool) or [{"text": ""}], "STOP"))

    def whole(self, text: str, tool: ToolCall | None) -> Json:
        parts: list[Json] = [{"text": text}] if text else []
        return self._response(parts + self._parts(tool), "STOP")


APIS: tuple[Api, ...] = (Anthropic(), Responses(), Chat(), Gemini())


def api_named(name: str) -> Api:
    return next(api for api in APIS if api.name == name)
