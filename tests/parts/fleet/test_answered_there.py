"""What a person is told of a question on another host: never a way of answering that is refused there."""

from typing import Any

import pytest

from synapsectl.errors import ApiError
from synapsectl.prompts import only_there
from synapsectl.waiting import LONG_WAIT, Waiter
from synapsed_fleet.attention import inbox
from synapsed_fleet.host_record import HostRecord, WaitRecord
from synapsed_fleet.incoming import ANSWERED

AT = "2026-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("permission", "answer it on box, or here once that host takes persons of this one for its"),
        ("password", "answer it on box"),
        ("question", None),
        ("text", None),
    ],
)
def test_input_is_named_only_where_it_is_taken(asked: str, told: str | None) -> None:
    task = {"prompt": {"type": asked}, "metadata": {"external": {"via": "fleet", "host": "box", "answers": ANSWERED}}}
    assert only_there(task) == told
    assert only_there({**task, "metadata": {"external": {"via": "elsewhere", "host": "box"}}}) is None
    assert only_there({"prompt": {"type": asked}}) is None


@pytest.mark.parametrize(
    ("asked", "how"),
    [
        ("question", "'synapsectl input aaaaaaaa' answers it"),
        ("confirmation", "it is answered at box"),
        ("password", "it is answered at box"),
    ],
)
def test_the_inbox_names_input_only_where_it_is_taken(asked: str, how: str) -> None:
    waits = WaitRecord(
        id="i:1", agent="codex", kind="question", since=AT, prompt_type=asked, src="laptop", task="aaaaaaaa-1"
    )
    record = HostRecord(v=1, host="box", jwt="x", boot="1", n=1, waits=[waits])
    ((item,), _) = inbox([record], lambda _: "up", own="laptop")
    assert item.question == f"it is not told here; {how}"


class Daemon:
    """What it says of an agent on another host: nothing, but in the inbox."""

    def __init__(self, items: list[dict[str, Any]]) -> None:
        self.items = items

    def get(self, path: str, query: dict[str, Any] | None = None) -> Any:
        if path == "/inbox":
            return {"items": self.items, "hosts": []}
        raise ApiError("UNKNOWN_AGENT", "codex@box is an agent elsewhere")


def test_whoever_waits_behind_a_question_on_another_host_is_told_once() -> None:
    asks = {"agent": "codex@box", "kind": "permission", "question": "may I?", "task": None}
    notes: list[str] = []
    daemon = Daemon([{**asks, "agent": "codex@shed"}, {**asks, "kind": "finished"}, {**asks, "task": "t1"}])
    waiter = Waiter(daemon, note=notes.append)  # type: ignore[arg-type]
    waiter._since -= LONG_WAIT
    task = {"id": "t1", "agent_id": "codex@box", "status": "submitted"}
    assert waiter._held(task) is None
    assert notes == []
    daemon.items.append(asks)
    assert waiter._held(task) is None
    assert waiter._held(task) is None
    assert notes == ["the message waits behind what codex@box asks: may I?"]
