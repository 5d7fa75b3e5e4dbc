"""A program whose screen is what the test draws, and the worker of one message's turn."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from synapsed.errors import KeeperLost
from synapsed.interfaces import Delivery
from synapsed.model.link import LinkEvent, LinkObserved, LinkTurnRecord
from synapsed.model.records import TurnRecord
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import BusySigns, Composer, DeliverySpec, Dialog, Prompts, Ready
from synapsed.pty.driver import Driver
from synapsed.pty.session import Session
from synapsed.pty.turn_types import Phase
from synapsed.terminal.look import Look
from synapsed.terminal.screen_messages import Stage
from tests.fakes.clock import FakeClock, until
from tests.fakes.program import linked
from tests.fakes.stage import LocalStage

PROFILE = Profile(
    name="p",
    command="p",
    ready=Ready(quiet_ms=0),
    busy=BusySigns(screen=["^working"]),
    composer=Composer(line="^> ?(?P<text>.*)$"),
    delivery=DeliverySpec(settle_ms=0, accept_ms=1000),
    prompts=Prompts(dialogs=[Dialog(type="permission", when=[r"^Allow it\?"])]),
)

LINES = Profile(
    name="p",
    command="p",
    ready=Ready(quiet_ms=0),
    composer=Composer(at_cursor=True, line="^> ?(?P<text>.*)$"),
    delivery=DeliverySpec(settle_ms=0, accept_ms=1000),
)


class Terminal:
    """A program that shows what the test draws, and the turn of one message."""

    def __init__(self, profile: Profile = PROFILE, *, stage: Stage | None = None) -> None:
        self.clock = FakeClock()
        local = LocalStage(profile, cast("Any", SimpleNamespace(spool_start=0)), (80, 10), None, 0.0)
        self.stage = stage or local
        self.typed: list[bytes] = []
        self.known: set[str] = set()
        """Ids of what was typed."""
        self.events: list[LinkEvent] = []
        self.records = 0
        self.reader: tuple[bool | None, int | None] = (None, None)
        """Whether the terminal is in line mode, and the process group that reads it."""
        self.unread = 0
        """Bytes that the program has not read."""
        self.silent = 0
        """How many more times the keeper does not answer in time."""
        self.writing = asyncio.Event()
        """What is written is with the program."""
        self.writing.set()
        keeper: Any = SimpleNamespace(write=self.write, recall=self.recall, ping=self.ping, read=self.read, lost=None)
        self.session = Session(profile, self.stage.start, channels_tell=False)
        self.driver = Driver(linked(profile, self.session, self.stage, keeper, self.clock))
        self.driver._program.emit = self.emit
        self.driver.looks.until = self.until  # type: ignore[method-assign]

    def emit(self, event: LinkEvent) -> None:
        if not isinstance(event, LinkObserved):
            self.events.append(event)

    async def write(self, data: bytes, input_id: str | None = None) -> Any:
        if input_id not in self.known:
            self.typed.append(data)
        if input_id is not None:
            self.known.add(input_id)
        await self.writing.wait()
        return SimpleNamespace(at=self.session.offset, hidden=False)

    async def recall(self, input_id: str) -> Any:
        return await self.write(b"", input_id) if input_id in self.known else None

    async def read(self, start: int, size: int) -> tuple[int, bytes]:
        return start, b"\r\nhi\r\n> "

    async def ping(self) -> Any:
        if self.silent:
            self.silent -= 1
            raise KeeperLost("the keeper did not answer within 10 s")
        return SimpleNamespace(unread=self.unread, line_mode=self.reader[0], echo=None, foreground=self.reader[1])

    async def ping_briefly(self, *, timeout: float = 10) -> None:
        await self.ping()

    async def begin(self, text: str = "hello", *, rested: float = 0.0) -> asyncio.Task[None]:
        """The message is to be pasted into a program that has rested for so long; the worker that does it."""
        self.draw("> ")
        await self.judge()
        await self.judge(rested)
        record = TurnRecord(task_id="t", launch_id="l", link=self.session.prepared().model_dump(mode="json"))
        worker = asyncio.create_task(self.driver.turn.run())
        delivery = Delivery(task_id="t", text=text, command=False, record=record, fresh=True)
        self.driver.do(self.session.begin(delivery, self.clock.monotonic()))
        return worker

    async def look(self) -> Look:
        return await self.driver.looks.look()

    async def until(self, wanted: Any, timeout: float) -> bool:
        return bool(wanted(await self.look()))

    def draw(self, *rows: str) -> None:
        data = ("\x1b[H\x1b[J" + "\r\n".join(rows)).encode()
        offset = self.session.offset
        self.driver.do(self.session.output(offset, data))
        self.stage.feed(offset, data, self.clock.monotonic())

    async def judge(self, after: float = 0.0) -> None:
        self.clock.advance(after)
        look = await self.look()
        self.session.unread = self.unread > 0  # it is asked twice a second
        self.driver.do(self.session.judge(look, self.clock.monotonic()))

    async def record(self) -> None:
        """The records that the turn wants, one after the other, are durable."""
        while not self.driver.turn.idle.is_set():
            await until(lambda: self.wanted > self.records or self.driver.turn.idle.is_set())
            if self.wanted > self.records:
                self.records += 1
                self.driver.turn.recorded()
            await asyncio.sleep(0)

    @property
    def wanted(self) -> int:
        return sum(isinstance(event, LinkTurnRecord) for event in self.events)

    @property
    def phase(self) -> Phase:
        assert self.session.turn is not None
        return self.session.turn.state.phase
