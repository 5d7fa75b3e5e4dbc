"""Recordings of real programs, played to a link with a turn at every message that was sent: what the link tells."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from synapsed.errors import NotReady
from synapsed.interfaces import Delivery
from synapsed.keepers.keeper_messages import Output
from synapsed.model.link import (
    LinkEvent,
    LinkObserved,
    LinkTold,
    LinkTurnEnded,
    LinkTurnRecord,
    LinkTurnSaid,
)
from synapsed.model.records import Checkpoint, LaunchRecord, TurnRecord
from synapsed.parts.profile_tools.recorded import PAUSES_S
from synapsed.pty.output_times import OutputTimes
from synapsed.pty.pty_link import PtyLink
from synapsed.pty.shared_timer import Rounds
from synapsed.pty.turn_types import Phase, TurnState
from synapsed.pty.window import LastSeen
from synapsed.terminal.look import Look
from synapsed.terminal.screen_messages import Ask, KeptLook, Note
from tests.fakes.clock import FakeClock
from tests.fakes.loop import FakeLoop
from tests.fakes.stage import LocalStage
from tests.fakes.store import MemoryStore
from tests.golden.replay import Case

__all__ = ["played"]

SETTLES = 12
"""Turns of the event loop in which the link does what a step made it do."""


class _Keeper:
    """A keeper that has written whatever it is given."""

    lost = None

    def __init__(self, link: PtyLink) -> None:
        self._link = link

    async def write(self, data: bytes, input_id: str | None = None) -> Any:
        return SimpleNamespace(at=self._link.output, hidden=False)

    async def recall(self, input_id: str) -> Any:
        return SimpleNamespace(at=self._link.output)

    async def ping(self, *, timeout: float = 10) -> Any:
        return SimpleNamespace(unread=0, line_mode=None, echo=None, foreground=None)

    async def ping_briefly(self, *, timeout: float = 10) -> None:
        await self.ping()

    def resume_output(self) -> None:
        """It was never paused."""

    async def resize(self, cols: int, rows: int) -> None:
        """The recording was made in one size."""


def _message(case: Case) -> str:
    """What the person sent first, as far as the recording tells."""
    requests = case.record["requests"]
    return str(requests[0])[:60] if requests else "hello"


class LateStage(LocalStage):
    """A stage that does everything in its order, and only when the loop has gone round; a look that nothing has changed
    since is the same look, as of one whose screen is drawn elsewhere."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._look = KeptLook()
        self._waiting: deque[tuple[Callable[[], Any], asyncio.Future[Any] | None]] = deque()

    def _later(self, work: Callable[[], Any], answer: asyncio.Future[Any] | None = None) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        self._waiting.append((work, answer))

    def _next(self) -> None:
        work, answer = self._waiting[0]
        found = work()
        if answer is not None and not answer.done():
            answer.set_result(found)
        self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)

    async def _asked(self, work: Callable[[], Any]) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._later(work, answer)
        return await answer

    def feed(self, offset: int, data: bytes, now: float, *, continues: bool = False) -> None:
        self._look.changed()
        self._later(partial(super().feed, offset, data, now, continues=continues))

    def note(self, note: Note) -> None:
        self._look.changed()
        self._later(partial(super().note, note))

    def resize(self, cols: int, rows: int) -> None:
        self._look.changed()
        self._later(partial(super().resize, cols, rows))

    async def look(self, ask: Ask) -> Look | None:
        if (kept := self._look.answers(ask)) is not None:
            return kept
        changes = self._look.changes
        look = cast("Look | None", await self._asked(partial(self._observer.asked, ask)))
        if look is not None:
            self._look.keep(look, ask, changes)
        return look

    async def text(self, *, scrollback: bool, as_drawn: bool = False) -> str:
        return str(await self._asked(partial(self._observer.screen.text, scrollback=scrollback)))

    async def checkpoint(self) -> Checkpoint:
        return cast("Checkpoint", await self._asked(self._observer.checkpoint))


def played(case: Case, folder: Path, *, late: bool = False) -> list[str]:
    """What the link told, a line each; `late`: what it asks of its stage is answered later. All of it in the time of
    the recording."""
    clock = FakeClock(monotonic=0.0)
    # Not in debug mode, which takes the recording's pauses for slow callbacks.
    with asyncio.Runner(debug=False, loop_factory=lambda: FakeLoop(clock)) as runner:
        return runner.run(_play(case, folder, clock, late=late))


