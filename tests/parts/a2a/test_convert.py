"""Every document that goes out is what the SDK's types take, whole and without loss; messages come in as they are."""

import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from synapsed.a2a_types.a2a_errors import A2aError
from synapsed.a2a_types.convert import STATES, artifact_update, message_from, status_update, task_dict
from synapsed.model.events import Event, TaskArtifactAdded, TaskStatusChanged
from synapsed.model.task import (
    Artifact,
    DataPart,
    FileContent,
    FilePart,
    Message,
    Prompt,
    PromptOption,
    Task,
    TaskError,
    TaskState,
    TextPart,
)

NOW = "2025-01-02T03:04:05.000Z"
PROMPT = Prompt(
    prompt_id="p1", type="permission", prompt="Run ls?", options=[PromptOption(key="1", label="Yes")], default="1"
)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.integers(-(2**50), 2**50) | st.floats(allow_nan=False, allow_infinity=False, width=32)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner),
)
metadata = st.none() | st.dictionaries(texts, json_values, max_size=3)
parts = st.one_of(
    st.builds(TextPart, text=texts, metadata=metadata),
    st.builds(DataPart, data=json_values, metadata=metadata),
    st.builds(
        FilePart,
        file=st.builds(
            FileContent, name=st.none() | texts, mime_type=st.none() | texts, bytes=st.none() | texts, uri=texts
        ),
        metadata=metadata,
    ),
)
artifacts = st.builds(
    Artifact,
    artifact_id=texts,
    type=st.sampled_from(["text", "code"]),
    name=texts,
    parts=st.lists(parts),
    metadata=metadata,
)
prompts = st.builds(
    Prompt, prompt_id=texts, prompt=texts, options=st.lists(st.builds(PromptOption, key=texts, label=texts), max_size=2)
)
errors = st.builds(TaskError, code=texts, message=texts, details=st.dictionaries(texts, json_values, max_size=2))
tasks = st.builds(
    Task,
    id=texts,
    agent_id=st.just("a"),
    context_id=texts,
    status=st.sampled_from(TaskState),
    message=st.builds(Message, parts=st.lists(parts, min_size=1, max_size=3), metadata=metadata),
    artifacts=st.lists(artifacts, max_size=3),
    metadata=st.dictionaries(texts, json_values, max_size=3),
    created_at=st.just(NOW),
    updated_at=st.just(NOW),
    error=st.none() | errors,
    exact=st.none() | st.booleans(),
    prompt=st.none() | prompts,
)


