"""Keys pressed on a program's behalf: they stop a turn, leave, and empty a composer of synapsed's own text.

Each procedure is a generator. It yields a step (press, wait until the screen shows something) and is sent the result,
so that it knows no I/O, no clock and no event loop: the `Driver` performs it on a terminal, a playbook of a test plays
it with any screens. One procedure uses another with `yield from`.
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
from synapsed.terminal.composer import puts_off
from synapsed.terminal.look import Look
from synapsed.terminal.menu_keys import Move
from synapsed.terminal.screen_messages import Note
from synapsed.terminal.verdict import screen_sign

CLEAR_TRIES = 100
"""A composer may need its key once per line, and Backspace before the next one."""

BACKSPACE = "\x7f"

UNSETTLED_TRIES = 40
"""Number of short waits, for all of a composer's lines, for a program that does not come to rest."""

VAIN_TRIES = 3
"""Number of presses in a row without a change after which the key does something else there (of vim's keys, Esc); the
text in the composer is then left to a person."""

CLEAR_WAIT_S = 3.0
"""Seconds within which a program shows the effect of the key; it is not pressed again before, since some programs exit
at it if the composer is empty already."""

ANSWER_S = 24 * 3600.0
"""Seconds for a person to answer the dialog, or to remove anything else that hides the composer."""

OPENED_S = 1.0
"""Seconds within which a dialog that the keys open is drawn, if they were pressed more than once: the change after the
first time may have been the end of a paste, and nothing left for the second."""

TAKE_BACK_S = 10.0
"""Seconds within which a program on a busy machine shows pasted text. Without this time the text would stay in the
composer."""

STOPS_S = 15.0
"""Seconds within which a program on a busy machine opens its list, and reports that an item has ended."""

CLOSED_S = 60.0
"""Seconds for a turn that the program begins because something was stopped."""

CLOSE_TRIES = 3
"""Number of closing keys: an opened item of a list is closed before the list."""

INTERRUPT_TRIES = 2

INTERRUPT_WAITS = 3
"""Number of further waits of SHOWN_S for a program that computes, or has not read the keys: gemini 0.61.0, starved,
said ten seconds after Esc that it had stopped. Keys that are pressed again before that are for something else."""

AGAIN_S = 1.0
"""Seconds within which a program on a busy machine shows that it works, and that it wants the keys again. If they are
pressed again before it has read the first, the two may be another key."""

LOST_PRESSES = 1
"""Number of repeated presses if the keys had no effect."""

SHOWN_S = 3.0
"""Seconds within which a program on a busy machine shows a step of an answer; the next one follows then all the
same."""

NAMED_ROUNDS = 6
"""Number of waits for an option's name while the program has not read it, or computes."""

CTRL_Z = b"\x1a"

CONTINUE_AFTER_S = (0.3, 1.0, 3.0)
"""Seconds between the signals: the time that a program takes to suspend itself is not known."""

RETURNED_WAIT_S = 0.4
"""Seconds within which a program puts an interrupted message back into its composer."""

RETURNED_TRIES = 8
"""Number of waits at most while a busy machine keeps the program from its work."""


# --- what a procedure asks for ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Press:
    """Writes the keys; the answer is True if the terminal hid them."""

    data: bytes


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Looks until a look satisfies `wanted`; the answer is True if one did within so many seconds."""

    wanted: Callable[[Look], bool]
    within: float


@dataclass(frozen=True, slots=True)
class LookNow:
    """Looks at this moment; the answer is the look."""


@dataclass(frozen=True, slots=True)
class SendSignal:
    """Sends the program a signal."""

    number: int


@dataclass(frozen=True, slots=True)
class StopPressed:
    """Notes that the keys that stop a turn were pressed: from now on a screen that stands still is proof."""


@dataclass(frozen=True, slots=True)
class WaitForExit:
    """Waits for the program's end; the answer is True if it came within so many seconds."""

    within: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Waits for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Resize:
    """Gives the program's window another size."""

    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class UntilRead:
    """Waits until the program has read its input; the answer is True if it did so within so many seconds, if there is a
    limit."""

    within: float | None


@dataclass(frozen=True, slots=True)
class Rests:
    """Asks if the program has nothing to do, as far as that is known."""


@dataclass(frozen=True, slots=True)
class UntilRecorded:
    """Waits until the work that the turn wanted is done and durable, for so many seconds at most."""

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
    """Does the work that the machine of the present turn wants, after the work that it wanted before."""

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
    """Returns the keys that close the dialog on the screen, if keys of ours may have opened it."""
    asked = look.verdict.asked
    return asked.dialog.leave if asked is not None and asked.dialog is not None else None


