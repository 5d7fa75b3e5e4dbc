"""Sorts the input of a person's terminal: the keys that detach, unexpected replies, and all the rest.

Pure: bytes in any chunking go in, bytes for the agent come out. A terminal answers queries on its own (what it is,
where its cursor is, its colours). The daemon answers an agent's queries and keeps them from viewers, so an answer that
comes nevertheless belongs to an earlier program: the agent would take it for keys.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from synapsectl.errors import UsageError

ESCAPE_HOLD = 0.05
"""Seconds that the beginning of an escape sequence is kept for its rest: terminals write one at once, and a person who
pressed Esc should not wait longer."""

REPLY_HOLD = 1.0
"""Seconds that a beginning is kept which no key has: it is an answer of the terminal, whose rest is on its way."""

KEY_HOLD = 1.0
"""Seconds between two keys of a detach sequence; after that the first was meant for the agent."""

HELD = 0.7
"""Seconds within which a held key repeats the first time."""

PASTE_HOLD = 3.0
"""Seconds without a byte after which a paste without its end is over: its terminal was cut off."""
_PASTE, _PASTE_END = b"\x1b[200~", b"\x1b[201~"

_PRINTABLE = rb"[\x20-\x7e\x80-\xff]"
_TOKEN = re.compile(
    rb"\x1b\[M[\x00-\xff]{3}"  # a mouse report of the old kind: three bytes of any value
    rb"|\x1b\[(?!M)[0-?]*[ -/]*[@-~]"
    rb"|\x1b\]" + _PRINTABLE + rb"*(?:\x07|\x1b\\)"
    rb"|\x1b[PX^_]" + _PRINTABLE + rb"*\x1b\\"
    rb"|\x1bO[ -~]"
    rb"|[^\x1b]+"
)
_PARTIAL = re.compile(
    rb"\x1b(?:\[(?:[0-?]*[ -/]*|M[\x00-\xff]{0,2})|[]PX^_]" + _PRINTABLE + rb"*\x1b?|O)?\Z",
)
_BEGUN = re.compile(rb"\x1b(?:[]PX^_].|\[(?:[?>=]|\d+;))", re.DOTALL)
_PARTIAL_MAX = 1024 * 1024
"""Bytes of a sequence without an end that are waited for; a terminal's answer about its clipboard may be long."""

_CSI = re.compile(rb"\x1b\[([<=>?]?)([0-9:;]*)([ -/]*)([@-~])")

_NAMED = re.compile(
    rb"\x1b\[(?:(?P<codes>\d{1,7}(?::\d{0,7}){0,2})(?:;(?P<modifiers>\d{0,3})(?::[12]?)?(?:;(?P<text>[\d:]{0,64}))?)?u"
    rb"|27;(?P<its>\d{1,3});(?P<other>\d{1,7})~)"
)
"""A key in the form of CSI u, with other codes of the same key and the text that it makes; or of modifyOtherKeys."""
_EVENT = re.compile(rb"\x1b\[(?P<code>\d{0,7})(?::\d*)*(?:;\d*(?::(?P<type>\d))?(?:;[\d:]*)?)?[A-HPQSu~]")
"""A key in the forms that can report an event; F3 is `13~` there."""

_SHIFT, _CTRL, _LOCKS = 1, 4, 64 | 128
_MODIFIERS = frozenset({*range(57358, 57361), *range(57441, 57455)})
"""The codes of the locks, and of Shift, Ctrl, Alt and their like: a program can have them reported as keys."""


class Key(NamedTuple):
    """One key: the byte that it sends, and the character and modifier by which CSI u names it."""

    raw: bytes
    character: str
    ctrl: bool


class Passed(NamedTuple):
    """Bytes for the agent, and True if the person detaches after them; or the command `action`, with the keys after it
    in `rest`."""

    data: bytes
    detached: bool
    action: str = ""
    rest: bytes = b""


COMMANDS = {
    "next": "n",
    "previous": "p",
    "inbox": "i",
    "list": "l",
    "scrollback": "[",
    "status": "s",
    "detach": "d",
    "help": "?",
}
"""Commands of an attached terminal, each with its usual key, which is pressed after the first detach key."""

_PAGE_UP = re.compile(rb"\x1b\[5(?:;(?:1|65|129|193)(?::1)?)?~")
"""Page Up, which after the first detach key scrolls back too, as in tmux; with Caps Lock or Num Lock as well."""


def parse_keys(text: str) -> tuple[Key, ...]:
    """Returns the keys of `--detach-keys`: `ctrl-X` or single characters, separated by commas; empty for none.

    Raises UsageError."""
    return tuple(_parse_key(name.strip()) for name in text.split(",")) if text.strip() else ()


def _parse_key(name: str) -> Key:
    lowered = name.lower()
    if lowered.startswith(("ctrl-", "c-", "^")) and len(name) > 1:
        character = lowered.removeprefix("ctrl-").removeprefix("c-") if lowered[0] != "^" else lowered[1:]
        if len(character) == 1 and ("a" <= character <= "z" or character in "@\\]^_"):
            return Key(bytes([ord(character.upper()) & 0x1F]), character, ctrl=True)
    elif len(name) == 1 and " " < name <= "~":
        return Key(name.encode(), name, ctrl=False)
    raise UsageError(
        f"--detach-keys: {name!r} is no key; say a character, ctrl-a … ctrl-z, or ctrl- and one of @ \\ ] ^ _"
    )


