"""The Gemini API."""

import json
from collections.abc import Mapping, Sequence

from tests.real.apis.base import Call, Conversation, Encoder, Json, numbered, resolved, sse
from tests.real.script import Refusal, ToolCall

__all__ = ["Gemini"]

_ACCOUNT: Mapping[str, tuple[int, str]] = {
    "login": (400, "API key not valid. Please pass a valid API key."),
    "bill": (403, "This API method requires billing to be enabled. Please enable billing on project #1 and retry."),
    "model": (
        404,
        "models/scripted is not found for API version v1beta, or is not supported for generateContent.",
    ),
}


class Gemini:
    """`POST /v1beta/models/M:streamGenerateContent?alt=sse`, `:generateContent`, `:countTokens`."""

    name = "gemini"

    def read(self, path: str, body: Json) -> Call:
        talk = Conversation()
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
            404: "NOT_FOUND",
            429: "RESOURCE_EXHAUSTED",
            503: "UNAVAILABLE",
        }
        return {"error": {"code": status, "message": message, "status": names.get(status, "INTERNAL")}}

    def refused(self, refusal: Refusal) -> tuple[int, Json, dict[str, str]]:
        if refusal.kind == "overlong":
            message = "The input token count (1250000) exceeds the maximum number of tokens allowed (1048576)."
            return 400, self.error(400, message), {}
        if (told := _ACCOUNT.get(refusal.kind)) is not None:
            return told[0], self.error(*told), {}
        wait = f"{refusal.seconds:g}s"
        body = self.error(429, f"You exceeded your current quota. Please retry in {wait}.")
        kind = "type.googleapis.com/google.rpc"
        body["error"]["details"] = [
            {"@type": f"{kind}.QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerMinute"}]},
            {"@type": f"{kind}.RetryInfo", "retryDelay": wait},
        ]
        return 429, body, {}


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
        return sse(self._response([{"text": text}], None))

    def _parts(self, tools: Sequence[ToolCall]) -> list[Json]:
        named = (resolved(tool, self._call.tools) for tool in tools)
        return [
            {"functionCall": {"id": numbered(f"call{self._number}", n), "name": name, "args": arguments}}
            for n, (name, arguments) in enumerate(named)
        ]

    def finish(self, tools: Sequence[ToolCall]) -> bytes:
        return sse(self._response(self._parts(tools) or [{"text": ""}], "STOP"))

    def whole(self, text: str, tools: Sequence[ToolCall]) -> Json:
        parts: list[Json] = [{"text": text}] if text else []
        return self._response(parts + self._parts(tools), "STOP")
