"""Performs turns, one at a time, by a way on which the program itself takes messages (`DeliveryWay`): a channel that
delivers, or its pipes. `ChannelTurn` decides; this module does the I/O."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

import structlog

from synapsed.clock import Clock
from synapsed.errors import ChannelAway, MessageRefused, NotReady, SynapsedError
from synapsed.interfaces import Delivery, DeliveryWay
from synapsed.model.facts import AssistantSaying, ChannelFact, ToolBegan
from synapsed.model.link import LinkEvent, LinkTurnAccepted, LinkTurnProgress, LinkTurnSaid
from synapsed.model.records import TurnRecord
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import AnswerSpec, StreamSpec
from synapsed.pty import turn_types as turns
from synapsed.pty.channel_turn import ChannelTurn, ChannelTurnState, TurnRules
from synapsed.pty.streaming import Piece, TurnStream
from synapsed.pty.turn_machine import marked
from synapsed.pty.turn_types import Phase
from synapsed.pty.turn_worker import TurnPerformer

TELL_EVERY_S = 0.05
"""Seconds between two reports of the answer's text, while it is being written."""

LOOK_S = 1.0
"""Seconds that a message waits for the text of the terminal's screen."""

WAIT_S = 1.0
"""Seconds between two calls of the machine's `waited` while no facts come."""

log = structlog.get_logger(__name__)


