"""Every metric moves as it should: scraped from a manager whose agents are scripted and whose clock stands still."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from synapsed.agents.views import figures_of
from synapsed.clock import iso
from synapsed.interfaces import NewEvent
from synapsed.model.agent import Activity, ProcessState
from synapsed.model.events import EventData, TaskDelivered, TaskStatusChanged
from synapsed.model.figures import FAST_S, AgentFigures, DaemonFigures, Histogram
from synapsed.model.link import LinkAlert, LinkTurnFailed
from synapsed.model.task import Message, Task, TaskState
from synapsed.parts.telemetry.families import FAMILIES
from synapsed.parts.telemetry.metrics import Metrics
from synapsed.parts.telemetry.observer import CODES_MAX
from synapsed.parts.telemetry.tracer import TraceFigures
from tests.fakes.clock import until
from tests.parts.telemetry.lint import problems
from tests.parts.telemetry.parsed import OPENMETRICS, Scrape
from tests.support.disk import Disk
from tests.support.world import PERMISSION, World

AGENT = "synapse-fake-8190"
FAKE = {"agent": "fake", "profile": "fake"}


class Watched:
    """A world that is measured."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.disk = Disk()
        self.lag = Histogram(FAST_S)
        self.traces = TraceFigures(exported=3, dropped=1)
        self.metrics = self.measure()

    def measure(self) -> Metrics:
        """As a daemon does that has just begun."""
        return Metrics(
            log=self.world.store.events,
            figures=DaemonFigures(
                version="1.2.3",
                store=self.disk,
                lag=self.lag,
                agents=lambda: figures_of(self.world.manager.directory.all()),
                streams=lambda: 7,
            ),
            clock=self.world.clock,
            traces=self.traces,
        )

    async def text(self, accept: str = "") -> str:
        _, document = await self.metrics.scrape(accept)
        return document.decode()

    async def scrape(self) -> Scrape:
        return Scrape.of(await self.text())


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    world = World(tmp_path)
    await world.daemon()
    yield Watched(world)
    await world.close()


async def busy(watched: Watched) -> None:
    """An agent that has done everything that is counted."""
    world = watched.world
    await world.start()
    world.link.output = 12_345
    world.link.attached = 2
    first = await world.send(AGENT, "first")
    await world.delivered()
    second = await world.send(AGENT, "second")
    world.clock.advance(3.0)
    world.link.submit()
    world.link.observe_as(Activity.WAITING, prompt=PERMISSION)
    await world.task_is(first.id, TaskState.INPUT_REQUIRED)
    world.clock.advance(20.0)
    world.link.observe_as(Activity.BUSY)
    await world.task_is(first.id, TaskState.WORKING)
    world.clock.advance(2.0)
    world.link.end("done")
    await world.task_is(first.id, TaskState.COMPLETED)
    await world.delivered(2)
    world.link.submit()
    world.clock.advance(4.0)
    world.link.emit(LinkTurnFailed(second.id, "MODEL_ERROR", "a secret of the model's", "fake"))
    await world.task_is(second.id, TaskState.FAILED)
    world.link.emit(LinkAlert("DISK_FULL", "no space", "begins"))
    world.link.ready()


