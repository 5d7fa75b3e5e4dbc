"""What becomes of a task here, by what the agent over there says of it."""

from typing import Any

import pytest

from synapsed.a2a_types.partial_answer import Snapshot
from synapsed.a2a_types.remote_outcome import ID_MAX, LABEL_MAX, OPTIONS_MAX, TEXT_MAX, outcome
from synapsed.model.external import KEY
from synapsed.model.task import Message, Prompt, Task, TaskState

NOW = "2026-01-01T00:00:00.000Z"
ALLOW = {"prompt_id": "p", "type": "permission", "prompt": "Allow?", "options": [{"key": "1", "label": "Yes"}]}


def task_of(**more: Any) -> Task:
    told = {"status": TaskState.WORKING, **more}
    known = Task(id="t", agent_id="external:far", message=Message.of("hi"), created_at=NOW, updated_at=NOW)
    return known.model_copy(update={**told, "metadata": {KEY: {"alias": "far", "task_id": "there"}}})


def waits(prompt: dict[str, Any] | None = None, said: str = "") -> Snapshot:
    own = {} if prompt is None else {"prompt": prompt}
    return Snapshot(id="there", context_id="", state=TaskState.INPUT_REQUIRED, artifacts=None, said=said, own=own)


def asked(prompt: dict[str, Any] | None = None, said: str = "") -> Prompt:
    commit = outcome(task_of(), waits(prompt, said), by="far", now=1.0)
    assert commit is not None
    assert commit.task.prompt is not None
    return commit.task.prompt


def test_a_question_is_taken_as_it_is() -> None:
    assert asked(ALLOW) == Prompt.model_validate(ALLOW)


@pytest.mark.parametrize("member", ["prompt", "command", "diff"])
def test_what_is_too_long_is_cut_and_cannot_be_allowed_by_a_press(member: str) -> None:
    prompt = asked({**ALLOW, "default": "1", member: "x" * (TEXT_MAX + 1)})
    assert getattr(prompt, member) == "x" * TEXT_MAX
    assert (prompt.options, prompt.default, prompt.type, prompt.prompt_id) == ([], None, "question", "p")


def test_options_have_bounds() -> None:
    many = [{"key": str(number), "label": "x" * 1000} for number in range(1000)]
    prompt = asked({**ALLOW, "options": [{"key": "k" * (ID_MAX + 1), "label": "no"}, *many]})
    assert len(prompt.options) == OPTIONS_MAX - 1
    assert {len(one.label) for one in prompt.options} == {LABEL_MAX}


def test_a_long_id_is_no_prompts() -> None:
    prompt = asked({**ALLOW, "prompt_id": "p" * (ID_MAX + 1)}, said="y" * (TEXT_MAX + 1))
    assert prompt.prompt_id.startswith("there:")
    assert (prompt.prompt, prompt.options) == ("y" * TEXT_MAX, [])
