"""A2A's errors (specification 5.4, 9.5) as one class and a table, and which of `synapsed.errors` becomes which."""

from typing import Any, Final

from a2a.utils import errors as sdk

from synapsed.errors import InvalidRequest, SynapsedError, TaskNotFound

__all__ = [
    "CONTENT_TYPE_NOT_SUPPORTED",
    "EXTENDED_CARD_NOT_CONFIGURED",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "PUSH_NOT_SUPPORTED",
    "SERVER_ERROR",
    "TASK_NOT_CANCELABLE",
    "TASK_NOT_FOUND",
    "UNSUPPORTED_OPERATION",
    "VERSION_NOT_SUPPORTED",
    "A2aError",
    "from_synapsed",
    "invalid_params",
    "rpc_error",
]

DOMAIN: Final = "a2a-protocol.org"
OWN_DOMAIN: Final = "synapsed"
"""Domain of reasons that A2A does not know: our own codes."""
_ERROR_INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"
_BAD_REQUEST: Final = "type.googleapis.com/google.rpc.BadRequest"

_CODES = sdk.JSON_RPC_ERROR_CODE_MAP
TASK_NOT_FOUND: Final = _CODES[sdk.TaskNotFoundError]
TASK_NOT_CANCELABLE: Final = _CODES[sdk.TaskNotCancelableError]
PUSH_NOT_SUPPORTED: Final = _CODES[sdk.PushNotificationNotSupportedError]
UNSUPPORTED_OPERATION: Final = _CODES[sdk.UnsupportedOperationError]
CONTENT_TYPE_NOT_SUPPORTED: Final = _CODES[sdk.ContentTypeNotSupportedError]
EXTENDED_CARD_NOT_CONFIGURED: Final = _CODES[sdk.ExtendedAgentCardNotConfiguredError]
VERSION_NOT_SUPPORTED: Final = _CODES[sdk.VersionNotSupportedError]
INVALID_PARAMS: Final = _CODES[sdk.InvalidParamsError]
INVALID_REQUEST: Final = _CODES[sdk.InvalidRequestError]
METHOD_NOT_FOUND: Final = _CODES[sdk.MethodNotFoundError]
INTERNAL_ERROR: Final = _CODES[sdk.InternalError]
PARSE_ERROR: Final = _CODES[sdk.JSONParseError]
SERVER_ERROR: Final = -32000
"""JSON-RPC's code for what an implementation defines: our codes that A2A has no error for, told apart by `reason`."""

_REASONS: Final = {_CODES[kind]: reason for kind, reason in sdk.A2A_ERROR_REASONS.items()} | {
    PARSE_ERROR: "PARSE_ERROR"
}

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
    violations as `(field, description)`. `reason` is given for SERVER_ERROR only."""

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


def invalid_params(field: str, description: str) -> A2aError:
    """-32602 for one field."""
    return A2aError(INVALID_PARAMS, f"{field}: {description}", violations=((field, description),))


def from_synapsed(error: SynapsedError) -> A2aError:
    """Ours as A2A's; what A2A has no error for keeps its own code as the reason of SERVER_ERROR."""
    code = _OF_OURS.get(error.code, SERVER_ERROR)
    metadata = {key: str(value) for key, value in error.details.items() if isinstance(value, str | int)}
    violations: tuple[tuple[str, str], ...] = ()
    if isinstance(error, TaskNotFound):
        metadata["taskId"] = metadata.pop("task_id", "") or metadata.pop("task", "")
    if isinstance(error, InvalidRequest) and "field" in error.details:
        violations = ((str(error.details["field"]), error.message),)
    reason = error.code if code == SERVER_ERROR else None
    return A2aError(code, error.message, reason=reason, metadata=metadata, violations=violations)


def rpc_error(error: A2aError) -> dict[str, Any]:
    """The `error` member of a JSON-RPC response; `data` is an array of details."""
    known = _REASONS.get(error.code)
    details: list[dict[str, Any]] = [
        {
            "@type": _ERROR_INFO,
            "reason": known or error.reason or "INTERNAL_ERROR",
            "domain": DOMAIN if known else OWN_DOMAIN,
            "metadata": error.metadata,
        }
    ]
    if error.violations:
        violations = [{"field": field, "description": text} for field, text in error.violations]
        details.append({"@type": _BAD_REQUEST, "fieldViolations": violations})
    return {"code": error.code, "message": error.message, "data": details}
