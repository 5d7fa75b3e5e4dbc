"""Limits the number of characters in one cell, before the emulator gets them.

Characters without a width are appended to the cell before the cursor, without a limit; the emulator corrupts its memory
at some hundreds in one cell, and never ends when such a cell is wrapped again (docs/adr/0001-terminal-emulator.md).
With grapheme clustering (mode 2027) characters that have a width are appended too, if Unicode joins them to that cell's
text.

The characters of a cell are counted in the stream: from a character that begins a cell, through the characters that
join it and sequences that only change the pen. After anything else (a movement, an erasure, a line break) the text
before the cursor is unknown, and characters that would be appended there are left out, until the next character begins
a cell.
"""

import re
from collections.abc import Iterator

from synapsed.shared.regex import regex

CLUSTER_MAX = 64
"""Characters that may join another in its cell. Unicode's stream-safe text has 30 at the most (UAX 15), the longest
emoji ten; the emulator's memory stays sound with more than 200."""

# Characters that take no column: Mn, Me, most of Cf, conjoining vowels and finals, default ignorable ones.
_ZERO_RANGES = (
    "300-36f 483-489 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7-5c9 610-61a 61c 64b-65f 670 6d6-6dc 6df-6e4 6e7-6e8 6ea-6ed "
    "711 730-74a 7a6-7b0 7eb-7f3 7fd 816-819 81b-823 825-827 829-82d 859-85b 897-89f 8ca-8e1 8e3-902 93a 93c "
    "941-948 94d 951-957 962-963 981 9bc 9c1-9c4 9cd 9e2-9e3 9fe-a02 a3c a41-a51 a70-a71 a75 a81-a82 abc ac1-ac8 "
    "acd ae2-ae3 afa-b01 b3c b3f b41-b44 b4d-b56 b62-b63 b82 bc0 bcd c00 c04 c3c c3e-c40 c46-c56 c62-c63 c81 cbc "
    "cbf cc6 ccc-ccd ce2-ce3 d00-d01 d3b-d3c d41-d44 d4d d62-d63 d81 dca dd2-dd6 e31 e34-e3a e47-e4e eb1 eb4-ebc "
    "ec8-ece f18-f19 f35 f37 f39 f71-f7e f80-f84 f86-f87 f8d-fbc fc6 102d-1030 1032-1037 1039-103a 103d-103e "
    "1058-1059 105e-1060 1071-1074 1082 1085-1086 108d 109d 115f-11ff 135d-135f 1712-1714 1732-1733 1752-1753 "
    "1772-1773 17b4-17b5 17b7-17bd 17c6 17c9-17d3 17dd 180b-180f 1885-1886 18a9 1920-1922 1927-1928 1932 1939-193b "
    "1a17-1a18 1a1b 1a56 1a58-1a60 1a62 1a65-1a6c 1a73-1a7f 1ab0-1b03 1b34 1b36-1b3a 1b3c 1b42 1b6b-1b73 1b80-1b81 "
    "1ba2-1ba5 1ba8-1ba9 1bab-1bad 1be6 1be8-1be9 1bed 1bef-1bf1 1c2c-1c33 1c36-1c37 1cd0-1cd2 1cd4-1ce0 1ce2-1ce8 "
    "1ced 1cf4 1cf8-1cf9 1dc0-1dff 200b-200f 2028-202e 2060-206f 20d0-20f0 2cef-2cf1 2d7f 2de0-2dff 302a-302d "
    "3099-309a 3164 a66f-a672 a674-a67d a69e-a69f a6f0-a6f1 a802 a806 a80b a825-a826 a82c a8c4-a8c5 a8e0-a8f1 a8ff "
    "a926-a92d a947-a951 a980-a982 a9b3 a9b6-a9b9 a9bc-a9bd a9e5 aa29-aa2e aa31-aa32 aa35-aa36 aa43 aa4c aa7c aab0 "
    "aab2-aab4 aab7-aab8 aabe-aabf aac1 aaec-aaed aaf6 abe5 abe8 abed d7b0-d7fb fb1e fe00-fe0f fe20-fe2f feff ffa0 "
    "fff0-fff8 101fd 102e0 10376-1037a 10a01-10a0f 10a38-10a3f 10ae5-10ae6 10d24-10d27 10d69-10d6d 10eab-10eac "
    "10ecb-10ecf 10ef0-10eff 10f46-10f50 10f82-10f85 11001 11038-11046 11070 11073-11074 1107f-11081 110b3-110b6 "
    "110b9-110ba 110c2 11100-11102 11127-1112b 1112d-11134 11173 11180-11181 111b6-111be 111c9-111cc 111cf "
    "1122f-11231 11234 11236-11237 1123e 11241 112df 112e3-112ea 11300-11301 1133b-1133c 11340 11366-11374 "
    "113bb-113e2 11438-1143f 11442-11444 11446 1145e 114b3-114b8 114ba 114bf-114c0 114c2-114c3 115b2-115b5 "
    "115bc-115bd 115bf-115c0 115dc-115dd 11633-1163a 1163d 1163f-11640 116ab 116ad 116b0-116b5 116b7 1171d-1171f "
    "11722-11725 11727-1172b 1182f-11837 11839-1183a 1193b-1193c 1193e 11943 119d4-119db 119e0 11a01-11a0a "
    "11a33-11a38 11a3b-11a3e 11a47 11a51-11a56 11a59-11a5b 11a8a-11a96 11a98-11a99 11b60-11b66 11c30-11c3d 11c3f "
    "11c92-11ca7 11caa-11cb0 11cb2-11cb3 11cb5-11cb6 11d31-11d45 11d47 11d90-11d91 11d95 11d97 11df0 11ef3-11ef4 "
    "11f00-11f01 11f36-11f3a 11f40 11f42 11f5a 13440 13447-13455 1611e-1612f 16af0-16af4 16b30-16b36 16d63-16d6a "
    "16f4f 16f8f-16f92 16fe4 1bc9d-1bc9e 1bca0-1bca3 1cf00-1cf46 1d127-1d128 1d167-1d169 1d173-1d182 1d185-1d18b "
    "1d1aa-1d1ad 1d242-1d244 1d25b-1d25c 1da00-1da36 1da3b-1da6c 1da75 1da84 1da9b-1daaf 1e000-1e02a 1e08f "
    "1e130-1e136 1e2ae 1e2ec-1e2ef 1e4ec-1e4ef 1e5ee-1e5ef 1e6e3-1e6f5 1e8d0-1e8d6 1e944-1e94a e0000-e0fff "
)
# Characters that join in clusters only: spacing marks, prepended marks, skin tones, beginnings of conjoined syllables.
_CLUSTER_RANGES = (
    "600-605 6dd 70f 890-891 8e2 903 93b 93e-940 949-94c 94e-94f 982-983 9be-9c0 9c7-9cc 9d7 a03 a3e-a40 a83 "
    "abe-ac0 ac9-acc b02-b03 b3e b40 b47-b4c b57 bbe-bbf bc1-bcc bd7 c01-c03 c41-c44 c82-c83 cbe cc0-cc4 cc7-ccb "
    "cd5-cd6 cf3 d02-d03 d3e-d40 d46-d4c d4e d57 d82-d83 dcf-dd1 dd8-ddf df2-df3 e33 eb3 f3e-f3f f7f 102b-102c 1031 "
    "1038 103b-103c 1056-1057 1062-1064 1067-106d 1083-1084 1087-108c 108f 109a-109c 1715 1734 17b6 17be-17c5 "
    "17c7-17c8 1923-1926 1929-1931 1933-1938 1a19-1a1a 1a55 1a57 1a61 1a63-1a64 1a6d-1a72 1b04 1b35 1b3b 1b3d-1b41 "
    "1b43-1b44 1b82 1ba1 1ba6-1ba7 1baa 1be7 1bea-1bec 1bee 1bf2-1bf3 1c24-1c2b 1c34-1c35 1ce1 1cf7 302e-302f "
    "a823-a824 a827 a880-a881 a8b4-a8c3 a952-a953 a983 a9b4-a9b5 a9ba-a9bb a9be-a9c0 aa2f-aa30 aa33-aa34 aa4d aa7b "
    "aa7d aaeb aaee-aaef aaf5 abe3-abe4 abe6-abe7 abe9-abea abec ff9e-ff9f fff9-fffb 11000 11002 11082 110b0-110b2 "
    "110b7-110b8 110bd 110cd 1112c 11145-11146 11182 111b3-111b5 111bf-111c0 111c2-111c3 111ce 1122c-1122e "
    "11232-11233 11235 112e0-112e2 11302-11303 1133e-1133f 11341-1134d 11357 11362-11363 113b8-113cf 11435-11437 "
    "11440-11441 11445 114b0-114b2 114b9 114bb-114be 114c1 115af-115b1 115b8-115bb 115be 11630-11632 1163b-1163c "
    "1163e 116ac 116ae-116af 116b6 11720-11721 11726 1182c-1182e 11838 11930-11938 1193d 1193f-11942 119d1-119d3 "
    "119dc-119df 119e4 11a39-11a3a 11a57-11a58 11a84-11a89 11a97 11b61-11b67 11c2f 11c3e 11ca9 11cb1 11cb4 11d46 "
    "11d8a-11d8e 11d93-11d94 11d96 11ef5-11ef6 11f02-11f03 11f34-11f35 11f3e-11f3f 11f41 13430-1343f 1612a-1612c "
    "16f51-16f87 16ff0-16ff1 1d165-1d166 1d16d-1d172 1d250-1d252 1d25f 1d280-1d281 1f3fb-1f3ff 1100-115e a960-a97c "
)
_BEGINS_SYLLABLE = "\u1100-\u115e\ua960-\ua97c"
# After these a character with a width may join: the joiner, viramas, prepended marks.
_LINK_RANGES = (
    "200d 94d 9cd a4d acd b4d bcd c4d ccd d3b d3c d4d dca e3a eba f84 1039 103a 1714-1715 1734 17d2 1a60 1b44 "
    "1baa 1bab 1bf2 1bf3 2d7f a806 a82c a8c4 a953 a9c0 aaf6 abed 10a3f 11046 11070 1107f 110b9 11133 11134 111c0 "
    "11235 112ea 1134d 11442 114c2 115bf 1163f 116b6 1172b 11839 1193d 1193e 119e0 11a34 11a47 11a99 11c3f 11d44 "
    "11d45 11d97 11f41 11f42 600-605 6dd 70f 890-891 8e2 d4e 110bd 110cd 111c2-111c3 113d0-113d2 1193f 11941 "
    "11a3a 11a84-11a89 11d46 11f02 1612f "
)


