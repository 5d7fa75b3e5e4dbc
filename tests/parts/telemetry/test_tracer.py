"""Traces made of the log, with a collector that the test plays: none is lost, none is waited for, nothing is said."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from synapsed.agents.views import figures_of
from synapsed.interfaces import NewEvent
from synapsed.model.agent import Activity
from synapsed.model.events import EventData, TaskDelivered
from synapsed.model.link import LinkTurnFailed
from synapsed.model.task import Task, TaskState
from synapsed.model.trace import context_of, span_id
from synapsed.parts.telemetry import tracer as room
from synapsed.parts.telemetry.extra import MISSING
from synapsed.parts.telemetry.spans import Span
from synapsed.parts.telemetry.tracer import Outcome, Tracer, TraceSettings
from tests.fakes.clock import JUMPS, until
from tests.support.world import PERMISSION, World

AGENT = "synapse-fake-8190"
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class FakeExporter:
    """Takes what the test lets it take."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.batches: list[list[Span]] = []
        self.attempts = 0
        self.closed = False
        self.error: Exception | None = None

    def send(self, spans: Sequence[Span]) -> Outcome:
        self.attempts += 1
        if self.error is not None:
            raise self.error
        outcome: Outcome = self.outcomes.pop(0) if self.outcomes else ("taken", None)
        if outcome[0] == "taken":
            self.batches.append(list(spans))
        return outcome

    def close(self) -> None:
        self.closed = True

    @property
    def spans(self) -> list[Span]:
        return [span for batch in self.batches for span in batch]


class Traced:
    """A world whose tasks are traced."""

    def __init__(self, world: World, cursor: Path) -> None:
        self.world = world
        self.exporter = FakeExporter()
        self._cursor = cursor
        self.tracer = self.trace()

    def trace(self, sample: float = 1.0) -> Tracer:
        """As a daemon does that has just begun."""
        settings = TraceSettings(
            endpoint="http://localhost/v1/traces", headers={}, sample=sample, timeout=1.0, cursor=self._cursor,
            resource={}, version="1",
        )  # fmt: skip
        tracer = Tracer(
            settings,
            log=self.world.store.events,
            tasks=self.world.store,
            agents=lambda: figures_of(self.world.manager.directory.all()),
            clock=self.world.clock,
        )
        tracer.cursor = tracer._load()
        tracer._exporter = self.exporter
        self.tracer = tracer
        return tracer

    async def look(self) -> None:
        await self.tracer.send_now()

    async def turn(self, text: str = "hello", **request: Any) -> Task:
        """A task that has run its course, in 1, 2 and 4 seconds."""
        count = len(self.world.link.deliveries)
        task = await self.world.send(AGENT, text, **request)
        await self.world.delivered(count + 1)
        self.world.clock.advance(2.0)
        told = len(self.world.told(TaskDelivered))
        self.world.link.submit()
        await until(lambda: len(self.world.told(TaskDelivered)) > told)
        self.world.clock.advance(4.0)
        self.world.link.end("answer-geheim")
        return await self.world.task_is(task.id, TaskState.COMPLETED)


@pytest.fixture
async def traced(tmp_path: Path) -> AsyncIterator[Traced]:
    world = World(tmp_path)
    await world.daemon()
    await world.start()
    yield Traced(world, tmp_path / "state" / "traces.cursor")
    await world.close()


def tree(spans: Sequence[Span]) -> dict[str, str | None]:
    """The name of each span's parent, by its name."""
    names = {span.context.span_id: span.name for span in spans}
    return {span.name: names.get(span.parent_id or "") for span in spans}


async def test_a_disk_that_refuses_the_first_note_ends_no_traces(traced: Traced, tmp_path: Path) -> None:
    in_the_way = tmp_path / "full"
    in_the_way.write_text("no directory can be made here")
    traced._cursor = in_the_way / "traces.cursor"
    traced.trace()
    await traced.turn()
    in_the_way.unlink()
    await traced.look()
    assert "invoke_agent fake" in tree(traced.exporter.spans)
    assert int(traced._cursor.read_text()) > 0


