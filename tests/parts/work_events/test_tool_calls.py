"""Which tool calls are open, how they end, and what is told of that."""

import json
from typing import Any

import pytest

from synapsed.interfaces import NewEvent
from synapsed.model.agent import Activity
from synapsed.model.events import Event, ToolExecution
from synapsed.model.facts import PermissionAsked, ToolBegan, ToolOver, TurnEnded, TurnInterrupted
from synapsed.model.link import LinkExited, LinkRefused, LinkTold, LinkTurnInterrupted
from synapsed.model.task import TaskState
from synapsed.parts.work_events.tool_calls import KEPT_BYTES, ToolCalls, cut
from tests.fakes.clock import until
from tests.support.world import World

AGENT = "synapse-fake-8190"
MS = 1_000_000


def began(command: str, *, call: str | None = None, at: int = 0, turn: str | None = None) -> ToolBegan:
    return ToolBegan(channel="hooks", at_ns=at * MS, turn=turn, call=call, tool="Bash", input={"command": command})


def over(command: str, *, call: str | None = None, at: int = 0, **more: Any) -> ToolOver:
    given = {"command": command}
    return ToolOver(channel="hooks", at_ns=at * MS, call=call, tool="Bash", input=given, **more)


def data(events: list[NewEvent]) -> list[ToolExecution]:
    told = [event.data for event in events]
    assert all(isinstance(one, ToolExecution) for one in told)
    return [one for one in told if isinstance(one, ToolExecution)]


def one(events: list[NewEvent]) -> ToolExecution:
    (told,) = data(events)
    return told


def kept(calls: list[NewEvent]) -> list[Event]:
    return [
        Event(id=number, at=0, agent_id=event.agent_id, task_id=event.task_id, data=event.data)
        for number, event in enumerate(calls, 1)
    ]


def test_a_call_by_its_id() -> None:
    calls = ToolCalls("a")
    started = one(calls.began(began("ls", call="c1", at=10), None))
    assert (started.status, started.tool_name, started.input, started.source) == (
        "started",
        "Bash",
        {"command": "ls"},
        "hooks",
    )
    told = one(calls.over(over("ls", call="c1", at=35, output={"text": "x"}), None))
    assert (told.status, told.call_id, told.duration_ms, told.output) == ("completed", "c1", 25, {"text": "x"})
    assert calls.open == 0


def test_the_program_s_own_measure_of_time_counts() -> None:
    calls = ToolCalls("a")
    calls.began(began("ls", call="c1", at=10), None)
    assert one(calls.over(over("ls", call="c1", at=900, duration_ms=7), None)).duration_ms == 7


@pytest.mark.parametrize(
    ("commands", "ends", "pairs"),
    [
        pytest.param(["a", "b"], ["b", "a"], [1, 0], id="by input"),
        pytest.param(["a", "a"], ["a", "a"], [0, 1], id="equal: by order"),
        pytest.param(["a", "b"], ["?", "?"], [0, 1], id="input not told: by order"),
    ],
)
def test_two_at_once_without_ids(commands: list[str], ends: list[str], pairs: list[int]) -> None:
    calls = ToolCalls("a")
    ids = [one(calls.began(began(text, at=at), None)).call_id for at, text in enumerate(commands)]
    assert len(set(ids)) == 2
    ended = [one(calls.over(over(text, at=10 + at), None)).call_id for at, text in enumerate(ends)]
    assert [ids.index(call_id) for call_id in ended] == pairs


def test_an_end_without_a_start_is_told_without_a_duration() -> None:
    told = one(ToolCalls("a").over(over("ls", call="c1", at=9, error="no"), None))
    assert (told.status, told.error, told.duration_ms, told.input) == ("failed", "no", None, {"command": "ls"})


