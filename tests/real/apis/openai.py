"""The OpenAI APIs: responses and chat completions."""

import itertools
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from tests.real.apis.base import Call, Conversation, Encoder, Json, blocks, flat, numbered, resolved, sse
from tests.real.script import Refusal, ToolCall

__all__ = ["Chat", "Responses"]


NAMESPACE = "__"

_ACCOUNT: Mapping[str, tuple[int, str, str]] = {
    "login": (401, "invalid_api_key", "Incorrect API key provided: sk-scri**0000. You can find your API key at ..."),
    "bill": (
        429,
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "model": (404, "model_not_found", "The model `scripted` does not exist or you do not have access to it."),
}


class Responses:
    """`POST /v1/responses`."""

    name = "responses"

    def read(self, path: str, body: Json) -> Call:
        talk = Conversation()
        given = body.get("input", [])
        for item in [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given:
            if str(item.get("type", "")).endswith("call_output"):
                talk.returned(item.get("call_id", ""), item.get("output"))
            elif item.get("role") == "user":
                for block in blocks(item.get("content")):
                    if "text" in block:
                        talk.said(block["text"])
        tools = tuple(name for tool in body.get("tools", []) for name in _names(tool))
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

    def refused(self, refusal: Refusal) -> tuple[int, Json, dict[str, str]]:
        return _refused(refusal, self.error)


def _names(tool: Json) -> Iterable[str]:
    """Tools of a namespace have both names, with NAMESPACE between."""
    own = tool.get("name") or tool.get("type", "")
    if tool.get("type") != "namespace":
        return (own,)
    return (f"{own}{NAMESPACE}{inner['name']}" for inner in tool.get("tools", []))


def _refused(refusal: Refusal, error: Callable[[int, str], Json]) -> tuple[int, Json, dict[str, str]]:
    if refusal.kind == "overlong":
        body = error(400, "Your input exceeds the context window of this model. Please adjust it and try again.")
        return 400, {"error": {**body["error"], "code": "context_length_exceeded"}}, {}
    if (account := _ACCOUNT.get(refusal.kind)) is not None:
        status, code, message = account
        return status, {"error": {**error(status, message)["error"], "type": code, "code": code}}, {}
    told = {"type": "usage_limit_reached", "plan_type": "plus", "resets_at": round(time.time() + refusal.seconds)}
    body = error(429, "The usage limit has been reached")
    return 429, {"error": {**body["error"], **told}}, {"retry-after": f"{refusal.seconds:g}"}


class _ResponsesEncoder:
    def __init__(self, call: Call, number: int) -> None:
        self._call = call
        self._number = number
        self._text = ""
        self._output: list[Json] = []
        self._sequence = itertools.count()

    def _event(self, kind: str, **data: object) -> bytes:
        return sse({"type": kind, "sequence_number": next(self._sequence), **data}, kind)

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

    def finish(self, tools: Sequence[ToolCall]) -> bytes:
        out = b""
        if self._text:
            item = self._message("completed")
            place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            out += self._event("response.output_text.done", **place, text=self._text)
            out += self._event("response.content_part.done", **place, part=item["content"][0])
            out += self._event("response.output_item.done", output_index=0, item=item)
            self._output.append(item)
        for n, tool in enumerate(tools):
            item = self._call_item(tool, n)
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

    def _call_item(self, tool: ToolCall, n: int) -> Json:
        name, arguments = resolved(tool, self._call.tools)
        space, _, own = name.rpartition(NAMESPACE)
        return {
            "type": "function_call",
            "id": numbered(f"fc_{self._number:06d}", n),
            "call_id": numbered(f"call_{self._number:06d}", n),
            **({"name": own, "namespace": space} if space else {"name": name}),
            "arguments": json.dumps(arguments),
            "status": "completed",
        }

    def whole(self, text: str, tools: Sequence[ToolCall]) -> Json:
        self._text = text
        self._output = [self._message("completed")] if text else []
        self._output += [self._call_item(tool, n) for n, tool in enumerate(tools)]
        return self._response("completed")


_SHELLS: Mapping[str, Json] = {"shell": {"command": "{}"}}
"""Goose's tool by chat completions; codex's of that name takes a list, by responses."""


class Chat:
    """`POST /v1/chat/completions`."""

    name = "chat"

    def read(self, path: str, body: Json) -> Call:
        talk = Conversation()
        system = ""
        for message in body.get("messages", []):
            role = message.get("role")
            if role == "tool":
                talk.returned(message.get("tool_call_id", ""), message.get("content"))
            elif role == "user":
                for block in blocks(message.get("content")):
                    if block.get("type") == "text":
                        talk.said(block["text"])
            elif role in ("system", "developer"):
                system += flat(message.get("content"))
        offered = [tool.get("function", {}) for tool in body.get("tools") or []]
        tools = tuple(function.get("name", "") for function in offered)
        side = None if tools else "title" if "title" in system else "other"
        call = talk.call(model=body.get("model", ""), stream=bool(body.get("stream")), tools=tools, side=side)
        return replace(call, arguments={function["name"]: known for function in offered if (known := _taken(function))})

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

    def refused(self, refusal: Refusal) -> tuple[int, Json, dict[str, str]]:
        return _refused(refusal, self.error)


def _taken(function: Json) -> frozenset[str] | None:
    """The arguments that the function takes, where it takes no others."""
    schema = function.get("parameters") or {}
    return frozenset(schema.get("properties", {})) if schema.get("additionalProperties") is False else None


class _ChatEncoder:
    def __init__(self, call: Call, number: int) -> None:
        self._call = call
        self._number = number

    def _chunk(self, delta: Json, finish: str | None = None, usage: Json | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return sse({**self._head("chat.completion.chunk"), "choices": [choice], "usage": usage})

    def _head(self, kind: str) -> Json:
        return {"id": f"chatcmpl-{self._number:06d}", "object": kind, "created": 0, "model": self._call.model}

    def start(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def delta(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def finish(self, tools: Sequence[ToolCall]) -> bytes:
        out = b""
        for n, tool in enumerate(tools):
            out += self._chunk({"tool_calls": [{"index": n, **self._tool(tool, n)}]})
        out += self._chunk({}, "tool_calls" if tools else "stop", self._usage)
        return out + b"data: [DONE]\n\n"

    _usage: ClassVar[Json] = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}

    def _tool(self, tool: ToolCall, n: int) -> Json:
        name, arguments = resolved(tool, self._call.tools, self._call.arguments, _SHELLS)
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"id": numbered(f"call_{self._number:06d}", n), "type": "function", "function": function}

    def whole(self, text: str, tools: Sequence[ToolCall]) -> Json:
        message: Json = {"role": "assistant", "content": text or None}
        if tools:
            message["tool_calls"] = [self._tool(tool, n) for n, tool in enumerate(tools)]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if tools else "stop"}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._usage}
