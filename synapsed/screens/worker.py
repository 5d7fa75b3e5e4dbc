"""The program of a process of screens: draws screens without rights. Its standard input is a socket, from which it
reads frames, and to which it writes looks and answers.

python -m synapsed.screens.worker PARENT'S PID

Agents take turns, with a portion of output each (a millisecond or two), so that no agent waits for a flood of another's
output. Requests are served before other agents' output. The work for one agent is done in the order in which it came,
except requests for the screen as drawn now. If the emulator or a regular expression does not return, or if output
crashes the process, the daemon starts another process.
"""

import ctypes
import gc
import os
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from synapsed.process.sandbox import give_up_rights
from synapsed.profiles.profile import Profile
from synapsed.screens import protocol
from synapsed.screens.protocol import AS_DRAWN, TEXT_MAX, VERSION, FrameKind, ScreenFrame, ScreenFrameReader, encode
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.emulator_input import portions
from synapsed.terminal.look import Look, TerminalReply
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.printed import read_lines
from synapsed.terminal.screen_formats import document, picture
from synapsed.terminal.screen_messages import Ask

TURN_S = 0.002
"""Seconds of CPU time for which one agent's output is drawn before the next agent's turn."""

ACKNOWLEDGE_BYTES = 32 * 1024
"""Bytes of drawn output after which progress is reported; answers to requests report it too."""

IDLE_MS = 10
"""Milliseconds of idleness after which the drawn output is reported, if no answer has done so."""

ALIVE_S = 0.3
"""Seconds after which a message is sent while there is work."""

READ_BYTES = 256 * 1024

_PR_SET_PDEATHSIG = 1

type _Steps = Iterator[None]


@dataclass(slots=True)
class _Seat:
    """One agent's screen, and the work that waits for it. `told` is the end of the drawn output, as last reported to
    the daemon; `look` is the last look that was sent, and `asked` the text of its request, with what it says."""

    observer: TerminalObserver | None = None
    profile: Profile | None = None
    waiting: "deque[tuple[ScreenFrame, _Steps]]" = field(default_factory=deque)
    told: int = 0
    asked: tuple[bytes, Ask] | None = None
    look: Look | None = None

    @property
    def screen(self) -> TerminalObserver:
        assert self.observer is not None, "a screen that was not opened"
        return self.observer


