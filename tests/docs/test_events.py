"""What is made from the models of events is what stands in the repository, and says what is sent."""

import json

import jsonschema
import pytest

from scripts.events import DOCUMENT, TYPES, document, typescript
from synapsed.model.agent import Activity
from synapsed.model.events import (
    ActivityChanged,
    AgentTransition,
    Event,
    EventData,
    TaskArtifactAdded,
    TaskStatusChanged,
    ToolExecution,
)
from synapsed.model.events.json_schema import KINDS, event_schema
from synapsed.model.events.wire import TYPES as NAMES
from synapsed.model.events.wire import batch, encoded, gap
from synapsed.model.task import Artifact, Prompt, PromptOption, TaskState

PROMPT = Prompt(prompt_id="p", type="permission", prompt="?", options=[PromptOption(key="1", label="Yes")])

TOLD: list[EventData] = [
    ToolExecution(tool_name="Bash", status="failed", input={"command": "ls"}, error="no", denied=True),
    ToolExecution(tool_name="Bash", status="completed", output={"text": "x" * 20_000}),
    AgentTransition(to_agent="synapse-codex-8120"),
    ActivityChanged(activity=Activity.WAITING, evidence="screen", prompt=PROMPT),
    TaskStatusChanged(state=TaskState.INPUT_REQUIRED, prompt=PROMPT),
    TaskArtifactAdded(artifact=Artifact.answer("y" * 20_000)),
]


def test_it_is_what_the_models_say():
    assert TYPES.read_text() == typescript(), "run 'python -m scripts.events'"
    assert DOCUMENT.read_text() == document(), "run 'python -m scripts.events'"


def test_every_type_is_in_it():
    assert {str(kind.model_fields["type"].default) for kind in KINDS} == {*NAMES, "gap"}
    assert all(f"\n### {name}\n" in DOCUMENT.read_text() for name in NAMES)


@pytest.mark.parametrize("data", TOLD, ids=lambda data: data.type)
def test_what_is_sent_is_what_the_schema_says(data: EventData):
    told = encoded(Event(id=7, at=1.5, agent_id="a", task_id="t", context_id="c", data=data))
    check = jsonschema.Draft202012Validator(event_schema())
    check.validate(json.loads(told))
    check.validate(json.loads(batch([told, told], last=7, at=1.0)))
    check.validate(json.loads(gap(1, 2, at=1.0)))
    wrong = {**json.loads(told), "event": "nonsense"}
    assert not check.is_valid(wrong)


def test_the_seeds_events_have_the_seeds_fields():
    defs = event_schema()["$defs"]
    for name, fields in {
        "ToolExecution": ["tool_name", "status", "input", "output", "error"],
        "AgentTransition": ["from_agent", "to_agent", "reason"],
        "EmotionUpdate": ["emotion_type", "level", "detected_from"],
    }.items():
        assert list(defs[name]["properties"])[: len(fields)] == fields
    level = defs["EmotionUpdate"]["properties"]["level"]
    assert (level["type"], level["minimum"], level["maximum"]) == ("integer", 1, 5)
