"""The link (the daemon's object for one running program) to a program in a terminal.

Output, facts and keys come in through callbacks and go to the `Session`, which decides; the `Driver` does the work that
the session wants. Output also goes to the stage, which draws the screen.
"""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from synapsed.errors import KeeperLost, StoreError
from synapsed.interfaces import Attachment, Delivering, Delivery, LinkTerminal, SideChannel
from synapsed.keepers.heartbeat import SILENT
from synapsed.keepers.keeper_messages import KeeperEvent, Output, OutputGap
from synapsed.keepers.kept_program import gap_alert
from synapsed.model.agent import Activity, Testimony
from synapsed.model.facts import ChannelFact, PermissionAsked
from synapsed.model.link import LinkAlert, LinkEvent, LinkExited, LinkObserved
from synapsed.model.outer_terminal import OuterTerminal
from synapsed.model.picture import ScreenForm, Shown
from synapsed.model.records import TurnRecord
from synapsed.pty.answering import Answering
from synapsed.pty.channel_turn import BY
from synapsed.pty.channel_way import ChannelWay
from synapsed.pty.driver import Driver
from synapsed.pty.linked_terminal import LinkedTerminal, ProgramLink
from synapsed.pty.output_times import OutputTimes
from synapsed.pty.person_keys import PersonKeys
from synapsed.pty.prompt_learning import KeptPrompts
from synapsed.pty.readiness import SILENT_KEEPER
from synapsed.pty.screen_looks import KernelWitness
from synapsed.pty.session import Session
from synapsed.pty.stopped_turn import KeptStop, StoppedMessage
from synapsed.pty.stopping import Stopping
from synapsed.pty.turn_worker import TurnWorker
from synapsed.pty.undrawn_output import UndrawnOutput
from synapsed.pty.viewers import Viewers
from synapsed.pty.window import LastSeen, Theme, Window
from synapsed.terminal.line_prompts.learned import LearnedPrompt
from synapsed.terminal.look import Harm, Look
from synapsed.terminal.screen_messages import Drawn, Harmed, Incomplete, StageEvent

LAST_WORDS_S = 5.0
"""Seconds for the turn's unfinished work at a program's end."""

LAST_WORDS_TAKEN_S = 1.0
"""The same if a request stops or kills the program, and waits for its end."""

SETTLE_AFTER_S = 30.0
"""Seconds for which reports are kept that no turn used: an adopted program's turn may be continued."""

SHOWN_S = 2.0
"""Seconds that a request for the screen waits for output that is not drawn yet."""

# A look, and saving a screen, wait for the process that draws the screen; it may be gone, or be slow: hence the limits.

LEAVE_S = 30.0
"""Seconds for the program's own exit keys to end it, before it is ended by a signal."""

LEAVE_LOOK_S = 1.5
"""Seconds for the look that decides if those keys may be pressed."""

OBSERVE_S = 2.0
"""Seconds for a look that an agent waits for."""

INTERRUPT_LOOK_S = 10.0
"""Seconds for a look before a turn is stopped. Without it no keys are pressed: they might not be for a turn, and no
look would prove that they stopped it."""

RETURN_S = 10.0
"""Seconds to wait for terminals that were attached to the last daemon."""

SAVE_S = 10.0
"""Seconds for saving a screen."""

FRESH_LOOK_S = 10.0
"""Seconds for the first look at a program that was just launched."""

FIRST_LOOK_S = 30.0
"""Seconds that the first look may still take after the link was given up."""

log = structlog.get_logger(__name__)