async def test_a_task_is_a_trace(traced: Traced) -> None:
    world = traced.world
    task = await world.send(AGENT, "prompt-geheim", context_id="c1", metadata={"traceparent": PARENT})
    await world.delivered()
    world.link.submit()
    await until(lambda: bool(world.told(TaskDelivered)))

    async def tell(after: float, **told: Any) -> None:
        world.clock.advance(after)
        data = TypeAdapter(EventData).validate_python(told)
        await world.store.commit(events=[NewEvent.of(task, data)])

    call = {"type": "toolExecution", "tool_name": "Bash", "call_id": "1"}
    await tell(1, **call, status="started", input={"command": "rm -rf geheim"})
    world.link.observe_as(Activity.WAITING, prompt=PERMISSION.model_copy(update={"prompt": "geheim?"}))
    await world.task_is(task.id, TaskState.INPUT_REQUIRED)
    world.clock.advance(5)
    world.link.observe_as(Activity.BUSY)
    await world.task_is(task.id, TaskState.WORKING)
    await tell(1, **call, status="completed", output={"text": "geheim"})
    await tell(0, type="usage", model="gpt-9", input_tokens=3, output_tokens=4, cache_read_tokens=10)
    world.link.end("answer-geheim")
    await world.task_is(task.id, TaskState.COMPLETED)
    await traced.look()
    spans = traced.exporter.spans
    assert tree(spans) == {
        "invoke_agent fake": None,
        "queue": "invoke_agent fake",
        "deliver": "invoke_agent fake",
        "turn": "invoke_agent fake",
        "input": "turn",
        "execute_tool Bash": "turn",
    }
    by_name = {span.name: span for span in spans}
    whole = by_name["invoke_agent fake"]
    assert {span.context.trace_id for span in spans} == {PARENT.split("-")[1]}
    assert whole.parent_id == PARENT.split("-")[2]
    assert whole.context == context_of(task.id, {"traceparent": PARENT}, share=1.0)
    assert whole.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "fake",
        "gen_ai.agent.id": AGENT,
        "gen_ai.conversation.id": "c1",
        "gen_ai.response.model": "gpt-9",
        "gen_ai.usage.input_tokens": 13,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.usage.cache_read.input_tokens": 10,
        "synapse.profile": "fake",
        "synapse.task.id": task.id,
        "synapse.task.state": "completed",
    }
    tool = by_name["execute_tool Bash"]
    assert tool.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "Bash",
        "gen_ai.tool.call.id": "1",
    }
    assert {name: span.end - span.begin for name, span in by_name.items()} == {
        "invoke_agent fake": 7, "queue": 0, "deliver": 0, "turn": 7, "input": 5, "execute_tool Bash": 6,
    }  # fmt: skip
    assert {span.error for span in spans} == {None}
    assert "geheim" not in json.dumps([asdict(span) for span in spans])


async def test_a_failure_is_told_by_its_code(traced: Traced) -> None:
    world = traced.world
    task = await world.send(AGENT)
    await world.delivered()
    world.link.submit()
    world.link.emit(LinkTurnFailed(task.id, "RATE_LIMITED", "words-geheim", "fake"))
    await world.task_is(task.id, TaskState.FAILED)
    await traced.look()
    errors = {span.name: span.error for span in traced.exporter.spans}
    assert errors == {"invoke_agent fake": "RATE_LIMITED", "queue": None, "deliver": None, "turn": "RATE_LIMITED"}
    assert "geheim" not in json.dumps([asdict(span) for span in traced.exporter.spans])


async def test_the_daemon_after_a_kill_goes_on_with_the_same_trace(traced: Traced) -> None:
    """Whenever it was: the log is the queue, and the ids are made of the task's."""
    world = traced.world
    first = await traced.turn()
    await traced.look()
    second = await world.send(AGENT, "second")
    await world.delivered(2)
    world.link.submit()
    await until(lambda: len(world.told(TaskDelivered)) == 2)
    await traced.look()
    traced.trace()  # the one before was killed
    world.clock.advance(9.0)
    world.link.end("done")
    await world.task_is(second.id, TaskState.COMPLETED)
    traced.trace()  # and so was this one
    await traced.look()
    of_second = [span for span in traced.exporter.spans if span.context.trace_id != _trace(first.id)]
    assert tree(of_second) == {
        "invoke_agent fake": None,
        "queue": "invoke_agent fake",
        "deliver": "invoke_agent fake",
        "turn": "invoke_agent fake",
    }
    assert {span.context.trace_id for span in of_second} == {_trace(second.id)}
    assert next(span for span in of_second if span.name == "turn").end - of_second[0].begin == 9.0
    assert len(traced.exporter.spans) == 8, "none twice"
    assert span_id(second.id) in {span.context.span_id for span in of_second}


def _trace(task_id: str) -> str:
    return context_of(task_id, {}, share=1.0).trace_id


