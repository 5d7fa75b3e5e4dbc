"""The way of messages over a channel of the program's own (`interfaces.Delivering`), beside its terminal.

While the channel is reached, messages, answers to the channel's questions and requests to stop go over it; all else is
done at the terminal (`PtyLink`). While the channel is away, everything is done at the terminal. A turn ends by the way
on which it has begun; its record says which one that is (`channel_turn`).
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import structlog

from synapsed import aio
from synapsed.errors import ChannelAway, NotTaken
from synapsed.interfaces import Delivering, Delivery, Reach
from synapsed.model.facts import (
    ChannelFact,
    PermissionAsked,
    PermissionOver,
    ToolBegan,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
)
from synapsed.model.link import LinkAlert, LinkEvent, LinkExited, LinkObserved
from synapsed.model.records import TurnRecord
from synapsed.pty.channel_delivery import ChannelDelivery
from synapsed.pty.channel_view import Beside, ChannelView, chosen
from synapsed.pty.linked_terminal import LinkedTerminal
from synapsed.pty.stopping import WayStopping

REACHED_S = 5.0
"""Seconds to wait for the channel of an adopted program, before its state is reported from the screen alone."""

CHANNEL_AWAY = "CHANNEL_AWAY"
"""Code of the alert that messages are typed because the program does not answer over its channel."""

log = structlog.get_logger(__name__)


class ChannelWay:
    """The way of one program. It reports the activity that follows from the terminal and the channel together."""

    def __init__(
        self,
        terminal: LinkedTerminal,
        channel: Delivering,
        *,
        adopted: bool,
        hear: Callable[[ChannelFact], None],
        press: Callable[[], Awaitable[bool]],
        screen: Callable[[], Awaitable[str]],
        kill: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        """`adopted`: the program ran before this daemon, so its channel can be reached at once; `hear` passes a fact to
        the terminal's session, `press` stops the running turn by keys, `screen` returns the terminal's text, `kill`
        ends the program."""
        self._agent_id = terminal.agent_id
        self._session = terminal.session
        self._program = terminal.program
        self._clock = terminal.clock
        self._channel = channel
        self._hear = hear
        self._kill = kill
        self._view = ChannelView(terminal.profile, coming=not adopted)
        self._emit: Callable[[LinkEvent], None] = lambda _event: None
        self.turns = ChannelDelivery(
            terminal.agent_id,
            terminal.profile,
            channel,
            clock=terminal.clock,
            emit=lambda event: self._emit(event),  # noqa: PLW0108 - `_emit` is replaced later
            over=self._observe,
            person_at=lambda: self._session.person_at,
            press=press,
            screen=screen,
        )
        self._stopping = WayStopping(self.turns, channel)
        self._tasks = aio.TaskSet(lambda error: log.error("link task failed", agent_id=self._agent_id, exc_info=error))
        self._shown: LinkObserved | None = None
        """The last observation of the terminal."""
        self._told: LinkObserved | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._opening = adopted
        """True while no observation is reported, because the channel may be reached soon."""
        self._reached = asyncio.Event()
        self._exited = False
        self._typed_instead = False
        """True if the alert CHANNEL_AWAY was sent and is not over: a message was typed."""
        channel.watch(self._changed)

    # --- life ---

    def begin(self, emit: Callable[[LinkEvent], None]) -> Callable[[LinkEvent], None]:
        """Begins to report by `emit`. Returns the callback for the terminal's events."""
        self._emit = emit
        self._tasks.spawn(self.turns.run())
        return self._on_terminal

    async def opened(self) -> None:
        """Called when the terminal's link is open: waits for the channel of an adopted program, and reports."""
        if self._opening and not self._exited:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._reached.wait(), REACHED_S)
        self._opening = False
        self._observe()

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.cancel()

    # --- facts and events ---

    def on_fact(self, fact: ChannelFact) -> None:
        """Takes a fact of any of the program's channels."""
        own = fact.channel == self._channel.name
        if own and isinstance(fact, ToolBegan):
            self._take(fact)  # first: this reports the text before the tool call
        self._hear(fact)
        if own and not isinstance(fact, ToolBegan):
            self._take(fact)  # last: the fact is reported before the end of the turn, which may follow from it

    def _on_terminal(self, event: LinkEvent) -> None:
        match event:
            case LinkObserved():
                self._shown = event
                self._observe()
                return
            case LinkExited():
                self._exited = True
                self.turns.drop()
        self._emit(event)

    def _take(self, fact: ChannelFact) -> None:
        match fact:
            case PermissionAsked():
                self._view.asked(fact)
                self._observe()
            case PermissionOver():
                self._view.over(fact.request, self._clock.monotonic())
                self._observe()
            case TurnEnded() | TurnFailed() | TurnInterrupted():
                self._view.forget(self._clock.monotonic())
        self.turns.told(fact)

    def _changed(self) -> None:
        """Notes that the channel's `reach` has changed."""
        self._stopping.moved.set()
        if self._channel.reach() != "away" or self._channel.gone is not None:
            self._reached.set()
        self.turns.changed()
        if (why := self._channel.gone) is not None and not self._exited:
            self._exited = True
            self._alert(f"{why}: the program is ended, because it cannot work without its server", "happened")
            self._tasks.spawn(self._kill())  # so it counts as failed, and the restart policy applies
        if self._typed_instead and self._channel.reach() != "away":
            self._typed_instead = False
            self._alert("messages go over its channel again", "over")
        self._observe()

    def _alert(self, message: str, state: Any) -> None:
        self._program.alert(LinkAlert(CHANNEL_AWAY, message, state))

    # --- its activity ---

    @property
    def _reach(self) -> Reach:
        return self._channel.reach() if self._channel.gone is None else "away"

    def observed(self, shown: LinkObserved) -> LinkObserved:
        """Returns the agent's activity by this observation of the terminal, and by the channel."""
        self._shown = shown
        beside = Beside(
            now=self._clock.monotonic(),
            reach=self._reach,
            coming=self._channel.coming,
            channel=self._channel.name,
            in_turn=self.turns.turn is not None,
            draft=self._session.last is not None and self._session.last.composer.state == "draft",
            hands_at=self._session.hands_at,
        )
        told = self._view.seen(shown, beside)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (due := self._view.due) is not None:
            wait = max(0.0, due - self._clock.monotonic()) + 0.001
            self._timer = asyncio.get_running_loop().call_later(wait, self._observe)
        return told

    def _observe(self) -> None:
        """Reports the present state, if it has changed."""
        if self._shown is None or self._exited or self._opening:
            return
        if (told := self.observed(self._shown)) != self._told:
            self._told = told
            self._emit(told)

    # --- the turn ---

    def prepare(self, record: TurnRecord, *, command: bool) -> TurnRecord | None:
        """See `AgentLink.prepare`; returns None if the message has to be typed."""
        if not command and self._reach == "idle":
            return self.turns.record(record)
        if self._reach == "away" and not self._typed_instead:
            self._typed_instead = True
            self._alert("its program does not answer over its channel: messages are typed at its terminal", "begins")
        return None

    async def deliver(self, delivery: Delivery) -> None:
        self.turns.begin(delivery)
        self._observe()

    def recorded(self) -> None:
        self.turns.recorded()

    async def interrupt(self) -> bool | None:
        """See `AgentLink.interrupt`; returns None if keys have to be pressed."""
        if self.turns.turn is not None:
            return await self._stopping.stop()
        if self._session.turn is not None or self._channel.reach() == "away":
            return None
        try:
            return await self._stopping.stop_others()
        except ChannelAway as error:
            log.info("a turn could not be stopped", agent_id=self._agent_id, error=error.message)
            return False

    async def answer(self, text: str, prompt_id: str | None) -> bool | None:
        """See `AgentLink.answer`; returns None if the prompt is the terminal's."""
        asks = self._view.find(prompt_id)
        if asks is None:
            return None
        request = asks.asked.request
        assert request is not None, "what has options has it"
        try:
            took = await self._channel.answer(request, chosen(asks, text))
        except ChannelAway as error:
            raise NotTaken(f"its program did not take the answer: {error.message}", prompt_id=prompt_id) from None
        self._view.over(request, self._clock.monotonic())
        self._observe()
        if not took:
            raise NotTaken("somebody else has answered it just now", prompt_id=asks.prompt.prompt_id)
        return False