class PtyLink(ProgramLink):
    """Implements `interfaces.AgentLink` for a terminal in a keeper."""

    _is_taken_down = False
    """True while a request stops or kills the program."""

    def __init__(
        self,
        *,
        channels: Sequence[SideChannel],
        times: OutputTimes,
        seen: LastSeen,
        own_size: tuple[int, int],
        way: Delivering | None = None,
        adopted: bool = False,
        kept_prompts: KeptPrompts | None = None,
        kept_stop: KeptStop | None = None,
        stopped: StoppedMessage | None = None,
        prompts: tuple[LearnedPrompt, ...] = (),
        **program: Any,
    ) -> None:
        """Makes a link. `own_size` is the window's size while no viewer that may type is attached; `way`: the channel
        over which the program takes messages; `adopted`: the program ran before this daemon; `prompts` are the kept
        prompts; `stopped` is the message of the turn that was stopped last; `program`: for `ProgramLink`."""
        super().__init__(**program)
        agent_id, profile, stage, clock = self._agent_id, self._profile, self._stage, self._clock
        self._channels = channels
        self._times = times
        self._session = Session(profile, stage.start, channels_tell=bool(channels), prompts=prompts)
        self._keyboard = self._session.keyboard
        self._sweeping: asyncio.Task[None] | None = None
        self._first_look: asyncio.Timeout | None = None
        """Time limit of the first look, while the look is awaited."""
        terminal = LinkedTerminal(
            agent_id,
            profile,
            self._session,
            stage,
            self._program,
            channels,
            self._store,
            clock,
            kept_prompts,
            kept_stop,
        )
        self._driver = driver = Driver(terminal, looked=self._looked, resized=self._resized)
        self._stopping = Stopping(terminal, perform=driver.undertake, left=stopped)
        self._person_keys = PersonKeys(terminal, driver, self._stopping)
        self._window = Window(
            profile,
            own=own_size,
            attached=lambda: len(self._viewers),
            writers=lambda: self._viewers.writers,
            told=bool(channels),
        )
        self._seen = seen
        self._theme = Theme(seen.outer)
        self._viewers = Viewers(stage, self._person_keys, self, now=clock.monotonic, outer=seen.outer)
        self._kernel = KernelWitness(terminal, driver.looks)
        self._unsettled: int | None = None
        """`at_ns` of the last fact that was taken and about which the events are not stored yet."""
        self._undrawn = UndrawnOutput(terminal, drawn=stage.start.offset, passed=self._passed_over)
        self._beside: ChannelWay | None = None
        """The program's own way of messages, which is asked before anything is typed."""
        if way is not None:
            self._beside = ChannelWay(
                terminal,
                way,
                adopted=adopted,
                hear=self._on_fact,
                press=self._press_stop,
                screen=self.screen_text,
                kill=partial(self.signal, signal.SIGKILL),
            )
        refuse = self._beside.turns.refuse if self._beside is not None else None
        self._answering = Answering(terminal, refuse)

    # --- life ---

    @property
    def terminal(self) -> LinkTerminal:
        return self

    @property
    def hands_at(self) -> float:
        return self._session.hands_at

    @property
    def person_at(self) -> float | None:
        return self._session.person_at

    @property
    def output(self) -> int:
        return self._session.offset

    async def open(self, emit: Callable[[LinkEvent], None]) -> None:
        await self._open(emit if self._beside is None else self._beside.begin(emit))
        if self._beside is not None:
            await self._beside.opened()

    async def _open(self, emit: Callable[[LinkEvent], None]) -> None:
        self._program.emit = emit
        self._stage.open(self._on_stage)
        self._stage.note(self._seen.outer)
        client = await self._program.reach(self._on_event)
        start, driver = self._stage.start, self._driver
        if start.harm is not None:
            self._lost_screen(start.harm)
        # The sizes come from the keeper: the window may have been resized after the last checkpoint, and older output
        # has to be drawn in the size of its time.
        self._window.size = (client.hello.cols, client.hello.rows)
        for at, cols, rows in client.hello.sizes:
            self._stage.resize(cols, rows, at)
        self._stage.resize(*self._window.size)
        self._viewers.resize(*self._window.size)
        self._program.tasks.spawn(driver.turn.run())
        self._rounds.join(self)
        for channel in self._channels:
            await channel.open(self._on_fact if self._beside is None else self._beside.on_fact)
        await self._program.subscribe(start.offset)
        self._program.has(start.offset)
        if start.size is None and start.offset == self.launch.spool_start:  # just launched: no turn is on the screen
            await self._begin_fresh()
        else:
            await self._program.catch_up()
            await self._begin()
        if start.size is not None and self._window.left_in_redraw(start.size):
            driver.undertake(self._window.resize(*start.size))
        self._program.tasks.spawn(self._give_back_window())
        if start.harm is not None and start.offset <= start.harm.until:
            self._redraw()  # also while a turn runs: the turn may wait for a screen

    async def _begin_fresh(self) -> None:
        """Makes the first look at a program that was just launched; skips output that comes too fast to be drawn."""
        async with self._undrawn.passed_over():
            beginning = self._program.tasks.spawn(self._first_looks())
            await asyncio.wait({beginning}, timeout=FRESH_LOOK_S)

    async def _first_looks(self) -> None:
        await self._program.catch_up()
        with contextlib.suppress(KeeperLost):
            await self._driver.looks.begin()

    async def _begin(self) -> None:
        """Makes a first look. Raises KeeperLost if it does not come within FIRST_LOOK_S after the link was given up."""
        try:
            async with asyncio.timeout(FIRST_LOOK_S if self._program.given_up.is_set() else None) as self._first_look:
                await self._driver.looks.begin()
        except TimeoutError:
            raise KeeperLost("its screen is not drawn, and the request was given up") from None
        finally:
            self._first_look = None

    def give_up(self) -> None:
        if self._first_look is not None and not self._program.given_up.is_set():
            self._first_look.reschedule(asyncio.get_running_loop().time() + FIRST_LOOK_S)
        super().give_up()

    async def leave_off(self) -> None:
        if self._beside is not None:
            await self._beside.close()
        self._driver.looks.end()
        for channel in self._channels:
            await channel.close()
        if self._program.client is not None and not (self._program.exited.done() or self._session.is_saved):
            with contextlib.suppress(StoreError, TimeoutError):  # then the next daemon reads more of the output again
                await asyncio.wait_for(self._driver.save_screen(), SAVE_S)

    # --- events ---

    def _on_event(self, event: KeeperEvent) -> None:
        match event:
            case Output():
                self._on_output(event)
            case OutputGap():
                self._driver.do(self._session.missed(event.end))
                self._undrawn.gone(event.end)
                self._program.alert(gap_alert(event))
            case _:
                self._program.told(event)

    def _lost_screen(self, harm: Harm) -> None:
        """Sends the alert that the screen was lost; it lasts as long as the launch."""
        told = {"to": harm.skip_to, "blind": harm.blind}
        self._program.alert(LinkAlert("SCREEN_LOST", harm.message, "begins", told))

    def silenced(self, *, silent: bool) -> None:
        if silent and self._program.client is None:
            self._program.emit(LinkObserved(Activity.UNKNOWN, SILENT, None, can_receive=False, held=SILENT_KEEPER.held))
        self._driver.looks.soon()

    def _on_output(self, output: Output) -> None:
        self._viewers.push(output.offset, output.data)  # first: a person waits for the echo
        self._times.note(output.offset, self._clock.wall())
        self._driver.do(self._session.output(output.offset, output.data))
        self._stage.feed(output.offset, output.data, self._clock.monotonic(), continues=output.continues)
        self._undrawn.came(output.end)

    def _passed_over(self, offset: int) -> None:
        """Notes that the output up to `offset` was skipped."""
        self._driver.do(self._session.missed(offset))
        self._viewers.missed()
        self._program.has(offset)

    def _on_stage(self, event: StageEvent) -> None:
        match event:
            case Drawn():
                self._undrawn.drawn(event.offset)
                self._driver.do(self._session.drawn(event))
                self._program.has(event.offset)
            case Harmed(harm):
                self._lost_screen(harm)
                self._redraw()
            case Incomplete():
                self._redraw()

    def _on_fact(self, fact: ChannelFact) -> None:
        self._driver.do(self._session.told(fact, self._clock.monotonic()))

    def visit(self) -> None:
        """Starts due work, if earlier work is done. Called by `Rounds`."""
        self._undrawn.visit()
        if (self._sweeping is None or self._sweeping.done()) and self._has_due():
            self._sweeping = self._program.tasks.spawn(self._sweep())

    def _has_due(self) -> bool:
        """Returns True if `_sweep` would do some work."""
        return (
            self._session.turn is not None
            or self._unsettled is not None
            or self._driver.kernel.asks_again
            or self._kernel.is_due(self._session.observations.last)
            or self._may_redraw(self._clock.monotonic())
        )

    async def _sweep(self) -> None:
        session = self._session
        with contextlib.suppress(KeeperLost):
            await self._driver.kernel.ask_again()
            await self._kernel.ask(session.observations.last)
        await self._redraw_if_defaced()
        if session.turn is not None:
            await self.poke()
        elif self._unsettled and self._clock.monotonic() - self._unsettled / 1e9 > SETTLE_AFTER_S:
            self.settled()

    def _may_redraw(self, now: float) -> bool:
        """Returns True if a look might find that the screen is defaced and the program should redraw it."""
        session = self._session
        return (
            (session.turn is None or session.half_typed or session.turn.state.interrupting)
            and not session.finishing
            and self._program.caught_up.is_set()
            and self._window.may_want_redraw(session.last, now, hurry=session.half_typed)
        )

    async def _redraw_if_defaced(self) -> None:
        now, hurry = self._clock.monotonic(), self._session.half_typed
        if (
            self._may_redraw(now)
            and self._window.wants_redraw(await self._driver.looks.look(), now, hurry=hurry)
            and await self._driver.kernel.rests_with_keys_read()  # else the program may be about to redraw by itself
        ):
            with contextlib.suppress(StoreError, TimeoutError):  # the next daemon restores the size after a kill
                await asyncio.wait_for(self._driver.save_screen(), SAVE_S)
            self._redraw()

    def _redraw(self) -> None:
        log.info("the program is asked to redraw its screen", agent_id=self._agent_id)
        self._driver.undertake(self._window.redraw(self._clock.monotonic()))

    def taken(self, fact: ChannelFact) -> None:
        self._unsettled = fact.at_ns

    def settled(self) -> None:
        at_ns, self._unsettled = self._unsettled, None
        if at_ns is not None:
            for channel in self._channels:
                self._program.tasks.spawn(channel.settled(at_ns))

    def finishing(self) -> None:
        self._session.finishing = True

    @property
    def _patience(self) -> float:
        """Returns the time, in seconds, for the turn's unfinished work at the program's end."""
        return LAST_WORDS_TAKEN_S if self._is_taken_down else LAST_WORDS_S

    async def last_words(self) -> None:
        """Asks the channels once more: the turn may have ended just before the program did."""
        if self._beside is not None:
            await self._beside.turns.last_words(self._patience)
        if self._session.turn is not None:
            await self._driver.rests()
            await self.poke()
            with contextlib.suppress(TimeoutError):
                async with self._undrawn.passed_over(), asyncio.timeout(self._patience):
                    await self._driver.turn.idle.wait()
        self._viewers.end()

    # --- looks ---

    def _looked(self, look: Look) -> None:
        self._stopping.looked(look)
        if self._window.wants_rows(look) and not (self._session.finishing or self._session.half_typed):
            self._driver.undertake(self._window.stretch())

    def _resized(self, cols: int, rows: int) -> None:
        self._stage.resize(cols, rows)
        self._viewers.resize(cols, rows)
        self._driver.looks.soon()

    async def resize(self, cols: int, rows: int) -> None:
        await self._driver.perform(self._window.resize(cols, rows))

    # --- the turn ---

    def prepare(self, record: TurnRecord, *, command: bool = False) -> TurnRecord:
        prepared = self._beside.prepare(record, command=command) if self._beside is not None else None
        return prepared or self._driver.turn.prepare(record)

    async def deliver(self, delivery: Delivery) -> None:
        await self._way_of(delivery.record).deliver(delivery)

    def recorded(self, record: TurnRecord) -> None:
        self._way_of(record).recorded()

    def _way_of(self, record: TurnRecord) -> ChannelWay | TurnWorker:
        return self._beside if self._beside is not None and record.link.get("by") == BY else self._driver.turn

    async def interrupt(self) -> bool:
        stopped = await self._beside.interrupt() if self._beside is not None else None
        return await self._press_stop() if stopped is None else stopped

    async def answer(self, text: str, prompt_id: str | None) -> bool:
        hidden = await self._beside.answer(text, prompt_id) if self._beside is not None else None
        return await self._driver.perform(self._answering.answer(text, prompt_id)) if hidden is None else hidden

    # --- requests ---

    async def observe(self) -> LinkObserved:
        shown = await self._observed()
        return self._beside.observed(shown) if self._beside is not None else shown

    async def _observed(self) -> LinkObserved:
        """Returns an observation. If no look comes in time, returns the last observation, with `can_receive` False: the
        calling agent does no other work meanwhile."""
        if self._undrawn.far_behind:
            return self._session.observations.unseen()
        try:
            async with asyncio.timeout(OBSERVE_S):
                await self._driver.looks.look()
        except TimeoutError:
            return self._session.observations.unseen()
        assert self._session.observations.last is not None
        return self._session.observations.last

    async def _press_stop(self) -> bool:
        """Stops the running turn by keys."""
        async with self._undrawn.passed_over():
            try:
                async with asyncio.timeout(INTERRUPT_LOOK_S):
                    await self._driver.looks.look()
            except TimeoutError:
                raise KeeperLost("its screen is not drawn, so a stop could not be confirmed") from None
            return await self._driver.perform(self._stopping.stop())

    async def stop_background(self) -> bool:
        return await self._driver.perform(self._keyboard.stop_background())

    async def reply(self, asked: PermissionAsked, answer: dict[str, Any]) -> bool:
        channel = next((channel for channel in self._channels if channel.name == asked.channel), None)
        return channel is not None and asked.request is not None and await channel.reply(asked.request, answer)

    async def stop(self, grace: float) -> LinkExited:
        self._is_taken_down = True
        async with self._undrawn.passed_over():
            return await self._program.stop(grace, leave=self._leave)

    async def _leave(self) -> None:
        """Presses the program's own exit keys, if its composer is empty."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_LOOK_S):
                look = await self._driver.looks.look()
            async with asyncio.timeout(LEAVE_S):
                if look.composer.state == "empty" and look.verdict.asked is None:
                    await self._driver.perform(self._keyboard.leave())

    async def signal(self, signum: int) -> None:
        self._is_taken_down = self._is_taken_down or signum == signal.SIGKILL
        await super().signal(signum)

    async def poke(self) -> None:
        await self._driver.poll()

    async def explain(self) -> list[Testimony]:
        return await _within_reason(self._explained)

    async def _explained(self, *, as_drawn: bool) -> list[Testimony]:
        if not as_drawn:
            await self._driver.looks.look()
        now = self._clock.monotonic()
        told = await self._stage.explain(self._session.ask(now), as_drawn=as_drawn)
        return [row.testify(self._clock.wall() - now) for row in told]

    # --- the screen ---

    async def screen_text(self, limit: int | None = None) -> str:
        text = await _within_reason(partial(self._stage.text, scrollback=limit is not None))
        return text if limit is None else text[-limit:]

    async def screen_as(self, fmt: ScreenForm) -> Shown:
        if fmt == "rows":  # a web viewer asks again after each change: it need not have a partly drawn screen now
            return await self._stage.shown(fmt)
        return await _within_reason(partial(self._stage.shown, fmt))

    async def keep_screen(self) -> None:
        await self._driver.save_screen()

    async def attach(self, *, cols: int, rows: int, read_only: bool, keep_size: bool = False) -> Attachment:
        viewer = await super().attach(cols=cols, rows=rows, read_only=read_only, keep_size=keep_size)
        async with contextlib.AsyncExitStack() as unless_joined:
            unless_joined.push_async_callback(viewer.close)
            if read_only:
                await self._driver.perform(self._window.join(cols, rows))
            unless_joined.pop_all()
        return viewer

    def follows(self, size: tuple[int, int] | None) -> None:
        if size is not None:
            self._driver.undertake(self._window.resize(*size))
            return
        self._driver.undertake(self._window.give_back())
        self._driver.looks.soon()

    async def _give_back_window(self) -> None:
        """Gives the window back its own size, after viewers of the last daemon had RETURN_S to attach again."""
        await asyncio.sleep(RETURN_S)
        self._driver.undertake(self._window.give_back())

    def seen_in(self, outer: OuterTerminal) -> None:
        self._seen.outer = replace(outer, keyboard=False)
        self._stage.note(outer)
        self._driver.undertake(self._theme.changes(outer))

    async def press(self, keys: Sequence[str]) -> None:
        await self._person_keys.press(keys)


async def _within_reason[T](ask: Callable[..., Awaitable[T]]) -> T:
    """Returns the answer for all output that has come; after SHOWN_S, for the output drawn so far."""
    try:
        async with asyncio.timeout(SHOWN_S):
            return await ask(as_drawn=False)
    except TimeoutError:
        return await ask(as_drawn=True)