class HeldKey:
    """The key that brought a person to an agent's terminal, which may still be held: its repetitions are not for the
    agent."""

    def __init__(self, key: bytes, now: float = 0.0) -> None:
        self._key = key
        self.begin(now)

    def begin(self, now: float) -> None:
        """Notes that the agent is shown only now."""
        self._until = now + HELD

    def rest(self, data: bytes, now: float) -> bytes:
        """Returns the part of `data` that is not that key."""
        if not self._key or now > self._until:
            self._key = b""
            return data
        rest = data
        while rest.startswith(self._key):
            rest = rest.removeprefix(self._key)
        self._key = b"" if rest else self._key
        self._until = now + HELD
        return rest


class KeyFilter:
    """Sorts the terminal's input. While `hold` is a number, its user calls `expire` when nothing came for so many
    seconds."""

    def __init__(
        self,
        detach: Sequence[Key],
        commands: Mapping[str, Key] | None = None,
        heard: Callable[[bytes], None] = lambda _reply: None,
    ) -> None:
        """`commands`: keys that give a command after the first key of `detach`. If `detach` has only one key, that key
        detaches if no key follows it, or if it is pressed twice. `heard` gets each of the terminal's answers."""
        self._detach = tuple(detach)
        self._commands = dict(commands or {}) if detach else {}
        self._heard = heard
        self._action = ""
        self._matched = 0
        self._kept = b""
        """Detach keys seen so far."""
        self._partial = b""
        self._rest = b""
        """Keys after a command in one run of bytes."""
        self._pasted: bytes | None = None
        """Last bytes of a paste that has not ended: nothing in it is a key."""
        self.pressed = b""
        """The key of the last command."""
        self._taken = False
        """True if the last key pressed was taken here: its repetitions and its release are not for a program either."""

    @property
    def hold(self) -> float | None:
        """Returns the seconds after which kept bytes have to be flushed; None without kept bytes."""
        if self._partial:
            return REPLY_HOLD if _BEGUN.match(self._partial) else ESCAPE_HOLD
        if self._pasted is not None:
            return PASTE_HOLD
        return KEY_HOLD if self._kept else None

    def feed(self, data: bytes) -> Passed:
        """Sorts `data`."""
        buffer, self._partial = self._partial + data, b""
        out: list[bytes] = []
        at = 0
        while at < len(buffer):
            if self._pasted is not None:
                at = self._paste(buffer, at, out)
                continue
            token = _TOKEN.match(buffer, at)
            if token is None:
                if len(buffer) - at <= _PARTIAL_MAX and _PARTIAL.match(buffer, at):
                    self._partial = buffer[at:]
                    break
                # A lone Esc, or one that begins nothing known.
                piece = buffer[at : at + 1]
            else:
                piece = token[0]
            at += len(piece)
            if piece == _PASTE:
                self._begin_paste(out)
            elif self._take(piece, out):
                action, self._action = self._action, ""
                rest = self._rest + buffer[at:]
                self._rest = b""
                detached = action in ("", "detach")
                return Passed(b"".join(out), detached, "" if detached else action, b"" if detached else rest)
        return Passed(b"".join(out), detached=False)

    def take_last(self) -> None:
        """Notes that the last key was taken elsewhere: further reports about it are not for a program."""
        self._taken = True

    def expire(self) -> Passed:
        """Handles `hold` seconds without input."""
        alone = bool(self._commands) and self._matched == len(self._detach)
        kept = self.flush()
        return Passed(b"", detached=True) if alone else Passed(kept, detached=False)

    def flush(self) -> bytes:
        """Returns the kept bytes, which turned out to be ordinary keys."""
        kept = self._kept + self._partial
        self._kept, self._partial, self._matched, self._pasted = b"", b"", 0, None
        return kept

    def _begin_paste(self, out: list[bytes]) -> None:
        """Begins a paste: kept detach keys go to the agent, unless they are complete and only a command could follow
        them."""
        out += [self._kept if self._matched < len(self._detach) else b"", _PASTE]
        self._kept, self._matched, self._taken, self._pasted = b"", 0, False, b""

    def _paste(self, buffer: bytes, at: int, out: list[bytes]) -> int:
        """Passes on the paste from `at`; returns its end."""
        before = self._pasted or b""
        found = (before + buffer[at:]).find(_PASTE_END)
        end = len(buffer) if found < 0 else at - len(before) + found + len(_PASTE_END)
        out.append(buffer[at:end])
        self._pasted = (before + buffer[at:end])[1 - len(_PASTE_END) :] if found < 0 else None
        return end

    def _take(self, piece: bytes, out: list[bytes]) -> bool:
        """Puts the agent's part of `piece` to `out`; returns True when the detach keys are complete."""
        if piece[0] != 0x1B:
            return self._take_run(piece, out)
        if len(piece) > 1 and _is_reply(piece):
            self._heard(piece)
            return False
        return self._take_key(piece, out)

    def _take_run(self, run: bytes, out: list[bytes]) -> bool:
        """Handles bytes without an escape: each is a key, but only those from a first detach key on are looked at."""
        self._taken = False
        at = 0
        while at < len(run):
            if not self._matched:
                found = run.find(self._detach[0].raw, at) if self._detach else -1
                if found < 0:
                    out.append(run[at:])
                    return False
                out.append(run[at:found])
                at = found
            if self._take_key(run[at : at + 1], out):
                self._rest = run[at + 1 :]
                return True
            at += 1
        return False

    def _take_key(self, piece: bytes, out: list[bytes]) -> bool:
        if self._matched or self._taken:
            if not _is_press(piece):
                self._kept += piece if self._matched else b""
                return False
            self._taken = self._taken and _is_report(piece)
        if self._matched and self._commands:
            if _is_report(piece):
                out.append(piece)
                return False
            if (action := self._command(piece)) or self._matched == len(self._detach):
                again = _is_key(piece, self._detach[-1])
                self._action, self.pressed = action or ("detach" if again else "help"), piece
                self._kept, self._matched, self._taken = b"", 0, True
                return True
        if self._matched and not _is_key(piece, self._detach[self._matched]):
            out.append(self._kept)
            self._kept, self._matched = b"", 0
        if not self._detach or not _is_key(piece, self._detach[self._matched]):
            out.append(piece)
            return False
        self._kept += piece
        self._matched += 1
        if self._matched < len(self._detach) or (self._commands and len(self._detach) == 1):
            return False
        self._kept, self._matched = b"", 0
        return True

    def _command(self, piece: bytes) -> str:
        """Returns the command of a key after the first one, if any."""
        if _PAGE_UP.fullmatch(piece):
            return "scrollback"
        return next((name for name, key in self._commands.items() if _is_key(piece, key)), "")