async def test_every_metric_of_agents_and_tasks_moves(watched: Watched) -> None:
    world = watched.world
    await world.start()
    world.link.output = 12_345
    world.link.attached = 2
    before = await watched.scrape()
    assert before("synapse_agent_up", **FAKE) == 1
    assert before("synapse_agents", profile="fake", state="running") == 1
    assert before("synapse_agents", profile="fake", state="failed") == 0
    assert before("synapse_agents_activity", profile="fake", activity="ready") == 1
    assert before("synapse_agent_output_bytes_total", **FAKE) == 12_345
    assert before("synapse_agent_terminals", **FAKE) == 2
    assert before("synapse_agent_queue_tasks", **FAKE) == 0
    assert before("synapse_agent_queue_age_seconds", **FAKE) == 0
    assert before("synapse_agent_waiting", **FAKE) == 0
    assert before("synapse_agent_alerts", **FAKE) == 0
    assert before.sum("synapse_tasks_submitted_total") == 0

    first = await world.send(AGENT, "first")
    await world.delivered()
    await world.send(AGENT, "second")
    world.clock.advance(3.0)
    during = await watched.scrape()
    assert during("synapse_agent_queue_tasks", **FAKE) == 1
    assert during("synapse_agent_queue_age_seconds", **FAKE) == 3
    assert during("synapse_tasks_open", state="submitted") == 1
    assert during("synapse_tasks_open", state="working") == 1
    assert during("synapse_tasks_submitted_total", profile="fake") == 2
    assert during("synapse_task_queue_seconds_count", profile="fake") == 1

    world.link.submit()
    world.link.observe_as(Activity.WAITING, prompt=PERMISSION)
    await world.task_is(first.id, TaskState.INPUT_REQUIRED)
    world.clock.advance(20.0)
    asking = await watched.scrape()
    assert asking("synapse_agent_waiting", **FAKE) == 1
    assert asking("synapse_tasks_open", state="input_required") == 1
    assert asking("synapse_agents_activity", profile="fake", activity="waiting") == 1

    world.link.observe_as(Activity.BUSY)
    await world.task_is(first.id, TaskState.WORKING)
    world.clock.advance(2.0)
    world.link.end("done")
    await world.task_is(first.id, TaskState.COMPLETED)
    done = await watched.scrape()
    assert done("synapse_tasks_ended_total", profile="fake", state="completed") == 1
    assert done("synapse_task_completion_seconds_sum", profile="fake") == 25
    assert done("synapse_task_delivery_seconds_sum", profile="fake") == 3
    assert done("synapse_task_turn_seconds_sum", profile="fake") == 22
    assert done("synapse_task_input_seconds_sum", profile="fake") == 20
    assert done("synapse_task_input_seconds_bucket", profile="fake", le="10.0") == 0
    assert done("synapse_task_input_seconds_bucket", profile="fake", le="30.0") == 1
    assert done("synapse_task_input_seconds_bucket", profile="fake", le="+Inf") == 1


async def test_failures_restarts_and_alerts(watched: Watched) -> None:
    world = watched.world
    await busy(watched)
    await until(lambda: bool(world.manager._agents[AGENT].alerts.standing))
    failed = await watched.scrape()
    assert failed("synapse_tasks_failed_total", profile="fake", code="MODEL_ERROR") == 1
    assert failed("synapse_tasks_ended_total", profile="fake", state="failed") == 1
    assert failed("synapse_task_completion_seconds_count", profile="fake") == 1, "only of completed tasks"
    assert failed("synapse_task_turn_seconds_count", profile="fake") == 2
    assert failed("synapse_agent_alerts", **FAKE) == 1
    world.link.die(1)
    await world.agent_is(AGENT, ProcessState.BACKOFF)
    down = await watched.scrape()
    assert down("synapse_agent_up", **FAKE) == 0
    assert down("synapse_agents", profile="fake", state="backoff") == 1
    assert down("synapse_agent_output_bytes_total", **FAKE) is None, "nothing is known of it"
    world.clock.advance(120.0)
    await world.agent_is(AGENT, ProcessState.RUNNING)
    assert (await watched.scrape())("synapse_agent_restarts_total", **FAKE) == 1


async def test_tools_and_tokens(watched: Watched) -> None:
    world = watched.world
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    world.link.submit()

    async def tell(after: float, **told: Any) -> None:
        world.clock.advance(after)
        data = TypeAdapter(EventData).validate_python(told)
        await world.store.commit(events=[NewEvent.of(task, data)])

    call = {"type": "toolExecution", "tool_name": "tool-geheim"}
    await tell(1, **call, status="started", call_id="1", input={"command": "command-geheim"})
    await tell(2, **call, status="completed", call_id="1", output={"text": "output-geheim"})
    await tell(3, **call, status="failed", call_id="2", denied=True, error="geheim", duration_ms=0)
    await tell(0, type="usage", input_tokens=100, output_tokens=7, cost_usd=0.25, model="model-geheim")
    await tell(0, type="usage", input_tokens=11, cache_read_tokens=5)
    seen = await watched.scrape()
    assert seen("synapse_tool_calls_total", profile="fake", status="completed") == 1
    assert seen("synapse_tool_calls_total", profile="fake", status="denied") == 1
    assert seen("synapse_tool_call_seconds_sum", profile="fake") == 2
    assert seen("synapse_tool_call_seconds_count", profile="fake") == 2
    tokens = {kind: seen("synapse_agent_tokens_total", **FAKE, kind=kind) for kind in ("input", "output", "cache_read")}
    assert tokens == {"input": 111, "output": 7, "cache_read": 5}
    assert seen("synapse_agent_cost_dollars_total", **FAKE) == 0.25
    assert "geheim" not in await watched.text()
    await world.manager.stop(AGENT, remove=True)
    assert (await watched.scrape()).labels("kind") == set()


