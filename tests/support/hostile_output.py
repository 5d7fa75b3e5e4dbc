"""What a program may write to its terminal: text of many kinds, sequences, and what a hostile one would send."""

import random

TEXTS = [
    "plain words ", "漢字かな交じり", "e\u0301a\u0308n\u0303", "👩‍👩‍👧‍👦👍🏽🇩🇪✈️", "שלום עולם مرحبا",
    "ทดสอบ नमस्ते", "─│┌┐└┘█▓", "\u200b\u200d\ufeff", "\u202eturned\u202c", "x" * 200, "\t", "\r\n", "\n", "\r",
    "\b", "\x07", "\x0e\x0f",
]  # fmt: skip
SEQUENCES = [
    "\x1b[{a};{b}H", "\x1b[{a}A", "\x1b[{b}B", "\x1b[{b}C", "\x1b[{a}D", "\x1b[{m}J", "\x1b[{m}K", "\x1b[{a}L",
    "\x1b[{a}M", "\x1b[{a}P", "\x1b[{a}@", "\x1b[{a}X", "\x1b[{a}S", "\x1b[{a}T", "\x1b[3{m}m", "\x1b[4{m};1m",
    "\x1b[38;2;{b};{a};9m", "\x1b[7m", "\x1b[m", "\x1b[{m};{b}r", "\x1b[r", "\x1bM", "\x1bD", "\x1b7", "\x1b8",
    "\x1b[?7l", "\x1b[?7h", "\x1b[?6h", "\x1b[?6l", "\x1b[?25l", "\x1b[?25h", "\x1b[?1049h", "\x1b[?1049l",
    "\x1b[?2026h", "\x1b[?2026l", "\x1b[4h", "\x1b[4l", "\x1b#8", "\x1b(0", "\x1b(B", "\x1b[{a} q",
    "\x1b[?1000h", "\x1b[?1000l", "r\x1b[{a}b",
]  # fmt: skip
HOSTILE = [
    "\x1b]0;a title\x07", "\x1b]52;c;aGVsbG8=\x07", "\x1b]8;;file:///etc/passwd\x07link\x1b]8;;\x07",
    "\x1b[99999999C", "\x1b[{b};{a};{b};{a};{b};{a};{b}m", "\x1bP+q544e\x1b\\", "\x1b[21t", "\x1b]4;1;?\x07",
    "\x1b]104\x07", "\x1b[c", "\x1b[6n", "\x1b[?69h\x1b[3;20s", "\x1b[?69l", "\x1bc", "\x1b[!p", "\x1b[8;5;5t",
    "\x1b]1337;File=:AAAA\x07", "\x1b[?3h", "\x1b[?3l", "\x1bPq#0;2;0;0;0#0~~@@\x1b\\", "\x1b_Gf=24;AAAA\x1b\\",
    "\x9b31m", "\x1b[200~", "\x1b]unended", "\x1b[12",
]  # fmt: skip
OVER = "\x18\x1b\\\x1b[?2026l\x1b[?1049l\x1b[?69l\x1b[!p\x1b(B\x0f\x1b[r\x1b[m\x1b[?7h\x1b[?25h"
"""Ends what a stream may have left open, and nothing else."""


def stream(seed: int, number: int, row: int) -> bytes:
    """A stream of `number` pieces, the same for the same seed, with a mark on a `row` at its end."""
    chance = random.Random(seed)
    pieces = []
    for _ in range(number):
        kind = chance.choices((TEXTS, SEQUENCES, HOSTILE), (5, 5, 1))[0]
        numbers = {"a": chance.randint(0, 30), "b": chance.randint(0, 90), "m": chance.randint(0, 3)}
        pieces.append(chance.choice(kind).format(**numbers))
    whole = "".join(pieces).encode("utf-8", "surrogatepass")
    return whole + f"{OVER}\x1b[{row};1H\x1b[2K\x1b[3{seed % 7 + 1}mmark-{seed}.\x1b[m".encode()
