"""A terminal program that plays every trick, as told on its command line; it logs what it received.

    python program.py LOG [JSON]

It shows what was said above a composer between two rules, as agent programs do. Every line of LOG is a JSON object:
`{"pasted": draft}`, `{"submitted": text}`, `{"key": text}` for what was pressed in a dialog, `{"interrupted": text}`. A
message is answered with `You said: …`; in it, `delay=S` is the time that takes, `lines=N` makes it N lines and `gaps=N`
N pieces with silence between them. `tools=a,-b,+c,?d,/path` are calls before that, drawn where they stand while they
run and when they have ended: `-` fails, `+` is over at once, of `?` no end is shown, and one that is a path runs until
there is such a file; `between=N` says N lines after each.

==============  ======================================================================================================
trick           what it does
==============  ======================================================================================================
late            the composer comes so many seconds after the start; what is typed before is lost
alternate       draws on the alternate screen
plain           does not switch bracketed paste on
slow            reads so many bytes at once, and then rests for a while
dialog          "start": asks before its composer comes; "paste": asks as soon as a paste has come in
unknown         "start" or "work": shows something there that nobody can read, until an x is pressed
stubborn        passes over so many keys in its dialog
blink           clears its screen so many times while its dialog is up, and draws it again some time later
stall           takes its time with the first paste: so many seconds in which it neither reads nor draws
freeze          stops itself when it has drawn the first paste
deface          prints a warning over its screen when it has drawn the first paste; a resize has it redrawn
compute         computes for so long when it reads the first Enter, then takes the message as often as that has come
hook            waits for so long for a process of its own group when it reads the first Enter, as for a person's hook
swallow         passes over so many Enters
newline         takes so many Enters for line breaks
boot            has started when the first Enter comes, which it passes over: it draws its composer empty, then with
                what stood there, and works for a moment
forget          loses so many pastes
deaf            takes nothing into its composer
restore         gives an interrupted message back into the composer
placeholder     shows a draft of several lines as one that names their number, and counts
sluggish        begins to work only so many seconds after Enter; till then there is nothing to stop
silent          shows no sign that it works
noise           rings the bell and changes its title all the time
status          reports its state by OSC 7501
bare            draws no composer at all
==============  ======================================================================================================
"""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
import tty

PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"
CTRL_Z = "\x1b[122;5u"
COMPOSER_ROWS = 8
FRAME_S = 0.02
SLOW_S = 0.01
BLINK_S = 0.1
BOOT_S = 0.3
GAP_S = 0.8
TOOL_S = 0.4
NOISE_S = 0.05
RIDDLE = ["The gate is closed.", "   left    right"]
QUESTION = ["Allow it?", "(1) Yes", "(2) No"]