_ASTRAL = "\U00010000-\U0010ffff"


def _charset(ranges: str, *, astral: bool | None = None) -> str:
    """Returns the ranges as in an expression: all characters, or only those beyond 16 bits, or only the others."""
    pairs = (entry.partition("-") for entry in ranges.split())
    bounds = [(int(first, 16), int(last or first, 16)) for first, _, last in pairs]
    chosen = [pair for pair in bounds if astral is None or (pair[0] > 0xFFFF) is astral]
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in chosen)


def _joins(ranges: str) -> str:
    """Returns an expression for one of `ranges`. Python looks 16-bit characters up; it compares others with each."""
    return f"(?:[{_charset(ranges, astral=False)}]|(?=[{_ASTRAL}])[{_charset(ranges, astral=True)}])"


def _begins(ranges: str) -> str:
    """Returns an expression for characters outside `ranges`, without controls."""
    below, above = _charset(ranges, astral=False), _charset(ranges, astral=True)
    return f"(?:[^{_CONTROLS}{_ASTRAL}{below}]++|[{_PICTURES}]++|(?=[{_ASTRAL}])[^{above}])++"


_PICTURES = "\U0001f300-\U0001f3fa\U0001f400-\U0001faff\U00020000-\U0003ffff"
"""Characters beyond 16 bits that are frequent, and join nothing."""
_CONTROLS = "\x00-\x1f\x7f-\x9f"
_SUSPECT = regex(f"[{_charset(_ZERO_RANGES, astral=False)}{_ASTRAL}]")
_ZERO = regex(_joins(_ZERO_RANGES))
_JOINING = regex(_joins(_ZERO_RANGES + _CLUSTER_RANGES))
_LINK = regex(f"[{_charset(_LINK_RANGES)}]")
_SYLLABLE = regex(f"[{_BEGINS_SYLLABLE}]")

