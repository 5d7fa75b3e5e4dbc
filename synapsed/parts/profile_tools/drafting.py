"""Drafts a first profile from a program's screen at one moment. Pure.

Facts on the screen are written as they are; guesses, and facts that one screen does not show, are marked in a comment
beside them. `main` is a program of its own, which has no rights when it draws that screen.
"""

import json
import re
import sys
import tomllib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from synapsed.shared.regex import regex
from synapsed.terminal.sandboxed import (
    Color,
    Composer,
    ComposerState,
    Prompts,
    Screen,
    ScreenSnapshot,
    find_prompt,
    give_up_rights,
    read_composer,
)

_SIGN = regex(r"^(?P<prefix>[\s│┃|▌▎]*(?:[>❯›»▸➜λ$#%✦▶]{1,3}|[│┃▌▎])(?:[ \u00a0]|$))")
"""Beginning of a row into which text is typed: a sign, perhaps after the side of a box; or that side alone."""
_BARE_SIDE = regex(r"[\s│┃|▌▎]*")
_PROMPT = regex(r"^[^\n]{0,60}?[>$#%❯›»:)\]][ \u00a0]?")
_RIGHT = regex(r"[ \u00a0]+(?P<side>[│┃|▐])$")
_EDGE = regex(r"\s*[╭┌├╰└┏┗╔╚]?(?P<line>[─━═▔▁▀▄_]){8}")


_HEAD = """\
# Written from the screen of {agent}, at one moment. What is a guess says so: look at it, and at what the screen shows
# while the program works and asks ('synapsectl screen'). 'synapsectl profiles check' tells what is wrong here."""

ASKS = 3
"""The exit code of `main` if the program asks something."""

CPU_S = 30
"""Seconds that `main` may compute."""

_SAID = frozenset({"composer", "ready", "busy", "interrupt", "exit", "answer", "prompts"})
"""Tables that a draft may have: they describe how a screen is read, and name no program."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The probable composer: `pattern` finds it, `why` gives the reason."""

    row: int
    pattern: str
    why: str
    at_cursor: bool = False
    placeholder: str | None = None
    around: str | None = None


_WORK = (
    r"\b(?:[Ee]sc|[Ee]scape|[Cc]trl[+-][Cc])\b[^\n]{0,12}\bto (?:stop|interrupt|cancel|abort)\b",
    r"^\s*[⠁-⣿✢✳✶✻✽◐◓◑◒]\s",
)
"""Usual signs of work: the key that stops it, and spinners."""

BRIGHT_BLACK, GREYS = 8, range(233, 252)
"""Colours of the palette."""


class AsksError(Exception):
    """The program asks something: the screen shows no composer."""


def draft(screen: Screen, *, command: Sequence[str], agent: str) -> str:
    """Returns the text of a profile for the program that shows `screen`, at the agent `agent`; `command` starts the
    program. Raises AsksError."""
    now = screen.snapshot()
    if (asked := find_prompt(Prompts(generic=True), now, screen.row_cells)) is not None:
        raise AsksError(asked.prompt.prompt)
    found = _by_cursor(screen, now) or _by_sign(screen, now)
    parts = [
        _HEAD.format(agent=agent),
        _top(command),
        _composer(screen, now, found),
        _states(now, found),
        _keys(found),
        _answer(now, found),
        _dialogs(),
    ]
    return "\n\n".join(parts) + "\n"


# --- where a message is typed ----------------------------------------------------------------------------------------


def _by_cursor(screen: Screen, now: ScreenSnapshot) -> _Found | None:
    """Finds the composer by the cursor in it."""
    row, _ = now.cursor
    line = now.lines[row]
    if not now.cursor_visible:
        return None
    below = any(each.strip() for each in now.lines[row + 1 :])
    typed = line[: now.cursor[1]]
    if not now.alternate and not below and (prompt := _PROMPT.fullmatch(typed) or _PROMPT.match(line)) is not None:
        pattern = re.sub(r"\d+", r"\\d+", _literal(prompt[0].rstrip()))  # a number may count
        return _Found(row, f"^{pattern} ?(?P<text>.*)$", "the cursor stands behind it; a guess", at_cursor=True)
    if (sign := _SIGN.match(line)) is None:
        return None
    return _boxed(screen, now, row, sign["prefix"], "the cursor stands in it")