async def test_a_collector_that_is_away_gets_all_of_it_later(traced: Traced) -> None:
    traced.exporter.outcomes = [("later", None), ("later", 503)]
    for _ in range(3):
        await traced.turn()
        traced.trace()  # what the one before had in hand is gone with it
        await traced.look()
    assert [span.name for span in traced.exporter.spans].count("invoke_agent fake") == 3
    assert len({span.context.span_id for span in traced.exporter.spans}) == 12
    assert (traced.exporter.attempts, traced.tracer.figures.exported) == (3, 12)


async def test_one_daemon_tries_again_and_again(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "FIRST_PAUSE_S", 0.0)
    traced.exporter.outcomes = [("later", None)] * 5
    task = await traced.turn()
    await traced.tracer.catch_up()
    assert traced.exporter.attempts == 6
    assert traced.exporter.spans[0].context.span_id == span_id(task.id)


async def test_what_a_collector_refuses_stops_nothing(traced: Traced) -> None:
    traced.exporter.outcomes = [("refused", 400)]
    await traced.turn()
    await traced.look()
    await traced.turn()
    await traced.look()
    assert (traced.tracer.figures.dropped, traced.tracer.figures.exported) == (4, 4)


async def test_an_exporter_that_fails_stops_nothing(traced: Traced) -> None:
    traced.exporter.error = RuntimeError("bug")
    await traced.turn()
    await traced.look()
    traced.exporter.error = None
    traced.trace()
    await traced.look()
    assert len(traced.exporter.spans) == 4


async def test_what_is_a_day_old_is_not_sent(traced: Traced) -> None:
    await traced.turn()
    traced.world.clock.advance(25 * 3600.0)
    await traced.look()
    assert traced.exporter.attempts == 0
    assert traced.tracer.figures.dropped == 1


@pytest.mark.parametrize("jump", JUMPS)
async def test_no_trace_is_lost_by_a_clock_that_is_wrong_while_a_daemon_ends(traced: Traced, jump: float) -> None:
    """Set ahead, it makes those from before too old; a daemon that begins under the right date tells them."""
    await traced.turn()
    traced.world.clock.jump(jump)
    await traced.look()
    assert traced.tracer.figures.dropped == (1 if jump > room.AGE_MAX_S else 0)
    traced.world.clock.jump(-jump)
    traced.trace()
    await traced.turn()
    await traced.look()
    assert len(traced.exporter.spans) == 8


async def test_batches_are_bounded(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "SPANS_MAX", 4)
    for _ in range(3):
        await traced.turn()
    await traced.look()
    assert [len(batch) for batch in traced.exporter.batches] == [4, 4, 4]


async def test_who_is_not_sampled_is_not_sent(traced: Traced) -> None:
    traced.trace(sample=0.0)
    await traced.turn()
    await traced.turn(metadata={"traceparent": PARENT.removesuffix("01") + "00"})
    await traced.turn(metadata={"traceparent": PARENT})
    await traced.look()
    assert {span.context.trace_id for span in traced.exporter.spans} == {PARENT.split("-")[1]}


async def test_the_end_sends_what_is_left_and_waits_for_nobody(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    await traced.turn()
    await traced.tracer.close()
    assert len(traced.exporter.spans) == 4
    assert traced.exporter.closed
    monkeypatch.setattr(room, "LAST_WORDS_S", 0.05)
    hangs = asyncio.Event()

    async def forever(spans: list[Span]) -> Outcome:
        await hangs.wait()
        raise AssertionError

    traced.trace()
    await traced.turn()
    monkeypatch.setattr(traced.tracer, "_send", forever)
    await traced.tracer.close()
    traced.trace()
    monkeypatch.undo()
    await traced.look()
    assert len(traced.exporter.spans) == 8, "the next daemon sends it"


async def test_without_the_extra_a_person_is_told(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(room.importlib, "import_module", missing)
    alerts: list[str] = []
    await traced.tracer.trace(alerts.append)
    assert alerts == [MISSING]
    assert "synapsed[otel]" in MISSING


@pytest.mark.parametrize("written", ["", "x", "-1", "999999999", "\u00e9"])
async def test_a_cursor_that_is_none(traced: Traced, written: str) -> None:
    traced._cursor.parent.mkdir(parents=True, exist_ok=True)
    traced._cursor.write_text(written)
    await traced.turn()
    traced.trace()
    await traced.look()
    assert traced.exporter.spans == [], "it begins with what comes now"
    await traced.turn()
    await traced.look()
    assert len(traced.exporter.spans) == 4


@pytest.mark.slow
def test_nothing_of_it_is_loaded_where_it_is_not_wanted() -> None:
    code = (
        "import sys, synapsed.daemon\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter', "
        "'prometheus_client'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