def _is_report(piece: bytes) -> bool:
    """Returns True for an unrequested report of a terminal, about its mouse and focus."""
    return piece in (b"\x1b[I", b"\x1b[O") or piece.startswith((b"\x1b[<", b"\x1b[M"))


def parse_commands(changed: Mapping[str, str]) -> dict[str, Key]:
    """Returns the keys of `COMMANDS`, with those of `[attach] keys` in place of theirs. Raises UsageError."""
    return {name: _parse_key(changed.get(name, usual)) for name, usual in COMMANDS.items()}


def _is_key(piece: bytes, key: Key) -> bool:
    """Returns True when `piece` is `key` pressed, as the byte it is, in CSI u form or in that of xterm's
    modifyOtherKeys."""
    if piece == key.raw:
        return True
    named = _named_key(piece)
    if named is None:
        return False
    codes, modifiers = named
    relevant, wanted = modifiers & ~_LOCKS, _CTRL if key.ctrl else 0
    if key.character.isupper():
        wanted |= _SHIFT
    elif not key.character.isalpha():
        # The layout decides which characters need Shift.
        relevant &= ~_SHIFT
    return relevant == wanted and not codes.isdisjoint({ord(key.character), ord(key.character.lower())})


def _is_press(piece: bytes) -> bool:
    """Returns False for a repeated or released key, and for Shift and its like."""
    event = _EVENT.fullmatch(piece)
    return event is None or (event["type"] in (None, b"1") and int(event["code"] or 0) not in _MODIFIERS)


def _named_key(piece: bytes) -> tuple[set[int], int] | None:
    """Returns code points and modifier bits of a key in CSI u (or modifyOtherKeys) form; None for others, and for a
    released one."""
    match = _NAMED.fullmatch(piece)
    if match is None:
        return None
    codes, modifiers = (match["other"], match["its"]) if match["other"] else (match["codes"], match["modifiers"])
    numbers = b":".join((codes, match["text"] or b"")).split(b":")
    return {int(number) for number in numbers if number}, int(modifiers or b"1") - 1


def _is_reply(piece: bytes) -> bool:
    """Returns True for a terminal's answer to a query."""
    if piece[1] in b"]PX^_":
        return True
    match = _CSI.fullmatch(piece)
    if match is None:
        return False
    prefix, parameters, intermediate, final = match.groups()
    if intermediate:
        # DECRPM, the state of a mode.
        return final == b"y"
    if prefix == b"?":
        # 997 is also sent without a query, when the colours turn dark or light.
        return final in b"cnuRSt" and not (final == b"n" and parameters.startswith(b"997;"))
    if prefix:
        return prefix in b">=" and final in b"cmq"
    if final == b"R":
        return bool(parameters) and not _is_f3(parameters)
    return final in b"cntx"


def _is_f3(parameters: bytes) -> bool:
    """Returns True for F3 with modifiers, which has the form of a cursor report from the first line."""
    first, _, modifiers = parameters.partition(b";")
    return first == b"1" and modifiers.isdigit() and 2 <= int(modifiers) <= 16
