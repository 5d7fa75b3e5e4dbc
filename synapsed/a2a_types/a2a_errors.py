"""A2A's errors (specification 5.4, 9.5, 11.6) as one class and a table, and their equivalents in `synapsed.errors`.

It needs no SDK, because requests are refused in A2A's form before the SDK is loaded. tests/parts/a2a/test_errors.py
compares the table with the SDK's.
"""

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from synapsed.errors import HTTP_STATUS, InvalidChoice, InvalidRequest, SynapsedError, TaskNotFound

DOMAIN: Final = "a2a-protocol.org"
OWN_DOMAIN: Final = "synapsed"
"""Domain of reasons that A2A does not know: our own codes."""
_ERROR_INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"
_BAD_REQUEST: Final = "type.googleapis.com/google.rpc.BadRequest"

TASK_NOT_FOUND: Final = -32001
TASK_NOT_CANCELABLE: Final = -32002
PUSH_NOT_SUPPORTED: Final = -32003
UNSUPPORTED_OPERATION: Final = -32004
CONTENT_TYPE_NOT_SUPPORTED: Final = -32005
INVALID_AGENT_RESPONSE: Final = -32006
EXTENDED_CARD_NOT_CONFIGURED: Final = -32007
EXTENSION_SUPPORT_REQUIRED: Final = -32008
VERSION_NOT_SUPPORTED: Final = -32009
INVALID_PARAMS: Final = -32602
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INTERNAL_ERROR: Final = -32603
PARSE_ERROR: Final = -32700
SERVER_ERROR: Final = -32000
"""JSON-RPC's code for errors that an implementation defines: our codes for which A2A has no error; `reason` has the
code."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Words for a JSON-RPC code in ErrorInfo, in HTTP and in google.rpc.Status."""

    reason: str
    http: int
    status: str


KINDS: Final = {
    TASK_NOT_FOUND: Kind("TASK_NOT_FOUND", 404, "NOT_FOUND"),
    TASK_NOT_CANCELABLE: Kind("TASK_NOT_CANCELABLE", 400, "FAILED_PRECONDITION"),
    PUSH_NOT_SUPPORTED: Kind("PUSH_NOTIFICATION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION"),
    UNSUPPORTED_OPERATION: Kind("UNSUPPORTED_OPERATION", 400, "FAILED_PRECONDITION"),
    CONTENT_TYPE_NOT_SUPPORTED: Kind("CONTENT_TYPE_NOT_SUPPORTED", 400, "INVALID_ARGUMENT"),
    INVALID_AGENT_RESPONSE: Kind("INVALID_AGENT_RESPONSE", 500, "INTERNAL"),
    EXTENDED_CARD_NOT_CONFIGURED: Kind("EXTENDED_AGENT_CARD_NOT_CONFIGURED", 400, "FAILED_PRECONDITION"),
    EXTENSION_SUPPORT_REQUIRED: Kind("EXTENSION_SUPPORT_REQUIRED", 400, "FAILED_PRECONDITION"),
    VERSION_NOT_SUPPORTED: Kind("VERSION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION"),
    INVALID_PARAMS: Kind("INVALID_PARAMS", 400, "INVALID_ARGUMENT"),
    INVALID_REQUEST: Kind("INVALID_REQUEST", 400, "INVALID_ARGUMENT"),
    METHOD_NOT_FOUND: Kind("METHOD_NOT_FOUND", 404, "NOT_FOUND"),
    INTERNAL_ERROR: Kind("INTERNAL_ERROR", 500, "INTERNAL"),
    PARSE_ERROR: Kind("PARSE_ERROR", 400, "INVALID_ARGUMENT"),
}

_STATUS: Final = {
    HTTPStatus.BAD_REQUEST: "FAILED_PRECONDITION",
    HTTPStatus.UNAUTHORIZED: "UNAUTHENTICATED",
    HTTPStatus.FORBIDDEN: "PERMISSION_DENIED",
    HTTPStatus.NOT_FOUND: "NOT_FOUND",
    HTTPStatus.METHOD_NOT_ALLOWED: "UNIMPLEMENTED",
    HTTPStatus.CONFLICT: "ABORTED",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "INVALID_ARGUMENT",
    HTTPStatus.TOO_MANY_REQUESTS: "RESOURCE_EXHAUSTED",
    HTTPStatus.INTERNAL_SERVER_ERROR: "INTERNAL",
    HTTPStatus.SERVICE_UNAVAILABLE: "UNAVAILABLE",
}
"""google.rpc.Code of our own codes, by the HTTP status that they have everywhere."""

