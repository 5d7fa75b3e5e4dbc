"""A scripted agent: a line-oriented program with a prompt, that answers deterministically. For demos and tests.

    python -S -E -I examples/dummy_agent.py

Every line of a message is answered in order; all lines that are no directive are answered together, by
`You said: <them>`. A sender's mark (`[A2A:…]`, `[from …]`) in front is passed over.

    echo TEXT, reverse TEXT, count N, lines N       say TEXT, its reverse, `1 2 … N`, N numbered lines
    sleep S, busy S                                 be silent, or show progress, for S seconds
    until FILE                                      show progress until there is such a file
    ask y/n, ask 1/2/3, ask menu, ask password      ask a person, and say what was answered
    clock                                           say when the message's first key came and when this is said
    fail TEXT                                       say `!! TEXT`, as a program does that gave up
    exit N, crash                                   end, with that code or by a signal

Ctrl-C interrupts the answer, Ctrl-D at the prompt ends the program. A bracketed paste may have several lines; typed
line by line each line is a message. Standard library only, and little of it: it starts in the time of the interpreter.
"""

import codecs
import os
import select
import signal
import sys
import termios
import time

PROMPT = "dummy> "
MORE = "dummy| "
PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"
STEP_SECONDS = 0.1


class Ended(Exception):
    """The other side closed the input."""


class Terminal:
    """Input by lines, with an editor of its own: the kernel's would cut lines at 4,095 bytes and know no pastes."""

    def __init__(self) -> None:
        self.tty = os.isatty(0)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._saved = termios.tcgetattr(0) if self.tty else None
        self.began = 0.0
        """When the first key of the message came, Unix seconds."""

    def __enter__(self) -> "Terminal":
        if self._saved is not None:
            mode = termios.tcgetattr(0)
            mode[3] &= ~(termios.ICANON | termios.ECHO)  # ISIG stays: Ctrl-C is a signal
            termios.tcsetattr(0, termios.TCSADRAIN, mode)
            self.write("\x1b[?2004h")
        return self

    def __exit__(self, *_: object) -> None:
        if self._saved is not None:
            self.write("\x1b[?2004l")
            termios.tcsetattr(0, termios.TCSADRAIN, self._saved)

    def write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(1, data) :]

    def read(self, prompt: str, *, echo: bool = True) -> str:
        """A message: a line, or a paste and what is typed around it, up to Enter. Ended at the end of input."""
        self.write(prompt)
        self.began = 0.0
        text, pasting = "", False
        while True:
            key = self._key()
            if key in (PASTE_BEGIN, PASTE_END):
                pasting = key == PASTE_BEGIN
            elif key in "\r\n" and not pasting:
                self.write("\n")
                return text
            elif key in "\r\n":
                text += "\n"
                self._echo("\n" + MORE, echo)
            elif key == "\x04" and not text:
                raise Ended
            elif key in "\x7f\b":
                if text and text[-1] != "\n":
                    self._echo("\b \b" * (2 if ord(text[-1]) >= 0x1100 else 1), echo)
                    text = text[:-1]
            elif key == "\x15":
                text = ""
                self._echo("\r\x1b[K" + prompt, echo)
            elif key >= " " or key == "\t":
                text += key
                self._echo(key, echo)

    def _echo(self, text: str, echo: bool) -> None:
        if echo and self.tty:
            self.write(text)

    def _key(self) -> str:
        """The next character, or a whole escape sequence."""
        while not self._pending:
            self._fill()
        if not self._pending.startswith("\x1b"):
            key, self._pending = self._pending[0], self._pending[1:]
            return key
        end = self._escape_end()
        while end is None and select.select([0], [], [], STEP_SECONDS)[0]:
            self._fill()
            end = self._escape_end()
        key, self._pending = self._pending[: end or 1], self._pending[end or 1 :]
        return key

    def _escape_end(self) -> int | None:
        """Where the escape sequence that the pending input begins with is over; None while it is not."""
        text = self._pending
        if len(text) < 2:
            return None
        if text[1] != "[":
            return 1 if text[1] == "\x1b" else 2
        return next((n + 1 for n in range(2, len(text)) if "@" <= text[n] <= "~"), None)

    def _fill(self) -> None:
        data = os.read(0, 65536)
        self.began = self.began or time.time()
        if not data and (self.tty or not self._pending):
            raise Ended
        self._pending += self._decoder.decode(data)


