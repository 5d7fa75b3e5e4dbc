"""The programs of the simulated machine: a small TUI and a program of lines, with every trick that a plan gives them.

A message is a token (`T7`) and what the program is to do with it: `delay=S`, `lines=N`, `ask`, `flood=KB`, `crash`. The
answer names the token, so that whose answer it is can be told.

==========  ==========================================================================================================
trick       what it does
==========  ==========================================================================================================
late        its prompt comes so many seconds after the start; what is typed before is lost (TUI)
asks        a dialog before its first prompt
swallow     passes over so many Enters
boot        passes over the first Enter: its composer is drawn empty, then with what stood there, and it works for a
            moment
forget      loses so many pastes
slow        reads so many seconds after something was typed
stall       reads nothing at all for so many seconds, once, when the first paste comes
restore     gives an interrupted message back into its composer
sluggish    begins so many seconds after Enter: within `accept_ms`, which its profile promises
deaf        takes nothing into its composer
stubborn    takes so many interrupts for nothing
hooks       "late", "twice", "never": how its hooks report; without it they do as they should
==========  ==========================================================================================================

A turn's end is reported behind its prompt, however late: programs run a prompt's hooks before they begin with it, and
where no report names its turn nobody could tell a person's end from that of the message before it.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from synapsed.pty.foreground import Word

if TYPE_CHECKING:
    from tests.simulation.machine import Machine, SimKeeper

__all__ = ["PROFILES", "Lines", "Program", "Tui", "token_of"]

TUI = r"""
command = "sh"
model = true
ports = [8300, 8399]

[ready]
quiet_ms = 60

[busy]
screen = ['^ working \(esc to stop\)']
rows = 4

[[error]]
pattern = '^!! .*'

[composer]
line = '^> ?(?P<text>.*)$'
around = '\n─{20,}[^\n]*\n>'
empty = '\n>[^\n]*\n─{20,}'
bracketed_paste = true

[delivery]
settle_ms = 40
settle_max_ms = 2500
accept_ms = 900
clear = "\u0015"

[interrupt]
keys = "\u001b"
screen = '^\[stopped\]'

[exit]
keys = ["\u0004"]

[answer]
mode = "blocks"
start = '^● '
end = '^(?: working|─{20,}|> )'

[[prompts.dialogs]]
type = "permission"
when = ['^Allow it\?', '^\(1\) Yes', '^\(2\) No']
question = '^(?P<text>Allow it\?)'
option = '^\((?P<key>\d)\) (?P<label>.*)$'
aliases = { yes = "1", no = "2" }
"""

HOOKED = (
    TUI
    + r"""
[channels.hooks]
adapter = "hooks"

[channels.hooks.events]
UserPromptSubmit = "accepted"
Stop = "ended"

[channels.hooks.fields]
prompt = "prompt"
answer = "answer"
"""
)

SERVED = (
    TUI
    + r"""
[channels.server]
adapter = "session-server"
delivers = true
"""
)

LINES = r"""
command = "sh"
ports = [8400, 8499]

[ready]
quiet_ms = 20

[composer]
at_cursor = true
line = '^dummy[>|] ?(?P<text>.*)$'
bracketed_paste = true

[delivery]
settle_ms = 10
settle_max_ms = 1000

[interrupt]
keys = "\u0003"
screen = '^\[interrupted\]'

[exit]
keys = ["\u0003", "\u0004"]

[[error]]
pattern = '^!! .*'

