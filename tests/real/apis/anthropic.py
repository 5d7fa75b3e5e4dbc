"""The Anthropic messages API."""

import json
import time
from collections.abc import Mapping, Sequence

from tests.real.apis.base import Call, Conversation, Encoder, Json, blocks, flat, numbered, resolved, sse
from tests.real.script import Refusal, ToolCall

__all__ = ["Anthropic"]

_ACCOUNT: Mapping[str, tuple[int, str]] = {
    "login": (401, "invalid x-api-key"),
    "bill": (
        400,
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to purchase credits.",
    ),
    "model": (404, "model: scripted"),
}


class Anthropic:
    """`POST /v1/messages`, `POST /v1/messages/count_tokens`."""

    name = "anthropic"

    def read(self, path: str, body: Json) -> Call:
        talk = Conversation()
        for message in body.get("messages", []):
            if message.get("role") != "user":
                continue
            for block in blocks(message.get("content")):
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
        system = flat(body.get("system", ""))
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

    def refused(self, refusal: Refusal) -> tuple[int, Json, dict[str, str]]:
        if refusal.kind == "overlong":
            return 400, self.error(400, "prompt is too long: 250000 tokens > 200000 maximum"), {}
        if (told := _ACCOUNT.get(refusal.kind)) is not None:
            return told[0], self.error(*told), {}
        headers = {
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
            "anthropic-ratelimit-unified-reset": str(round(time.time() + refusal.seconds)),
            "retry-after": str(round(refusal.seconds)),
            "x-should-retry": "false",
        }
        return 429, self.error(429, "This request would exceed your account's rate limit."), headers


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
        return sse({"type": "message_start", "message": self._message([], None)}, "message_start")

    def delta(self, text: str) -> bytes:
        out = b""
        if not self._text_open:
            self._text_open = True
            block = {"type": "text", "text": ""}
            out = sse({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start")
        delta = {"type": "text_delta", "text": text}
        return out + sse({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")

    def finish(self, tools: Sequence[ToolCall]) -> bytes:
        out, first = b"", 0
        if self._text_open:
            out += sse({"type": "content_block_stop", "index": 0}, "content_block_stop")
            first = 1
        for index, called in enumerate(self._calls(tools), start=first):
            delta = {"type": "input_json_delta", "partial_json": json.dumps(called["input"])}
            block = {**called, "input": {}}
            out += sse({"type": "content_block_start", "index": index, "content_block": block}, "content_block_start")
            out += sse({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
            out += sse({"type": "content_block_stop", "index": index}, "content_block_stop")
        stop = "tool_use" if tools else "end_turn"
        delta_end = {"stop_reason": stop, "stop_sequence": None}
        out += sse({"type": "message_delta", "delta": delta_end, "usage": {"output_tokens": 10}}, "message_delta")
        return out + sse({"type": "message_stop"}, "message_stop")

    def whole(self, text: str, tools: Sequence[ToolCall]) -> Json:
        content: list[Json] = [{"type": "text", "text": text}] if text else []
        content += self._calls(tools)
        return self._message(content, "tool_use" if tools else "end_turn")

    def _calls(self, tools: Sequence[ToolCall]) -> list[Json]:
        named = (resolved(tool, self._call.tools) for tool in tools)
        return [
            {"type": "tool_use", "id": numbered(self._tool_id, n), "name": name, "input": arguments}
            for n, (name, arguments) in enumerate(named)
        ]