# A string goes to its terminator, which may be BEL. A terminal that does not end it at BEL prints nothing of the rest.
_SEQUENCES = (
    r"(?P<string>\x1b[\]PX^_][^\x07\x1b]*(?:\x07|(?=\x1b)|\Z))"
    r"|(?P<pen>\x1b\[[0-9;:]*m)"
    r"|(?P<repeat>\x1b\[[ -?]*b)"
    r"|(?P<moves>\x1b(?:\[[ -?]*[@-~]?|[ -/]*[0-~]?)|[\x00-\x1a\x1c-\x1f\x7f-\x9f]+)"
)


def _parts(joining: str, simple: str) -> re.Pattern[str]:
    """Returns an expression for sequences, joining characters, beginnings of cells, and (`many`) a stretch of
    beginnings that few `simple` characters join."""
    text = _begins(joining)
    many = f"(?:{text}{_joins(simple)}{{1,{CLUSTER_MAX}}}+)++"
    return regex(f"{_SEQUENCES}|(?P<many>{many})|(?P<text>{text})|(?P<run>{_joins(joining)}++)")


_SEQUENCE = regex(_SEQUENCES)
_CLUSTERS = _ZERO_RANGES + _CLUSTER_RANGES
_CLUSTER_PIECES = regex(f"(?P<text>{_begins(_CLUSTERS)})|(?P<run>{_joins(_CLUSTERS)}++)")
_PARTS = _parts(_ZERO_RANGES, _ZERO_RANGES)
_CLUSTER_PARTS = _parts(_CLUSTERS, "300-36f 200b 3099-309a fe00-fe0f e0100-e01ef")
_RUN = regex(f"{_joins(_ZERO_RANGES)}++")
_CLUSTER_RUN = regex(f"{_joins(_CLUSTERS)}++")
_STRING_END = regex("[\x07\x1b]")
_ALONE = "\x1b[?2027l", "\x1b[?2027h"
"""Sequences around text that joins nothing before it."""