def answer(terminal: Terminal, message: str) -> None:
    """Everything that is said to `message`. KeyboardInterrupt on Ctrl-C."""
    plain = []
    for line in without_mark(message).split("\n"):
        word, _, rest = line.strip().partition(" ")
        directive = DIRECTIVES.get(word)
        if directive is None:
            plain.append(line)
        else:
            directive(terminal, rest.strip())
    if any(line.strip() for line in plain):
        terminal.write("You said: " + "\n".join(plain).strip() + "\n")


def without_mark(message: str) -> str:
    for mark in ("[A2A:", "[from "):
        if message.startswith(mark) and "]" in message:
            return message.partition("]")[2].lstrip()
    return message


def number(text: str, default: float) -> float:
    try:
        return float(text)
    except ValueError:
        return default


def say_echo(terminal: Terminal, text: str) -> None:
    terminal.write(text + "\n")


def say_reverse(terminal: Terminal, text: str) -> None:
    terminal.write(text[::-1] + "\n")


def say_count(terminal: Terminal, text: str) -> None:
    terminal.write(" ".join(str(n) for n in range(1, int(number(text, 10)) + 1)) + "\n")


def say_lines(terminal: Terminal, text: str) -> None:
    terminal.write("".join(f"line {n}\n" for n in range(1, int(number(text, 10)) + 1)))


def sleep(terminal: Terminal, text: str) -> None:
    seconds = number(text, 1)
    time.sleep(seconds)
    terminal.write(f"Slept {seconds:g} s.\n")


def be_busy(terminal: Terminal, text: str) -> None:
    seconds = number(text, 1)
    begin = time.monotonic()
    while (now := time.monotonic() - begin) < seconds:
        show_progress(terminal, now, min(STEP_SECONDS, seconds - now))
    terminal.write(f"\r\x1b[KBusy for {seconds:g} s.\n")


def be_busy_until(terminal: Terminal, text: str) -> None:
    begin = time.monotonic()
    while not os.path.exists(text):  # noqa: PTH110 - pathlib takes longer to load than all the rest
        show_progress(terminal, time.monotonic() - begin, STEP_SECONDS)
    terminal.write("\r\x1b[KIt is there.\n")


def show_progress(terminal: Terminal, now: float, pause: float) -> None:
    terminal.write(f"\r\x1b[Kworking {now:.1f} s")
    time.sleep(pause)


def ask(terminal: Terminal, text: str) -> None:
    if text == "password":
        given = terminal.read("Password: ", echo=False)
        terminal.write(f"A password of {len(given)} characters.\n")
        return
    if text == "menu":
        question = "1. Tea\n2. Coffee\n3. Water\nChoose a number: "
    elif text in ("", "y/n"):
        question = "Proceed? (y/n) "
    else:
        question = f"Which one [{text}]: "
    terminal.write(f"Answered: {terminal.read(question)}\n")


def say_clock(terminal: Terminal, text: str) -> None:
    terminal.write(f"{terminal.began:.6f} {time.time():.6f}\n")


def fail(terminal: Terminal, text: str) -> None:
    terminal.write(f"!! {text or 'failed'}\n")


def leave(terminal: Terminal, text: str) -> None:
    terminal.__exit__()
    os._exit(int(number(text, 0)) & 0xFF)


def crash(terminal: Terminal, text: str) -> None:
    terminal.__exit__()
    os.kill(os.getpid(), signal.SIGKILL)


DIRECTIVES = {
    "echo": say_echo,
    "reverse": say_reverse,
    "count": say_count,
    "lines": say_lines,
    "sleep": sleep,
    "busy": be_busy,
    "until": be_busy_until,
    "ask": ask,
    "clock": say_clock,
    "fail": fail,
    "exit": leave,
    "crash": crash,
}


def main() -> int:
    with Terminal() as terminal:
        terminal.write("dummy agent; Ctrl-D ends it\n")
        while True:
            try:
                message = terminal.read(PROMPT)
                if message.strip():
                    answer(terminal, message)
            except KeyboardInterrupt:
                terminal.write("\n[interrupted]\n")
            except Ended:
                terminal.write("\n")
                return 0


if __name__ == "__main__":
    sys.exit(main())
