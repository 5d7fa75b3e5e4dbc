"""A database that the store of 18398962 wrote, with its models and a turn in each phase: nothing of it is lost here."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from synapsed.model.events import AgentReported, AttentionChanged
from synapsed.model.task import TaskState
from synapsed.parts.a2a.push.push_table import PushTable
from synapsed.parts.schedules.table import ScheduleTable
from synapsed.pty.channel_turn import ChannelTurnState
from synapsed.pty.turn_types import TurnState
from synapsed.store.store import SqliteStore
from tests.store.conftest import OpenStore

WRITTEN = Path(__file__).parent / "written" / "18398962.sql"
"""All of it; the rows of turns are of tasks called `task-typed-PHASE` and `task-sent-PHASE`."""
KEY = bytes.fromhex("c7a533960b13dfcf7b7b88318e86ad91177c0398ad44ab4fc8a20256cf6bad04")
"""What its secrets are sealed with."""


@pytest.fixture
async def before(open_store: OpenStore, tmp_path: Path) -> SqliteStore:
    path = tmp_path / "before.db"
    with closing(sqlite3.connect(path, autocommit=True)) as made:
        made.executescript(WRITTEN.read_text())
    key = path.with_suffix(".key")
    key.touch(mode=0o600)
    key.write_bytes(KEY)
    return await open_store(path)


async def test_a_turn_in_each_phase_is_as_it_was(before: SqliteStore) -> None:
    links = {turn.task_id: turn.link for turn in await before.turns()}
    typed = {name: link for name, link in links.items() if name.startswith("task-typed-")}
    sent = {name: link for name, link in links.items() if name.startswith("task-sent-")}
    assert (len(typed), len(sent), links["task-working"]) == (8, 3, {})
    for kind, turns in ((TurnState, typed), (ChannelTurnState, sent)):
        for link in turns.values():
            now: dict[str, Any] = kind.model_validate(link).model_dump(mode="json")
            assert {name: now[name] for name in link} == link
    assert {turn.attempt for turn in await before.turns() if turn.link} == {2}


async def test_tasks_agents_and_events_are_there(before: SqliteStore) -> None:
    done = await before.task("task-done")
    assert done is not None
    assert (done.status, done.answer) == (TaskState.COMPLETED, "the answer")
    failed = await before.task("task-failed")
    assert failed is not None
    assert failed.error is not None
    assert failed.error.code == "AGENT_EXITED"
    asks = await before.task("task-asks")
    assert asks is not None
    assert asks.prompt is not None
    assert [option.label for option in asks.prompt.options] == ["Yes", "No"]
    assert len(await before.open_tasks()) == 15
    claude, box = await before.agents()
    assert claude.launch is not None
    assert (claude.launch.pid, claude.conversation, claude.env) == (6, "c1", {"A": "é"})
    assert json.loads(json.dumps(box.limit))["words"] == "limit reached"
    events = await before.events.read(0)
    assert len(events) == 10
    assert events[7].data == AgentReported(kind="note", message="hello")
    assert events[9].data.type == "activity"
    (opened,) = await before.events.open_attention(box.id)
    assert isinstance(opened.data, AttentionChanged)
    assert opened.data.question == "limit reached"


async def test_what_parts_keep_is_there(before: SqliteStore) -> None:
    (push,) = await PushTable(before).of_task("task-working")
    assert (push.url, push.token) == ("https://example.com/hook", "t0ken")
    (reply,) = await before.replies()
    assert (reply.task_id, reply.state, reply.asked) == ("task-request", "asked", "task-working")
    schedules = await ScheduleTable(before).schedules()
    assert schedules["file:daily"][1].last_task == "task-waits"
    weekly, _ = schedules["weekly"]
    assert weekly is not None
    assert (weekly.at, weekly.message) == ("Mon 09:00", "look")
    for name in ("rules", "moods", "webhook:ci"):
        state = await before.follower(name)
        assert state is not None
        assert state.cursor == 3
    checkpoint = await before.checkpoint("synapse-claude-8100")
    assert checkpoint is not None
    assert (checkpoint.redraw, checkpoint.state) == (b"drawn", {"x": 1})
