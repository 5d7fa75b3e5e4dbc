"""An `AgentLink` without a program: the test says what the program does, and sees what it was asked.

`FakeLinkFactory` makes them; `programs` are those that live (as far as a new daemon could find out), so that adoption
can be tested by giving the same factory to a second manager.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Container, Sequence
from typing import Any

from synapsed.errors import LaunchError, SynapsedError
from synapsed.interfaces import Attachment, Delivery, LinkTerminal, ScreenWatch, TypedLine
from synapsed.keepers.launch_plan import LaunchPlan, ProgramEnd
from synapsed.model.agent import Activity, Testimony
from synapsed.model.facts import ChannelFact, PermissionAsked
from synapsed.model.link import (
    LinkEvent,
    LinkExited,
    LinkObserved,
    LinkTurnEnded,
    LinkTurnInterrupted,
    LinkTurnRecord,
)
from synapsed.model.outer_terminal import OuterTerminal
from synapsed.model.picture import KeptForm, ScreenForm, Shown
from synapsed.model.records import AgentRecord, Checkpoint, LaunchRecord, TurnRecord
from synapsed.model.task import Prompt
from synapsed.profiles.profile import Profile
from synapsed.pty.viewers import Watches
from synapsed.terminal.emulated_screen import Screen
from tests.fakes.stage import shown

__all__ = ["FakeLink", "FakeLinkFactory"]


class FakeLink:
    def __init__(self, launch: LaunchRecord) -> None:
        self._launch = launch
        self.emit: Callable[[LinkEvent], None] = lambda _event: None
        self.seen = LinkObserved(Activity.STARTING, "fake", None, can_receive=False)
        self.deliveries: list[Delivery] = []
        self.records: list[TurnRecord] = []
        self.answers: list[tuple[str, str | None]] = []
        self.replies: list[tuple[PermissionAsked, dict[str, Any]]] = []
        self.signals: list[int] = []
        self.pressed: list[str] = []
        self.interrupts = 0
        self.settlements = 0
        self.taken_facts: list[ChannelFact] = []
        self.confirms_interrupt: bool | asyncio.Future[bool] = True
        self.answer_error: SynapsedError | None = None
        self.hides_answers = False
        self.open_error: Exception | None = None
        self.stop_gate: asyncio.Future[None] | None = None
        self.background_gate: asyncio.Future[bool] | None = None
        self.background_stops = 0
        self.screen_gate: asyncio.Future[None] | None = None
        self.open_gate: asyncio.Future[None] | None = None
        self.given_up = False
        self.left_unreached = asyncio.Event()
        self.reached = True
        """Else its keeper stands still, until it is left."""
        self.opened = False
        self.closed = False
        self.exit: LinkExited | None = None
        self.screen = "fake screen"
        self.attached = 0
        self.watches = Watches()
        self.writers = 0
        self.hands_at = -1e9
        self.person_at: float | None = None
        self.output = 0
        self.screens_kept = 0

    @property
    def has_person(self) -> bool:
        """True: a person sits wherever one may type."""
        return self.writers > 0

    def give_up(self) -> None:
        self.given_up = True

    def leave_unreached(self) -> None:
        self.left_unreached.set()

    # --- what the test does ---

    def observe_as(
        self,
        activity: Activity,
        *,
        prompt: Prompt | None = None,
        held: str | None = None,
        evidence: str = "fake",
        background: tuple[str, ...] = (),
    ) -> None:
        receives = activity is Activity.READY and held is None
        self.seen = LinkObserved(activity, evidence, prompt, receives, held, background=background)
        self.emit(self.seen)

    def ready(self) -> None:
        self.observe_as(Activity.READY)

    def submit(self) -> None:
        """As after the submit key: durable, then busy."""
        task_id = self.deliveries[-1].task_id
        record = self.deliveries[-1].record.model_copy(update={"link": {"submitted": True, "submit_offset": 0}})
        assert record.task_id == task_id
        self.emit(LinkTurnRecord(record))
        self.observe_as(Activity.BUSY)

    def end(self, answer: str, *, exact: bool = True) -> None:
        """The turn ends and the program is ready."""
        self.emit(LinkTurnEnded(self.deliveries[-1].task_id, answer, exact, "fake"))
        self.ready()

    def die(self, code: int | None, reason: str = "the program ended") -> None:
        self.exit = LinkExited(code, reason)
        self.emit(self.exit)

    # --- AgentLink ---

    @property
    def launch(self) -> LaunchRecord:
        return self._launch

    @property
    def terminal(self) -> LinkTerminal:
        return self

    async def open(self, emit: Callable[[LinkEvent], None]) -> None:
        if self.open_error is not None:
            raise self.open_error
        self.emit = emit
        if not self.reached:
            await self.left_unreached.wait()
            raise asyncio.CancelledError
        if self.open_gate is not None:
            await self.open_gate
        self.opened = True
        if self.exit is not None:
            emit(self.exit)

    async def observe(self) -> LinkObserved:
        return self.seen

    def prepare(self, record: TurnRecord, *, command: bool = False) -> TurnRecord:
        return record

    async def deliver(self, delivery: Delivery) -> None:
        self.deliveries.append(delivery)
        self.seen = LinkObserved(self.seen.activity, "fake", None, can_receive=False)

    def recorded(self, record: TurnRecord) -> None:
        self.records.append(record)

    def taken(self, fact: ChannelFact) -> None:
        self.taken_facts.append(fact)

    def settled(self) -> None:
        self.settlements += 1

    async def stop_background(self) -> bool:
        self.background_stops += 1
        return True if self.background_gate is None else await self.background_gate

    async def interrupt(self) -> bool:
        self.interrupts += 1
        if isinstance(self.confirms_interrupt, asyncio.Future):
            return await self.confirms_interrupt
        if self.confirms_interrupt and self.deliveries:
            self.emit(LinkTurnInterrupted(self.deliveries[-1].task_id, "interrupted", "fake"))
        return self.confirms_interrupt

    async def answer(self, text: str, prompt_id: str | None) -> bool:
        if self.answer_error is not None:
            raise self.answer_error
        self.answers.append((text, prompt_id))
        return self.hides_answers

    async def press(self, keys: Sequence[str]) -> None:
        self.pressed.extend(keys)

    async def reply(self, asked: PermissionAsked, answer: dict[str, Any]) -> bool:
        self.replies.append((asked, answer))
        return True

    async def stop(self, grace: float) -> LinkExited:
        if self.stop_gate is not None:
            await self.stop_gate
        self.exit = self.exit or LinkExited(0, "stopped")
        return self.exit

    async def signal(self, signum: int) -> None:
        self.signals.append(signum)
        if signum == 9:
            self.die(-9)

    async def explain(self) -> list[Testimony]:
        return [Testimony(channel="composer", says="empty", since=None, decides=True)]

    async def screen_text(self, limit: int | None = None) -> str:
        if self.screen_gate is not None:
            await asyncio.shield(self.screen_gate)
        return self.screen if limit is None else self.screen[-limit:]

    async def screen_as(self, fmt: ScreenForm) -> Shown:
        return self.screen

    async def keep_screen(self) -> None:
        self.screens_kept += 1

    async def attach(self, *, cols: int, rows: int, read_only: bool, keep_size: bool = False) -> Attachment:
        return IdleAttachment()

    def watch(self) -> ScreenWatch:
        return self.watches.join()

    async def poke(self) -> None:
        return None

    async def close(self) -> None:
        self.closed = True
        self.emit = lambda _event: None


class IdleAttachment:
    """A terminal at which nothing is typed and shown."""

    async def redraw(self) -> bytes:
        return b""

    async def output(self) -> AsyncIterator[bytes]:
        yield b""

    async def earlier(self) -> Checkpoint:
        return Checkpoint(offset=0, cols=80, rows=24, redraw=b"")

    def pass_to(self, take: Callable[[bytes], None], ready: Callable[[], bool]) -> None:
        """All goes through `output`."""

    def keep_one_screen(self) -> None:
        """It has one."""

    def keep_clipboard(self, told: str | None) -> None:
        """Nothing is set."""

    def type_now(self, data: bytes) -> bool:
        return False

    def follow(self, line: TypedLine) -> None:
        """Nobody is written to from here."""

    async def type(self, data: bytes) -> None:
        await self.write(data)

    async def write(self, data: bytes) -> None:
        return None

    async def resize(self, cols: int, rows: int) -> None:
        return None

    def seen_in(self, outer: OuterTerminal) -> None:
        return None

    async def composes(self) -> bool:
        return False

    async def take_line(self, line: str) -> bool:
        return False

    def notice(self, text: str, *, stays: bool) -> None:
        return None

    async def close(self) -> None:
        return None


class FakeLinkFactory:
    def __init__(self) -> None:
        self.links: list[FakeLink] = []
        self.launched: list[tuple[AgentRecord, LaunchPlan]] = []
        self.programs: dict[str, LaunchRecord] = {}
        """Launch by agent's id: programs that a new daemon finds."""
        self.dead: dict[str, LinkExited] = {}
        """Exits that a new daemon learns of, by agent's id."""
        self.unknown: list[AgentRecord] = []
        """Agents whose programs a daemon finds without its database's having them."""
        self.taken_down = False
        """Whether those that are gone were taken down by a reboot."""
        self.swept: list[str] = []
        self.sweep_gate: asyncio.Future[None] | None = None
        self.refuse: SynapsedError | None = None
        self.gate: asyncio.Future[None] | None = None
        self.versions: dict[str, str] = {}
        """What the programs of a profile say, by its name."""
        self.version_gate: asyncio.Future[None] | None = None
        self.profiles: list[Profile] = []
        """Those that were launched, as they counted."""
        self.slow_to_open: dict[str, asyncio.Future[None]] = {}
        self.unreached: set[str] = set()
        """By agent's id: until when a program that is adopted has output to be read."""

    @property
    def link(self) -> FakeLink:
        """The newest link."""
        return self.links[-1]

    async def version(self, record: AgentRecord, profile: Profile, launch: LaunchPlan) -> str | None:
        if self.version_gate is not None:
            await self.version_gate
        return self.versions.get(profile.name)

    async def launch(self, record: AgentRecord, profile: Profile, launch: LaunchPlan) -> FakeLink:
        self.profiles.append(profile)
        if self.gate is not None:
            await self.gate
        if self.refuse is not None:
            raise self.refuse
        number = len(self.launched)
        self.launched.append((record, launch))
        launched = LaunchRecord(
            launch_id=f"launch-{number}",
            socket="/nowhere",
            keeper_pid=10_000_000 + number,
            keeper_start=1,
            pid=20_000_000 + number,
            pid_start=1,
            spool_start=0,
            started_at=1_700_000_000.0,
        )
        self.programs[record.id] = launched
        return self._link(launched)

    async def adopt(self, record: AgentRecord, profile: Profile) -> FakeLink | None:
        launch = self.programs.get(record.id)
        if launch is None:
            return None
        link = self._link(launch)
        link.exit = self.dead.get(record.id)
        link.open_gate = self.slow_to_open.get(record.id)
        link.reached = record.id not in self.unreached
        return link

    async def strays(self, known: Container[str]) -> list[AgentRecord]:
        return [record for record in self.unknown if record.id not in known]

    async def ended(self, record: AgentRecord) -> ProgramEnd:
        return ProgramEnd(LinkExited(None, "it was gone when the daemon came back"), self.taken_down)

    async def kept(self, checkpoint: Checkpoint, form: KeptForm) -> Shown:
        screen = Screen(checkpoint.cols, checkpoint.rows)
        screen.feed(checkpoint.redraw)
        return screen.text(scrollback=True) if form == "scrollback" else shown(screen, form)

    async def sweep(self, launch: LaunchRecord) -> int:
        self.swept.append(launch.launch_id)
        if self.sweep_gate is not None:
            await self.sweep_gate
        return 0

    def failing(self, message: str = "no such thing") -> None:
        self.refuse = LaunchError(message)

    def _link(self, launch: LaunchRecord) -> FakeLink:
        self.links.append(FakeLink(launch))
        return self.links[-1]
