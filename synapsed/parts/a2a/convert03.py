"""A2A 1.0's JSON as that of 0.3 (its section 6): pure, and without the SDK.

The differences: objects name their `kind`, states are in kebab-case, roles in lower case, a part's file is an object of
its own, and its `data` is always an object. tests/parts/a2a/test_convert03.py compares the results with the SDK's types
of 0.3.
"""

from collections.abc import Mapping
from typing import Any, Final

from synapsed.model.task import INTERRUPTED_STATES, TERMINAL_STATES, TaskState

_STATES: Final = {f"TASK_STATE_{state.value.upper()}": state for state in TaskState}
_ROLES: Final = {"ROLE_USER": "user", "ROLE_AGENT": "agent"}
_FINAL: Final = TERMINAL_STATES | INTERRUPTED_STATES
"""States at which a stream ends."""
WRAPPED: Final = "data_part_compat"
"""Mark in a data part's metadata, the same as the SDK's: its data was no object, and stands under `value`."""

type Json = dict[str, Any]


def task03(task: Mapping[str, Any]) -> Json:
    document = {"kind": "task", **task, "status": _status(task["status"])}
    if "artifacts" in task:
        document["artifacts"] = [_artifact(artifact) for artifact in task["artifacts"]]
    if "history" in task:
        document["history"] = [_message(message) for message in task["history"]]
    return document


def stream_event03(response: Mapping[str, Any]) -> Json:
    """Converts the content of a StreamResponse. `final` is true for the state with which the stream ends, which may
    also be one in which the task waits for input."""
    if "task" in response:
        return task03(response["task"])
    if "artifactUpdate" in response:
        update = response["artifactUpdate"]
        return {"kind": "artifact-update", **update, "artifact": _artifact(update["artifact"])}
    update = response["statusUpdate"]
    final = _STATES[update["status"]["state"]] in _FINAL
    return {"kind": "status-update", **update, "status": _status(update["status"]), "final": final}


def push_config03(config: Mapping[str, Any]) -> Json:
    """Converts a TaskPushNotificationConfig: flat in 1.0, and with one scheme of authentication."""
    inner = {name: config[name] for name in ("id", "url", "token") if name in config}
    if authentication := config.get("authentication"):
        scheme = authentication.get("scheme")
        rest = {name: value for name, value in authentication.items() if name == "credentials"}
        inner["authentication"] = {"schemes": [scheme] if scheme else [], **rest}
    return {"taskId": config["taskId"], "pushNotificationConfig": inner}


def _status(status: Mapping[str, Any]) -> Json:
    document = {**status, "state": _STATES[status["state"]].value.replace("_", "-")}
    if "message" in status:
        document["message"] = _message(status["message"])
    return document


def _message(message: Mapping[str, Any]) -> Json:
    role = _ROLES[message["role"]]
    return {"kind": "message", **message, "role": role, "parts": [_part(part) for part in message["parts"]]}


def _artifact(artifact: Mapping[str, Any]) -> Json:
    return {**artifact, "parts": [_part(part) for part in artifact["parts"]]}


def _part(part: Mapping[str, Any]) -> Json:
    document: Json
    metadata = part.get("metadata")
    if "text" in part:
        document = {"kind": "text", "text": part["text"]}
    elif "data" in part:
        document = {"kind": "data", "data": part["data"]}
        if not isinstance(part["data"], dict):
            document["data"] = {"value": part["data"]}
            metadata = {**(metadata or {}), WRAPPED: True}
    else:
        document = {"kind": "file", "file": _file(part)}
    if metadata:
        document["metadata"] = metadata
    return document


def _file(part: Mapping[str, Any]) -> Json:
    file: Json = {"bytes": part["raw"]} if "raw" in part else {"uri": part["url"]}
    if "filename" in part:
        file["name"] = part["filename"]
    if "mediaType" in part:
        file["mimeType"] = part["mediaType"]
    return file