def normal(value):
    """As ProtoJSON leaves it: numbers are doubles, a whole second has no fraction, what is empty is left out."""
    if isinstance(value, dict):
        return {key: normal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [normal(item) for item in value]
    if isinstance(value, float | int) and not isinstance(value, bool):
        return float(value)
    return value.replace(".000Z", "Z") if value == NOW else value


def through_the_sdk(document: dict, message) -> dict:
    parsed = json_format.ParseDict(document, message, ignore_unknown_fields=False)
    return json_format.MessageToDict(parsed, always_print_fields_with_no_presence=True)


def contains(whole, part) -> bool:
    """Whether everything of `part` is in `whole`."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and contains(whole[key], part[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(contains, whole, part))
    return whole == part


@given(tasks)
def test_tasks(task):
    document = task_dict(task)
    assert contains(normal(through_the_sdk(document, pb.Task())), normal(document))


@given(st.sampled_from(TaskState), st.none() | texts, st.none() | errors, st.none() | prompts)
def test_status_updates(state, reason, error, prompt):
    data = TaskStatusChanged(state=state, reason=reason, error=error, prompt=prompt)
    event = Event(id=7, at=1735787045.0, agent_id="a", task_id="t", data=data)
    document = status_update(event, data, "c")
    assert contains(normal(through_the_sdk(document, pb.StreamResponse())), normal(document))


@given(artifacts, st.booleans(), st.booleans())
def test_artifact_updates(artifact, append, last_chunk):
    data = TaskArtifactAdded(artifact=artifact, append=append, last_chunk=last_chunk)
    event = Event(id=7, at=1.0, agent_id="a", task_id="t", data=data)
    document = artifact_update(event, data, "c")
    assert contains(normal(through_the_sdk(document, pb.StreamResponse())), normal(document))


def a_task(**changes) -> Task:
    task = Task(id="t", agent_id="a", context_id="c", message=Message.of("hi"), created_at=NOW, updated_at=NOW)
    return task.model_copy(update=changes)


def test_all_states_are_known():
    assert set(STATES.values()) == set(pb.TaskState.keys()) - {"TASK_STATE_UNSPECIFIED"}


def test_a_prompt_is_said():
    document = task_dict(a_task(status=TaskState.INPUT_REQUIRED, prompt=PROMPT))
    said = document["status"]["message"]
    assert document["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert (said["role"], said["parts"][0]["text"]) == ("ROLE_AGENT", "Run ls?")
    assert said["parts"][1]["data"]["options"] == [{"key": "1", "label": "Yes"}]
    assert document["metadata"]["synapsed"]["prompt"]["prompt_id"] == "p1"


def test_a_prompt_is_said_with_its_command_or_edit():
    for more in ({"command": "ls\n-la"}, {"diff": "--- f\n+++ f\n-a"}):
        document = task_dict(a_task(status=TaskState.INPUT_REQUIRED, prompt=PROMPT.model_copy(update=more)))
        words, data = document["status"]["message"]["parts"]
        (told,) = more.values()
        assert words["text"] == f"Run ls?\n\n{'$ ' if 'command' in more else ''}{told}"
        assert more.items() <= data["data"].items()


def test_an_error_is_said():
    document = task_dict(a_task(status=TaskState.FAILED, error=TaskError(code="AGENT_EXITED", message="exit code 7")))
    assert document["status"]["message"]["parts"][0]["text"] == "exit code 7"
    assert document["metadata"]["synapsed"]["error"]["code"] == "AGENT_EXITED"


@pytest.mark.parametrize(("length", "count"), [(None, 1), (0, 0), (1, 1), (5, 1)])
def test_history_length(length, count):
    assert len(task_dict(a_task(), history_length=length).get("history", [])) == count


def test_artifacts_on_request():
    task = a_task(artifacts=[Artifact.answer("x")], exact=False)
    assert task_dict(task)["artifacts"][0]["artifactId"] == "answer"
    assert task_dict(task)["metadata"]["synapsed"]["exact"] is False
    assert "artifacts" not in task_dict(task, artifacts=False)


def test_timestamps_have_milliseconds():
    assert task_dict(a_task())["status"]["timestamp"] == NOW


def test_a_message_comes_in():
    message = message_from(
        pb.Message(
            message_id="m",
            role="ROLE_USER",
            metadata={"n": 1},
            parts=[
                pb.Part(text="hi"),
                pb.Part(raw=b"\x00\xff", filename="a.bin", media_type="application/octet-stream"),
                pb.Part(url="https://x/y"),
                json_format.ParseDict({"data": {"n": 1, "x": [None, 1.5]}}, pb.Part()),
            ],
        )
    )
    assert (message.message_id, message.role, message.metadata) == ("m", "user", {"n": 1})
    assert message.parts == [
        TextPart(text="hi"),
        FilePart(file=FileContent(name="a.bin", mime_type="application/octet-stream", bytes="AP8=")),
        FilePart(file=FileContent(uri="https://x/y")),
        DataPart(data={"n": 1, "x": [None, 1.5]}),
    ]
    out = task_dict(a_task(message=message))["history"][0]
    assert out["parts"][1] == {"raw": "AP8=", "filename": "a.bin", "mediaType": "application/octet-stream"}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (pb.Message(), -32602),
        (pb.Message(message_id="m", parts=[pb.Part(text="x")]), -32602),
        (pb.Message(message_id="m", role="ROLE_AGENT", parts=[pb.Part(text="x")]), -32602),
        (pb.Message(message_id="m", role="ROLE_USER"), -32602),
        (pb.Message(message_id="m", role="ROLE_USER", parts=[pb.Part()]), -32602),
        (pb.Message(message_id="m", role="ROLE_USER", parts=[pb.Part(text=" ")]), -32005),
    ],
)
def test_messages_that_are_refused(message, code):
    with pytest.raises(A2aError) as raised:
        message_from(message)
    assert raised.value.code == code