class Program:
    def __init__(self, log, tricks):
        self.log_path = log
        self.tricks = tricks
        self.history = ["scripted program"]
        self.draft = ""
        self.pasting = False
        self.pending = ""
        self.dialog = None
        self.riddle = tricks.get("unknown") == "start"
        self.work = None
        self.taken = None
        self.ready_at = time.monotonic() + tricks.get("late", 0)
        self.left = {name: tricks.get(name, 0) for name in ("swallow", "newline", "blink", "stubborn", "forget")}
        self.booting = False
        self.ask_at = tricks.get("dialog")
        self.state = None
        self.noises = 0
        self.pastes = 0
        self.ended = False

    def log(self, **what):
        with open(self.log_path, "a") as file:
            file.write(json.dumps(what) + "\n")

    def write(self, text):
        data = text.encode()
        while data:
            data = data[os.write(1, data) :]

    # --- what is shown ---

    def draw(self):
        if self.riddle:
            rows = [*self.history, "", *RIDDLE]
        elif self.dialog is not None:
            rows = [*self.history, "", *QUESTION]
        elif time.monotonic() < self.ready_at:
            rows = ["starting"]
        else:
            width, _ = shutil.get_terminal_size()
            rule = "─" * (width - 1)
            typed = self.shown()
            busy = self.booting or (self.work is not None and not self.tricks.get("silent"))
            rows = [*self.history, "", " working (esc to stop)" if busy else ""]
            if not self.tricks.get("bare"):
                rows += [rule, "> " + typed[0], *("  " + line for line in typed[1:]), rule]
        height = shutil.get_terminal_size().lines
        self.write("\x1b[?2026h\x1b[H\x1b[J" + "\r\n".join(rows[-height + 1 :]) + "\x1b[?2026l")

    def shown(self):
        """The draft's rows."""
        lines = self.draft.split("\n")
        if self.tricks.get("placeholder") and len(lines) > 1:
            return ["[Pasted text #" + str(self.pastes) + " +" + str(len(lines)) + " lines]"]
        return lines[-COMPOSER_ROWS:]

    def report(self):
        state = "blocked:kind=permission" if self.dialog else "working" if self.work else "idle"
        if time.monotonic() < self.ready_at:
            return
        if self.tricks.get("status") and state != self.state:
            self.state = state
            self.write("\x1b]7501;state=" + state + ":app=scripted\x1b\\")

    # --- what is typed ---

    def feed(self, text):
        self.pending += text.replace(CTRL_Z, "\x1a")
        while self.pending:
            if self.pending[0] == "\x1b" and self.pending != "\x1b":
                mark = next((m for m in (PASTE_BEGIN, PASTE_END) if self.pending.startswith(m)), None)
                if mark is None and any(m.startswith(self.pending) for m in (PASTE_BEGIN, PASTE_END)):
                    return
                if mark is not None:
                    self.pending = self.pending[len(mark) :]
                    self.pasted(mark)
                    continue
            key, self.pending = self.pending[0], self.pending[1:]
            self.press(key)

    def pasted(self, mark):
        self.pasting = mark == PASTE_BEGIN
        self.pastes += self.pasting
        if self.pasting and self.pastes == 1:
            time.sleep(self.tricks.get("stall", 0))
        if not self.pasting:
            self.log(pasted=self.draft)
        if not self.pasting and self.left["forget"]:
            self.left["forget"] -= 1
            self.draft = ""
        if not self.pasting and self.ask_at == "paste":
            self.ask_at, self.dialog = None, "paste"

    def deface(self):
        if self.tricks.get("deface") and self.draft:
            self.tricks["deface"] = False
            self.write("\x1b[5;1H" + "\r\n\x1b[KWarning: a memory leak is possible, not that it matters here." * 40)

    def freeze(self):
        if self.tricks.get("freeze") and self.pastes == 1 and self.draft:
            self.tricks["freeze"] = False
            os.kill(os.getpid(), signal.SIGSTOP)

    def press(self, key):
        if time.monotonic() < self.ready_at:
            return
        if self.riddle:
            self.log(key=key)
            self.riddle = key != "x"
        elif self.dialog is not None:
            self.log(key=key)
            if self.left["stubborn"]:
                self.left["stubborn"] -= 1
            elif key in "12":
                self.history.append("answered " + key)
                self.dialog = None
        elif self.pasting:
            self.draft += "" if self.tricks.get("deaf") else key
        elif key == "\x1b":
            self.stop()
        elif key == "\r":
            self.enter()
        elif key == "\x1a":
            self.suspend()
        elif key == "\x15":
            self.draft = ""
        elif key == "\x04" and not self.draft:
            self.ended = True
        elif (key >= " " or key == "\n") and not self.tricks.get("deaf"):
            self.draft += key

    def suspend(self):
        """As programs do that leave the rest to a shell's `fg`; the kernel ignores SIGTSTP where there is no shell."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
        self.write("\x1b[2J\x1b[Hsuspended\r\n")
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.sigwait({signal.SIGCONT})
        self.log(continued=True)
        self.draw()

    def compute(self):
        """The key is read and not acted on; then all keys that came meanwhile are, as of one state."""
        seconds = self.tricks.pop("compute", 0)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass
        if waits := self.tricks.pop("hook", 0):
            hook = [sys.executable, "-S", "-c", f"import time; time.sleep({waits})"]
            subprocess.run(hook, start_new_session=True, check=True)
        if (seconds or waits) and select.select([0], [], [], 0)[0]:
            for _ in range(os.read(0, 4096).count(b"\r")):
                self.log(submitted=self.draft)

    def boot(self):
        draft, self.draft = self.draft, ""
        self.draw()
        time.sleep(BOOT_S)
        self.draft, self.booting = draft, True
        self.draw()
        time.sleep(BOOT_S)
        self.booting = False
        self.draw()

    def enter(self):
        if self.draft:
            self.compute()
        if self.draft and self.tricks.pop("boot", False):
            self.boot()
        elif self.left["swallow"]:
            self.left["swallow"] -= 1
        elif self.left["newline"]:
            self.left["newline"] -= 1
            self.draft += "\n"
        elif self.draft.strip() and self.work is None and self.taken is None:
            text, self.draft = self.draft.strip(), ""
            self.log(submitted=text)
            self.history.append("> " + text.split("\n")[0])
            self.taken = text, time.monotonic() + self.tricks.get("sluggish", 0)
            self.begin()

    def begin(self):
        if self.taken is not None and time.monotonic() >= self.taken[1]:
            self.work, self.taken = self.pieces(self.taken[0]), None
            self.riddle = self.tricks.pop("unknown", "") == "work"

    def stop(self):
        if self.work is None:
            return
        text = self.work[-1][2]
        self.log(interrupted=text)
        self.work = None
        self.history.append("[stopped]")
        if self.tricks.get("restore"):
            self.draft = text
            self.pastes += 1

    def pieces(self, text):
        """(when, what is said, message) of each piece of the answer."""
        delay = re.search(r"delay=([\d.]+)", text)
        gaps = re.search(r"gaps=(\d+)", text)
        begin = time.monotonic() + (float(delay[1]) if delay else 0.0)
        tools = self.tools(text, begin)
        begin += TOOL_S * len(tools)
        said = ["● You said: " + text.split("\n")[0]]
        lines = re.search(r"lines=(\d+)", text)
        said[0] += "".join(f"\n  line {n}" for n in range(2, int(lines[1]) + 1)) if lines else ""
        said += [f"  piece {n}" for n in range(2, int(gaps[1]) + 1)] if gaps else []
        return [*tools, *((begin + n * GAP_S, line, text) for n, line in enumerate(said))]

    def tools(self, text, begin):
        """The same of the calls: when one has ended, its row and what stands there then."""
        named = re.search(r"tools=(\S+)", text)
        between = re.search(r"between=(\d+)", text)
        pieces = []
        for call in named[1].split(",") if named else ():
            name = call.lstrip("+-?")
            runs, over = "◌ run " + name, ("✗ run " if call[0] == "-" else "✓ run ") + name
            at = begin + TOOL_S * len(pieces)
            if call[0] == "+":
                pieces.append((at, over, text))
            elif call[0] == "?":
                pieces.append((at, runs, text))
            else:
                pieces += [(at, runs, text), (name if name[0] == "/" else at + TOOL_S, (runs, over), text)]
            if between:
                pieces.append((at + TOOL_S, "\n".join(f"words {n}" for n in range(int(between[1]))), text))
        return pieces

    def due(self, when):
        return os.path.exists(when) if isinstance(when, str) else time.monotonic() >= when  # noqa: PTH110 - starts quickly

    def say(self, row):
        if isinstance(row, tuple):
            place = len(self.history) - 1 - self.history[::-1].index(row[0])
            self.history[place] = row[1]
        else:
            self.history += row.split("\n")

    def tick(self):
        if self.tricks.get("noise"):
            self.noises += 1
            self.write(f"\x07\x1b]2;{'⠂⠐'[self.noises % 2]} scripted {self.noises}\x07")
        self.begin()
        if self.dialog and self.left["blink"]:
            self.left["blink"] -= 1
            self.write("\x1b[2J\x1b[H")
            time.sleep(BLINK_S)
            self.draw()
            time.sleep(GAP_S)
            self.log(blinked=self.left["blink"])
        while self.work and not self.riddle and self.due(self.work[0][0]):
            self.say(self.work[0][1])
            self.work = self.work[1:] or None

    # --- life ---

    def run(self):
        saved = termios.tcgetattr(0)
        tty.setraw(0)
        self.write("\x1b[?1049h" if self.tricks.get("alternate") else "\x1b[2J")
        if not self.tricks.get("plain"):
            self.write("\x1b[?2004h")
        if self.ask_at == "start":
            self.ask_at, self.dialog = None, "start"
        try:
            self.loop()
        finally:
            self.write("\x1b[?2004l\x1b[?1049l\r\n")
            termios.tcsetattr(0, termios.TCSADRAIN, saved)

    def loop(self):
        shown = None
        while not self.ended:
            self.tick()
            self.report()
            now = (
                tuple(self.history),
                self.draft,
                self.dialog,
                self.riddle,
                bool(self.work),
                time.monotonic() < self.ready_at,
            )
            now += shutil.get_terminal_size()
            if now != shown:
                shown = now
                self.draw()
                self.freeze()
                self.deface()
            if select.select([0], [], [], NOISE_S if self.tricks.get("noise") else FRAME_S)[0]:
                data = os.read(0, self.tricks.get("slow", 65536))
                if not data:
                    return
                self.feed(data.decode("utf-8", "replace"))
                if self.tricks.get("slow"):
                    time.sleep(SLOW_S)


if __name__ == "__main__":
    Program(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}).run()
