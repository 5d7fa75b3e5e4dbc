"""Every document of 0.3 is what the SDK's types of 0.3 take, whole and without loss, and says what 1.0's says."""

import pytest
from a2a.compat.v0_3 import conversions
from a2a.compat.v0_3 import types as v03
from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from synapsed.a2a_types.convert import artifact_update, status_update, task_dict
from synapsed.model.events import Event, TaskArtifactAdded, TaskStatusChanged
from synapsed.model.task import Artifact, DataPart, Message, Task, TaskState, TextPart
from synapsed.parts.a2a.convert03 import push_config03, stream_event03, task03
from tests.parts.a2a.test_convert import NOW, artifacts, errors, normal, prompts, tasks


def through_the_types(document: dict, kind) -> dict:
    return kind.model_validate(document).model_dump(mode="json", by_alias=True, exclude_none=True)


@given(tasks)
def test_tasks(task):
    """They are what the types take, and say to the SDK what the task of 1.0 says."""
    told = task_dict(task)
    document = task03(told)
    assert through_the_types(document, v03.Task) == document
    read = conversions.to_core_task(v03.Task.model_validate(document))
    meant = json_format.ParseDict(told, pb.Task())
    assert (read.id, read.context_id, read.status.state) == (meant.id, meant.context_id, meant.status.state)
    assert texts(read) == texts(meant)
    assert data(read) == data(meant)


def texts(task: pb.Task) -> list[str]:
    return [part.text or part.url or part.raw.hex() for item in carriers(task) for part in item.parts]


def data(task: pb.Task) -> list:
    return [
        normal(json_format.MessageToDict(part.data))
        for item in carriers(task)
        for part in item.parts
        if part.HasField("data")
    ]


def carriers(task: pb.Task) -> list:
    return [task.status.message, *task.history, *task.artifacts]


@given(st.sampled_from(TaskState), st.none() | errors, st.none() | prompts)
def test_status_updates(state, error, prompt):
    data = TaskStatusChanged(state=state, error=error, prompt=prompt)
    event = Event(id=7, at=1735787045.0, agent_id="a", task_id="t", data=data)
    document = stream_event03(status_update(event, data, "c"))
    assert through_the_types(document, v03.TaskStatusUpdateEvent) == document
    assert document["final"] == (state not in {TaskState.SUBMITTED, TaskState.WORKING})


@given(artifacts, st.booleans(), st.booleans())
def test_artifact_updates(artifact, append, last_chunk):
    told = TaskArtifactAdded(artifact=artifact, append=append, last_chunk=last_chunk)
    event = Event(id=7, at=1.0, agent_id="a", task_id="t", data=told)
    document = stream_event03(artifact_update(event, told, "c"))
    assert through_the_types(document, v03.TaskArtifactUpdateEvent) == document


def test_a_task_by_example():
    task = Task(
        id="t",
        agent_id="a",
        context_id="c",
        status=TaskState.INPUT_REQUIRED,
        message=Message(parts=[TextPart(text="hi")], message_id="m"),
        artifacts=[Artifact(artifact_id="x", parts=[DataPart(data=[1]), DataPart(data={"k": 1})])],
        created_at=NOW,
        updated_at=NOW,
    )
    document = task03(task_dict(task))
    assert (document["kind"], document["status"]) == ("task", {"state": "input-required", "timestamp": NOW})
    assert document["history"] == [
        {
            "kind": "message",
            "messageId": "m",
            "contextId": "c",
            "taskId": "t",
            "role": "user",
            "parts": [{"kind": "text", "text": "hi"}],
        }
    ]
    assert document["artifacts"][0]["parts"] == [
        {"kind": "data", "data": {"value": [1]}, "metadata": {"data_part_compat": True}},
        {"kind": "data", "data": {"k": 1}},
    ]


@pytest.mark.parametrize(
    ("config", "inner"),
    [
        ({"url": "http://x"}, {"url": "http://x"}),
        (
            {"id": "1", "url": "http://x", "token": "t", "authentication": {"scheme": "Bearer", "credentials": "c"}},
            {"id": "1", "url": "http://x", "token": "t", "authentication": {"schemes": ["Bearer"], "credentials": "c"}},
        ),
        (
            {"url": "http://x", "authentication": {"scheme": "Bearer"}},
            {"url": "http://x", "authentication": {"schemes": ["Bearer"]}},
        ),
    ],
)
def test_push_configurations(config, inner):
    document = push_config03({"taskId": "t", **config})
    assert document == {"taskId": "t", "pushNotificationConfig": inner}
    assert through_the_types(document, v03.TaskPushNotificationConfig) == document