def is_joining(character: str) -> bool:
    """Returns True if `character` may be appended to the cell before the cursor."""
    return _JOINING.match(character) is not None


class ClusterBound:
    """Leaves out of one terminal's output the characters that would make a cell longer than `CLUSTER_MAX`, or twice
    that if one conjoined syllable follows another. Pure. It takes whole sequences and characters, as valid UTF-8; its
    result does not depend on the cuts of the output."""

    def __init__(self) -> None:
        self._count = 0
        """Number of characters that joined the one that was printed last."""
        self._attached = False
        """True if only pens came since: the next joining character joins that one."""
        self._joined = False
        """True if the last character printed was a joining one: repeating it (REP) would append it many times."""
        self._linked = False
        """True if the next character may join the text in the cell before the cursor."""
        self._dangling = False
        """True if there may be such a cell elsewhere on the screen."""
        self._syllable = False
        """True if the last character printed begins a conjoined syllable: another such character joins it."""
        self.inside = False
        """True inside a string that is too long to be kept back."""

    def moved(self) -> None:
        """Notes that the cursor may be elsewhere now."""
        self._dangling = self._dangling or self._linked or self._syllable
        self._attached = self._linked = self._syllable = False

    def feed(self, data: bytes, *, clusters: bool) -> bytes:
        """Returns `data` without the excess. `clusters`: grapheme clustering is on."""
        text = data.decode("utf-8")
        if not (clusters or self._joined or self.inside or self._linked) and (
            len(text) == len(data) or _SUSPECT.search(text) is None
        ):
            self._end(text)
            return data
        bounded = self._bounded(text, clusters=clusters)
        return data if bounded is None else bounded.encode("utf-8")

    def pieces(self, data: bytes, *, clusters: bool) -> Iterator[bytes]:
        """Yields the result of `feed` in pieces. Each but the first begins with a joining character: before it the
        caller may note that the cursor `moved`, because the character before may be in an unexpected place."""
        text, start = data.decode("utf-8"), 0
        for run in (_CLUSTER_RUN if clusters else _RUN).finditer(text):
            if run.start() > start:
                yield self.feed(text[start : run.start()].encode("utf-8"), clusters=clusters)
                start = run.start()
        yield self.feed(text[start:].encode("utf-8"), clusters=clusters)

    def _end(self, text: str) -> None:
        """Notes the end of `text`, in which no character joins another."""
        end = len(text)
        while (escape := text.rfind("\x1b", 0, end)) >= 0:
            found = _SEQUENCE.match(text, escape)
            assert found is not None
            if found.end() < end:
                break
            if found.lastgroup != "pen":
                self.moved()
                self.inside = _is_open(found)
                return
            end = escape
        if end:
            self._count = 0
            self._attached = text[end - 1] >= " " and not "\x7f" <= text[end - 1] <= "\x9f"

    def _bounded(self, text: str, *, clusters: bool) -> str | None:
        """Returns `text` without the excess; None if all of it is allowed."""
        start = 0
        if self.inside:
            end = _STRING_END.search(text)
            if end is None:
                return None
            self.inside = False
            start = end.start() if end[0] == "\x1b" else end.end()
        out: list[str] = []
        done = 0
        for part in (_CLUSTER_PARTS if clusters else _PARTS).finditer(text, start):
            kept = self._part(part, clusters=clusters)
            if kept is not None:
                out += [text[done : part.start()], kept]
                done = part.end()
        return "".join([*out, text[done:]]) if done else None

    def _part(self, part: re.Match[str], *, clusters: bool) -> str | None:
        """Returns the allowed part of `part`; None for all of it."""
        match part.lastgroup:
            case "text":
                return self._text(part[0], clusters=clusters)
            case "many":
                return self._many(part[0], clusters=clusters)
            case "run":
                return self._cluster(part[0]) if clusters else self._run(part[0])
            case "pen":
                return None
            case "repeat" if self._joined:
                return ""
        self.moved()
        self.inside = _is_open(part)
        return None

    def _text(self, text: str, *, clusters: bool) -> str | None:
        """Handles characters that begin a cell each; the first may join the cell before."""
        joins = clusters and self._linked and not text[0].isascii()
        alone = clusters and self._dangling and not self._attached and not text[0].isascii()
        if text[joins:]:
            self._count, self._attached, self._joined = 0, True, False
        else:
            self._count, self._joined = self._count + 1, True
        self._linked = self._syllable = False
        return f"{_ALONE[0]}{text[0]}{_ALONE[1]}{text[1:]}" if alone else None

    def _many(self, text: str, *, clusters: bool) -> str | None:
        """Handles characters that begin a cell each, with some that join them: never too many, if each begins one."""
        if clusters and (self._linked or (self._dangling and not self._attached)):
            pieces = _CLUSTER_PIECES.finditer(text)
            kept = [(piece[0], self._part(piece, clusters=clusters)) for piece in pieces]
            return "".join(whole if part is None else part for whole, part in kept)
        self._count, self._attached, self._joined, self._linked, self._syllable = 1, True, True, False, False
        while _ZERO.match(text, len(text) - 1 - self._count):
            self._count += 1
        return None

    def _run(self, run: str) -> str | None:
        """Returns as many of these characters, which take no column, as there is room for; None for all of them."""
        kept = run[: CLUSTER_MAX - self._count] if self._attached else ""
        self._count += len(kept)
        self._joined = True
        return None if len(kept) == len(run) else kept

    def _cluster(self, run: str) -> str | None:
        """Returns as many of these characters, which join in clusters, as there is room for; None for all of them."""
        if self._attached and self._count + len(run) < CLUSTER_MAX and _SYLLABLE.search(run) is None:
            self._count += len(run)
            self._joined, self._syllable = True, False
            self._linked = self._linked or _LINK.search(run) is not None
            return None
        kept: list[str] = []
        for character in run:
            begins = _SYLLABLE.match(character) is not None
            links = _LINK.match(character) is not None
            alone = begins and not self._attached and self._dangling
            if begins and not (self._syllable or self._linked):
                self._count, self._attached = 0, True
            elif self._attached and self._count + links < CLUSTER_MAX:  # a linking character needs room for one more
                self._count += 1
            else:
                self._joined = True
                continue
            self._joined, self._syllable = True, begins
            self._linked = links or (self._linked and not begins)
            kept.append(f"{_ALONE[0]}{character}{_ALONE[1]}" if alone else character)
        return None if len(kept) == len(run) and not any(len(text) > 1 for text in kept) else "".join(kept)


def _is_open(sequence: re.Match[str]) -> bool:
    """Returns True if `sequence` is a string that goes on after the end of the text."""
    return sequence.lastgroup == "string" and sequence.end() == len(sequence.string) and sequence[0][-1] != "\x07"