_OF_OURS: Final = {
    "TASK_NOT_FOUND": TASK_NOT_FOUND,
    "TASK_NOT_CANCELABLE": TASK_NOT_CANCELABLE,
    "NOT_WAITING": UNSUPPORTED_OPERATION,
    "INVALID_REQUEST": INVALID_PARAMS,
    "INVALID_CHOICE": INVALID_PARAMS,
    "UNSUPPORTED_MEDIA": CONTENT_TYPE_NOT_SUPPORTED,
    "INTERNAL": INTERNAL_ERROR,
    "STORE_ERROR": INTERNAL_ERROR,
}


class A2aError(Exception):
    """An error of A2A or JSON-RPC: `code`, a message for people, `metadata` of its ErrorInfo, and for parameters the
    violations as `(field, description)`. `reason` is one of our own codes, for SERVER_ERROR only."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        metadata: dict[str, str] | None = None,
        violations: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason
        self.metadata = metadata or {}
        self.violations = violations

    @property
    def http_status(self) -> int:
        kind = KINDS.get(self.code)
        return kind.http if kind else HTTP_STATUS.get(self.reason or "", 500)


def invalid_params(field: str, description: str, *more: tuple[str, str]) -> A2aError:
    """Returns the error -32602 for one field, and for `more` as `(field, description)`."""
    violations = ((field, description), *more)
    message = "; ".join(f"{name}: {text}" for name, text in violations)
    return A2aError(INVALID_PARAMS, message, violations=violations)


def from_synapsed(error: SynapsedError) -> A2aError:
    """Returns our error as A2A's. If A2A has no such error, our code is the reason of SERVER_ERROR."""
    code = _OF_OURS.get(error.code, SERVER_ERROR)
    metadata = {key: str(value) for key, value in error.details.items() if isinstance(value, str | int)}
    violations: tuple[tuple[str, str], ...] = ()
    message = error.message
    if isinstance(error, TaskNotFound):
        message = f"Task not found: {message}"  # A2A's own words (5.4), which some clients look for
        metadata["taskId"] = metadata.pop("task_id", "") or metadata.pop("task", "")
    if isinstance(error, InvalidRequest) and "field" in error.details:
        violations = ((str(error.details["field"]), error.message),)
    reason = error.code if code == SERVER_ERROR else None
    if code in KINDS and KINDS[code].reason != error.code:
        metadata["code"] = error.code
    if isinstance(error, InvalidChoice):
        metadata["options"] = json.dumps(error.details.get("options", []), ensure_ascii=False)
    return A2aError(code, message, reason=reason, metadata=metadata, violations=violations)


def rpc_error(error: A2aError) -> dict[str, Any]:
    """Returns the `error` member of a JSON-RPC response; `data` is an array of details."""
    return {"code": error.code, "message": error.message, "data": _details(error)}


def rpc_failure(request_id: str | int | float | None, error: A2aError) -> dict[str, Any]:
    """Returns a JSON-RPC response that refuses a request."""
    return {"jsonrpc": "2.0", "id": request_id, "error": rpc_error(error)}


def rest_error(error: A2aError, http_status: int | None = None) -> dict[str, Any]:
    """Returns the body of a refusal over HTTP: google.rpc.Status (11.6). `http_status` replaces the error's own."""
    code = http_status or error.http_status
    kind = None if code == HTTPStatus.METHOD_NOT_ALLOWED else KINDS.get(error.code)
    status = kind.status if kind else _STATUS.get(HTTPStatus(code), "UNKNOWN")
    return {"error": {"code": code, "status": status, "message": error.message, "details": _details(error)}}


def _details(error: A2aError) -> list[dict[str, Any]]:
    kind = KINDS.get(error.code)
    details: list[dict[str, Any]] = [
        {
            "@type": _ERROR_INFO,
            "reason": kind.reason if kind else error.reason or "INTERNAL_ERROR",
            "domain": DOMAIN if kind else OWN_DOMAIN,
            "metadata": error.metadata,
        }
    ]
    if error.violations:
        violations = [{"field": field, "description": text} for field, text in error.violations]
        details.append({"@type": _BAD_REQUEST, "fieldViolations": violations})
    return details