async def test_the_daemons_own_numbers_move(watched: Watched) -> None:
    watched.disk.commits.observe(0.003)
    watched.disk.reads.observe(9.0)
    watched.disk.refusals["full"] += 2
    watched.lag.observe(0.2)
    seen = await watched.scrape()
    assert seen("synapse_store_commit_seconds_bucket", le="0.0025") == 0
    assert seen("synapse_store_commit_seconds_bucket", le="0.005") == 1
    assert seen("synapse_store_read_seconds_bucket", le="2.5") == 0
    assert seen("synapse_store_read_seconds_count") == 1
    assert seen("synapse_store_errors_total", reason="full") == 2
    assert seen("synapse_store_size_bytes") == 4096
    assert seen("synapse_loop_lag_seconds_sum") == 0.2
    assert seen("synapse_subscribers") == 7
    assert seen("synapse_trace_spans_total", outcome="exported") == 3
    assert seen("synapse_trace_spans_total", outcome="dropped") == 1
    assert seen("synapse_start_time_seconds") == watched.world.clock.wall()
    assert {"1.2.3"} == seen.labels("version")
    for name in ("cpu_seconds_total", "resident_memory_bytes", "open_fds", "max_fds", "threads"):
        assert (seen(f"synapse_process_{name}") or 0) > 0, name
    before = seen.sum("synapse_events_total")
    await watched.world.start()
    after = await watched.scrape()
    assert after.sum("synapse_events_total") > before
    assert "taskStatus" not in after.labels("type")
    await watched.world.send(AGENT)
    assert (await watched.scrape())("synapse_events_total", type="taskStatus") == 2


async def test_an_agent_that_is_gone_leaves_no_series(watched: Watched) -> None:
    await busy(watched)
    assert (await watched.scrape()).labels("agent") == {"fake"}
    await watched.world.manager.stop(AGENT, remove=True)
    gone = await watched.scrape()
    assert gone.labels("agent") == set()
    assert gone("synapse_tasks_ended_total", profile="fake", state="completed") == 1, "what was done was done"


async def test_nothing_that_was_said_is_in_it(watched: Watched) -> None:
    world = watched.world
    await world.start(cwd="/", extra_env={"API_KEY": "sk-geheim"})
    task = await world.send(AGENT, "prompt-geheim", context_id="context-geheim")
    await world.delivered()
    world.link.submit()
    world.link.emit(LinkTurnFailed(task.id, "MODEL_ERROR", "fehler-geheim", "beweis-geheim"))
    await world.task_is(task.id, TaskState.FAILED)
    text = await watched.text()
    assert "geheim" not in text
    assert task.id not in text
    assert AGENT not in text


async def test_a_turn_that_a_daemon_before_began_has_its_whole_length(watched: Watched) -> None:
    world = watched.world
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    world.link.submit()
    await until(lambda: bool(world.told(TaskDelivered)))
    world.clock.advance(50.0)
    watched.metrics = watched.measure()
    world.clock.advance(10.0)
    world.link.end("done")
    await world.task_is(task.id, TaskState.COMPLETED)
    seen = await watched.scrape()
    assert seen("synapse_task_completion_seconds_sum", profile="fake") == 60
    assert seen("synapse_task_turn_seconds_sum", profile="fake") == 60
    assert seen("synapse_task_queue_seconds_count", profile="fake") is None, "the daemon before has counted that"
    assert seen.sum("synapse_tasks_submitted_total") == 0
    assert seen("synapse_tasks_ended_total", profile="fake", state="completed") == 1