class ChannelDelivery(TurnPerformer[ChannelTurn]):
    """Performs the turns; `emit` is called with the reports about them."""

    turn: ChannelTurn | None = None

    @property
    def waits_s(self) -> float | None:
        return WAIT_S if self.turn is not None else None

    def __init__(
        self,
        agent_id: str,
        profile: Profile,
        channel: DeliveryWay,
        *,
        clock: Clock,
        emit: Callable[[LinkEvent], None],
        over: Callable[[], None],
        person_at: Callable[[], float | None],
        screen: Callable[[], Awaitable[str]],
        press: Callable[[], Awaitable[bool]] | None = None,
        rules: TurnRules | None = None,
    ) -> None:
        """`over` is called when a turn is over; `person_at` returns the time, in monotonic seconds, at which a person
        last pressed a key at the program; `press` stops the running turn by keys, and returns True if it has
        stopped; `screen` returns the terminal's text; `rules`: see `ChannelTurn`."""
        super().__init__(emit)
        self._agent_id = agent_id
        self._profile = profile
        self._channel = channel
        self._clock = clock
        self._shift = clock.wall() - clock.monotonic()
        self._told_over = over
        self._person_at = person_at
        self._begun_at = 0.0
        """Time at which this daemon began the turn, in monotonic seconds: a person's key after it may have stopped the
        turn."""
        self._screen = screen
        self._press = press
        self._rules = rules
        self._new_when = profile.channels[channel.name].new_when if channel.name in profile.channels else None
        self._streams = profile.model_copy(
            update={"stream": StreamSpec(source="channel"), "answer": AnswerSpec(mode="blocks")}
        )
        self._stream: TurnStream | None = None
        self.ended = asyncio.Event()
        """Set when the last turn is over."""
        self._teller: asyncio.TimerHandle | None = None

    # --- beginning a turn ---

    def record(self, record: TurnRecord) -> TurnRecord:
        """Returns the record of a turn that is about to begin. The caller stores it durably before `begin`."""
        key, now = self._channel.key(record.task_id, 0), self._now()
        state = ChannelTurnState(channel=self._channel.name, key=key, minted_at=now)
        return record.model_copy(update={"link": state.model_dump(mode="json")})

    def begin(self, delivery: Delivery) -> None:
        """Begins the turn, or continues it. Raises NotReady while one runs."""
        if self.turn is not None:
            raise NotReady("a turn runs already", task=self.turn.task_id)
        state = ChannelTurnState.model_validate(delivery.record.link)
        denial = marked(delivery.task_id, self._profile.prompts.denial_note)
        settles_s = self._channel.settles_s
        self.turn = ChannelTurn(delivery, state, denial=denial, settles_s=settles_s, rules=self._rules)
        self._begun_at = self._clock.monotonic() if delivery.fresh else 0.0
        self.ended.clear()
        if self._profile.stream.enabled:
            self._stream = TurnStream(self._streams, delivery.text, begun=not delivery.fresh)
        self.add(self.turn.begin(fresh=delivery.fresh))

    # --- facts ---

    def told(self, fact: ChannelFact) -> None:
        if self.turn is None:
            return
        if not isinstance(fact, AssistantSaying | ToolBegan):
            self.add(self.turn.told(fact, self._now()))
        elif not self.turn.is_its(fact):  # a subagent's call may come in the middle of a word
            return
        elif isinstance(fact, ToolBegan):
            if self._stream is not None:
                self._tell(self._stream.rest())  # the text comes before the call
        else:
            self.add(self.turn.works_on())
            if self._stream is not None:
                self._stream.told(fact)
                self._tell_soon()

    def changed(self) -> None:
        """Notes that the channel's `reach` has changed."""
        if self.turn is None:
            return
        if (why := self._channel.gone) is not None:
            self.add(self.turn.gone(why))
        elif self._channel.reach() == "away":
            self.add(self.turn.lost(self._now()))
        else:
            self.add(self.turn.reached(self._channel.reach()))

    def refuse(self, refuses: bool) -> None:
        """Notes that a person has refused in a dialog, or that an earlier refusal no longer counts."""
        if self.turn is None:
            return
        note = marked(self.turn.task_id, self._profile.prompts.refusal_note)
        self.add(self.turn.refuse(note, self._now()) if refuses else self.turn.overrule())

    async def last_words(self, within: float) -> None:
        """Reports the end of a turn that is over, in `within` seconds; called before the program's end is reported."""
        if self.turn is not None and self.turn.over:
            self.recorded()  # the end need not wait any longer until the turn's record is durable
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.idle.wait(), within)

    def drop(self) -> None:
        """Drops the turn, because the program has ended: the turn's outcome is reported with the exit."""
        self._end()

    def _now(self) -> float:
        """Returns Unix seconds that ignore changes of the wall clock, and sleep of the machine, since this daemon has
        started. Unix seconds, because they are compared with an earlier daemon's in a record; without sleep, because no
        program answers then."""
        return self._clock.monotonic() + self._shift

    # --- the worker ---

    def rested(self) -> None:
        if self.turn is not None:
            self.add(self.turn.waited(self._now()))

    async def perform(self, turn: ChannelTurn, command: turns.Command) -> Sequence[turns.Command]:
        match command:
            case turns.GiveMessage(key, text):
                return await self._submit(turn, key, text)
            case turns.LookUp(key, known):
                return await self._find(turn, key, known)
            case turns.RenewKey(leg):
                return turn.keyed(self._channel.key(turn.task_id, leg), self._now())
            case turns.StopTurn(what):
                await self._stop(what)
            case turns.Say(event):
                if not isinstance(event, LinkTurnAccepted | LinkTurnProgress):
                    self._end()
                at = self._person_at()
                self._emit(turn.explained(event, touched=at is not None and at >= self._begun_at))
        return []

    async def _submit(self, turn: ChannelTurn, key: str, text: str) -> Sequence[turns.Command]:
        try:
            how = await self._channel.submit(key, text, new=await self._shows_none())
            return turn.submitted(how, self._now())
        except ChannelAway as error:
            log.info("a message was not taken yet", agent_id=self._agent_id, error=error.message, sent=error.sent)
            return [*turn.unsent(error.message, sent=error.sent, now=self._now()), *self._reached(turn)]
        except MessageRefused as error:
            return turn.refused(error.message)

    async def _shows_none(self) -> bool:
        """Returns True if the terminal shows that no conversation has begun; False if the screen cannot be read."""
        if self._new_when is None:
            return False
        try:
            shown = await asyncio.wait_for(self._screen(), LOOK_S)
        except (SynapsedError, TimeoutError) as error:
            log.info("the screen is not to be had", agent_id=self._agent_id, error=str(error))
            return False
        return self._new_when.search(shown) is not None

    async def _find(self, turn: ChannelTurn, key: str, known: str | None) -> Sequence[turns.Command]:
        try:
            found = await self._channel.find(key, known)
        except ChannelAway as error:
            return turn.unsent(error.message, sent=True, now=self._now())
        except MessageRefused as error:
            return turn.unshown(error.message, self._now())
        return turn.found(found, self._channel.reach(), self._now())

    def _reached(self, turn: ChannelTurn) -> Sequence[turns.Command]:
        """Passes the present reach to the turn: a server may have refused one connection only, and be reached."""
        return turn.reached(self._channel.reach()) if turn.phase is Phase.SENDING else []

    async def _stop(self, what: str) -> None:
        try:
            if not await self._channel.interrupt(what) and self._press is not None and self._channel.reach() != "idle":
                await self._press()
        except SynapsedError as error:  # also one of the keys: the worker goes on, and the stop counts as not confirmed
            log.info("a turn could not be stopped", agent_id=self._agent_id, error=error.message)

    def _end(self) -> None:
        self.turn = self._stream = None
        self.recorded()
        if self._teller is not None:
            self._teller.cancel()
            self._teller = None
        self.ended.set()
        self._told_over()

    # --- the answer while it is written ---

    def _tell_soon(self) -> None:
        if self._teller is None:
            self._teller = asyncio.get_running_loop().call_later(TELL_EVERY_S, self._tell_pieces)

    def _tell_pieces(self) -> None:
        self._teller = None
        if self.turn is None or self._stream is None:
            return
        if self.turn.phase is Phase.WORKING:
            self._tell(self._stream.take(self._clock.monotonic()))
        if self._stream.due is not None:
            self._tell_soon()

    def _tell(self, piece: Piece | None) -> None:
        if piece is not None and self.turn is not None:
            self._emit(LinkTurnSaid(self.turn.task_id, piece.text, piece.append))
