"""Hostile output for the emulator behind `Screen`, in processes of its own: whatever ends one, or keeps it, is kept.

    python -m tests.faults.emulator_fuzz [--megabytes 10] [--seed N] [--keep DIRECTORY]

Mutated recordings, combining marks, OSC, DCS, sixel, modes and movements, on screens of every size, resized in between,
drawn into a second screen and read. A case is written down before it is tried, so that one that ends the process is on
the disk; it is kept as JSON (size, steps) in the directory, and `--replay FILE` tries it again. `inputs` has those that
once ended an emulator, packed (`.xz`).
"""

import argparse
import base64
import json
import lzma
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synapsed.terminal.clusters import CLUSTER_MAX
from synapsed.terminal.emulated_screen import DEFAULT_SCROLLBACK_LINES, Screen

__all__ = ["Found", "fuzz"]

CASE_S = 20.0
"""A case takes milliseconds of CPU time, the dearest a second; one that takes so long does not end. By the clock on the
wall a machine with much to do would end good ones."""

KEPT = Path(__file__).with_name("found")

RECORDINGS = Path(__file__).parents[1] / "recordings"

_MARKS = ["\u0301", "\u200b", "\ufeff", "\u200d", "\ufe0f", "\u0903", "\u094d", "\u0915", "\u1100", "\u1161", "\u11a8"]
_WIDE = ["漢", "字", "가", "\U0001f469", "\U0001f1e9", "\U0001f3fb", "\u0600", "\u3164", "\U000e0041", "\uffff"]
_FINAL = b"@ABCDEFGHIJKLMPSTXZ`abcdefghijklmnqrstux"
_MODES = (
    1,
    3,
    4,
    5,
    6,
    7,
    12,
    20,
    25,
    40,
    45,
    47,
    66,
    69,
    1000,
    1006,
    1045,
    1047,
    1048,
    1049,
    2004,
    2026,
    2027,
    2031,
    2048,
)


def _marks(rng: random.Random) -> bytes:
    base = rng.choice(["a", "", *_WIDE])
    return (base + "".join(rng.choices(rng.sample(_MARKS + _WIDE, 3), k=rng.choice([1, 5, 40, 300, 2000])))).encode()


def _control(rng: random.Random) -> bytes:
    count = rng.choice([0, 1, 1, 2, 3, 40])
    numbers = (rng.choice([0, 1, 2, 3, 5, 8, 30, 99, 255, 1000, 65535, 65536, 2**31, 2**64]) for _ in range(count))
    head = rng.choice([b"", b"", b"", b"?", b">", b"="])
    middle = rng.choice([b"", b"", b"", b" ", b"$", b"'", b"!", b'"', b"*"])
    return (
        b"\x1b["
        + head
        + rng.choice([b";", b":"]).join(b"%d" % n for n in numbers)
        + middle
        + bytes([rng.choice(_FINAL)])
    )


def _mode(rng: random.Random) -> bytes:
    return b"\x1b[?%d%c" % (rng.choice(_MODES), rng.choice(b"hlsr"))


def _string(rng: random.Random) -> bytes:
    body = rng.choice(
        [
            b"8;id=%d;http://h/%b" % (rng.randrange(9), b"x" * rng.choice([1, 100, 5000])),
            b"4;%d;rgb:%02x/00/ff" % (rng.randrange(300), rng.randrange(256)),
            b"0;" + _marks(rng),
            b"52;c;" + b"QUJD" * rng.choice([1, 1000]),
            b"7;file:///\xff\xfe",
            b"133;%c" % rng.choice(b"ABCD"),
            b"1337;File=inline=1:" + b"QUJD" * 50,
            b"66;s=2;x",
            rng.randbytes(rng.choice([1, 50, 3000])),
        ]
    )
    opened = rng.choice([b"]", b"]", b"]", b"P", b"_G", b"^", b"X", b"P0;1;0q", b"P+q", b"P$q"])
    if opened == b"P0;1;0q":
        body = b'"1;1;%d;%d#0;2;0;0;0' % (rng.choice([1, 99999]), rng.choice([1, 99999])) + b"#1!%d~-$" % rng.choice(
            [1, 9, 10**9]
        )
    if opened == b"_G":
        body = (
            b"a=%c,f=%d,s=%d,v=%d,i=1;" % (rng.choice(b"tTpdq"), rng.choice([24, 32, 100]), 10**6, 10**6) + b"AAAA" * 9
        )
    return b"\x1b" + opened + body + rng.choice([b"\x07", b"\x1b\\", b"\x18", b""])


def _simple(rng: random.Random) -> bytes:
    escapes = [
        b"7",
        b"8",
        b"c",
        b"D",
        b"E",
        b"H",
        b"M",
        b"N",
        b"O",
        b"=",
        b">",
        b"#8",
        b"(0",
        b"(B",
        b")0",
        b"%G",
        b"n",
        b"~",
    ]
    plain = [
        b"\r\n",
        b"\b",
        b"\t",
        b"\x0e",
        b"\x0f",
        b"\x9b",
        b"\xff",
        b"\xc2",
        b"\xe2\x80",
        b"text that goes on ",
        b" " * 50,
    ]
    return b"\x1b" + rng.choice(escapes) if rng.random() < 0.5 else rng.choice(plain)