class Screens:
    """The screens of this process. Pure except for the clock; `say` is called with the messages to send."""

    def __init__(self, say: Callable[[ScreenFrame], None], clock: Callable[[], float] = time.thread_time) -> None:
        self._say = say
        self._clock = clock
        self._seats: dict[int, _Seat] = {}
        self._asides: dict[int, _Seat] = {}
        """Separate queues for requests for lines (LINES), by the complement of the agent's number. Such a request takes
        long but does not need the screen, so requests for the screen do not wait for it."""
        self._working: dict[int, _Seat] = {}
        """Screens with work, in the order of their turns."""
        self._goes_on = False
        """True if the process has had work without a pause since the last turn."""

    @property
    def busy(self) -> bool:
        return bool(self._working)

    def take(self, frame: ScreenFrame) -> None:
        """Takes a frame: adds its work to the agent's queue, or does it at once (AS_DRAWN)."""
        if (seat := self._seats.get(frame.agent)) is None:
            seat = self._seats[frame.agent] = _Seat()
        if frame.kind == FrameKind.PASS:
            seat.waiting = deque(waits for waits in seat.waiting if not _ends_before(waits[0], frame.offset))
        steps = self._steps(frame, seat)
        if frame.flag & AS_DRAWN and seat.observer is not None:
            for _ in steps:
                pass
            return
        if frame.kind == FrameKind.LINES and seat.profile is not None:
            aside = self._working[~frame.agent] = self._asides.setdefault(~frame.agent, _Seat())
            aside.waiting.append((frame, steps))
        else:
            seat.waiting.append((frame, steps))
            self._working[frame.agent] = seat

    def turn(self, tell: Callable[[], None]) -> None:
        """Does one agent's turn. Calls `tell` before it, to send the messages so far and the agent's number (AT), from
        which the daemon knows whose output has ended the process."""
        number = self._next()
        if self._goes_on:
            self._say(ScreenFrame(FrameKind.AT, number if number >= 0 else ~number))
        tell()
        self._draw(number, self._working.pop(number))
        self._goes_on = self.busy

    def _draw(self, agent: int, seat: _Seat) -> None:
        until = self._clock() + TURN_S
        while seat.waiting:
            _, steps = seat.waiting[0]
            for _ in steps:
                if self._clock() >= until:
                    self._working[agent] = seat  # behind the others
                    return
            seat.waiting.popleft()

    def _next(self) -> int:
        for agent, seat in self._working.items():
            if seat.waiting[0][0].kind in self._short:
                return agent
        return next(iter(self._working))

    @property
    def late(self) -> list[int]:
        """The agents whose drawn output was not reported completely."""
        return [agent for agent, seat in self._seats.items() if seat.observer and seat.told < seat.screen.offset]

    def acknowledge(self) -> None:
        """Reports the drawn output of all screens."""
        for agent in self.late:
            self._drawn(agent, self._seats[agent])

    def _drawn(self, agent: int, seat: _Seat, replies: tuple[TerminalReply, ...] = ()) -> None:
        seat.told = seat.screen.offset
        self._say(ScreenFrame(FrameKind.DRAWN, agent, offset=seat.told, text=protocol.write_replies(replies)))

    def _answer(
        self, frame: ScreenFrame, seat: _Seat, text: bytes = b"", blob: bytes = b"", *, too_large: bool = False
    ) -> None:
        if seat.observer is not None:
            seat.told = seat.screen.offset
        flag = int(too_large)
        self._say(ScreenFrame(FrameKind.ANSWER, frame.agent, frame.number, seat.told, flag=flag, text=text, blob=blob))

    def _answer_shown(self, frame: ScreenFrame, seat: _Seat, screen: Screen, form: str) -> None:
        text, blob = _form(screen, form)
        if form in ("picture", "rows") and not 0 < len(text) <= TEXT_MAX:
            self._answer(frame, seat, too_large=True)
        else:
            self._answer(frame, seat, text, blob)

    def _steps(self, frame: ScreenFrame, seat: _Seat) -> _Steps:
        if (short := self._short.get(frame.kind)) is not None:
            short(frame, seat)
        else:
            yield from self._long[frame.kind](frame, seat)

    @cached_property
    def _long(self) -> dict[int, Callable[[ScreenFrame, _Seat], _Steps]]:
        """The kinds that may take long: they are done after the short requests of other agents."""
        return {
            FrameKind.OPEN: self._open,
            FrameKind.FEED: self._feed,
            FrameKind.LINES: self._lines,
            FrameKind.KEPT: self._kept,
        }

    @cached_property
    def _short(self) -> dict[int, Callable[[ScreenFrame, _Seat], None]]:
        return {
            FrameKind.NOTE: self._note,
            FrameKind.RESIZE: self._resize,
            FrameKind.CLOSE: self._close,
            FrameKind.PASS: self._pass,
            FrameKind.LOOK: self._look,
            FrameKind.EXPLAIN: self._explain,
            FrameKind.CHECKPOINT: self._checkpoint,
            FrameKind.REDRAW: self._redraw,
            FrameKind.TEXT: self._text,
            FrameKind.SHOWN: self._shown,
            FrameKind.PANE: self._pane,
        }

    # --- notes ---

    def _open(self, frame: ScreenFrame, seat: _Seat) -> _Steps:
        opening = protocol.read_value(frame.blob)
        seat.profile, seat.look = opening.profile, None
        if opening.checkpoint is not None:
            seat.observer = TerminalObserver.restore(
                opening.profile, opening.checkpoint, opening.now, harm=opening.harm
            )
        else:
            seat.observer = TerminalObserver(
                opening.profile, cols=opening.cols, rows=opening.rows, offset=opening.offset, harm=opening.harm
            )
        seat.told = -1
        yield

    def _feed(self, frame: ScreenFrame, seat: _Seat) -> _Steps:
        done = 0
        for part in portions(frame.blob):
            continues = bool(frame.flag) or done > 0
            replies = seat.screen.feed(frame.offset + done, part, frame.now, continues=continues)
            done += len(part)
            if replies or seat.screen.offset - seat.told >= ACKNOWLEDGE_BYTES:
                self._drawn(frame.agent, seat, tuple(replies))
            yield

    def _note(self, frame: ScreenFrame, seat: _Seat) -> None:
        seat.screen.note(protocol.read_value(frame.text))

    def _resize(self, frame: ScreenFrame, seat: _Seat) -> None:
        seat.screen.resize(frame.number, frame.offset)

    def _close(self, frame: ScreenFrame, _seat: _Seat) -> None:
        self._seats.pop(frame.agent, None)  # a kept screen that nobody waits for any more has left by itself
        self._asides.pop(~frame.agent, None)
        self._working.pop(~frame.agent, None)

    def _pass(self, frame: ScreenFrame, seat: _Seat) -> None:
        if seat.screen.offset < frame.offset:
            seat.screen.skip(frame.offset)
        self._drawn(frame.agent, seat)

    # --- requests ---

    def _look(self, frame: ScreenFrame, seat: _Seat) -> None:
        if seat.asked is None or seat.asked[0] != frame.text:
            seat.asked = frame.text, protocol.read_value(frame.text)
        look = seat.screen.asked(protocol.as_asked(seat.asked[1], frame))
        assert seat.profile is not None
        self._answer(frame, seat, *protocol.write_look(look, seat.profile, seat.look))
        seat.look = look or seat.look

    def _explain(self, frame: ScreenFrame, seat: _Seat) -> None:
        ask = protocol.as_asked(protocol.read_value(frame.text), frame)
        seat.screen.believe(ask)
        self._answer(frame, seat, protocol.write_witnesses(seat.screen.explain(ask.now)))

    def _checkpoint(self, frame: ScreenFrame, seat: _Seat) -> None:
        self._answer(frame, seat, *protocol.write_checkpoint(seat.screen.checkpoint()))

    def _redraw(self, frame: ScreenFrame, seat: _Seat) -> None:
        notice, alone = protocol.read_value(frame.text)
        pending = seat.screen.screen.pending
        self._answer(frame, seat, b"%d" % len(pending), seat.screen.redraw(notice, alone=alone) + pending)

    def _pane(self, frame: ScreenFrame, seat: _Seat) -> None:
        cols, rows, notice = protocol.read_value(frame.text)
        self._answer(frame, seat, blob=seat.screen.screen.pane(cols, rows, notice))

    def _text(self, frame: ScreenFrame, seat: _Seat) -> None:
        self._answer(frame, seat, blob=protocol.write_text(seat.screen.screen.text(scrollback=bool(frame.flag & 1))))

    def _shown(self, frame: ScreenFrame, seat: _Seat) -> None:
        self._answer_shown(frame, seat, seat.screen.screen, frame.text.decode())

    def _lines(self, frame: ScreenFrame, seat: _Seat) -> _Steps:
        wanted, (cols, rows) = protocol.read_value(frame.text)
        assert seat.profile is not None
        spec, composer = seat.profile.answer, seat.profile.composer
        read = yield from read_lines(
            *(spec, composer, frame.blob),
            cols=cols,
            rows=rows,
            prompt=wanted.prompt,
            message=wanted.message,
            one_by_one=wanted.one_by_one,
            edits=wanted.edits,
        )
        self._answer(frame, seat, text=b"%d" % read.missing, blob=protocol.write_text(read.text))

    def _kept(self, frame: ScreenFrame, seat: _Seat) -> _Steps:
        """Draws the kept screen of an agent that does not run, answers, and keeps no screen."""
        kept, form = protocol.read_value(frame.blob)
        screen = Screen(kept.cols, kept.rows)
        for part in portions(kept.redraw):
            screen.feed(part)
            yield
        self._answer_shown(frame, seat, screen, form)
        del self._seats[frame.agent]