def test_a_denial_ends_the_call_whichever_is_heard_of_first() -> None:
    calls = ToolCalls("a")
    calls.began(began("rm x", call="c1"), None)
    first = one(calls.denied("bash", ("rm x",), "by the rule"))
    assert (first.status, first.denied, first.error, first.call_id) == ("failed", True, "by the rule", "c1")
    assert calls.over(over("rm x", call="c1", error="by the rule"), None) == []  # the program tells it later

    assert calls.denied("Bash", ("rm y",), "by the rule") == []
    started, failed = data(calls.began(began("rm y", call="c2"), None))
    assert (started.status, failed.status, failed.denied) == ("started", "failed", True)
    assert [told.status for told in data(calls.began(began("rm y", call="c3"), None))] == ["started"]


def test_a_refusal_in_the_dialog_is_of_the_call_that_it_shows() -> None:
    calls = ToolCalls("a")
    calls.began(began("touch  a", call="c1"), None)
    calls.began(began("touch b", call="c2"), None)
    told = one(calls.refused("Bash command\n  touch b\nDo you want to proceed?", "denied"))
    assert (told.call_id, told.denied) == ("c2", True)
    told = one(calls.refused("Something wrapped otherwise", "denied"))
    assert told.call_id == "c1"
    assert calls.refused("Something", "denied") == []


def test_what_is_open_ends_with_its_turn() -> None:
    calls = ToolCalls("a")
    calls.began(began("ls", call="c1", turn="t1"), None)
    calls.began(began("ls", call="c2", turn="t2"), None)
    told = one(calls.turn_over("t1", "the turn was interrupted", stopped=True))
    assert (told.call_id, told.status, told.denied) == ("c1", "failed", False)
    assert one(calls.turn_over(None, "the program ended")).call_id == "c2"


def test_a_call_that_was_asked_about_when_the_turn_stopped_was_denied_unless_it_ran() -> None:
    calls = ToolCalls("a")
    for call, runs in (("c1", False), ("c2", True)):
        calls.began(began(call, call=call), None)
        calls.asked({"command": call, "description": "why"})
        if runs:
            calls.allowed()
        assert one(calls.turn_over(None, "the turn was interrupted", stopped=True)).denied is not runs


@pytest.mark.parametrize("ids", [("c1", "c2"), (None, None)], ids=["ids", "no ids"])
def test_reports_that_are_repeated_to_a_new_daemon_are_told_once(ids: tuple[str | None, str | None]) -> None:
    before = ToolCalls("a")
    log = before.began(began("a", call=ids[0], at=1), None)
    log += before.over(over("a", call=ids[0], at=2), None)
    log += before.began(began("b", call=ids[1], at=3), None)

    after = ToolCalls("a")
    after.restore(kept(log))
    assert after.open == 1
    assert after.began(began("a", call=ids[0], at=1), None) == []
    assert after.over(over("a", call=ids[0], at=2), None) == []
    assert after.began(began("b", call=ids[1], at=3), None) == []
    told = one(after.over(over("b", call=ids[1], at=9), None))
    assert (told.status, told.duration_ms, told.call_id) == ("completed", 6, data(log)[2].call_id)
    assert after.open == 0


def test_large_output_is_cut() -> None:
    small = {"text": "x"}
    assert cut(small) is small
    large = {"text": "é" * KEPT_BYTES}
    told = cut(large)
    assert len(told["text"].encode()) <= KEPT_BYTES
    assert told["truncated"] is True
    assert told["size"] == len(json.dumps(large, ensure_ascii=False).encode())
    assert set(cut({"stdout": "x" * KEPT_BYTES, "stderr": ""})) == {"text", "truncated", "size"}


def told_by(world: World) -> list[tuple[str, bool, str | None]]:
    return [(data.status, data.denied, data.error) for data in world.told(ToolExecution)]


