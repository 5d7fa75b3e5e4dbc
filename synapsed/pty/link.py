"""The link to a program in a terminal: the shell around its session, which decides.

Output, facts and keys come in through callbacks and are told to the `Session`, and so is every look of the `Watch`;
what the session then wants is done here, or (typing, recording, looking an answer up) by the one worker of the
`TurnRunner`, in order. So nothing is typed while something else is being typed, and nothing is decided half way.
"""

import asyncio
import contextlib
import functools
import signal
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from synapsed.clock import Clock
from synapsed.errors import KeeperLost, LaunchError, NotReady, StoreError, SynapsedError
from synapsed.interfaces import Attachment, Delivery, SideChannel, Store
from synapsed.keepers.client import (
    Alert,
    Exited,
    KeeperClient,
    KeeperEvent,
    KeeperRefused,
    Lost,
    Output,
    OutputGap,
    WriteResult,
)
from synapsed.keepers.heartbeat import SILENT, Pulse
from synapsed.keepers.launchers import sweep_launch
from synapsed.model.agent import Activity, Testimony
from synapsed.model.facts import ChannelFact, PermissionAsked
from synapsed.model.link import LinkAlert, LinkEvent, LinkExited, LinkObserved, LinkRefused
from synapsed.model.picture import ScreenForm, Shown
from synapsed.model.records import Checkpoint, LaunchRecord, TurnRecord
from synapsed.profiles import Profile
from synapsed.pty import turn_types as turns
from synapsed.pty.answering import Answering
from synapsed.pty.driver import Hands
from synapsed.pty.feed_mark import FeedMarks, observe_launch
from synapsed.pty.foreground import KernelWitness
from synapsed.pty.input_backlog import Unread
from synapsed.pty.job_control import Suspension
from synapsed.pty.keyboard import TAKE_BACK_S, Keyboard
from synapsed.pty.link_alerts import disk_alert, gap_alert, screen_alert, silence_alert
from synapsed.pty.look_timer import Watch
from synapsed.pty.output_times import OutputTimes
from synapsed.pty.readiness import SILENT_KEEPER
from synapsed.pty.session import AnswerQuery, Emit, LookSoon, Poll, SaveScreen, Session, SessionCommand, Work
from synapsed.pty.stopping import Stopping
from synapsed.pty.turn_driver import TurnRunner
from synapsed.pty.viewers import FOCUS, Viewers, are_reports
from synapsed.pty.window_size import Window
from synapsed.terminal.composer import shows_line
from synapsed.terminal.keynames import encode
from synapsed.terminal.look import Look
from synapsed.terminal.shown import shown
from synapsed.terminal.stage import Redraw

LAST_WORDS_S = 5.0
"""How long the work that a program's end finds under way may take."""

POLL_EVERY_S = 0.5
"""A poke may be lost, and a transcript pokes nobody: channels are looked at so often while a turn runs."""

SETTLE_AFTER_S = 30.0
"""Reports that no turn wanted are kept for so long: the turn of an adopted program may be about to be taken up."""

ECHO_S = 5.0
"""How long a program may take to show what a person typed: only a line addressed to another agent waits for it."""

DECCKM = 1
"""The private mode in which the keys of the cursor are sent in another form."""

PRESS_GAP_S = 0.05
"""Between two keys: what comes in one piece is taken for a paste, and Esc for the beginning of another key."""

PRESS_WAIT_S = 3.0
"""How long keys wait for a message that is being typed."""

LEAVE_S = 30.0
"""How long the keys may take by which a program ends itself, before it is ended."""

CATCH_UP_S = 20.0
"""How long the output that was missed may take to read; then the program is judged as it stands."""

log = structlog.get_logger(__name__)


