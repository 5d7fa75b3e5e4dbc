"""Waits for agents that others depend on, without agents."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.supervisor.startup_order import DEPENDENCY_S, StartOrder
from tests.fakes.clock import FakeClock, FakeTimer, until


class Counting(FakeClock):
    """Fails, in place of the test's hanging, where timers are set without end."""

    asked = 0

    def call_later(self, delay: float, callback: Any) -> FakeTimer:
        self.asked += 1
        assert self.asked <= 2, "one timer for each wait"
        return super().call_later(delay, callback)


async def test_a_wait_after_one_that_was_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has changed since the first was given up, so the second waits, and does not keep the loop busy."""
    monkeypatch.setattr("synapsed.agents.views.is_coming_up", lambda agent: True)
    clock = Counting()
    order = StartOrder({}, clock=clock, timers=clock)
    late: Any = SimpleNamespace(record=SimpleNamespace(name="late"))
    await _wait_in_vain(order, late, clock)
    await _wait_in_vain(order, late, clock)
    assert clock.asked == 2


async def _wait_in_vain(order: StartOrder, late: Any, clock: FakeClock) -> None:
    waiting = asyncio.ensure_future(order._until_up([late]))
    await until(lambda: waiting.done() or clock.pending() == [DEPENDENCY_S], "it waits")
    clock.advance(DEPENDENCY_S)
    await waiting
