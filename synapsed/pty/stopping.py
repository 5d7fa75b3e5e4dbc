"""Stops turns, by keys or by a way of the program's own (a channel, pipes): the stop itself, the proof that the program
has stopped, and the removal of a message that the program puts back into its composer.

The keys that stop a turn are pressed only while the program works on it: before it has taken the message, and after its
end, the same keys have another effect. After the keys, a screen that does not change is the proof (`verdict.stopped`).
"""

import asyncio
import contextlib
from collections.abc import Callable

from synapsed.interfaces import DeliveryWay
from synapsed.model.agent import Activity
from synapsed.pty import turn_types as turns
from synapsed.pty.channel_delivery import ChannelDelivery
from synapsed.pty.keyboard import Steps, Tell, UntilRecorded, Work, leaving, look_now, wait_for
from synapsed.pty.lag import ON_WAY_S
from synapsed.pty.linked_terminal import LinkedTerminal
from synapsed.pty.stopped_turn import StoppedMessage
from synapsed.pty.turn import PtyTurn
from synapsed.terminal.keynames import as_bytes
from synapsed.terminal.look import Look
from synapsed.terminal.screen_messages import StopOver
from synapsed.terminal.verdict import has_signs

TYPING_S = 20.0
"""Seconds to wait for a message that is being typed, until it can be taken back or the program has taken it."""

RECORDED_S = 2.0
"""Seconds to wait until the record that the turn is to stop is durable; it waits for a message's keys."""

JUDGED_S = 0.5
"""Longest time, in seconds, from a screen that was still for long enough to the judgement that ends the turn."""

TAKING_S = 20.0
"""Seconds for a program to take a message by a way of its own: before that there is no turn to stop."""

STOP_AGAIN_S = 1.0
"""Seconds after which a program is asked again to stop a turn that is not over."""

CONFIRM_S = 10.0
"""Seconds for a program to stop a turn by a way of its own; after them the stop counts as not confirmed."""

LATE_S = 10.0
"""Seconds within which a program may still put a message back after its stop, or take one that was given up."""


class Stopping:
    """Stops the turns of one program by keys. `perform` starts a procedure; `left` is the message of a turn that was
    stopped for the last daemon."""

    def __init__(
        self,
        terminal: LinkedTerminal,
        *,
        perform: Callable[[Steps[object]], None],
        left: StoppedMessage | None = None,
    ) -> None:
        self._profile = terminal.profile
        self._session = terminal.session
        self._keyboard = terminal.session.keyboard
        self._exited = terminal.program.exited.done
        self._perform = perform
        self._program, self._kept, self._clock = terminal.program, terminal.kept_stop, terminal.clock
        self._left = left
        self._stopped: tuple[StoppedMessage, PtyTurn | None, float] | None = None
        """The message of the turn that was stopped last, the turn (None: one of the last daemon), and the time of its
        stop: the program may still put the message back."""
        self._pressed_at = -1
        """End of the output when the keys were last pressed."""
        self._untaken: tuple[PtyTurn, float] | None = None
        """A turn that was given up with its message submitted and not taken (it may be, late), and the time."""

    def stop(self) -> Steps[bool]:
        """Stops the running turn, a person's own too. Returns False if none ran, or the stop was not confirmed."""
        turn = self._session.turn
        if turn is not None:
            return (yield from self._stop_turn(turn))
        if _is_ready((yield from look_now())):
            return False
        return (yield from self._press(_is_ready, None))

    def _stop_turn(self, turn: PtyTurn) -> Steps[bool]:
        pressed = turn.state.interrupting
        yield Work(turn.interrupt())
        # Durable before a key is pressed: else the next daemon would take a message that is put back for one not taken.
        yield UntilRecorded(RECORDED_S)
        working = turns.Phase.WORKING
        yield from wait_for(lambda _: turn.over or turn.state.phase is working or self._exited(), TYPING_S)
        if turn.state.phase is not working or self._exited():
            yield Work(turn.go_on())
            if turn.over and turn.state.submitted:
                self._untaken = (turn, self._session.now)
            return turn.over
        if pressed:  # by the last daemon: if the program has stopped already, the keys would have another effect
            yield from wait_for(lambda _: turn.over, self._profile.interrupt.still_ms / 1000 + JUDGED_S)
            yield from self._keyboard.leave_opened()
        if not (turn.over or (yield from self._press(lambda _: turn.over, turn.message))):
            yield Tell(StopOver())
            yield Work(turn.go_on())
            return False
        # Some programs put an interrupted message back for editing; only that text is removed.
        yield from self._keyboard.clear_if(turn.holds)
        self._stopped = (StoppedMessage.of(turn), turn, self._session.now)
        return True

    def _press(self, stopped: Callable[[Look], bool], message: str | None) -> Steps[bool]:
        """Presses the keys until a look is `stopped`, or the program exits. Returns True if a look still is."""
        at = (yield from look_now()).offset
        if at == self._pressed_at and self._session.lag.left(self._session.now, stalls=True):
            return False  # the last ones may be on their way: a program may end when it gets them twice
        self._pressed_at = at
        over = yield from self._keyboard.interrupt(lambda look: self._exited() or stopped(look), message)
        return over and stopped((yield from look_now()))

    def asks_to_stop(self, data: bytes) -> bool:
        """Returns True if `data` are the keys that stop a turn, and signs of work on the screen can prove the stop."""
        return as_bytes(data) == (self._profile.interrupt.keys or "").encode() and has_signs(self._profile)

    def looked(self, look: Look) -> None:
        """Handles late effects of a stop: removes a message that is put back late, stops a message that is taken late,
        closes a dialog that our keys open late. Does none of this if a person has typed since (who may have fetched the
        text), or if another turn runs."""
        if self._left is not None:
            self._stopped, self._left = (self._left, None, self._clock.monotonic()), None
        if self._stopped is not None:
            message, turn, at = self._stopped
            settled = look.verdict.settled or self._session.now - look.still_since >= JUDGED_S
            if not self._may_follow(turn, at):
                self._forget(message)
            elif leaving(look) is not None and not self._keyboard.interrupting:
                self._forget(message, self._keyboard.leave_opened())
                return
            elif settled and look.composer.state == "draft" and message.is_in(look.composer.text):
                self._forget(message, self._keyboard.clear())
        if self._untaken is not None:
            turn, at = self._untaken
            if not self._may_follow(turn, at):
                self._untaken = None
            elif _works(look):
                self._untaken = None
                self._perform(self._stop_late(turn))

    def _forget(self, message: StoppedMessage, last: Steps[object] | None = None) -> None:
        """Expects nothing more of the stopped turn after the procedure `last`."""
        self._stopped = None
        if last is not None:
            self._perform(last)
        if self._kept is not None:
            self._program.tasks.spawn(self._kept.remove(message))

    def _may_follow(self, turn: PtyTurn | None, at: float) -> bool:
        """Returns True while effects of the stop of `turn` at `at` may come, and must be of that turn."""
        late = LATE_S if not (lag := self._session.lag.seconds) else lag + ON_WAY_S
        if self._session.hands_at > at or self._session.now - at > late:
            return False
        other = self._session.turn
        return other is None or other.over or other.state.phase is turns.Phase.PREPARED or other is turn

    def _stop_late(self, turn: PtyTurn) -> Steps[None]:
        """Stops a program that has begun late with a message whose task is published as canceled."""
        if (yield from self._press(_is_ready, turn.message)):
            yield from self._keyboard.clear_if(turn.holds)