class PtyLink:
    """`interfaces.AgentLink` over a keeper."""

    def __init__(
        self,
        *,
        agent_id: str,
        profile: Profile,
        launch: LaunchRecord,
        size: tuple[int, int],
        checkpoint: Checkpoint | None,
        channels: Sequence[SideChannel],
        times: OutputTimes,
        marks: FeedMarks | None = None,
        store: Store,
        clock: Clock,
    ) -> None:
        self._agent_id = agent_id
        self._profile = profile
        self._launch = launch
        self._channels = channels
        self._times = times
        self._marks = marks
        self._store = store
        self._clock = clock
        self._observer = observe_launch(profile, launch, size, checkpoint, clock.monotonic(), marks)
        self._session = Session(profile, self._observer, channels_tell=bool(channels))
        self._emit: Callable[[LinkEvent], None] = lambda _event: None
        self._client: KeeperClient | None = None
        self._watch = Watch(
            clock=clock,
            session=self._session,
            looked=self._looked,
            judged=self._judged,
            unread=lambda: self._unread.now,
            silent=lambda: self._pulse.silent,
        )
        self._pulse = Pulse(self._keeper, self._silence)
        self._given_up = asyncio.Event()
        self._unread = Unread(self._keeper, self._read)
        self._exited: asyncio.Future[LinkExited] = asyncio.get_running_loop().create_future()
        self._keyboard = Keyboard(profile)
        self._hands = Hands(
            clock=clock,
            observer=self._observer,
            watch=self._watch,
            keeper=self._keeper,
            unread=self._unread,
            exited=self._exited,
        )
        self._runner = TurnRunner(
            profile=profile,
            clock=clock,
            session=self._session,
            keyboard=self._keyboard,
            hands=self._hands,
            channels=channels,
            keeper=self._keeper,
            unread=self._unread,
            do=self._do,
            look=self._watch.look,
            look_soon=self._watch.soon,
            mark=marks.answers if marks is not None else None,
        )
        self._stopping = Stopping(
            profile=profile,
            clock=clock,
            session=self._session,
            keyboard=self._keyboard,
            runner=self._runner,
            exited=self._exited.done,
            perform=lambda steps: self._spawn(self._hands.perform(steps)),
        )
        self._window = Window(
            agent_id,
            profile,
            observer=self._observer,
            keeper=self._keeper,
            attached=lambda: len(self._viewers),
            changed=self._watch.soon,
            told=bool(channels),
        )
        self._viewers = Viewers(
            draw=self._draw,
            write=self._type_person,
            resize=self._window.resize,
            composes=self._composes,
            take_line=self._take_line,
            empty=self._watch.soon,
        )
        self._answering = Answering(
            agent_id,
            profile,
            clock=clock,
            session=self._session,
            keyboard=self._keyboard,
            runner=self._runner,
            refused=lambda prompt: self._emit(LinkRefused(prompt.prompt)),
        )
        self._kernel = KernelWitness(profile, clock, self._observer, self._unread, self._watch.soon)
        self._unsettled: int | None = None
        """`at_ns` of the last fact that was taken, and is not settled."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._suspension = Suspension(self._unread.until_read, self.signal, self._spawn)
        self._caught_up = asyncio.Event()
        self._catch_up_to = 0
        self._finishing = self._closing = False

    # --- life ---

    @property
    def launch(self) -> LaunchRecord:
        return self._launch

    @property
    def attached(self) -> int:
        return len(self._viewers)

    @property
    def writers(self) -> int:
        return self._viewers.writers

    @property
    def output(self) -> int:
        return self._observer.offset

    async def open(self, emit: Callable[[LinkEvent], None]) -> None:
        self._emit = emit
        connect = functools.partial(KeeperClient.connect, self._launch.socket, on_event=self._on_event)
        self._client = client = await self._pulse.reach(connect, self._launch, self._given_up, lambda: self._closing)
        self._catch_up_to = client.hello.spool_end
        if client.hello.alert is not None:
            self._alert(disk_alert(client.hello.alert, full=True))
        if self._marks is not None and (harm := self._marks.screen.harm) is not None:
            self._alert(screen_alert(harm))
        size = (client.hello.cols, client.hello.rows)
        screen = self._observer.screen.snapshot()
        # The keeper's size is the truth: a resize may have come between the checkpoint and the daemon's end.
        if size != (screen.cols, screen.rows):
            self._observer.resize(*size)
        self._spawn(self._runner.run())
        self._spawn(self._sweep())
        self._spawn(self._pulse.run())
        for channel in self._channels:
            await channel.open(self._on_fact)
        await client.subscribe(self._observer.offset)
        if self._observer.offset >= self._catch_up_to:
            self._caught_up.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._caught_up.wait(), CATCH_UP_S)
        self._caught_up.set()
        self._watch.begin()
        if self._observer.lost_screen:  # once, and while a turn runs too: it may wait for what is lost
            self._spawn(self._window.redraw(self._clock.monotonic()))

    def give_up(self) -> None:
        self._given_up.set()

    async def close(self) -> None:
        """Let go. An exit that was told is acknowledged, so that its keeper can end."""
        self._closing = True
        self._watch.end()
        self._viewers.end()
        for channel in self._channels:
            await channel.close()
        if self._client is not None:
            if self._exited.done():
                with contextlib.suppress(SynapsedError):
                    await self._client.acknowledge_exit()
            elif not self._session.is_saved:
                with contextlib.suppress(StoreError):  # then more of the output is read again
                    await self._save_checkpoint()
            self._client.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._marks is not None:
            self._marks.close()

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("link task failed", agent_id=self._agent_id, exc_info=error)

    # --- what comes in ---

    def _on_event(self, event: KeeperEvent) -> None:
        match event:
            case Output():
                self._on_output(event)
            case OutputGap():
                self._observer.skip(event.end)
                self._alert(gap_alert(event))
            case Exited():
                self._finish(event.record.exit_code, "the program ended")
            case Alert():
                self._alert(disk_alert(event.message, full=event.active))
            case Lost() if self._client is not None:  # else it was never reached, which whoever tried is told
                self._lose(event.reason)

    def _alert(self, alert: LinkAlert) -> None:
        log.warning("link alert", agent_id=self._agent_id, code=alert.code, state=alert.state, message=alert.message)
        self._emit(alert)

    def _silence(self, silent: bool) -> None:
        self._alert(silence_alert(silent=silent))
        if self._client is None:
            self._emit(LinkObserved(Activity.UNKNOWN, SILENT, None, can_receive=False, held=SILENT_KEEPER.held))
        self._watch.soon()

    def _on_output(self, output: Output) -> None:
        now = self._clock.monotonic()
        self._times.note(output.offset, self._clock.wall())
        if self._marks is not None:
            self._marks.screen.at(output.offset, output.end)
        self._do(self._session.output(output.offset, output.data, now, continues=output.continues))
        self._viewers.push(output.offset, output.data)
        if not self._caught_up.is_set() and self._observer.offset >= self._catch_up_to:
            self._caught_up.set()

    async def _answer_query(self, input_id: str, data: bytes) -> None:
        with contextlib.suppress(KeeperRefused, KeeperLost):
            await self._keeper().write(data, input_id)

    def _on_fact(self, fact: ChannelFact) -> None:
        self._do(self._session.told(fact, self._clock.monotonic()))

    def _do(self, commands: Sequence[SessionCommand]) -> None:
        for command in commands:
            match command:
                case Emit(event):
                    self._emit(event)
                case Work(wanted):
                    self._runner.add(wanted)
                case LookSoon():
                    self._watch.soon()
                case AnswerQuery(offset, data):
                    self._spawn(self._answer_query(f"query.{offset}", data))
                case SaveScreen():
                    self._spawn(self._save_checkpoint())
                case Poll():
                    self._spawn(self.poke())

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(POLL_EVERY_S)
            with contextlib.suppress(KeeperLost):
                await self._runner.ask_again()
                await self._kernel.ask(self._session.observed)
            if (
                (self._runner.turn is None or self._session.half_typed or self._runner.turn.state.interrupting)
                and not self._finishing
                and self._caught_up.is_set()
            ):
                now = self._clock.monotonic()
                await self._window.redraw_if_defaced(
                    self._watch.last, self._watch.look, now, hurry=self._session.half_typed
                )
            if self._runner.turn is not None:
                await self.poke()
            elif self._unsettled and self._clock.monotonic() - self._unsettled / 1e9 > SETTLE_AFTER_S:
                self.settled()

    def _read(self) -> None:
        """What the program had not read is read, and about to be shown."""
        self._do(self._session.read(self._clock.monotonic()))

    def taken(self, fact: ChannelFact) -> None:
        self._unsettled = fact.at_ns

    def settled(self) -> None:
        at_ns, self._unsettled = self._unsettled, None
        if at_ns is not None:
            for channel in self._channels:
                self._spawn(channel.settled(at_ns))

    def _finish(self, exit_code: int | None, reason: str) -> None:
        if not self._finishing:
            self._finishing = True
            self._spawn(self._tell_exit(exit_code, reason))

    async def _tell_exit(self, exit_code: int | None, reason: str) -> None:
        """A turn that ended just before the program did has ended: its channel is asked once more."""
        if self._runner.turn is not None:
            await self.poke()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._runner.idle.wait(), LAST_WORDS_S)
        event = LinkExited(exit_code, reason)
        self._viewers.end()
        if not self._exited.done():
            self._exited.set_result(event)
        self._emit(event)

    def _lose(self, reason: str) -> None:
        if not self._closing and not self._finishing:
            self._finishing = True
            self._spawn(self._keeper_lost(reason))

    async def _keeper_lost(self, reason: str) -> None:
        log.warning("keeper lost", agent_id=self._agent_id, reason=reason)
        try:
            await sweep_launch(self._launch.launch_id)
        except LaunchError as error:
            log.error("processes are left over", agent_id=self._agent_id, error=error.message)  # noqa: TRY400
        await self._tell_exit(None, f"its keeper is gone ({reason})")

    # --- judging ---

    def _looked(self, look: Look, now: float) -> None:
        self._stopping.looked(look)
        if self._window.wants_rows(look) and not (self._finishing or self._session.half_typed):
            self._spawn(self._window.stretch())
        self._do(self._session.looked(look, now, answering=self._keyboard.answering))

    def _judged(self, look: Look, now: float) -> None:
        if not self._finishing:
            self._do(self._session.judge(look, now))

    # --- the turn ---

    def prepare(self, record: TurnRecord) -> TurnRecord:
        self._runner.prepare()
        return record.model_copy(update={"link": turns.TurnState(phase=turns.Phase.PASTING).model_dump(mode="json")})

    async def deliver(self, delivery: Delivery) -> None:
        commands = self._session.begin(delivery, self._clock.monotonic())
        if delivery.fresh:
            self._runner.begun()
        self._do(commands)
        if self._session.turn is not None and self._session.turn.state.submitted:
            self._spawn(self._runner.catch_up())
        self._watch.judge()

    def recorded(self, record: TurnRecord) -> None:
        self._runner.recorded()

    # --- what is asked ---

    async def observe(self) -> LinkObserved:
        self._watch.look()
        assert self._session.observed is not None
        return self._session.observed

    async def interrupt(self) -> bool:
        return await self._hands.perform(self._stopping.stop())

    async def answer(self, text: str, prompt_id: str | None) -> bool:
        return await self._hands.perform(self._answering.answer(text, prompt_id))

    async def reply(self, asked: PermissionAsked, answer: dict[str, Any]) -> bool:
        channel = next((channel for channel in self._channels if channel.name == asked.channel), None)
        return channel is not None and asked.request is not None and await channel.reply(asked.request, answer)

    async def stop(self, grace: float) -> LinkExited:
        if not self._exited.done() and not await self._pulse.answers():
            self._lose(SILENT)
        elif not self._exited.done():
            look = self._watch.look()
            if look.composer.state == "empty" and look.verdict.asked is None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._hands.perform(self._keyboard.leave()), LEAVE_S)
            try:
                await self._keeper().stop(grace)
            except KeeperRefused:
                pass  # it has ended
            except KeeperLost as error:  # one that stands still would never tell of the end
                self._lose(error.message)
        return await asyncio.shield(self._exited)

    async def signal(self, signum: int) -> None:
        if signum == signal.SIGKILL and not await self._pulse.answers():
            self._lose(SILENT)
            await asyncio.shield(self._exited)
        else:
            await self._keeper().signal(signum)

    async def poke(self) -> None:
        for channel in self._channels:
            await channel.poll()

    async def explain(self) -> list[Testimony]:
        self._watch.look()
        now = self._clock.monotonic()
        return [row.testify(self._clock.wall() - now) for row in self._observer.explain(now)]

    # --- the screen ---

    async def screen_text(self, limit: int | None = None) -> str:
        text = self._observer.screen.text(scrollback=limit is not None)
        return text if limit is None else text[-limit:]

    async def screen_as(self, fmt: ScreenForm) -> Shown:
        return shown(self._observer.screen, fmt)

    async def keep_screen(self) -> None:
        await self._save_checkpoint()

    async def attach(self, *, cols: int, rows: int, read_only: bool) -> Attachment:
        viewer = await self._viewers.join(cols=cols, rows=rows, read_only=read_only)
        if read_only:
            await self._window.join(cols, rows)
        return viewer

    async def _draw(self, notice: Sequence[str]) -> Redraw:
        return Redraw(self._observer.redraw(notice), self._observer.screen.pending, self._observer.offset)

    async def _composes(self) -> bool:
        return self._session.hands_on(self._clock.monotonic()) or self._watch.look().composer.state != "empty"

    async def _take_line(self, line: str) -> bool:
        """What was typed may not be on the screen yet; a line that never comes to stand there is another one."""
        if not await self._watch.until(lambda look: shows_line(look.composer, look.screen, line), ECHO_S):
            return False
        self._session.pressed(self._clock.monotonic())
        return await self._hands.perform(self._keyboard.erase())

    async def _type_person(self, data: bytes) -> None:
        """A person's keys. They wait while a message is being typed, which is a moment: nothing is ever mixed."""
        spec = self._profile.delivery
        patience = (spec.settle_max_ms + 2 * spec.accept_ms) / 1000 + TAKE_BACK_S
        # Else there is nothing to look for: a look for each key would be most of its way.
        if self._session.half_typed or self._keyboard.answering:
            await self._watch.until(lambda look: not (self._session.typing(look) or self._keyboard.answering), patience)
        if not are_reports(data):
            self._session.pressed(self._clock.monotonic())
        if data not in FOCUS:
            self._session.touch()
        await self._type(data)
        self._suspension.typed(data)
        self._stopping.typed(data)

    async def press(self, keys: Sequence[str]) -> None:
        modes = self._observer.screen.snapshot().modes
        for number, data in enumerate(presses := encode(keys, application_cursor=DECCKM in modes.dec)):
            if number:
                await asyncio.sleep(PRESS_GAP_S)
            free = await self._watch.until(
                lambda look: not (self._session.typing(look) or self._keyboard.answering), PRESS_WAIT_S
            )
            if not free:
                left = f" ({number} of {len(presses)} keys were pressed)" if number else ""
                raise NotReady(f"a message or an answer is being typed there just now{left}: try again in a moment")
            await self._type_person(data)

    async def _type(self, data: bytes) -> WriteResult:
        self._observer.typed(self._clock.monotonic())
        return await self._keeper().write(data)

    async def _save_checkpoint(self) -> None:
        try:
            checkpoint = self._observer.checkpoint()
            self._session.saving(checkpoint.offset)
            await self._store.save_checkpoint(self._agent_id, checkpoint)
        finally:
            self._session.saved()

    def _keeper(self) -> KeeperClient:
        if self._client is None:
            raise KeeperLost("the link is not open")
        return self._client
