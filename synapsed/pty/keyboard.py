"""Procedures that press keys at a program: to stop a turn, to answer, to leave, and to empty the composer (the
program's input line) of synapsed's own text.

Each procedure is a generator. It yields a step (press, wait until the screen shows something) and is sent the result.
So it has no I/O, no clock and no event loop: `Driver` performs it on a terminal, and tests perform it with any screens.
One procedure uses another with `yield from`.
"""

import re
import signal
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from synapsed.model.agent import Activity
from synapsed.model.facts import BACKGROUND_MAX
from synapsed.model.link import LinkEvent
from synapsed.profiles.profile import Profile
from synapsed.pty import turn_types as turns
from synapsed.pty.lag import ON_WAY_S, Lag
from synapsed.terminal.composer import puts_off
from synapsed.terminal.look import Look
from synapsed.terminal.menu_keys import Move
from synapsed.terminal.screen_messages import Note
from synapsed.terminal.verdict import screen_sign

CLEAR_TRIES = 100
"""Largest number of presses to empty a composer: it may need its key once per line, and Backspace before the next."""

BACKSPACE = "\x7f"

UNSETTLED_TRIES = 40
"""Largest number of short waits, for all lines of a composer together, for a program that does not come to rest."""

VAIN_TRIES = 3
"""Number of presses in a row without a change, after which the key must do something else in this program (such as Esc
with vim's keys); then the text stays in the composer, for a person."""

CLEAR_WAIT_S = 3.0
"""Seconds within which a program shows the effect of the key. The key is not pressed again before, because some
programs exit at this key if the composer is empty already."""

ANSWER_S = 24 * 3600.0
"""Seconds for a person to answer a dialog, or to remove anything else that hides the composer."""

OPENED_S = 1.0
"""Seconds to wait for a dialog that the keys may have opened, if they were pressed more than once: the change after the
first press may have been the end of a paste, and the second press may have found an empty composer."""

TAKE_BACK_S = 10.0
"""Seconds within which a program on a busy machine shows pasted text, which only then can be removed."""

STOPS_S = 15.0
"""Seconds within which a program on a busy machine opens its list, and reports that an item has ended."""

CLOSED_S = 60.0
"""Seconds to wait for the end of a turn that the program begins because a background task was stopped."""

CLOSE_TRIES = 3
"""Largest number of presses to close a list: an opened item of the list is closed first."""

INTERRUPT_TRIES = 2

INTERRUPT_WAITS = 3
"""Number of further waits of SHOWN_S for a program that computes, or has not read the keys: gemini 0.61.0, starved,
said ten seconds after Esc that it had stopped. Keys that are pressed again before that are for something else."""

AGAIN_S = 1.0
"""Seconds within which a program on a busy machine shows that it works, or that it wants the keys again. If the keys
are pressed again before the program has read the first ones, it may read both as another key."""

LOST_PRESSES = 1
"""Number of further presses if the keys had no effect."""

SHOWN_S = 3.0
"""Seconds in which a program on a busy machine shows a step of an answer; after them the next step follows anyway."""

NAMED_ROUNDS = 6
"""Largest number of waits for the typed name of an option while the program has not read it, or computes."""

CTRL_Z = b"\x1a"

CONTINUE_AFTER_S = (0.3, 1.0, 3.0)
"""Seconds before each SIGCONT. Several, because the time that a program takes to suspend itself is unknown."""

RETURNED_WAIT_S = 0.4
"""Seconds within which a program puts an interrupted message back into its composer."""

RETURNED_TRIES = 8
"""Largest number of such waits, while a busy machine delays the program."""


