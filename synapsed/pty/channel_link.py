"""The link to a program in a terminal that also takes messages over a channel of its own (`interfaces.Delivering`).

While the channel is reached, messages, answers to the channel's questions and requests to stop go over it; all else is
done at the terminal (`PtyLink`). While the channel is away, everything is done at the terminal. A turn ends by the way
on which it has begun; its record says which one that is (`channel_turn`).
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import Any

import structlog

from synapsed import aio
from synapsed.errors import ChannelAway, NotTaken
from synapsed.interfaces import Delivering, Delivery
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
from synapsed.pty.channel_turn import BY
from synapsed.pty.channel_view import Beside, ChannelView, chosen
from synapsed.pty.pty_link import PtyLink
from synapsed.pty.stopping import WayStopping

REACHED_S = 5.0
"""Seconds to wait for the channel of an adopted program, before its state is reported from the screen alone."""

CHANNEL_AWAY = "CHANNEL_AWAY"
"""Code of the alert that messages are typed because the program does not answer over its channel."""

log = structlog.get_logger(__name__)


class StructuredLink(PtyLink):
    """Implements `interfaces.AgentLink`; `channel` is one of the channels of `PtyLink`."""

    def __init__(self, *, channel: Delivering, adopted: bool, **terminal: Any) -> None:
        """`adopted`: the program ran before this daemon, so its channel can be reached at once; `terminal`: the
        arguments of `PtyLink`."""
        super().__init__(**terminal)
        self._channel = channel
        self._view = ChannelView(self._profile, coming=not adopted)
        self._emit: Callable[[LinkEvent], None] = lambda _event: None
        self._turns = ChannelDelivery(
            self._agent_id,
            self._profile,
            channel,
            clock=self._clock,
            emit=lambda event: self._emit(event),  # noqa: PLW0108 - `_emit` is replaced later
            over=self._observe,
            person_at=lambda: self.person_at,
            press=super().interrupt,
            screen=self.screen_text,
        )
        self._way_stopping = WayStopping(self._turns, channel)
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

    async def open(self, emit: Callable[[LinkEvent], None]) -> None:
        self._emit = emit
        self._tasks.spawn(self._turns.run())
        await super().open(self._on_terminal)
        if self._opening and not self._exited:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._reached.wait(), REACHED_S)
        self._opening = False
        self._observe()

    async def last_words(self) -> None:
        await self._turns.last_words(self._patience)
        await super().last_words()

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.cancel()
        await super().close()

    # --- facts and events ---

    def _on_fact(self, fact: ChannelFact) -> None:
        own = fact.channel == self._channel.name
        if own and isinstance(fact, ToolBegan):
            self._hear(fact)  # first: this reports the text before the tool call
        super()._on_fact(fact)
        if own and not isinstance(fact, ToolBegan):
            self._hear(fact)  # last: the fact is reported before the end of the turn, which may follow from it

    def _on_terminal(self, event: LinkEvent) -> None:
        match event:
            case LinkObserved():
                self._shown = event
                self._observe()
                return
            case LinkExited():
                self._exited = True
                self._turns.drop()
        self._emit(event)

    def _hear(self, fact: ChannelFact) -> None:
        match fact:
            case PermissionAsked():
                self._view.asked(fact)
                self._observe()
            case PermissionOver():
                self._view.over(fact.request, self._clock.monotonic())
                self._observe()
            case TurnEnded() | TurnFailed() | TurnInterrupted():
                self._view.forget(self._clock.monotonic())
        self._turns.told(fact)

    def _changed(self) -> None:
        """Notes that the channel's `reach` has changed."""
        self._way_stopping.moved.set()
        if self._channel.reach() != "away" or self._channel.gone is not None:
            self._reached.set()
        self._turns.changed()
        if (why := self._channel.gone) is not None and not self._exited:
            self._exited = True
            self._alert(f"{why}: the program is ended, because it cannot work without its server", "happened")
            self._tasks.spawn(self.signal(signal.SIGKILL))  # so it counts as failed, and the restart policy applies
        if self._typed_instead and self._channel.reach() != "away":
            self._typed_instead = False
            self._alert("messages go over its channel again", "over")
        self._observe()

    def _alert(self, message: str, state: Any) -> None:
        self._program.alert(LinkAlert(CHANNEL_AWAY, message, state))

    # --- its activity ---

    def _view_of(self, seen: LinkObserved) -> LinkObserved:
        reach = self._channel.reach() if self._channel.gone is None else "away"
        beside = Beside(
            now=self._clock.monotonic(),
            reach=reach,
            coming=self._channel.coming,
            channel=self._channel.name,
            in_turn=self._turns.turn is not None,
            draft=self._session.last is not None and self._session.last.composer.state == "draft",
            hands_at=self.hands_at,
        )
        return self._view.seen(seen, beside)

    def _observe(self) -> None:
        """Reports the present state, if it has changed."""
        if self._shown is None or self._exited or self._opening:
            return
        told = self._view_of(self._shown)
        self._look_again()
        if told != self._told:
            self._told = told
            self._emit(told)

    def _look_again(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (due := self._view.due) is not None:
            wait = max(0.0, due - self._clock.monotonic()) + 0.001
            self._timer = asyncio.get_running_loop().call_later(wait, self._observe)

    async def observe(self) -> LinkObserved:
        self._shown = await super().observe()
        told = self._view_of(self._shown)
        self._look_again()
        return told

    # --- the turn ---

    def prepare(self, record: TurnRecord, *, command: bool = False) -> TurnRecord:
        reach = self._channel.reach() if self._channel.gone is None else "away"
        if not command and reach == "idle":
            return self._turns.record(record)
        if reach == "away" and not self._typed_instead:
            self._typed_instead = True
            self._alert("its program does not answer over its channel: messages are typed at its terminal", "begins")
        return super().prepare(record, command=command)

    async def deliver(self, delivery: Delivery) -> None:
        if delivery.record.link.get("by") == BY:
            self._turns.begin(delivery)
            self._observe()
        else:
            await super().deliver(delivery)

    def recorded(self, record: TurnRecord) -> None:
        if record.link.get("by") == BY:
            self._turns.recorded()
        else:
            super().recorded(record)

    async def interrupt(self) -> bool:
        if self._turns.turn is not None:
            return await self._way_stopping.stop()
        if self._session.turn is not None or self._channel.reach() == "away":
            return await super().interrupt()
        try:
            stopped = await self._way_stopping.stop_others()
        except ChannelAway as error:
            log.info("a turn could not be stopped", agent_id=self._agent_id, error=error.message)
            return False
        return await super().interrupt() if stopped is None else stopped

    # --- answers ---

    async def answer(self, text: str, prompt_id: str | None) -> bool:
        asks = self._view.find(prompt_id)
        if asks is None:
            return await super().answer(text, prompt_id)
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

    def _on_refusal(self, refuses: bool) -> None:
        self._turns.refuse(refuses)
