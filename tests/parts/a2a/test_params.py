"""Requests from JSON: the same messages as protobuf's own parser makes."""

from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format

from synapsed.a2a_types.a2a_errors import A2aError
from synapsed.parts.a2a.params import parse

MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
PUSH = {"id": "c", "url": "http://x", "token": "t", "authentication": {"scheme": "Bearer", "credentials": "s"}}


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        (pb.GetTaskRequest, {"id": "t", "historyLength": 3}),
        (pb.GetTaskRequest, {"id": "t", "history_length": "3", "tenant": "a", "unknown": {"x": 1}}),
        (pb.GetTaskRequest, {"id": "t", "historyLength": 3.0}),
        (pb.GetTaskRequest, {"id": "t", "historyLength": 0}),
        (pb.GetTaskRequest, {"id": None, "historyLength": None}),
        (pb.GetTaskRequest, {}),
        (pb.ListTasksRequest, {"status": "TASK_STATE_WORKING", "pageSize": 5, "includeArtifacts": True}),
        (
            pb.ListTasksRequest,
            {"status": 2, "statusTimestampAfter": "2026-01-31T12:00:00.5Z", "includeArtifacts": False},
        ),
        (pb.ListTasksRequest, {"status": None, "statusTimestampAfter": None}),
        (pb.SendMessageRequest, {"message": MESSAGE}),
        (pb.SendMessageRequest, {"message": MESSAGE, "configuration": {}, "metadata": {}}),
        (pb.SendMessageRequest, {"message": {**MESSAGE, "role": 1, "parts": None}, "configuration": None}),
        (pb.SendMessageRequest, {"message": {**MESSAGE, "extensions": ["u", "v"], "referenceTaskIds": []}}),
        (
            pb.SendMessageRequest,
            {
                "message": {
                    **MESSAGE,
                    "contextId": "c",
                    "task_id": "t",
                    "metadata": {"a": [1, {"b": None}], "é": "\U0001f600"},
                    "parts": [
                        {"raw": "AAEC", "filename": "f", "mediaType": "m"},
                        {"url": "http://x", "metadata": {"k": True}},
                        {"data": {"x": [1.5, "y"]}},
                        {"data": [1, 2]},
                        {"data": None},
                        {"data": "text"},
                        {"text": ""},
                        {},
                    ],
                },
                "configuration": {
                    "acceptedOutputModes": ["text/plain"],
                    "historyLength": 2,
                    "returnImmediately": True,
                    "taskPushNotificationConfig": {"taskId": "t", **PUSH},
                },
                "metadata": {"traceparent": "00"},
            },
        ),
        (pb.TaskPushNotificationConfig, {"taskId": "t", **PUSH}),
    ],
)
def test_a_request_is_what_protobuf_makes_of_it(kind: Any, params: dict[str, Any]) -> None:
    theirs = json_format.ParseDict(params, kind(), ignore_unknown_fields=True)
    assert parse(params, kind) == theirs


@pytest.mark.parametrize("text", ["\ud800", "a\udfff"])
@pytest.mark.parametrize("place", ["id", "tenant"])
def test_half_a_character_is_refused(place: str, text: str) -> None:
    with pytest.raises(A2aError):
        parse({"id": "t", place: text}, pb.GetTaskRequest)