class Keyboard:
    """The keys of one program, from its profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.answering = False
        """True while an answer is typed in several steps: the screen then shows half of it."""
        self.interrupting = False
        """True while a turn is being stopped: a dialog that is still shown goes with it, and an answer typed for it
        would be text in the composer."""
        self.suspended = False
        """True if a person has pressed Ctrl-Z, and the program has not read it."""

    def interrupt(self, stopped: Callable[[Look], bool], message: str | None = None) -> Steps[bool]:
        """Stops the running turn; returns True if `stopped` then holds. `message` is the turn's typed message, which
        the program may have put off: it is then taken back."""
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
            return confirmed or self._puts_off(look, message)

        for _ in range(INTERRUPT_TRIES):
            if self._puts_off((yield from look_now()), message):
                yield from self._take_back_put_off()
            else:
                yield from self._stop(stopped)
            if not (yield from wait_for(settled, spec.confirm_ms / 1000)) and (yield from look_now()).offset > drawn:
                # It had written more than was drawn in that time: what it did is seen now.
                yield from wait_for(settled, spec.still_ms / 1000 + SHOWN_S)
            while waits and not (settled((yield from look_now())) or (yield Rests())):
                waits -= 1
                yield from wait_for(settled, SHOWN_S)
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
        """Presses the keys when the program shows that it works, and once more whenever it says that it wants them
        `again`, or they have no effect: before there is anything to stop they do nothing."""
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
            yield from wait_for(lambda look, comes=comes: has_stopped(look) or comes(look), AGAIN_S)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
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
        """Makes the program put the message back, and removes it. If the program begins with it at this very moment,
        that is a turn to be stopped."""
        assert self._profile.interrupt.put_off is not None
        yield from press(self._profile.interrupt.put_off.keys)
        if (yield from wait_for(lambda look: look.composer.state == "draft", CLEAR_WAIT_S)):
            yield from self.clear()

    def answer(self, steps: Sequence[bytes], still: Callable[[Look], bool]) -> Steps[bool | None]:
        """Answers a dialog, each step after the effect of the last is shown; returns True if the terminal hid any of
        it. None if the dialog was not `still` there for one of them (it may be drawn again meanwhile), or its turn is
        being stopped."""
        self.answering, hidden = True, False
        try:
            for number, keys in enumerate(steps):
                there = number == 0 or (yield from wait_for(lambda look: self.interrupting or still(look), SHOWN_S))
                if self.interrupting or not there:
                    return None
                shown = (yield from look_now()).screen.lines
                hidden = (yield from press(keys)) or hidden
                if number + 1 < len(steps):
                    yield from wait_for(lambda look, shown=shown: look.screen.lines != shown, SHOWN_S)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
                    yield from self._pause()
        finally:
            self.answering = False
        return hidden

    def named(self, steps: Sequence[bytes], holds: Callable[[Look], bool]) -> Steps[bool]:
        """Types the name of an option, then submits it if the name waits for that: if the line `holds` it, or the
        terminal hid it. Returns True if the terminal hid it."""
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
            if hidden or holds((yield from look_now())):
                hidden = (yield from press(submit)) or hidden
        finally:
            self.answering = False
        return hidden

    def choose(self, moves: Sequence[Move], marks: Callable[[Look], frozenset[str] | None]) -> Steps[bool | None]:
        """Answers a menu, each move after the last is shown; returns True if all were made. The last keys, which
        submit, are pressed only while the wanted option is among the `marks` of the menu; otherwise it returns False,
        or None if the menu has left the screen, or its turn is being stopped."""
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
        """Pauses between keys: a program takes input in one piece for a paste."""
        yield from wait_for(lambda _: False, self._profile.delivery.settle_ms / 1000)

    def take_back(self) -> Steps[bool]:
        """Empties the composer of text that was just pasted and may not be shown yet; returns True if it is empty."""
        if self._profile.composer.line is None:
            return False
        yield from wait_for(self._has_composer, ANSWER_S)
        yield from wait_for(lambda look: look.composer.state == "draft", TAKE_BACK_S)
        return (yield from self.clear())

    def take_out(self, *, unless: Callable[[], bool], comes: bool) -> Steps[bool]:
        """Empties the composer of a message that was not taken, if `unless` does not hold; returns True if it is empty.
        `comes`: it was pasted, and is not shown yet."""
        if comes:
            yield from wait_for(lambda look: unless() or look.composer.state == "draft", TAKE_BACK_S)
        return (yield from self.clear(unless))

    def _has_composer(self, look: Look) -> bool:
        """Returns True if neither a dialog nor anything else is in the composer's place."""
        there = look.composer.state != "absent" or not self._profile.composer.needed
        return look.verdict.asked is None and there

    def clear(self, unless: Callable[[], bool] = lambda: False) -> Steps[bool]:
        """Empties the composer, if `unless` does not hold; returns True if it is empty. If the profile's keys change
        nothing, they may take no more than a line, and Backspace joins that to the one before."""
        vain, joins, keys, waits = 0, False, self._profile.delivery.clear, UNSETTLED_TRIES
        for tries in range(CLEAR_TRIES):
            waits = yield from self._settle(waits)
            before = yield from look_now()
            if unless():
                return False
            if before.composer.state != "draft":
                yield from self.leave_opened(OPENED_S if tries > 1 else 0.0)
                return True
            if vain == VAIN_TRIES:
                return False
            wiped = yield from self._wipe(keys, _from_composer(before))
            joins = joins or (wiped and keys == BACKSPACE)
            vain = 0 if wiped else vain + 1
            keys = BACKSPACE if keys != BACKSPACE and (joins or not wiped) else self._profile.delivery.clear
            yield from self.leave_opened()
        return (yield from look_now()).composer.state != "draft"

    def _settle(self, waits: int) -> Steps[int]:
        """Waits, at most so many times, until the program rests with its composer drawn: many programs erase it before
        they draw it again, and what is seen between says nothing. Returns the number of waits that are left."""
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
        """Takes back a person's text, a row at a time; returns True if the composer is empty."""
        waits = UNSETTLED_TRIES
        for _ in range(CLEAR_TRIES):
            waits = yield from self._settle(waits)
            before = yield from look_now()
            if before.composer.state != "draft":
                return True
            yield from self._wipe(self._profile.delivery.erase, _from_composer(before))
        return (yield from look_now()).composer.state != "draft"

    def _wipe(self, keys: str, shown: tuple[str, ...]) -> Steps[bool]:
        """Presses `keys` while the composer holds `shown`, and waits for their effect; returns True if there is one."""
        yield from press(keys)
        return (yield from wait_for(lambda look: _from_composer(look) != shown, CLEAR_WAIT_S))

    def stop_background(self) -> Steps[bool]:
        """Stops the work in the background of a program at rest, at its empty composer; returns True if there is no
        more of it."""
        self.answering = True
        try:
            for _ in range(BACKGROUND_MAX if self._profile.background.command else 0):
                left = len((yield from look_now()).background)
                if not left or not (yield from wait_for(_takes_command, CLOSED_S)):
                    break  # the end of a task may have made the program begin with something else
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
        """Closes a dialog that these keys opened, or open `within` so many seconds, because there was nothing to stop
        or to clear."""
        if within and any(dialog.leave is not None for dialog in self._profile.prompts.dialogs):
            yield from wait_for(lambda look: leaving(look) is not None, within)
        if (keys := leaving((yield from look_now()))) is not None:
            yield from press(keys)
            yield from wait_for(lambda look: leaving(look) is None, CLEAR_WAIT_S)

    def clear_if(self, holds: Callable[[str], bool]) -> Steps[None]:
        """Empties the composer if it `holds` a message, which a program may put back after an interruption: soon, if it
        does, or when it gets the processor. Otherwise it would be submitted together with the next message."""

        def given_back(look: Look) -> bool:
            return look.composer.state == "draft" and holds(look.composer.text)

        for _ in range(RETURNED_TRIES):
            if (yield from wait_for(given_back, RETURNED_WAIT_S)):
                yield from self.clear()
                return
            if (yield Rests()):
                return

    def resume(self) -> Steps[None]:
        """Continues a suspended program: Ctrl-Z suspends some programs until a shell's `fg` sends them SIGCONT. There
        is no shell here, so it is sent here once they have read the key. Other programs ignore it. Jobs of a shell are
        not meant: they have groups of their own."""
        self.suspended = True
        try:
            yield UntilRead(None)
        finally:
            self.suspended = False
        for pause in CONTINUE_AFTER_S:
            yield Pause(pause)
            yield SendSignal(signal.SIGCONT)

    def leave(self) -> Steps[None]:
        """Presses the program's own exit keys, each if it still runs, and gives it its time."""
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
    """Returns True if the typed command is in the composer of a program at rest: a turn that it has begun would be
    stopped."""
    stands = look.composer.state == "draft" and look.composer.text.strip() == command
    return stands and look.verdict.activity is Activity.READY


def _is_list(shown: re.Pattern[str], look: Look) -> bool:
    return look.composer.state == "absent" and shown.search("\n".join(look.screen.lines)) is not None


def _asks_nothing(look: Look) -> bool:
    """Returns True if the text in the composer's place is no question that is understood."""
    asked = look.verdict.asked
    return asked is None or asked.prompt.type == "screen"


def _runs_less(than: int, look: Look) -> bool:
    return len(look.background) < than


def _from_composer(look: Look) -> tuple[str, ...]:
    """Returns the screen from the composer's first row down."""
    return look.screen.lines[look.composer.row or 0 :]