async def test_calls_belong_to_the_task_and_end_with_it(world: World) -> None:
    await world.start()
    task = await world.send(AGENT, "work")
    await world.delivered()
    world.link.submit()
    world.link.emit(LinkTold(began("ls", call="c1", at=1)))
    world.link.emit(LinkTold(over("ls", call="c1", at=3, output={"text": "x"})))
    world.link.emit(LinkTold(began("sleep 9", call="c2", at=4)))
    world.link.emit(LinkTold(TurnEnded(channel="hooks", at_ns=5 * MS, answer="done")))
    world.link.end("done")
    await world.task_is(task.id, TaskState.COMPLETED)
    events = [event for event in world.store.events.all if isinstance(event.data, ToolExecution)]
    assert {(event.task_id, event.context_id) for event in events} == {(task.id, task.context_id)}
    assert [status for status, _, _ in told_by(world)] == ["started", "completed", "started", "failed"]


async def test_a_refusal_in_a_dialog_and_one_at_the_terminal(world: World) -> None:
    await world.start()
    world.link.emit(LinkTold(began("rm a", call="c1")))
    world.link.emit(LinkRefused("May it run?\n rm a"))
    world.link.emit(LinkTold(began("rm b", call="c2")))
    world.link.emit(LinkTold(PermissionAsked(channel="hooks", at_ns=1, tool="Bash", input={"command": "rm b"})))
    world.link.emit(LinkTold(TurnInterrupted(channel="hooks", at_ns=2)))
    await until(lambda: len(told_by(world)) == 4)
    assert told_by(world)[1] == ("failed", True, "denied in the program's dialog")
    assert told_by(world)[3] == ("failed", True, "denied at its terminal, which stopped the turn")


async def test_the_program_s_end_is_that_of_its_calls(world: World) -> None:
    await world.start()
    world.link.emit(LinkTold(began("sleep 9", call="c1")))
    world.link.observe_as(Activity.BUSY)
    world.link.emit(LinkExited(7, "the program ended"))
    await until(lambda: len(told_by(world)) == 2)
    assert told_by(world)[1] == ("failed", False, "the program ended (exit code 7)")


async def test_a_new_daemon_goes_on_with_an_open_call(world: World) -> None:
    await world.start()
    world.link.emit(LinkTold(began("sleep 9", call="c1", at=1)))
    await until(lambda: len(told_by(world)) == 1)
    await world.manager.close(keep_agents=True)
    await world.daemon()
    await until(lambda: world.link.opened)
    world.link.emit(LinkTold(began("sleep 9", call="c1", at=1)))
    world.link.emit(LinkTold(over("sleep 9", call="c1", at=8)))
    await until(lambda: len(told_by(world)) == 2)
    assert [(data.status, data.duration_ms) for data in world.told(ToolExecution)] == [
        ("started", None),
        ("completed", 7),
    ]


async def test_an_interrupt_that_only_the_screen_tells_of_ends_its_calls(world: World) -> None:
    await world.start()
    task = await world.send(AGENT, "work")
    await world.delivered()
    world.link.submit()
    world.link.emit(LinkTold(began("sleep 9", call="c1", at=4)))
    world.link.emit(LinkTurnInterrupted(task.id, "interrupted", "screen"))
    await until(lambda: len(told_by(world)) == 2)
    assert told_by(world)[1] == ("failed", False, "the turn was interrupted")


def test_a_report_that_comes_after_its_turn_was_stopped_is_no_other_call() -> None:
    """Of a program without ids, which tells of a stopped command only when that has ended."""
    calls = ToolCalls("a")
    calls.began(began("sleep 9", at=1), None)
    calls.began(began("ls", at=2), None)
    assert [told.status for told in data(calls.turn_over(None, "stopped", stopped=True))] == ["failed", "failed"]
    calls.began(began("pwd", at=3), None)
    assert calls.over(over("sleep 9", at=4, output={"text": "cancelled"}), None) == []
    told = one(calls.over(over("pwd", at=5), None))
    assert (told.input, told.status) == ({"command": "pwd"}, "completed")
    assert calls.over(over("ls", at=6), None) == []
    assert calls.open == 0