[prompts]
generic = true
"""

PROFILES = {"tui": TUI, "hooked": HOOKED, "served": SERVED, "lines": LINES}

PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"
BOOT_S = 0.3
QUESTION = ["Allow it?", "(1) Yes", "(2) No"]
_TOKEN = re.compile(r"\bT\d+\b")


def token_of(text: str) -> str | None:
    """The token of the message in `text`."""
    found = _TOKEN.search(text)
    return None if found is None else found[0]


def _number(name: str, text: str) -> float:
    found = re.search(rf"\b{name}=([\d.]+)", text)
    return float(found[1]) if found else 0.0


class Program:
    """`given` is told of each message that was submitted."""

    work: str | None = None
    """The message that it works on."""

    def __init__(self, machine: "Machine", keeper: "SimKeeper", rng: Random, tricks: dict[str, Any]) -> None:
        self._machine, self._keeper, self._rng = machine, keeper, rng
        self.tricks = dict(tricks)
        self.alive = True
        self.unread = bytearray()
        self._pending = ""
        self._pasting = False
        self._reads_at = 0.0
        self._reading = False
        self.given: Callable[[str], None] = lambda _text: None
        self.interrupted: Callable[[], None] = lambda: None
        self.later(0.001, self.begin)

    # --- of the keeper ---

    def receive(self, data: bytes) -> None:
        self.unread += data
        if b"\x1b[200~" in data and (stall := self.tricks.pop("stall", 0)):
            self._reads_at = self._machine.clock.monotonic() + stall
        if not self._reading:
            self._reading = True
            pause = self.tricks.get("slow", 0) or self._rng.uniform(0, 0.005)
            self.later(max(pause, self._reads_at - self._machine.clock.monotonic()), self._read)

    def _read(self) -> None:
        self._reading = False
        data = bytes(self.unread)
        self.unread.clear()
        self.feed(data.decode("utf-8", "replace"))
        self._keeper.resume()
        self._keeper.turn()

    def signalled(self, number: int) -> None:
        if number == 2:
            self.press("\x03")
        elif number in (1, 9, 15):
            self.kill(number)

    def hung_up(self) -> None:
        self.kill(1)

    def resized(self, cols: int, rows: int) -> None:
        self.later(0.002, self.draw)

    def kill(self, number: int) -> None:
        self._end(None, number)

    def _end(self, code: int | None, signum: int | None) -> None:
        if self.alive:
            self.alive = False
            self._machine.trace(f"{self._keeper.agent_id}: the program ends ({code if signum is None else -signum})")
            self._machine.later(0.001, self._keeper.ended, code, signum)

    # --- what programs do ---

    def later(self, delay: float, call: Callable[..., None], *args: Any) -> None:
        def guarded() -> None:
            if self.alive:
                call(*args)

        self._machine.later(delay, guarded)

    def write(self, text: str) -> None:
        if self.alive:
            self._keeper.output(text.encode())

    def feed(self, text: str) -> None:
        self._pending += text
        while self._pending and self.alive:
            mark = next((m for m in (PASTE_BEGIN, PASTE_END) if self._pending.startswith(m)), None)
            if mark is not None:
                self._pending = self._pending[len(mark) :]
                self._pasting = mark == PASTE_BEGIN
                if not self._pasting:
                    self.pasted()
            elif self._pending != "\x1b" and any(m.startswith(self._pending) for m in (PASTE_BEGIN, PASTE_END)):
                return
            else:
                key, self._pending = self._pending[0], self._pending[1:]
                self.press(key)

    def pasted(self) -> None:
        """A paste has come to its end."""

    def say_submitted(self, text: str) -> None:
        self.given(text)

    @property
    def foreground(self) -> tuple[bool, Word]:
        """Whether its terminal gives it whole lines, and what the kernel tells of it."""
        return False, "rests" if self.work is None else "works"

    def begin(self) -> None:
        raise NotImplementedError

    def press(self, key: str) -> None:
        raise NotImplementedError

    def draw(self) -> None:
        raise NotImplementedError


class Tui(Program):
    """A composer between two rules below what was said; `hooks` is its maildir, if it has one."""

    hooks: Path | None = None

    _accepted_at = 0.0
    """When the last prompt is reported."""

    def begin(self) -> None:
        self.history = ["scripted program"]
        self.draft = ""
        self.dialog: str | None = None
        self.taken = self.booting = False
        self._work_number = 0
        self._reports = 0
        self.ready_at = self._machine.clock.monotonic() + self.tricks.get("late", 0)
        self._said: list[str] = []
        self.write("\x1b[2J\x1b[?2004h")
        if self.tricks.pop("asks", False):
            self.dialog = "start"
        if self.tricks.get("late"):
            self.write("starting")
            self.later(self.tricks["late"], self.draw)
        else:
            self.draw()

    def draw(self) -> None:
        if self._machine.clock.monotonic() < self.ready_at:
            return
        cols, height = self._keeper.size
        if self.dialog is not None:
            rows = [*self.history, "", *QUESTION]
        else:
            rule = "─" * (cols - 1)
            typed = self.draft.split("\n")[-8:]
            rows = [*self.history, "", " working (esc to stop)" if self.booting or self.work is not None else ""]
            rows += [rule, "> " + typed[0], *("  " + line for line in typed[1:]), rule]
        self.write("\x1b[?2026h\x1b[H\x1b[J" + "\r\n".join(rows[-height + 1 :]) + "\x1b[?2026l")

    def feed(self, text: str) -> None:
        super().feed(text)
        self.draw()

    def pasted(self) -> None:
        if self.draft and self.tricks.get("forget"):
            self.tricks["forget"] -= 1
            self.draft = ""

    def press(self, key: str) -> None:
        if self._machine.clock.monotonic() < self.ready_at:
            return
        if self.dialog is not None:
            if key in "12":
                self._answered(key)
        elif self._pasting:
            self.draft += "" if self.tricks.get("deaf") else key
        elif key == "\x1b":
            self._stop()
        elif key == "\r":
            self._enter()
        elif key == "\x15":
            self.draft = ""
        elif key == "\x04" and not self.draft:
            self._end(0, None)
        elif key >= " " and not self.tricks.get("deaf"):
            self.draft += key

    def _answered(self, key: str) -> None:
        kind, self.dialog = self.dialog, None
        self.history.append(f"answered {key}")
        if kind == "work" and self.work is not None:
            if key == "1":
                self._later_work(0.3, self._answer)
            else:
                self._ended("refused by a person")

    def _boot(self, draft: str, *, works: bool) -> None:
        self.draft, self.booting = draft + self.draft, works
        self.draw()
        if works:
            self.later(BOOT_S, lambda: self._boot("", works=False))

    def _enter(self) -> None:
        if self.draft and self.tricks.pop("boot", False):
            draft, self.draft = self.draft, ""
            self.later(BOOT_S, lambda: self._boot(draft, works=True))
        elif self.tricks.get("swallow"):
            self.tricks["swallow"] -= 1
        elif self.draft.strip() and self.work is None and not self.taken:
            text, self.draft = self.draft.strip(), ""
            self.say_submitted(text)
            self.history.append("> " + text.split("\n")[0])
            self.taken = True
            self.later(self.tricks.get("sluggish", 0), self._begin_work, text)

    def _begin_work(self, text: str) -> None:
        self.taken = False
        self.work = text
        self._work_number += 1
        self._report("UserPromptSubmit", {"prompt": text})
        self.draw()
        pause = _number("delay", text) or 0.2
        if re.search(r"\bcrash\b", text):
            self._later_work(pause, self._crash)
        elif re.search(r"\bask\b", text):
            self._later_work(pause, self._ask)
        elif kilobytes := _number("flood", text):
            self._later_work(pause, self._flood, int(kilobytes))
        else:
            self._later_work(pause, self._answer)

    def _later_work(self, delay: float, call: Callable[..., None], *args: Any) -> None:
        number = self._work_number

        def still() -> None:
            if self.work is not None and self._work_number == number:
                call(*args)

        self.later(delay, still)

    def _crash(self) -> None:
        self._end(None, 11)

    def _ask(self) -> None:
        self.dialog = "work"
        self.draw()

    def _flood(self, left: int) -> None:
        if left > 0:
            asked = "> " + (self.work or "").split("\n")[0]
            self.history = [asked, *(f"flood {left} {n} " + "x" * 40 for n in range(12))]
            self.write("".join(f"flood {left} {n} {'x' * 40}\r\n" for n in range(20)))
            self.draw()
            self._later_work(0.05, self._flood, left - 1)
        else:
            self._answer()

    def _answer(self) -> None:
        text = self.work or ""
        lines = int(_number("lines", text))
        said = f"You said: {text.split(chr(10))[0]}"
        self.history.append("● " + said)
        self.history += [f"  line {n}" for n in range(2, lines + 1)]
        whole = "\n".join([said, *(f"line {n}" for n in range(2, lines + 1))])
        self._ended(whole)

    def _ended(self, answer: str) -> None:
        if answer == "refused by a person":
            self.history.append("● " + answer + f": {token_of(self.work or '') or ''}")
            answer = f"refused by a person: {token_of(self.work or '') or ''}"
        self.work = None
        self.draw()
        self._report("Stop", {"answer": answer})

    def _stop(self) -> None:
        if self.work is None:
            return
        if self.tricks.get("stubborn"):
            self.tricks["stubborn"] -= 1
            return
        text, self.work = self.work, None
        self.interrupted()
        self.history.append("[stopped]")
        if self.tricks.get("restore"):
            self.draft = text

    def _report(self, event: str, payload: dict[str, Any]) -> None:
        """A hook reports, as well as it can."""
        if self.hooks is None:
            return
        how = self.tricks.get("hooks", "")
        at_ns, wall = int(self._machine.clock.monotonic() * 1e9), self._machine.clock.wall()
        content = json.dumps(
            {"event": event, "at_ns": at_ns, "wall": round(wall, 6), "payload": payload}, separators=(",", ":")
        )
        times = [self._rng.uniform(0.005, 0.05)]
        odd = self._rng.random() < 0.5
        if how == "late" and odd:
            times = [self._rng.uniform(0.5, 6.0)]
        elif how == "twice" and odd:
            times += [times[0] + self._rng.uniform(0.001, 4.0)]
        elif how == "never" and odd:
            times = []
        now = self._machine.clock.monotonic()
        if event != "UserPromptSubmit":
            times = [max(when, self._accepted_at - now + 0.001) for when in times]
        elif times:
            self._accepted_at = now + times[0]
        for when in times:
            self._machine.later(when, self._put, at_ns, content)

    def _put(self, at_ns: int, content: str) -> None:
        assert self.hooks is not None
        self._reports += 1
        folder = self.hooks / "new"
        if folder.is_dir():
            (folder / f"{at_ns:020d}-{self._keeper.program_pid + self._reports}.json").write_text(content)
            self._machine.poke(self._keeper.agent_id)


class Lines(Program):
    """A prompt, a line editor of its own, and what it says below."""

    question: str | None = None

    _prompting = False

    @property
    def foreground(self) -> tuple[bool, Word]:
        """Its line editor has the terminal while its prompt stands; a question is read in line mode."""
        if self._prompting and self.work is None:
            return False, "rests"
        return True, "works" if self.question is None else "reads"

    def begin(self) -> None:
        self.text = ""
        self._work_number = 0
        self.write("\x1b[?2004h")
        self.later(self.tricks.get("late", 0), self._prompt)

    def draw(self) -> None:
        """It prints, and draws nothing."""

    def _prompt(self) -> None:
        self._prompting = True
        self.write("dummy> " + self.text)

    def press(self, key: str) -> None:
        if key == "\x03":
            self._interrupt()
        elif self.question is not None:
            if key == "\r":
                said, self.text = self.text, ""
                self.question = None
                self.write("\r\n")
                self._said(f"answered {said}: {self.work}")
            elif key >= " ":
                self.text += key
                self.write(key)
        elif not self._prompting or self.work is not None:
            return
        elif key in "\r\n" and self._pasting:
            self.text += "\n"
            self.write("\r\ndummy| ")
        elif key == "\r":
            self._enter()
        elif key == "\x04" and not self.text:
            self._end(0, None)
        elif key == "\x15":
            self.text = ""
            self.write("\r\x1b[Kdummy> ")
        elif key >= " ":
            self.text += key
            self.write(key)

    def _enter(self) -> None:
        if self.tricks.get("swallow"):
            self.tricks["swallow"] -= 1
            return
        text, self.text = self.text, ""
        self.write("\r\n")
        if not text.strip():
            self._prompt()
            return
        self.say_submitted(text)
        self._prompting, self.work = False, text
        self._work_number += 1
        number = self._work_number

        def still(call: Callable[[], None]) -> Callable[[], None]:
            return lambda: call() if self.work is not None and self._work_number == number else None

        def ask() -> None:
            self.question = "Proceed? (y/n) "
            self.write(self.question)

        pause = (_number("delay", text) or 0.1) + self.tricks.get("sluggish", 0)
        if re.search(r"\bcrash\b", text):
            self.later(pause, still(lambda: self._end(None, 11)))
        elif re.search(r"\bask\b", text):
            self.later(pause, still(ask))
        else:
            for n in range(int(_number("flood", text))):
                self.later(pause / 2 + n * 0.01, still(lambda: self.write(f"flood {'y' * 900}\r\n")))
            self.later(pause, still(lambda: self._said(f"You said: {text}")))

    def _said(self, answer: str) -> None:
        self.write(answer.replace("\n", "\r\n") + "\r\n")
        self.work = None
        self._prompt()

    def _interrupt(self) -> None:
        if self.work is not None:
            if self.tricks.get("stubborn"):
                self.tricks["stubborn"] -= 1
                return
            self.interrupted()
            self.work = self.question = None
            self.text = ""
            self.write("^C\r\n[interrupted]\r\n")
            self._prompt()
        elif self._prompting:
            self.text = ""
            self.write("^C\r\n")
            self._prompt()
