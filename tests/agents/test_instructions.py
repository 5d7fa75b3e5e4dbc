"""What agents are told of themselves and of each other."""

import pytest

from synapsed.agents.briefing import TEXTS, Colleague, fingerprint, instructions, on_record, task_of
from synapsed.model.task import TaskState
from synapsed.profiles.screen_spec import DeliverySpec
from synapsed.tasks.prompt_text import compose

ME = Colleague("synapse-claude-8100", "claude", "claude", 8100)
CODEX = Colleague("synapse-codex-8120", "reviewer", "codex", 8120)


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("mcp", [True, False])
def test_identity_others_and_ways(language: str, mcp: bool) -> None:
    text = instructions(ME, [CODEX], language=language, text=None, mcp=mcp)
    assert text.startswith("[Synapse A2A Protocol Instructions]\n")
    for told in ("synapse-claude-8100", "8100", "reviewer (codex)", "[A2A:<task>:<sender>:R]"):
        assert told in text
    assert ("send_message" in text) is mcp
    assert ("synapsectl send" in text) is not mcp
    assert "{" not in text


def test_words_of_ones_own() -> None:
    text = instructions(ME, [], language="en", text="I am {name} of {type}; {others}. {unknown}", mcp=False)
    assert text.endswith("I am claude of claude; nobody. {unknown}\n")


def test_the_order_of_the_others_changes_nothing() -> None:
    other = Colleague("synapse-gemini-8110", "gemini", "gemini", 8110)
    texts = [instructions(ME, order, language="en", text=None, mcp=True) for order in ([CODEX, other], [other, CODEX])]
    assert fingerprint(texts[0]) == fingerprint(texts[1])


def test_typed_it_is_a_message_of_synapsed_with_its_frames_whole(tmp_path) -> None:
    text = instructions(ME, [CODEX], language="en", text=None, mcp=False)
    task = task_of(ME.id, "context", text, 0.0, endpoint="http://localhost:8100")
    typed = compose(task, DeliverySpec(provenance=True), tmp_path).text
    assert typed == f"[A2A:{task.id[:8]}:synapse-system] {text}"


def test_on_record_it_is_done() -> None:
    task, events = on_record(task_of(ME.id, "context", "words", 0.0, endpoint="http://localhost:8100"))
    assert task.status is TaskState.COMPLETED
    assert [(event.task_id, event.data.state) for event in events] == [
        (task.id, TaskState.SUBMITTED),
        (task.id, TaskState.COMPLETED),
    ]