def _by_sign(screen: Screen, now: ScreenSnapshot) -> _Found | None:
    """Finds the composer as the last row that begins with a prompt's sign."""
    for row in range(now.rows - 1, -1, -1):
        sign = _SIGN.match(now.lines[row])
        if sign is not None and _BARE_SIDE.fullmatch(sign["prefix"]) is None:
            return _boxed(screen, now, row, sign["prefix"], "the last row that begins with a prompt's sign; a guess")
    return None


def _boxed(screen: Screen, now: ScreenSnapshot, row: int, prefix: str, why: str) -> _Found:
    line = now.lines[row]
    side = _RIGHT.search(line)
    end = f"[ \\u00a0]*{_literal(side['side'])}$" if side is not None else "$"
    text = line[len(prefix) : side.start() if side is not None else None].strip()
    head = f"^{_literal(prefix.rstrip())}"
    blank = "[ \\u00a0]?" if "\u00a0" in prefix else " ?"
    pattern = f"{head}{blank}(?P<text>.*?){end}"
    placeholder = None
    if text and (_is_faint(screen, row, len(prefix)) or _cursor_before(now, row, len(prefix))):
        placeholder = f"^{_literal(text)}$"
    above = _EDGE.match(now.lines[row - 1]) if row else None
    around = f"{_literal(above['line'])}{{8,}}[^\\n]*\\n{_literal(prefix.rstrip())}" if above is not None else None
    return _Found(row, pattern, why, placeholder=placeholder, around=around)


def _is_faint(screen: Screen, row: int, start: int) -> bool:
    """Returns True if the text there is drawn like a placeholder: faint, or in a grey; its first cell may be a cursor
    that the program draws, in which case nothing is typed before it."""
    cells = [cell for cell in screen.row_cells(row)[start:] if cell.text.strip() and cell.text not in "│┃|▐"]
    if not cells:
        return False
    faint = all(cell.dim or _is_grey(cell.fg) for cell in cells[1:] or cells)
    drawn = not screen.snapshot().cursor_visible and cells[0].inverse and not any(cell.inverse for cell in cells[1:])
    return faint or drawn


def _is_grey(color: Color) -> bool:
    if isinstance(color, int):
        return color == BRIGHT_BLACK or color in GREYS
    return isinstance(color, tuple) and len(set(color)) == 1


def _cursor_before(now: ScreenSnapshot, row: int, start: int) -> bool:
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in now.lines[row][:start])
    return now.cursor_visible and now.cursor[0] == row and now.cursor[1] <= start + wide


# --- the tables ------------------------------------------------------------------------------------------------------


def _top(command: Sequence[str]) -> str:
    if not command:
        return '# command = "…"   # the program; without it the profile\'s name'
    lines = [f"command = {json.dumps(command[0], ensure_ascii=False)}"]
    if len(command) > 1:
        lines.append(f"args = {json.dumps(list(command[1:]), ensure_ascii=False)}")
    return "\n".join(lines)


def _composer(screen: Screen, now: ScreenSnapshot, found: _Found | None) -> str:
    lines = ["# Where a message is typed.", "[composer]"]
    if found is None:
        return "\n".join(
            [*lines, "# No row looks like it. Group `text`: what is typed.", "# line = '^> ?(?P<text>.*)$'"]
        )
    seen = _seen(screen, now, found)
    lines.append(f"# Row {found.row + 1} of {now.rows}: {found.why}. On this screen it is {seen.state}.")
    lines.append(f"line = {_quoted(found.pattern)}")
    if found.at_cursor:
        lines.append("at_cursor = true")
    if found.around is not None:
        lines += ["# The edge above it: rows that only look like it have none.", f"around = {_quoted(found.around)}"]
    if found.placeholder is not None:
        lines += [
            "# A guess: what stands there now is shown while nothing is typed.",
            f"placeholder = {_quoted(found.placeholder)}",
        ]
    if now.modes.bracketed_paste and not found.at_cursor:
        lines += [
            "# It is on now. If it is off while the program takes no input, that tells when it does:",
            "# bracketed_paste = true",
        ]
    if not found.at_cursor:
        shown = "shown" if now.cursor_visible else "hidden"
        lines.append(
            f"# The cursor is {shown} now. `shows_cursor = true` where it is hidden everywhere but in the composer."
        )
    return "\n".join(lines)


