"""Terminal output to try emulators with: real recordings, and made ones for what those do not show."""

import re
from dataclasses import dataclass
from pathlib import Path

RECORDINGS = Path(__file__).parent.parent / "recordings"

_SIZE = re.compile(r"-(\d+)x(\d+)\.raw$")
_DEFAULT_SIZE = (120, 40)
"""What agent programs are recorded at."""


@dataclass(frozen=True)
class Stream:
    """What a program wrote to a terminal of `cols` by `rows`."""

    name: str
    cols: int
    rows: int
    data: bytes

    def __str__(self) -> str:
        return self.name

    @property
    def recording(self) -> str:
        return self.name.removesuffix(".raw")


def recordings() -> list[Stream]:
    """Every recording in the repository; the size is in its name, or the one agents are recorded at."""
    streams = []
    for path in sorted(RECORDINGS.rglob("*.raw")):
        size = _SIZE.search(path.name)
        cols, rows = (int(size[1]), int(size[2])) if size else _DEFAULT_SIZE
        streams.append(Stream(str(path.relative_to(RECORDINGS)), cols, rows, path.read_bytes()))
    return streams


def made() -> list[Stream]:
    """Output made up to reach what recordings seldom do."""
    return [Stream(name, 40, 10, data) for name, data in sorted(_MADE.items())]


_ATTRIBUTES = b"".join(b"\x1b[0;%dm%d \x1b[m" % (code, code) for code in (1, 2, 3, 4, 5, 7, 8, 9, 21, 53))
_PALETTE = b"".join(b"\x1b[38;5;%dm#\x1b[48;5;%dm \x1b[m" % (index, 255 - index) for index in range(256))

_MADE = {
    "attributes": _ATTRIBUTES + b"\x1b[4:3;58:5:9mcurly\x1b[m \x1b[4:2mdouble\x1b[m",
    "palette": _PALETTE,
    "true colour": b"".join(b"\x1b[48;2;%d;%d;%dm " % (i * 2, 255 - i * 2, i) for i in range(120)) + b"\x1b[m",
    "erased with colour": b"\x1b[44m\x1b[2J\x1b[3;5Htext\x1b[41m\x1b[K\x1b[m\x1b[9;1H\x1b[42m\x1b[2K",
    "wide": "漢字 and ✳ ⠂ and 👍 and e\u0301 é\r\n".encode() + "漢".encode() * 45 + b"\r\nend",
    "wrapped": b"one line that is longer than the terminal is wide, much longer, and \x1b[31mcoloured\x1b[m\r\n"
    + b"x" * 40
    + b"\r\n"
    + b"y" * 41
    + b"\r\n",
    "waiting to wrap": b"z" * 40,
    "waiting to wrap, coloured": b"\x1b[33m" + b"z" * 40 + b"\x1b[32m\x1b[?2004h",
    "wrapped at a space": b"a" * 39 + b" " + b"b" * 3,
    "scrolled": b"".join(b"line %d\r\n" % index for index in range(50)),
    "scrolling region": b"top\x1b[10;1Hbottom\x1b[3;8r\x1b[8;1H" + b"".join(b"in %d\n\r" % i for i in range(9)),
    "origin mode": b"\x1b[3;8r\x1b[?6h\x1b[2;5Hhere",
    "alternate over main": b"main text\r\nsecond\x1b[?1049h\x1b[2J\x1b[5;5H\x1b[7malternate\x1b[m\x1b[?25l",
    "back from the alternate": b"main\r\n\x1b[?1049h\x1b[Halt\x1b[?1049l$ ",
    "modes": b"\x1b[?1h\x1b=\x1b[?2004h\x1b[?1004h\x1b[?1002h\x1b[?1006h\x1b]2;a title\x07> ",
    "colours set": b"\x1b]4;1;#102030\x07\x1b]10;#ffeedd\x07\x1b]11;#001122\x07\x1b[31mred\x1b[m",
    "line drawing": b"\x1b(0lqqqk\r\nx   x\r\nmqqqj\x1b(B text \x1b(0",
    "tab stops": b"\x1b[3g\x1b[1;6H\x1bH\x1b[1;20H\x1bH\r\ta\tb",
    "insert mode": b"abcdef\x1b[1;3H\x1b[4h",
    "keyboard flags": b"\x1b[>5u\x1b[>4;2m> ",
    "progress": b"".join(b"\r%3d%% %s" % (n, b"#" * (n // 3)) for n in range(0, 101, 5)),
    "synchronized": b"\x1b[?2026h\x1b[2J\x1b[Hhalf a frame",
    "cursor shape": b"\x1b[5 q\x1b[?25l",
    "invalid UTF-8": b"\xff\xfe\xc3 \xe2\x82 \x1b]2;\xff\x07\x1b]7;file://\xff\x07\x1b]8;;\xff\x07link\x1b]8;;\x07",
    "132 columns": b"\x1b[?40h\x1b[?3hstill forty",
    "132 columns, in other ways": b"\x1b[?040;3hstill\x1b[?40s\x1b[?40r\x1b[?3h forty" + b"x" * 50,
    "a wide one that did not fit": ("a" * 39 + "漢\x1b[41m\r\n" + "b" * 39 + "字\x1b[m").encode(),
    "its place written over": ("a" * 39 + "漢\x1b[1;40Hz\x1b[2;1Hy").encode(),
    "waiting at a margin": b"\x1b[?69h\x1b[5;20s\x1b[2;5H\x1b[7m" + b"m" * 16,
    "several in one cell": "e\u0301\u0323x n\u0303".encode(),
    "blanks of a colour": b"\x1b[48;2;255;255;216m\x1b[K\r\n\x1b[45mx\x1b[K\r\n\x1b[m\x1b[44m\x1b[2J",
    "reset": b"\x1b[?2004h\x1b[31mx\x1bcy",
}
