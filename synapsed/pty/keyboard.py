"""Keys pressed on a program's behalf: stopping a turn, leaving, emptying a composer of what synapsed typed into it.

Each procedure is a generator. It yields what is to be done (press, wait until the screen shows something) and is sent
what came of it, so that it knows no I/O, no clock and no event loop: the `Driver` performs it on a terminal, a
playbook of a test plays it with the screens that it likes. One procedure uses another with `yield from`.
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

VAIN_TRIES = 3
"""Where it changes nothing so many times in a row it does something else there (of vim's keys, Esc), and what stands in
the composer is left to a person."""

CLEAR_WAIT_S = 3.0
"""How long a program may take to show what the key did; it is not pressed again before: some programs take it for
their end when the composer is empty already."""

ANSWER_S = 24 * 3600.0
"""How long a person may take to answer the dialog, or to remove what else hides the composer."""

OPENED_S = 1.0
"""How long what keys open may take to be drawn, where they were pressed more than once: what changed after the first
time may have been the end of a paste, and nothing have been left for the second."""

TAKE_BACK_S = 10.0
"""How long a busy machine's program may take to show what was pasted. Without that it would be left to stand there."""

STOPS_S = 15.0
"""How long a busy machine's program may take to open its list, and to tell that something in it has ended."""

CLOSED_S = 60.0
"""How long a turn may take that the program begins with since something was stopped."""

CLOSE_TRIES = 3
"""What was looked at in a list is closed before the list is."""

INTERRUPT_TRIES = 2

AGAIN_S = 1.0
"""How long a busy machine's program may take to show that it works, and that it wants the keys once more. Pressed again
before it has read the first, the two may be another key."""

LOST_PRESSES = 1
"""So often they are pressed where nothing came of them."""

SHOWN_S = 3.0
"""How long a busy machine's program may take to show a step of an answer; the next one follows then all the same."""

NAMED_ROUNDS = 6
"""So often an option's name is waited for while the program has not read it, or computes."""

CTRL_Z = b"\x1a"

CONTINUE_AFTER_S = (0.3, 1.0, 3.0)
"""The distances of the signals: how long a program takes to suspend itself is not known."""

RETURNED_WAIT_S = 0.4
"""How long a program takes to give an interrupted message back into its composer."""

RETURNED_TRIES = 8
"""So often it is waited for at the most, while a busy machine keeps the program from what it has to do."""


# --- what a procedure asks for ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Press:
    """Write the keys; the answer is whether the terminal hid them."""

    data: bytes


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Look until a look satisfies `wanted`; the answer is whether one did within so many seconds."""

    wanted: Callable[[Look], bool]
    within: float


@dataclass(frozen=True, slots=True)
class LookNow:
    """The answer is a look at this moment."""


@dataclass(frozen=True, slots=True)
class SendSignal:
    """Send the program a signal."""

    number: int


@dataclass(frozen=True, slots=True)
class StopPressed:
    """The keys that stop a turn were pressed: from now on a screen that stands still is proof."""


@dataclass(frozen=True, slots=True)
class WaitForExit:
    """Wait for the program's end; the answer is whether it came within so many seconds."""

    within: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Resize:
    """Give the program's window another size."""

    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class UntilRead:
    """Wait until the program has read what was typed; the answer is whether it had within so many seconds, if there is
    a limit."""

    within: float | None


@dataclass(frozen=True, slots=True)
class Rests:
    """The answer is whether the program has nothing to do, as far as that can be told."""


@dataclass(frozen=True, slots=True)
class UntilRecorded:
    """Wait until what the turn wanted is done and durable, for so many seconds at the most."""

    within: float


@dataclass(frozen=True, slots=True)
class Emit:
    """Tell the agent."""

    event: LinkEvent


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell the stage."""

    note: Note


@dataclass(frozen=True, slots=True)
class Work:
    """Have done what the machine of the present turn wants, in order with what it wanted before."""

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
    """Whether the terminal hid the keys."""
    return bool((yield Press(keys.encode() if isinstance(keys, str) else keys)))


def wait_for(wanted: Callable[[Look], bool], within: float) -> Steps[bool]:
    return bool((yield WaitFor(wanted, within)))


def look_now() -> Steps[Look]:
    look: Look = yield LookNow()
    return look


# --- the procedures --------------------------------------------------------------------------------------------------


def leaving(look: Look) -> str | None:
    """The keys that close the dialog on the screen, where it is one that keys of ours may have opened."""
    asked = look.verdict.asked
    return asked.dialog.leave if asked is not None and asked.dialog is not None else None


class Keyboard:
    """The keys of one program, as its profile tells them."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.answering = False
        """Whether an answer is being typed in several steps: what is on the screen meanwhile is half of it."""
        self.interrupting = False
        """Whether a turn is being stopped: a dialog that is still shown goes with it, and what was typed for that would
        be text in the composer."""
        self.suspended = False
        """Whether a person has pressed Ctrl-Z, and the program has not read it."""

    def interrupt(self, stopped: Callable[[Look], bool], message: str | None = None) -> Steps[bool]:
        """Stop the running turn; whether `stopped` then holds. `message` is what was typed for it, which the program
        may have put off: it is then taken back."""
        self.interrupting = True
        try:
            return (yield from self._interrupt(stopped, message))
        finally:
            self.interrupting = False

    def _interrupt(self, stopped: Callable[[Look], bool], message: str | None) -> Steps[bool]:
        confirmed, drawn, spec = False, 0, self._profile.interrupt

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
        """Press the keys when the program shows that it works, and once more whenever it says that it wants them
        `again`, or nothing comes of them: before there is anything to stop they do nothing."""
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
        """Have the message given back, and remove it. (Should the program begin with it at this very moment, that is a
        turn to be stopped.)"""
        assert self._profile.interrupt.put_off is not None
        yield from press(self._profile.interrupt.put_off.keys)
        if (yield from wait_for(lambda look: look.composer.state == "draft", CLEAR_WAIT_S)):
            yield from self.clear()

    def answer(self, steps: Sequence[bytes], still: Callable[[Look], bool]) -> Steps[bool | None]:
        """Answer a dialog, each step when it is shown what came of the one before: whether the terminal hid any of it.
        None where the dialog was not `still` there for one of them (it may be drawn again meanwhile), or its turn is
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
        """Name an option, then submit it if the name waits for that: where the line `holds` it, or the terminal hid it.
        Whether it did."""
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
        """Answer a menu, each move when the one before is shown: whether all were made. What comes last, and submits,
        is pressed only while what was moved to is among the `marks` of the menu; else it is False, or None where the
        menu has left the screen, or its turn is being stopped."""
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
        """What comes in one piece is taken for a paste."""
        yield from wait_for(lambda _: False, self._profile.delivery.settle_ms / 1000)

    def take_back(self) -> Steps[bool]:
        """Empty the composer of what was just pasted, which may not be shown yet; whether it is empty."""
        if self._profile.composer.line is None:
            return False
        yield from wait_for(self._has_composer, ANSWER_S)
        yield from wait_for(lambda look: look.composer.state == "draft", TAKE_BACK_S)
        return (yield from self.clear())

    def take_out(self, *, unless: Callable[[], bool], comes: bool) -> Steps[bool]:
        """Empty the composer of a message that was not taken, `unless` something has come to be so; whether it is
        empty. `comes`: it was pasted, and is not shown yet."""
        if comes:
            yield from wait_for(lambda look: unless() or look.composer.state == "draft", TAKE_BACK_S)
        return (yield from self.clear(unless))

    def _has_composer(self, look: Look) -> bool:
        """Neither a dialog nor anything else stands where the composer is."""
        there = look.composer.state != "absent" or not self._profile.composer.needed
        return look.verdict.asked is None and there

    def clear(self, unless: Callable[[], bool] = lambda: False) -> Steps[bool]:
        """Empty the composer, `unless` something has come to be so; whether it is empty. Where the profile's keys
        change nothing, they may take no more than a line, and Backspace joins that to the one before."""
        vain, joins, keys = 0, False, self._profile.delivery.clear
        for tries in range(CLEAR_TRIES):
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

    def erase(self) -> Steps[bool]:
        """Take back what a person has written, a row at a time; whether the composer is empty."""
        for _ in range(CLEAR_TRIES):
            before = yield from look_now()
            if before.composer.state != "draft":
                return True
            yield from self._wipe(self._profile.delivery.erase, _from_composer(before))
        return (yield from look_now()).composer.state != "draft"

    def _wipe(self, keys: str, shown: tuple[str, ...]) -> Steps[bool]:
        """Press `keys` where the composer holds `shown`, and wait for what they do to it; whether that is anything."""
        yield from press(keys)
        return (yield from wait_for(lambda look: _from_composer(look) != shown, CLEAR_WAIT_S))

    def stop_background(self) -> Steps[bool]:
        """Stop what runs in the background of a program at rest, at its empty composer; whether nothing does then."""
        self.answering = True
        try:
            for _ in range(BACKGROUND_MAX if self._profile.background.command else 0):
                left = len((yield from look_now()).background)
                if not left or not (yield from wait_for(_takes_command, CLOSED_S)):
                    break  # what was stopped may have made it begin with something else
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
        """Close what these keys opened, or open `within` so many seconds: they found nothing to stop or to clear."""
        if within and any(dialog.leave is not None for dialog in self._profile.prompts.dialogs):
            yield from wait_for(lambda look: leaving(look) is not None, within)
        if (keys := leaving((yield from look_now()))) is not None:
            yield from press(keys)
            yield from wait_for(lambda look: leaving(look) is None, CLEAR_WAIT_S)

    def clear_if(self, holds: Callable[[str], bool]) -> Steps[None]:
        """Empty the composer if it `holds` a message, which a program may give back after an interruption: soon, if it
        does, or when it gets the processor. Behind the next message it would be submitted with that."""

        def given_back(look: Look) -> bool:
            return look.composer.state == "draft" and holds(look.composer.text)

        for _ in range(RETURNED_TRIES):
            if (yield from wait_for(given_back, RETURNED_WAIT_S)):
                yield from self.clear()
                return
            if (yield Rests()):
                return

    def resume(self) -> Steps[None]:
        """Ctrl-Z suspends some programs until a shell's `fg` sends them SIGCONT. There is no shell here, so they are
        sent it once they have read the key. Others pass over it, and the jobs of a shell are not meant: they have
        groups of their own."""
        self.suspended = True
        try:
            yield UntilRead(None)
        finally:
            self.suspended = False
        for pause in CONTINUE_AFTER_S:
            yield Pause(pause)
            yield SendSignal(signal.SIGCONT)

    def leave(self) -> Steps[None]:
        """Press the program's own exit keys, each if it still runs, and give it its time."""
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
    """What was typed stands in the composer of a program at rest: a turn that it has begun would be stopped."""
    stands = look.composer.state == "draft" and look.composer.text.strip() == command
    return stands and look.verdict.activity is Activity.READY


def _is_list(shown: re.Pattern[str], look: Look) -> bool:
    return look.composer.state == "absent" and shown.search("\n".join(look.screen.lines)) is not None


def _asks_nothing(look: Look) -> bool:
    """What stands in the composer's place asks nothing that is understood."""
    asked = look.verdict.asked
    return asked is None or asked.prompt.type == "screen"


def _runs_less(than: int, look: Look) -> bool:
    return len(look.background) < than


def _from_composer(look: Look) -> tuple[str, ...]:
    """The screen from the composer's first row down."""
    return look.screen.lines[look.composer.row or 0 :]