class WayStopping:
    """Stops turns by a way of the program's own, without keys."""

    def __init__(
        self,
        turns: ChannelDelivery,
        way: DeliveryWay,
        *,
        begun: Callable[[], bool] = lambda: True,
        taking_s: float = TAKING_S,
    ) -> None:
        """`begun` returns True if the program has begun with the turn that was given; `taking_s` is the time in seconds
        that the program may need to begin."""
        self._turns = turns
        self._way = way
        self._begun = begun
        self._taking_s = taking_s
        self.moved = asyncio.Event()
        """Set when the way's `reach` changes."""

    async def stop(self, within: float = CONFIRM_S, *, goes_on: bool = True, by_person: bool = False) -> bool:
        """Stops the present turn. Returns True if it is over at most `within` seconds after the program has begun with
        it. If it is not, the request to stop is dropped if `goes_on`, else it stays. `by_person`: as in
        `ChannelTurn.interrupt`."""
        if (turn := self._turns.turn) is None:
            return False
        stopped = await tell_to_stop(
            lambda: self._turns.add(turn.interrupt(by_person=by_person)),
            runs=lambda: self._turns.turn is turn,
            over=self._turns.ended,
            begun=lambda: turn.phase is not turns.Phase.SENDING and self._begun(),
            taking_s=self._taking_s,
            within=within,
        )
        if not stopped:
            self._turns.add(turn.go_on() if goes_on else [])
        return turn.over

    async def stop_others(self) -> bool | None:
        """Stops a turn that was not begun by us. Returns True if no turn runs afterwards; False if none ran or it still
        runs; None if the program takes no such request on this way. Raises ChannelAway."""
        if self._way.reach() == "idle":
            return False
        if not await self._way.interrupt(None):
            return None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CONFIRM_S):
                while self._way.reach() in ("busy", "asking"):
                    self.moved.clear()
                    await self.moved.wait()
        return self._way.reach() == "idle"


async def tell_to_stop(
    tell: Callable[[], None],
    *,
    runs: Callable[[], bool],
    over: asyncio.Event,
    begun: Callable[[], bool],
    taking_s: float,
    within: float,
) -> bool:
    """Calls `tell`, which asks a program to stop a turn, repeatedly while `runs` returns True. Returns True if the turn
    is over in time, that is, `within` seconds after the program has begun it (`begun`), counted from `taking_s` on at
    the latest."""
    now = asyncio.get_running_loop().time
    taken_by, until = now() + taking_s, now() + within
    while runs():
        if now() < taken_by and not begun():
            until = now() + within
        if (left := until - now()) <= 0:
            return False
        tell()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), min(left, STOP_AGAIN_S))
    return True


def _is_ready(look: Look) -> bool:
    return look.verdict.activity is Activity.READY


def _works(look: Look) -> bool:
    """Returns True if a sign of work is shown; a moving screen, or a hidden composer, is no such sign."""
    return look.verdict.activity is Activity.BUSY and look.verdict.source not in ("quiet", "composer")
