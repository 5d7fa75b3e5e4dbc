"""JSON-RPC 2.0, a message in each line: bytes in, messages out, and errors for all other input. Pure."""

import json
import math
from typing import Any, Final, NamedTuple, NoReturn

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
AUTH_REQUIRED: Final = -32000
NOT_FOUND: Final = -32002
"""ACP's own: there is no such session."""

LINE_MAX = 15 * 1024 * 1024
"""Bytes of a line: the largest message that the daemon takes (10 MB), with its files in base64."""

SHOWN_MAX = 200
"""Characters of foreign text in an error."""

type Id = str | int | float | None
type Message = RpcRequest | RpcNotification | RpcResponse | Wrong


class RpcRequest(NamedTuple):
    """A request. `params` is an object; a missing one means an empty one."""

    id: Id
    method: str
    params: dict[str, Any]


class RpcNotification(NamedTuple):
    """A request without an id, which gets no answer."""

    method: str
    params: dict[str, Any]


class RpcResponse(NamedTuple):
    """Answer of the editor to a request of ours: a result, or an error."""

    id: Id
    result: Any
    error: dict[str, Any] | None


class Wrong(NamedTuple):
    """A line that is no valid message; `reply` is the error for its sender."""

    reply: dict[str, Any]


class LineCutter:
    """Cuts a stream into lines. A line of more than `LINE_MAX` bytes is skipped and returned as None."""

    def __init__(self, line_max: int = LINE_MAX) -> None:
        self._line_max = line_max
        self._held: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> list[bytes | None]:
        """Returns the lines that `chunk` completes, without their ends; empty ones are left out."""
        *ended, rest = chunk.split(b"\n")
        found = [self._end(piece) for piece in ended]
        self._hold(rest)
        return [line for line in found if line is None or line.strip()]

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._line_max:
            self._skipping = True
            self._held.clear()
        elif piece:
            self._held.append(piece)

    def _end(self, piece: bytes) -> bytes | None:
        self._hold(piece)
        line = None if self._skipping else b"".join(self._held)
        self._held, self._size, self._skipping = [], 0, False
        return line


def read(line: bytes | None) -> Message:
    """Returns the message in one line (None: in one that was too long)."""
    if line is None:
        return Wrong(failure(None, PARSE_ERROR, f"a line has more than {LINE_MAX} bytes"))
    try:
        value = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return Wrong(failure(None, PARSE_ERROR, f"not JSON: {shown(str(error))}"))
    if not isinstance(value, dict):
        what = "batches are not taken: send each message in a line" if isinstance(value, list) else "not an object"
        return Wrong(failure(None, INVALID_REQUEST, what))
    return _message(value)


def _message(value: dict[str, Any]) -> Message:
    id_ = value.get("id")
    valid = isinstance(id_, str | int | float | None) and not isinstance(id_, bool) and id_ not in (math.inf, -math.inf)
    if "method" not in value and ("result" in value or "error" in value):
        # Whatever is wrong with an answer, it gets none: the editor could answer that, and so on for ever.
        error = value.get("error")
        error = error if isinstance(error, dict) or error is None else {}
        return RpcResponse(id_ if valid else None, value.get("result"), error)
    if not valid:
        return Wrong(failure(None, INVALID_REQUEST, "id: a text, a number or null"))
    if value.get("jsonrpc") != "2.0":
        return Wrong(failure(id_, INVALID_REQUEST, 'jsonrpc: must be "2.0"'))
    if "method" not in value:
        return Wrong(failure(id_, INVALID_REQUEST, "neither a method nor an answer"))
    method, params = value["method"], value.get("params")
    if not isinstance(method, str):
        return Wrong(failure(id_, INVALID_REQUEST, "method: must be a text"))
    if not isinstance(params, dict | None):
        if "id" not in value:
            return RpcNotification(method, {})
        return Wrong(failure(id_, INVALID_PARAMS, "params: must be an object"))
    return RpcRequest(id_, method, params or {}) if "id" in value else RpcNotification(method, params or {})


def result(id_: Id, value: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": value}


def failure(id_: Id, code: int, message: str, data: dict[str, Any] | None = None) -> dict[str, Any]:
    error = {"code": code, "message": message} | ({"data": data} if data else {})
    return {"jsonrpc": "2.0", "id": id_, "error": error}


def call(id_: Id, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def notice(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def encode(message: dict[str, Any]) -> bytes:
    """Returns the line of a message, in ASCII: a lone surrogate in a text cannot be encoded as UTF-8."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def shown(text: str) -> str:
    """Returns the beginning of a foreign text."""
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