# --- the steps of a procedure ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Press:
    """Writes the keys. The result is True if the terminal hid them."""

    data: bytes


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Looks until a look satisfies `wanted`. The result is True if one did so within `within` seconds, and the lag if
    it is an `effect` of keys."""

    wanted: Callable[[Look], bool]
    within: float
    effect: bool = True


@dataclass(frozen=True, slots=True)
class LookNow:
    """Looks at the screen now. The result is the look."""


@dataclass(frozen=True, slots=True)
class SendSignal:
    """Sends the program a signal."""

    number: int


@dataclass(frozen=True, slots=True)
class StopPressed:
    """Notes that the keys that stop a turn were pressed: from now on a screen that does not change proves the stop."""


@dataclass(frozen=True, slots=True)
class WaitForExit:
    """Waits for the program's end. The result is True if it came within `within` seconds."""

    within: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Waits for `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Resize:
    """Gives the program's window another size."""

    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class UntilRead:
    """Waits until the program has read its input; the result says if it did in `within` seconds (None: no limit)."""

    within: float | None


@dataclass(frozen=True, slots=True)
class Rests:
    """Asks if the program rests. The result is True if it has nothing to do, as far as this is known."""


@dataclass(frozen=True, slots=True)
class UntilRecorded:
    """Waits until the work that the turn wanted is done and durable, at most for `within` seconds."""

    within: float


@dataclass(frozen=True, slots=True)
class Emit:
    """Sends the agent an event."""

    event: LinkEvent


@dataclass(frozen=True, slots=True)
class Tell:
    """Sends the stage a note."""

    note: Note


@dataclass(frozen=True, slots=True)
class Work:
    """Does the work that the machine of the present turn wants, after the work it wanted earlier."""

    commands: Sequence[turns.Command]


type Step = (
    Press
    | WaitFor
    | LookNow
    | SendSignal
    | StopPressed
    | WaitForExit
    | Pause
    | Resize
    | UntilRead
    | Rests
    | UntilRecorded
    | Emit
    | Tell
    | Work
)
type Steps[T] = Generator[Step, Any, T]


def press(keys: str | bytes) -> Steps[bool]:
    """Presses the keys; returns True if the terminal hid them."""
    return bool((yield Press(keys.encode() if isinstance(keys, str) else keys)))


def wait_for(wanted: Callable[[Look], bool], within: float) -> Steps[bool]:
    return bool((yield WaitFor(wanted, within)))


def look_now() -> Steps[Look]:
    look: Look = yield LookNow()
    return look


# --- the procedures --------------------------------------------------------------------------------------------------


def leaving(look: Look) -> str | None:
    """Returns the keys that close the dialog on the screen, if synapsed's own keys may have opened it; else None."""
    asked = look.verdict.asked
    return asked.dialog.leave if asked is not None and asked.dialog is not None else None


class Keyboard:
    """The keys of one program, from its profile."""

    def __init__(self, profile: Profile, lag: Lag | None = None) -> None:
        self._profile = profile
        self._lag = lag or Lag()
        self.answering = False
        """True while an answer is typed in several steps: the screen may then show half of the answer."""
        self.interrupting = False
        """True while a turn is being stopped. A dialog ends with it: an answer would land in the composer."""
        self.suspended = False
        """True if a person has pressed Ctrl-Z, and the program has not read the key yet."""

    def interrupt(self, stopped: Callable[[Look], bool], message: str | None = None) -> Steps[bool]:
        """Stops the running turn. Returns True if a look satisfies `stopped` then. `message` is the turn's typed
        message; if the program has put it off until later, it is taken back."""
        self.interrupting = True
        try:
            return (yield from self._interrupt(stopped, message))
        finally:
            self.interrupting = False

    def _interrupt(self, stopped: Callable[[Look], bool], message: str | None) -> Steps[bool]:
        confirmed, drawn, waits, spec = False, 0, INTERRUPT_WAITS, self._profile.interrupt

        def settled(look: Look) -> bool:
            nonlocal confirmed, drawn
            drawn = look.offset
            confirmed = confirmed or stopped(look)
            return confirmed or leaving(look) is not None or self._puts_off(look, message)

        for number in range(INTERRUPT_TRIES):
            if number and self._lag.seconds:
                break  # a program may end when it gets the keys twice
            if self._puts_off((yield from look_now()), message):
                yield from self._take_back_put_off()
            else:
                yield from self._stop(stopped)
            if not (yield from wait_for(settled, spec.confirm_ms / 1000)) and (yield from look_now()).offset > drawn:
                # More output has been drawn since the last look of the wait: it may show that the turn has stopped.
                yield from wait_for(settled, spec.still_ms / 1000 + SHOWN_S)
            while waits and not (settled((yield from look_now())) or (yield Rests())):
                waits -= 1
                yield from wait_for(settled, SHOWN_S)
            if not confirmed and leaving((yield from look_now())) is not None:
                yield from self.leave_opened()
                yield from wait_for(settled, spec.confirm_ms / 1000)
            if confirmed:
                yield from self.leave_opened()
                return True
        return False

    def _stop(self, stopped: Callable[[Look], bool]) -> Steps[None]:
        spec = self._profile.interrupt
        if spec.signal is not None:
            yield SendSignal(signal.Signals[spec.signal])
        if spec.keys is not None and spec.again is not None:
            yield from self._press_while_wanted(stopped, spec.again)
        elif spec.keys is not None:
            for number in range(spec.repeat):
                if number and (yield from wait_for(stopped, spec.gap_ms / 1000)):
                    break
                yield from press(spec.keys)
        yield StopPressed()

    def _press_while_wanted(self, stopped: Callable[[Look], bool], again: re.Pattern[str]) -> Steps[None]:
        """Presses the keys when the program shows that it works: before that they have no effect. Presses them once
        more each time the screen shows that they are wanted `again`, or if they had no effect."""
        spec, over = self._profile.interrupt, False

        def has_stopped(look: Look) -> bool:
            nonlocal over
            over = over or stopped(look)
            return over

        def wants(look: Look) -> bool:
            return any(again.search(line) for line in look.screen.lines)

        def works(look: Look) -> bool:
            return screen_sign(self._profile.busy, look.screen) is not None

        for number in range(spec.repeat + LOST_PRESSES):
            comes = wants if number else works
            came = yield from wait_for(lambda look, comes=comes: has_stopped(look) or comes(look), AGAIN_S)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
            if number and not came and self._lag.seconds:
                return
            if not over:
                yield from press(spec.keys or "")
                yield StopPressed()
                yield from wait_for(lambda look: has_stopped(look) or not wants(look), AGAIN_S)
            if over:
                return

    def _puts_off(self, look: Look, message: str | None) -> bool:
        spec = self._profile.interrupt.put_off
        return (
            spec is not None
            and message is not None
            and look.composer.state == "empty"
            and puts_off(spec, look.screen, message)
        )

    def _take_back_put_off(self) -> Steps[None]:
        """Makes the program put the message back into the composer, and removes it there. If the program begins with it
        at the same moment, `_interrupt` stops that turn in its next try."""
        assert self._profile.interrupt.put_off is not None
        yield from press(self._profile.interrupt.put_off.keys)
        if (yield from wait_for(lambda look: look.composer.state == "draft", CLEAR_WAIT_S)):
            yield from self.clear()

    def answer(self, steps: Sequence[bytes], still: Callable[[Look], bool]) -> Steps[bool | None]:
        """Answers a dialog: types each step after the effect of the last one is shown. Returns True if the terminal hid
        a part of it; None if the dialog was gone (not `still` there) before one of the steps, or if its turn is being
        stopped. The dialog may be drawn again between two steps."""
        self.answering, hidden = True, False
        try:
            for number, keys in enumerate(steps):
                there = number == 0 or (yield from wait_for(lambda look: self.interrupting or still(look), SHOWN_S))
                if self.interrupting or not there:
                    return None
                shown = (yield from look_now()).screen.lines
                hidden = (yield from press(keys)) or hidden
                if number + 1 < len(steps):
                    came = yield from wait_for(lambda look, shown=shown: look.screen.lines != shown, SHOWN_S)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
                    if self._lag.seconds and not (came or hidden):
                        break  # the next keys might come to something that nobody has seen
                    yield from self._pause()
        finally:
            self.answering = False
        return hidden

    def named(self, steps: Sequence[bytes], holds: Callable[[Look], bool]) -> Steps[bool | None]:
        """Types the name of an option, and submits it only if the program waits for that: if a line of the screen
        `holds` the name, or the terminal hid it. Returns True if the terminal hid it; None if it may be on its way."""
        self.answering = True
        try:
            name, submit = steps
            before = (yield from look_now()).screen.lines
            hidden = yield from press(name)
            if not hidden:
                for _ in range(NAMED_ROUNDS):
                    if (yield from wait_for(lambda look: look.screen.lines != before, SHOWN_S)) or (yield Rests()):
                        break
                yield from self._pause()
            look = yield from look_now()
            if hidden or holds(look):
                hidden = (yield from press(submit)) or hidden
            elif self._lag.seconds and look.screen.lines == before:
                return None
        finally:
            self.answering = False
        return hidden

    def choose(self, moves: Sequence[Move], marks: Callable[[Look], frozenset[str] | None]) -> Steps[bool | None]:
        """Answers a menu: makes each move after the last one is shown. Returns True if all were made. The last keys,
        which submit, are pressed only if the wanted option is among the `marks` of the menu; otherwise the result is
        False, or None if the menu has left the screen or its turn is being stopped."""
        self.answering = True
        try:
            for keys, wanted in moves:
                if self.interrupting:
                    return None
                yield from press(keys)
                if wanted is not None:
                    yield from wait_for(lambda look, wanted=wanted: wanted in (marks(look) or ()), SHOWN_S)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
                    if wanted not in ((shown := marks((yield from look_now()))) or ()):
                        return None if shown is None else False
                    yield from self._pause()
        finally:
            self.answering = False
        return True

    def _pause(self) -> Steps[None]:
        """Pauses between keys: a program would take input that arrives in one piece as a paste."""
        yield WaitFor(lambda _: False, self._profile.delivery.settle_ms / 1000, effect=False)

    def take_back(self) -> Steps[bool]:
        """Removes text that was just pasted and may not be shown yet. Returns True if the composer is empty."""
        if self._profile.composer.line is None:
            return False
        yield from wait_for(self._has_composer, ANSWER_S)
        shown = yield from wait_for(lambda look: look.composer.state == "draft", TAKE_BACK_S)
        if not shown and self._lag.unshown and self._lag.seconds:
            yield from wait_for(lambda look: look.composer.state == "draft", ON_WAY_S)
        return (yield from self.clear())

    def take_out(self, *, unless: Callable[[], bool], comes: bool) -> Steps[bool]:
        """Removes a message from the composer that the program did not take, unless `unless` returns True. Returns True
        if the composer is empty. `comes`: the message was pasted, and is not shown yet."""
        if comes:
            yield from wait_for(lambda look: unless() or look.composer.state == "draft", TAKE_BACK_S)
        return (yield from self.clear(unless))

    def _has_composer(self, look: Look) -> bool:
        """Returns True if neither a dialog nor anything else is in the composer's place."""
        there = look.composer.state != "absent" or not self._profile.composer.needed
        return look.verdict.asked is None and there

    def clear(self, unless: Callable[[], bool] = lambda: False) -> Steps[bool]:
        """Empties the composer, unless `unless` returns True. Returns True if it is empty. If the profile's keys have
        no effect, they may clear only one line, which is empty now: Backspace joins that line to the one before."""
        vain, joins, keys, waits = 0, False, self._profile.delivery.clear, UNSETTLED_TRIES
        for tries in range(CLEAR_TRIES):
            waits = yield from self._settle(waits)
            before = yield from look_now()
            if unless():
                return False
            if before.composer.state != "draft":
                yield from self.leave_opened(OPENED_S if tries > 1 else 0.0)
                return True
            if vain >= (1 if self._lag.seconds else VAIN_TRIES):
                return False
            wiped = yield from self._wipe(keys, _from_composer(before))
            joins = joins or (wiped and keys == BACKSPACE)
            vain = 0 if wiped else vain + 1
            keys = BACKSPACE if keys != BACKSPACE and (joins or not wiped) else self._profile.delivery.clear
            yield from self.leave_opened()
        return (yield from look_now()).composer.state != "draft"

    def _settle(self, waits: int) -> Steps[int]:
        """Waits, at most `waits` times, until the program rests and its composer is drawn: many programs erase it
        before they draw it again, and a look between the two proves nothing. Returns the number of waits left."""
        while waits and not (yield Rests()):
            waits -= 1
            yield from self._pause()
        if (yield from look_now()).composer.state == "absent":
            yield from wait_for(self._has_place, SHOWN_S)
        return waits

    def _has_place(self, look: Look) -> bool:
        """Returns True if the composer, or a dialog in its place, is on the screen."""
        return look.verdict.asked is not None or self._has_composer(look)

    def erase(self) -> Steps[bool]:
        """Removes a person's text, a row at a time. Returns True if the composer is empty."""
        waits = UNSETTLED_TRIES
        for _ in range(CLEAR_TRIES):
            waits = yield from self._settle(waits)
            before = yield from look_now()
            if before.composer.state != "draft":
                return True
            wiped = yield from self._wipe(self._profile.delivery.erase, _from_composer(before))
            if self._lag.seconds and not wiped:
                break
        return (yield from look_now()).composer.state != "draft"

    def _wipe(self, keys: str, shown: tuple[str, ...]) -> Steps[bool]:
        """Presses `keys`, and waits until the composer, which showed `shown`, changes. Returns True if it does."""
        yield from press(keys)
        return (yield from wait_for(lambda look: _from_composer(look) != shown, CLEAR_WAIT_S))

    def stop_background(self) -> Steps[bool]:
        """Stops the background work of a program that rests with an empty composer. Returns True if none is left."""
        self.answering = True
        try:
            for _ in range(BACKGROUND_MAX if self._profile.background.command else 0):
                left = len((yield from look_now()).background)
                if not left or not (yield from wait_for(_takes_command, CLOSED_S)):
                    break  # the program does not rest any more: the end of a task may have made it begin a turn
                yield from self._stop_some(left)
                if len((yield from look_now()).background) >= left:
                    break
            return not (yield from look_now()).background
        finally:
            self.answering = False

    def _stop_some(self, left: int) -> Steps[None]:
        spec, fewer = self._profile.background, partial(_runs_less, left)
        stands = partial(_holds_command, spec.command)
        yield from press(spec.command)
        if (yield from wait_for(stands, STOPS_S)):
            yield from press(self._profile.delivery.submit)
            if spec.list is not None and (yield from wait_for(partial(_is_list, spec.list), STOPS_S)):
                yield from press(spec.stop)
            yield from wait_for(fewer, STOPS_S)
            yield from self._close_list(spec.close)
        if stands((yield from look_now())):  # it was not submitted
            yield from self.clear()

    def _close_list(self, keys: str) -> Steps[None]:
        listed = self._profile.background.list
        for _ in range(CLOSE_TRIES):
            look = yield from look_now()
            if look.composer.state != "absent" or not (_asks_nothing(look) or (listed and _is_list(listed, look))):
                return
            yield from press(keys)
            yield from wait_for(lambda look: look.composer.state != "absent", CLEAR_WAIT_S)

    def leave_opened(self, within: float = 0.0) -> Steps[None]:
        """Closes a dialog that our keys have opened, or will open `within` seconds, having nothing to stop or clear."""
        if within and any(dialog.leave is not None for dialog in self._profile.prompts.dialogs):
            yield from wait_for(lambda look: leaving(look) is not None, within)
        if (keys := leaving((yield from look_now()))) is not None:
            yield from press(keys)
            yield from wait_for(lambda look: leaving(look) is None, CLEAR_WAIT_S)

    def clear_if(self, holds: Callable[[str], bool]) -> Steps[None]:
        """Empties the composer if it `holds` a message: a program may put a message back after an interruption, soon or
        when it gets processor time. Otherwise the text would be submitted together with the next message."""

        def given_back(look: Look) -> bool:
            return look.composer.state == "draft" and holds(look.composer.text)

        for _ in range(RETURNED_TRIES):
            if (yield from wait_for(given_back, RETURNED_WAIT_S)):
                yield from self.clear()
                return
            if (yield Rests()):
                return

    def resume(self) -> Steps[None]:
        """Continues a suspended program: Ctrl-Z suspends some programs until a shell's `fg` sends them SIGCONT. Our
        programs have no shell, so SIGCONT is sent after the program has read the key; other programs ignore it. The
        jobs of a shell that runs as the program are not affected: they have process groups of their own."""
        self.suspended = True
        try:
            yield UntilRead(None)
        finally:
            self.suspended = False
        for pause in CONTINUE_AFTER_S:
            yield Pause(pause)
            yield SendSignal(signal.SIGCONT)

    def leave(self) -> Steps[None]:
        """Presses the program's own exit keys one after the other, while it runs, and waits for its end."""
        spec = self._profile.exit
        for keys in spec.keys:
            yield from press(keys)
            if (yield WaitForExit(spec.gap_ms / 1000)):
                return
        if spec.keys:
            yield WaitForExit(spec.grace_ms / 1000)


def _takes_command(look: Look) -> bool:
    return look.verdict.activity is Activity.READY and look.composer.state == "empty"


def _holds_command(command: str, look: Look) -> bool:
    """Returns True if the typed command is in the composer and the program rests: our keys cannot stop a turn then."""
    stands = look.composer.state == "draft" and look.composer.text.strip() == command
    return stands and look.verdict.activity is Activity.READY


def _is_list(shown: re.Pattern[str], look: Look) -> bool:
    return look.composer.state == "absent" and shown.search("\n".join(look.screen.lines)) is not None


def _asks_nothing(look: Look) -> bool:
    """Returns True if no understood question is on the screen."""
    asked = look.verdict.asked
    return asked is None or asked.prompt.type == "screen"


def _runs_less(than: int, look: Look) -> bool:
    return len(look.background) < than


def _from_composer(look: Look) -> tuple[str, ...]:
    """Returns the rows of the screen from the composer's first row down."""
    return look.screen.lines[look.composer.row or 0 :]