def _seen(screen: Screen, now: ScreenSnapshot, found: _Found) -> ComposerState:
    patterns = {"line": found.pattern, "around": found.around, "placeholder": found.placeholder}
    spec = Composer.model_validate({**patterns, "at_cursor": found.at_cursor})

    def bright(row: int) -> str:
        return "".join(" " * len(cell.text) if cell.dim else cell.text for cell in screen.row_cells(row))

    return read_composer(spec, now, bright)


def _states(now: ScreenSnapshot, found: _Found | None) -> str:
    lines = ["[ready]", "quiet_ms = 250"]
    title = now.title.strip()
    lines.append(f"# Its title is {json.dumps(title, ensure_ascii=False)} now." if title else "# It has set no title.")
    if title:
        lines.append(f"# title = {_quoted(f'^{_literal(title)}$')}   # if it is another one while it works")
    if found is None or not found.at_cursor:
        lines += [
            "",
            "# What the screen shows while it works, and only then. These are the usual signs, a guess: without the",
            "# right ones an answer ends too early ('synapsectl profiles try' looks).",
            "[busy]",
            f"screen = [{', '.join(_quoted(sign) for sign in _WORK)}]",
        ]
    return "\n".join(lines)


def _keys(found: _Found | None) -> str:
    line = found is not None and found.at_cursor
    stop, leave = ('"\\u0003"', '["\\u0004"]') if line else ('"\\u001b"', '["\\u0003", "\\u0003"]')
    names = ("ctrl-c", "ctrl-d") if line else ("Esc", "ctrl-c, twice")
    return (
        f"# Guesses: {names[0]} stops what runs, {names[1]} ends the program.\n[interrupt]\nkeys = {stop}\n\n"
        f"[exit]\nkeys = {leave}"
    )


def _answer(now: ScreenSnapshot, found: _Found | None) -> str:
    if found is not None and found.at_cursor:
        return '# What it prints between a message and its next prompt.\n[answer]\nmode = "lines"'
    where = "the alternate screen, which keeps nothing that leaves it" if now.alternate else "the main screen"
    lines = [f"# It draws on {where}.", "[answer]", 'mode = "blocks"']
    lines += [
        "# Guesses: what an answer's first line begins with, and what stands below it.",
        "start = '^[●⏺•✦◆] '",
        f"end = {_quoted('|'.join([r'^─{8,}', *_WORK]))}",
    ]
    framed = [row for row in now.lines if re.match(r"\s*[│┃]", row) and re.search(r"[│┃]\s*$", row)]
    if len(framed) > 2:
        lines.append("# strip = '^ *[│┃] ?|[│┃]$'   # rows have a frame: this takes both of its sides off an answer")
    return "\n".join(lines)


def _dialogs() -> str:
    return (
        "# What it asks. Generic are questions at the cursor: (y/n), menus with numbers, passwords. Its own dialogs\n"
        "# are described in [[prompts.dialogs]].\n[prompts]\ngeneric = true"
    )


def _literal(text: str) -> str:
    """Returns `text` as a readable pattern: only special characters are escaped."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)


def _quoted(pattern: str) -> str:
    """Returns a pattern as a TOML string."""
    return json.dumps(pattern, ensure_ascii=False) if "'" in pattern else f"'{pattern}'"


# --- in a process of its own -----------------------------------------------------------------------------------------


def only_drafts(text: str, command: Sequence[str]) -> bool:
    """Returns True if `text` has only the tables of a draft, and starts `command`: the process that wrote it may be
    under an attacker's control."""
    try:
        told = tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    args = told.pop("args", [])
    words = [told.pop("command", ""), *args] if isinstance(args, list) else None
    return words == (list(command) or [""]) and told.keys() <= _SAID


def main() -> int:
    """Reads a line of JSON {cols, rows, command, agent} and the bytes that draw the screen; writes the draft."""
    head = json.loads(sys.stdin.buffer.readline())
    drawn = sys.stdin.buffer.read()
    give_up_rights(cpu_s=CPU_S)
    screen = Screen(head["cols"], head["rows"])
    screen.feed(drawn)
    try:
        written = draft(screen, command=head["command"], agent=head["agent"])
    except AsksError:
        return ASKS
    sys.stdout.buffer.write(written.encode())
    return 0