async def _play(case: Case, folder: Path, clock: FakeClock, *, late: bool) -> list[str]:
    told: list[str] = []
    cols, rows = case.record["size"]
    fields = dict.fromkeys(("keeper_pid", "keeper_start", "pid", "pid_start"), 1)
    launch = LaunchRecord(launch_id="l", socket="/none", spool_start=0, started_at=0, **fields)
    stage = (LateStage if late else LocalStage)(case.profile(), launch, (cols, rows), None, clock.monotonic())
    link = PtyLink(
        agent_id="a",
        profile=case.profile(),
        launch=launch,
        stage=stage,
        channels=[],
        times=OutputTimes(folder / "times"),
        store=MemoryStore(clock),
        clock=clock,
        seen=LastSeen(),
        rounds=Rounds(clock),
        own_size=(cols, rows),
    )

    def emit(event: LinkEvent) -> None:
        if (line := _line(event)) is not None:
            told.append(f"{clock.monotonic():.3f} {line}")
        if isinstance(event, LinkTurnRecord):
            link.recorded(event.record)

    driver = link._driver
    driver._program.emit = emit
    link._program.client = _Keeper(link)  # type: ignore[assignment]
    link._window.size = (cols, rows)
    stage.open(link._on_stage)
    worker = asyncio.create_task(driver.turn.run())
    driver.looks._open = True

    async def until(wanted: Callable[[Look], bool], _within: float) -> bool:
        return wanted(await driver.looks.look())  # no time passes but that of the recording

    driver.looks.until = until  # type: ignore[method-assign]
    driver.looks._wake_at = lambda _when: None  # type: ignore[method-assign]  # the recording says when it is looked
    raw = case.raw
    steps: list[tuple[float, int, Any]] = [(at, 1, offset) for at, offset in case.record["chunks"]]
    steps += [(at, 2, (n, label)) for n, (at, _, label) in enumerate(case.record["marks"])]
    steps += [(at, 0, fact) for at, fact in case.facts()]
    steps.sort(key=lambda step: step[:2])
    ends = [step[0] for step in steps[1:]] + [steps[-1][0] + 2 * PAUSES_S[-1]]
    for (at, kind, what), end in zip(steps, ends, strict=True):
        clock.advance(at - clock.monotonic())
        match kind:
            case 0:
                link._on_fact(what)
            case 1 if what > link.output:
                link._on_event(Output(link.output, raw[link.output : what]))
            case 2 if what[1] == "submitted":
                state = TurnState(
                    phase=Phase.SUBMITTED, submitted=True, submit_ns=int(at * 1e9), submit_offset=link.output
                )
                record = TurnRecord(task_id=f"t{what[0]}", launch_id="l", link=state.model_dump(mode="json"))
                told.append(f"{at:.3f} --- {what[1]}")
                with contextlib.suppress(NotReady):
                    await link.deliver(Delivery(task_id=f"t{what[0]}", text=_message(case), record=record))
            case 2:
                told.append(f"{at:.3f} --- {what[1]}")
        for when in (at, *(at + pause for pause in PAUSES_S if at + pause < end)):
            clock.advance(when - clock.monotonic())
            for _ in range(SETTLES):
                await driver.looks.judge()
                await asyncio.sleep(0)
    worker.cancel()
    await driver._program.tasks.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    return told


def _line(event: LinkEvent) -> str | None:
    match event:
        case LinkObserved():
            asked = f" asks {event.prompt.type} {event.prompt.prompt_id}" if event.prompt is not None else ""
            state = "receives" if event.can_receive else f"held {event.held}"
            return f"{event.activity.value}, {state} ({event.evidence}){asked} {event.asking or ''}".rstrip()
        case LinkTurnRecord():
            return f"record {event.record.link['phase']}"
        case LinkTurnEnded():
            return f"ended ({event.evidence}) {event.answer[:60]!r} {len(event.answer)}"
        case LinkTurnSaid():
            return f"said {len(event.text)} {event.append}"
        case LinkTold():
            return f"told {type(event.fact).__name__}"
    return str(event)[:200]