async def test_tasks_of_agents_elsewhere_and_codes_without_end(watched: Watched) -> None:
    store = watched.world.store
    for number in range(CODES_MAX + 20):
        task = Task(agent_id="external:bob", message=Message.of("x"), created_at=iso(0), updated_at=iso(0))
        failed = TaskStatusChanged.model_validate(
            {"state": "failed", "error": {"code": f"CODE_{number}", "message": ""}}
        )
        events = [TaskStatusChanged(state=TaskState.SUBMITTED), failed]
        await store.commit(tasks=[task], events=[NewEvent(task.agent_id, data, task.id) for data in events])
    seen = await watched.scrape()
    assert seen("synapse_tasks_ended_total", profile="external", state="failed") == CODES_MAX + 20
    assert seen("synapse_tasks_failed_total", profile="external", code="OTHER") == 20
    assert seen.sum("synapse_tasks_failed_total") == CODES_MAX + 20
    assert "bob" not in await watched.text()


async def test_both_formats_say_the_same(watched: Watched) -> None:
    await busy(watched)
    kind, document = await watched.metrics.scrape(OPENMETRICS + ",text/plain;version=0.0.4;q=0.5")
    assert kind.startswith("application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert document.count(b"# EOF") == 1
    kind, text = await watched.metrics.scrape("text/plain;version=0.0.4")
    assert kind.startswith("text/plain; version=0.0.4")
    moving = ("synapse_process_", "synapse_loop")
    openmetrics, plain = (
        {key: value for key, value in Scrape.of(one.decode()).values.items() if not key[0].startswith(moving)}
        for one in (document, text)
    )
    assert openmetrics == plain


async def test_the_linters_find_nothing(watched: Watched) -> None:
    watched.disk.refusals["full"] += 1
    await busy(watched)
    text = await watched.text()
    assert problems(text) == []
    assert Scrape.of(text).families == {
        name.removesuffix("_total") if family.kind == "counter" else name for name, family in FAMILIES.items()
    }
    if (promtool := shutil.which("promtool")) is not None:
        told = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "wrong",
    [
        "# HELP other_agents X.\n# TYPE other_agents gauge\nother_agents 1\n",
        "# HELP synapse_a_ms X.\n# TYPE synapse_a_ms gauge\nsynapse_a_ms 1\n",
        "# HELP synapse_a X.\n# TYPE synapse_a counter\nsynapse_a 1\n",
        "# HELP synapse_a_total X.\n# TYPE synapse_a_total gauge\nsynapse_a_total 1\n",
        "# HELP synapse_a_count X.\n# TYPE synapse_a_count gauge\nsynapse_a_count 1\n",
        "# TYPE synapse_a gauge\nsynapse_a 1\n",
        "# HELP synapse_a_gauge X.\n# TYPE synapse_a_gauge gauge\nsynapse_a_gauge 1\n",
        "# HELP synapse_aB X.\n# TYPE synapse_aB gauge\nsynapse_aB 1\n",
        "# HELP synapse_seconds_a X.\n# TYPE synapse_seconds_a gauge\nsynapse_seconds_a 1\n",
        '# HELP synapse_a X.\n# TYPE synapse_a gauge\nsynapse_a{task="1"} 1\n',
        '# HELP synapse_a X.\n# TYPE synapse_a gauge\nsynapse_a{agent="1"} 1\nsynapse_a{agent="1"} 2\n',
    ],
)
def test_the_linter_finds(wrong: str) -> None:
    assert problems(wrong)


async def test_a_scrape_of_many_agents_lets_everybody_else_have_a_turn(watched: Watched) -> None:
    """Between any two turns of the event loop only so many samples are written, however many agents there are."""
    figures = [
        AgentFigures(
            id=f"a{number}", name=f"a{number}", profile="p", state=ProcessState.RUNNING, activity=Activity.READY,
            restarts=1, queue=2, oldest=0.0, current=None, output=1, terminals=0, alerts=0,
        )
        for number in range(300)
    ]  # fmt: skip
    metrics = Metrics(
        log=watched.world.store.events,
        figures=DaemonFigures(
            version="1", store=watched.disk, lag=watched.lag, agents=lambda: figures, streams=lambda: 0
        ),
        clock=watched.world.clock,
    )
    turns, over = 0, False

    async def count() -> None:
        nonlocal turns
        while not over:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    _, document = await metrics.scrape("")
    over = True
    await counting
    samples = sum(not line.startswith("#") for line in document.decode().splitlines())
    assert samples > 300 * 8
    assert turns >= samples / 40
    assert problems(document.decode()) == []