def _ends_before(frame: ScreenFrame, offset: int) -> bool:
    return frame.kind == FrameKind.FEED and frame.offset + len(frame.blob) <= offset


def _form(screen: Screen, form: str) -> tuple[bytes, bytes]:
    """Returns the text and the blob of the answer."""
    match form:
        case "coloured":
            return b"", screen.coloured()
        case "ansi":
            return b"", screen.redraw()
        case "json":
            return protocol.write_document(document(screen)), b""
        case "picture":
            return protocol.write_picture(picture(screen)), b""
        case "rows":
            return protocol.write_rows(screen.page_rows()), b""
    return b"", protocol.write_text(screen.text(scrollback=form == "scrollback"))


def main() -> None:
    _end_with(int(sys.argv[-1]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # meant for the daemon, which needs its screens until it ends
    os.environ.clear()
    os.chdir("/")
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    gc.collect()
    gc.freeze()
    rights = give_up_rights(files=1)
    process = _Process()
    process.say(ScreenFrame(FrameKind.HELLO, text=protocol.write_hello(VERSION, sorted(rights))))
    try:
        process.run()
    except OSError:
        pass  # the daemon is gone
    except Exception as error:  # noqa: BLE001 - after any error, the daemon starts another process
        process.fail(error)


def _end_with(parent: int) -> None:
    """Makes the kernel kill this process when the daemon ends: while it computes, it does not see its socket close."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(0)


class _Process:
    def __init__(self) -> None:
        self._said = bytearray()
        self._said_at = 0.0
        self._screens = Screens(self.say)

    def say(self, frame: ScreenFrame) -> None:
        self._said += encode(frame)

    def _tell(self) -> None:
        """Sends all messages of a turn, and the number of the next agent, in one system call."""
        if self._said:
            data, self._said = memoryview(bytes(self._said)), bytearray()
            while data:
                data = data[os.write(0, data) :]
            self._said_at = time.monotonic()

    def run(self) -> None:
        """Does the work, and returns when the daemon has closed the socket."""
        poll, decoder, screens = select.poll(), ScreenFrameReader(), self._screens
        poll.register(0, select.POLLIN)
        while True:
            if not screens.busy:
                self._tell()
            if poll.poll(0 if screens.busy else IDLE_MS if screens.late else None):
                data = os.read(0, READ_BYTES)
                if not data:
                    return
                for frame in decoder.feed(data):
                    screens.take(frame)
            elif not screens.busy:
                screens.acknowledge()
            if screens.busy:
                if time.monotonic() - self._said_at > ALIVE_S:
                    self.say(ScreenFrame(FrameKind.ALIVE))
                screens.turn(self._tell)

    def fail(self, error: Exception) -> None:
        self.say(ScreenFrame(FrameKind.FAILED, text=protocol.write_failure(error)))
        self._tell()


if __name__ == "__main__":
    main()
