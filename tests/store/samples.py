"""Tasks, records and events to store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from synapsed.clock import iso
from synapsed.interfaces import EventLog, NewEvent
from synapsed.model.events import Event, TaskStatusChanged
from synapsed.model.records import AgentRecord
from synapsed.model.task import Message, Task, TaskState
from tests.support.patience import PATIENCE_S

DEADLINE = PATIENCE_S
"""Seconds within which a thing that must happen has happened, however busy the machine."""


class Hands:
    """A clock whose hands the test turns."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def monotonic(self) -> float:
        return self.now

    boot = monotonic

    def wall(self) -> float:
        return self.now

    settled = wall


def a_task(number: int = 0, *, agent_id: str = "synapse-claude-8100", **changes: Any) -> Task:
    """A task last updated `number` seconds into the epoch."""
    return Task(
        agent_id=agent_id, message=Message.of(f"do {number}"), created_at=iso(number), updated_at=iso(number)
    ).model_copy(update=changes)


def an_agent(agent_id: str = "synapse-claude-8100", **changes: Any) -> AgentRecord:
    return AgentRecord(
        id=agent_id, name=agent_id, profile="claude", port=8100, cwd="/", env={"A": "é"}, created_at=1.0
    ).model_copy(update=changes)


def news(task_id: str | None = None, agent_id: str = "synapse-claude-8100", reason: str = "") -> NewEvent:
    return NewEvent(agent_id, TaskStatusChanged(state=TaskState.WORKING, reason=reason), task_id)


async def take(events: AsyncIterator[Event], count: int) -> list[Event]:
    """The next `count` events of a view."""
    async with asyncio.timeout(DEADLINE):
        return [await anext(events) for _ in range(count)]


def reasons(events: list[Event]) -> list[str | None]:
    """What `news` was given."""
    return [event.data.reason for event in events if isinstance(event.data, TaskStatusChanged)]


async def take_from(log: EventLog, after: int, count: int, **which: Any) -> list[Event]:
    """The first `count` events of a fresh view."""
    async with aclosing(log.follow(after, **which)) as events:
        return await take(events, count)