def _mutated(rng: random.Random, recording: bytes) -> bytes:
    start = rng.randrange(max(1, len(recording)))
    piece = bytearray(recording[start : start + rng.choice([50, 500, 5000])])
    for _ in range(rng.choice([0, 1, 5, 50])):
        if piece:
            place = rng.randrange(len(piece))
            what = rng.random()
            if what < 0.4:
                piece[place] = rng.randrange(256)
            elif what < 0.6:
                del piece[place : place + rng.randrange(20)]
            else:
                piece[place:place] = rng.choice([_control, _marks, _simple])(rng)
    return bytes(piece)


def _size(rng: random.Random) -> tuple[int, int]:
    return rng.choice(
        [
            (1, 1),
            (1, 24),
            (80, 1),
            (2, 2),
            (80, 24),
            (120, 40),
            (3, 500),
            (1000, 3),
            (rng.randint(1, 300), rng.randint(1, 99)),
        ]
    )


def make_case(rng: random.Random, recordings: list[bytes]) -> dict[str, Any]:
    """The size of the screen, and what is done to it: output, new sizes, looks, a redraw into another one."""
    steps: list[list[Any]] = []
    for _ in range(rng.randint(1, 30)):
        what = rng.random()
        if what < 0.12:
            steps.append(["resize", *_size(rng)])
        elif what < 0.2:
            steps.append([rng.choice(["look", "redraw", "text"])])
        else:
            kinds = [_marks, _control, _mode, _string, _simple]
            parts = [rng.choice(kinds)(rng) for _ in range(rng.choice([1, 10, 60]))]
            data = _mutated(rng, rng.choice(recordings)) if what < 0.5 else b"".join(parts)
            steps.append(["feed", base64.b64encode(data * rng.choice([1, 1, 1, 20])).decode()])
    return {"size": _size(rng), "steps": steps}


def try_case(case: dict[str, Any]) -> int:
    """Do it; the bytes that were fed. Raises AssertionError where a cell holds more than it may."""
    screen = Screen(*case["size"], scrollback_lines=case.get("scrollback", DEFAULT_SCROLLBACK_LINES))
    fed = 0
    for name, *given in [*case["steps"], ["redraw"], ["text"], ["resize", 7, 5], ["look"]]:
        if name == "feed":
            data = base64.b64decode(given[0])
            fed += len(data)
            screen.feed(data)
        elif name == "resize":
            screen.resize(*given)
        elif name == "text":
            screen.text(scrollback=True)
        elif name == "redraw":
            shown = screen.snapshot()
            copy = Screen(shown.cols, shown.rows)
            copy.feed(screen.redraw(scrollback=True))
            copy.snapshot()
        else:
            rows = range(screen.snapshot().rows)
            longest = max((len(cell.text) for row in rows for cell in screen.row_cells(row)), default=0)
            assert longest <= 2 * CLUSTER_MAX + 2, f"{longest} characters in a cell"
    return fed


def _cases(seed: int) -> Iterator[dict[str, Any]]:
    recordings = [path.read_bytes() for path in sorted(RECORDINGS.rglob("*.raw"))] or [b"no recordings\r\n"]
    rng = random.Random(seed)
    while True:
        yield make_case(rng, recordings)


def limit_cpu(seconds: float) -> None:
    """End this process when it has used so much CPU time from now on; 0 for no limit."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # the emulator is not interrupted by a handler in Python
    signal.setitimer(signal.ITIMER_PROF, seconds)


def work(seed: int, size: int, note: Path) -> None:
    """In a child: cases until `size` bytes were fed. `note` has the one that is being tried, beside what was fed."""
    fed = 0
    for case in _cases(seed):
        note.write_text(json.dumps({"fed": fed, **case}))
        limit_cpu(CASE_S)
        fed += try_case(case)
        limit_cpu(0)
        if fed >= size:
            break
    note.write_text(json.dumps({"fed": fed}))


@dataclass
class Found:
    """What a run came to."""

    seed: int
    fed: int = 0
    seconds: float = 0.0
    kept: list[Path] = field(default_factory=list)


def fuzz(seed: int, size: int, keep: Path = KEPT) -> Found:
    """Feed `size` bytes, in as many processes as it takes; cases that ended one are in `keep` afterwards."""
    found, began = Found(seed), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "case.json"
        while found.fed < size:
            command = [sys.executable, "-m", "tests.faults.emulator_fuzz"]
            code = subprocess.run(
                [*command, "--work", str(note), "--seed", str(seed), "--bytes", str(size - found.fed)], check=False
            ).returncode
            case = json.loads(note.read_text())
            found.fed += case.pop("fed")
            if code:
                keep.mkdir(exist_ok=True)
                path = keep / f"seed-{seed}-code{code}.json"
                path.write_text(json.dumps(case))
                found.kept.append(path)
                if len(found.kept) >= 5:
                    break
            seed += 1
    found.seconds = time.monotonic() - began
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--keep", type=Path, default=KEPT)
    parser.add_argument("--replay", type=Path, help="try one case that was kept")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--bytes", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replay is not None:
        packed = options.replay.read_bytes()
        try_case(json.loads(lzma.decompress(packed) if options.replay.suffix == ".xz" else packed))
    elif options.work is not None:
        work(options.seed, options.bytes, options.work)
    else:
        found = fuzz(options.seed, int(options.megabytes * 1_000_000), options.keep)
        print(f"seed {found.seed}: {found.fed / 1e6:.1f} MB in {found.seconds:.0f} s, {len(found.kept)} kept")
        print(*found.kept, sep="\n")
        return bool(found.kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
