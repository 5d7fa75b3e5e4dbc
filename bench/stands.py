"""How long the daemon's event loop stands in one go for 64 KiB of output of each kind, ordinary and hostile.

A program prints them one after the other, each as the answer to a message. (No questions to the terminal are among
them: their answers would be the next message.) A start-up file of Python's takes the CPU time of everything that the
daemon's loop runs, and tells the longest.

python -m bench stands
python -m bench.stands KIND ...
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import SMOKE, daemon, report
from tests.support.daemon import Daemon

SIZE = 64 * 1024
BAR_S = 0.005
SLOW = 12
"""Kinds that get a line each."""

SITE = """
import asyncio.events, os, time

run, folder, longest = asyncio.events.Handle._run, os.environ.get("LOOP_STANDS"), {}

def measured(handle):
    began = time.thread_time()
    run(handle)
    took = time.thread_time() - began
    if took > 0.001:
        with open(os.path.join(folder, "kind")) as file:
            kind = file.read()
        if kind and took > longest.get(kind, 0.0):
            longest[kind] = took
            with open(os.path.join(folder, kind), "w") as file:
                file.write(f"{took:.6f} {handle!r}")

if folder:
    asyncio.events.Handle._run = measured
"""

PRINTER = """
import os, sys
while True:
    print("$ ", end="", flush=True)
    with open(sys.stdin.readline().strip(), "rb") as file:
        left = file.read()
    while left:
        left = left[os.write(1, left):]
"""
CONFIG = f"""
[api]
listen = "127.0.0.1:0"
agent_ports = false
[agents.printer]
profile = "generic"
autostart = true
args = {json.dumps([sys.executable, "-S", "-c", PRINTER])}
"""

_CLUSTERS = {
    "emoji": "\U0001f600\U0001f680",
    "families": "\U0001f469\u200d\U0001f469\u200d\U0001f467 ",
    "joiners without end": "\U0001f469\u200d",
    "flags": "\U0001f1e9\U0001f1ea",
    "skin tones": "\U0001f44d\U0001f3fd",
    "keycaps": "1\ufe0f\u20e3",
    "Devanagari": "\u0915\u094d\u0937\u0924\u094d\u0930\u093f\u092f ",
    "Thai": "\u0e17\u0e35\u0e48\u0e19\u0e35\u0e48 ",
    "Hangul Jamo": "\u1112\u1161\u11ab\u1100\u1173\u11af",
    "accents": "e\u0301",
    "forty accents a letter": "a" + "\u0301\u0302\u0303\u0304" * 10,
    "prepended marks": "\u0600a",
    "accents and movements": "a\u0301\x1b[H",
    "accents and colours": "a\x1b[31m\u0301",
}
_OTHERS = {
    "text": "the quick brown fox jumps over the lazy dog\n",
    "a line without end": "x",
    "wide text": "漢字仮名交じり文 한국어\n",
    "colours": "\x1b[38;2;1;2;3ma",
    "titles (OSC 0)": "\x1b]0;t\x07",
    "links (OSC 8)": "\x1b]8;;http://h/x\x1b\\a\x1b]8;;\x1b\\",
    "progress (OSC 9;4)": "\x1b]9;4;1;50\x07",
    "sixel": "\x1bPq#1!9~-$\x1b\\",
    "graphics (APC)": "\x1b_Ga=t,f=24,s=1,v=1,i=1;AAAA\x1b\\",
    "resets": "\x1bc",
    "repeats (REP)": "a\x1b[65535b",
    "erasing": "\x1b[2J",
    "scrolling": "\x1b[999S",
    "a scrolling region": "\x1b[5;20r\x1b[20;1Habc\n",
    "the other screen": "\x1b[?1049ha\x1b[?1049lb",
    "strings that never end": "\x1bP",
}
KINDS = {
    **_CLUSTERS,
    **{f"{kind} (mode 2027)": text for kind, text in _CLUSTERS.items()},
    **{f"{kind} (no wrapping)": text for kind, text in _CLUSTERS.items() if kind in ("accents", "joiners without end")},
    **{f"{kind} (margins)": text for kind, text in _CLUSTERS.items() if kind in ("accents", "joiners without end")},
    **_OTHERS,
    "a graphic of 64 KiB": "#1!9~-$",
}
_BEFORE = {"2027)": "\x1b[?2027h", "wrapping)": "\x1b[?7l\x1b[?2027h", "margins)": "\x1b[?69h", "KiB": "\x1bPq"}


def main(*wanted: str) -> None:
    kinds = list(wanted) or list(KINDS)
    if os.environ.get(SMOKE):
        kinds = ["text", "resets"]
    with tempfile.TemporaryDirectory(prefix="synapsed-bench-") as folder:
        stands = Path(folder)
        (stands / "kind").write_text("start")
        (stands / "sitecustomize.py").write_text(SITE)
        with daemon(CONFIG, environ={"PYTHONPATH": folder, "LOOP_STANDS": folder}) as running:
            running.ready("printer")
            took = {kind: stand(running, stands, kind) for kind in kinds}
    ordered = sorted(took.items(), key=lambda entry: -entry[1][0])
    for kind, (longest, what, turn) in ordered[: len(wanted) or SLOW]:
        print(f"      {kind:<40} {longest * 1e3:6.1f} ms (the whole turn {turn:.1f} s): {what[:110]}", flush=True)
    longest = ordered[0][1][0]
    over = sum(longest > BAR_S for longest, _, _ in took.values())
    report(
        f"64 KiB of output, {len(took)} kinds: the loop stands in one go",
        f"{longest * 1e3:.1f} ms at the longest, beyond the bar for {over}",
        "≤ 5 ms",
        held=not over,
    )


def stand(running: Daemon, folder: Path, kind: str) -> tuple[float, str, float]:
    """Seconds of the longest stand while `kind` was printed, what ran then, and the seconds of the whole turn."""
    before = next((text for end, text in _BEFORE.items() if kind.endswith(end)), "")
    unit = KINDS[kind].encode()
    output = before.encode() + unit * (SIZE // len(unit)) + b"\x1b\\\x1bc\n"
    (folder / "output").write_bytes(output)
    (folder / "kind").write_text(kind.replace("/", "-"))
    began = time.monotonic()
    running.ended(running.send(str(folder / "output"), "printer"))
    running.ready("printer")
    turn = time.monotonic() - began
    (folder / "kind").write_text("between")
    told = folder / kind.replace("/", "-")
    longest, _, what = told.read_text().partition(" ") if told.exists() else ("0", "", "")
    return float(longest), what, turn


if __name__ == "__main__":
    main(*sys.argv[1:])
