"""Draws the inbox as lines of a terminal: the rows, then the chosen one in detail, then the keys. Pure.

Text of agents is made harmless before it is laid out; no line is wider than the screen.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import ceil
from typing import NamedTuple

from synapsectl.ages import age, clock_time
from synapsectl.colours import BOLD, CYAN, DIM, GREEN, MAGENTA, RED, REVERSE, YELLOW, painted
from synapsectl.inbox.items import (
    KINDS,
    Item,
    NoAnswer,
    digits,
    has_terminal,
    is_asked,
    is_hidden,
    takes_words,
    yes_or_no,
)
from synapsectl.inbox.model import InboxModel, Row, Typing
from synapsectl.inbox.paging import LEAST, QuestionPage, page_of
from synapsectl.output import GAP, clip, display_width, harmless, one_line, pad
from synapsed.shared.choices import telling
from synapsed.shared.visible import visible

STYLES = {
    "permission": YELLOW,
    "question": YELLOW,
    "plan": YELLOW,
    "sign_in": MAGENTA,
    "limit": MAGENTA,
    "account": RED,
    "failure": RED,
    "crash_loop": RED,
    "unreadable": RED,
    "finished": GREEN,
    "alert": RED,
}
LEAST_ROWS, CLOSE_ROWS = 3, 8
"""Rows of the list that are shown even if the chosen one is long, and rows of that one for which they give way."""
SILENT_ROWS = 3
"""Rows for hosts that do not answer."""
OPTION = " " * 5
"""Room before the words of an option."""
NAME_SHARE = 4
"""A name gets at most a fourth of the columns."""
HELP = (
    ("j k ↓ ↑", "the next row, the one before; g G the first, the last"),
    ("y n", "yes or no to what is asked now, and to no more"),
    ("1 … 9", "the option with that digit"),
    ("b", "no, because …: the reason is the agent's next message; Esc leaves it"),
    ("a", "an answer in words of your own, where it takes one; Esc leaves it"),
    ("u", "take an answer back, before it is typed"),
    ("Space", "the next rows of a long question, PgDn PgUp too: a yes needs all of them"),
    ("Enter", "attach to the agent; ctrl-] comes back"),
    ("x", "put away what asks nothing: a failure, a limit, what is finished"),
    ("q Esc", "leave; answers that are held are given at once. Ctrl-C drops them"),
)
TYPING_KEYS = "Enter gives it, Esc leaves it"


class Closely(NamedTuple):
    """One item in detail. `digits`: its options by the rows in which they stand."""

    rows: list[str]
    digits: dict[int, str]


class InboxView:
    """Draws the inbox. `home` is the person's home folder, for shorter paths; `coloured`: colours are wanted."""

    def __init__(self, *, coloured: bool, home: str) -> None:
        self._coloured = coloured
        self._home = home
        self.wall = datetime.now(UTC)
        self.page: QuestionPage | None = None
        """Part of the chosen row's question that is in `lines`."""

    def lines(self, inbox: InboxModel, now: float, wall: datetime, columns: int, rows: int) -> list[str]:
        """Returns as many lines as the screen has rows, none wider than it. `now` is the model's time, `wall` the
        clock's."""
        self.wall, self.page = wall, None
        if inbox.help:
            shown = [self._head(inbox, columns), "", *self._help(columns)]
            return shown[:rows]
        listed = inbox.rows(now)
        foot = self._foot(inbox, listed, columns)[-max(1, rows - 1) :]
        room = max(0, rows - 1 - len(foot))
        silent = self._silent(inbox.silent, columns)[: max(0, room - 1 - LEAST)]
        room -= len(silent)
        chosen = next((row for row in listed if row.chosen), None)
        detail = [] if chosen is None else self.closely(chosen.item, columns).rows
        for_list, gap = shared(room, len(listed), len(detail))
        body = self._table(listed, columns, for_list) if for_list else []
        if chosen is not None:
            first = inbox.first_row(chosen.item, detail)
            self.page = page_of(detail, first, room - for_list - gap)
            body += [""] * gap + self.paged(self.page, columns)
        body += [""] * (room - len(body))
        return [self._head(inbox, columns), *body[:room], *silent, *foot][:rows]

    def paged(self, page: QuestionPage, columns: int) -> list[str]:
        """Returns the rows of a page, and the line that tells of the others."""
        told = page.told()
        return [*page.shown(), *([self._painted(clip(told, columns), YELLOW)] if told else [])]

    # --- parts ---

    def _head(self, inbox: InboxModel, columns: int) -> str:
        if inbox.away is not None:
            return self._painted(clip(one_line(f"synapsed: {inbox.away}"), columns), f"{REVERSE};{RED}")
        if not inbox.known:
            told = "…"
        elif not inbox.items:
            told = "nobody needs you"
        else:
            told = _need(inbox)
        right = "? help  q leave"
        left = f"synapsed · {told}"
        gap = columns - display_width(left) - display_width(right)
        return self._painted(clip(f"{left}{' ' * gap}{right}" if gap > 1 else left, columns), REVERSE)

    def _table(self, listed: Sequence[Row], columns: int, room: int) -> list[str]:
        """Returns at most `room` rows: those around the chosen one."""
        at = next((number for number, row in enumerate(listed) if row.chosen), 0)
        first = max(0, min(at - room // 2, len(listed) - room))
        shown = listed[first : first + room]
        names = [one_line(row.item["agent"]) for row in shown]
        wide = min(max((display_width(name) for name in names), default=0), max(8, columns // NAME_SHARE))
        kinds = max((len(_kind(row.item)) for row in shown), default=0)
        return [self._row(row, name, columns, wide, kinds) for row, name in zip(shown, names, strict=True)]

    def _row(self, row: Row, name: str, columns: int, wide: int, kinds: int) -> str:
        item, kind = row.item, _kind(row.item)
        mark = "> " if row.chosen else "  "
        since = f"{age(item['since'], self.wall):>4}"
        before = f"{mark}{pad(clip(name, wide), wide)}{GAP}{pad(kind, kinds)}{GAP}{since}{GAP}"
        room = columns - display_width(before)
        said, style = self.said(row)
        if room < 1:
            return clip(before.rstrip(), columns)
        plain = clip(said, room)
        if row.told:
            return self._painted(f"{before}{plain}", DIM)
        if not self._coloured:
            return f"{before}{plain}"
        name_part = painted(f"{mark}{pad(clip(name, wide), wide)}", f"{BOLD};{REVERSE}" if row.chosen else BOLD)
        kind_part = painted(pad(kind, kinds), STYLES.get(item["kind"], ""))
        return f"{name_part}{GAP}{kind_part}{GAP}{painted(since, DIM)}{GAP}{painted(plain, style)}"

    def said(self, row: Row) -> tuple[str, str]:
        """Returns the text of a row, and its style."""
        if row.told:
            return one_line(row.told), DIM
        if row.held is not None:
            return f"→ {one_line(row.answer)}  ({ceil(row.held) or 1} s, u takes it back)", GREEN
        if row.answer:
            return f"→ {one_line(row.answer)}  (is being typed)", GREEN
        return gist(row.item, self.wall), ""

    def closely(self, item: Item, columns: int) -> Closely:
        """Returns one item in detail and whole: place, time, the very command, the question, the edit, its answers."""
        place = self._shorter(item["cwd"]) + (f" on {item['host']}" if item.get("host") else "")
        facts = [item["agent"], _kind(item), place, f"since {clock_time(item['since'], self.wall)}"]
        if item.get("until"):
            facts.append(f"until {clock_time(item['until'], self.wall)}")
        if item.get("looked_at"):
            facts.append("somebody is attached to it")
        lines = [self._painted(line, BOLD) for line in wrapped(one_line(" · ".join(facts)), columns)]
        if item.get("command"):
            lines += [self._painted(line, CYAN) for line in wrapped(f"$ {item['command']}", columns)]
        lines += wrapped(_without_command(str(item["question"]), item.get("command")), columns)
        if item.get("diff"):
            lines += [self._painted(line, CYAN) for line in wrapped(str(item["diff"]), columns)]
        found: dict[int, str] = {}
        by_key = {str(option["key"]): digit for digit, option in digits(item).items()}
        for option in item.get("options") or []:
            digit = by_key.get(str(option["key"]), "")
            told = wrapped(one_line(str(option["label"])), max(1, columns - len(OPTION))) or [""]
            if digit:
                found |= dict.fromkeys(range(len(lines), len(lines) + len(told)), digit)
            lines += [
                clip(f"  {digit or '-'}  {told[0]}", columns),
                *(clip(f"{OPTION}{line}", columns) for line in told[1:]),
            ]
        if takes_words(item):
            lines.append(clip("  a  an answer in words", columns))
        return Closely(lines, found)

    def _entry(self, typing: Typing, columns: int) -> str:
        """Returns the text that is being typed; its end stays visible."""
        hidden = typing.refusal is None and is_hidden(typing.item)
        text = "•" * len(typing.text) if hidden else harmless(typing.text.replace("\n", "⏎"))
        before = "no, because: " if typing.refusal is not None else "> "
        return clip(f"{before}{_end(text, columns - 2 - len(before))}▏", columns)

    def _silent(self, hosts: Sequence[str], columns: int) -> list[str]:
        """Returns the hosts that do not report their items; of many, the number of the rest."""
        told = list(hosts[:SILENT_ROWS])
        if len(hosts) > SILENT_ROWS:
            told[-1] = f"{len(hosts) - SILENT_ROWS + 1} more hosts do not say who waits there"
        return [self._painted(clip(one_line(line), columns), DIM) for line in told]

    def _foot(self, inbox: InboxModel, listed: Sequence[Row], columns: int) -> list[str]:
        """Returns the present note, or the keys; below it the text that is being typed."""
        row = next((one for one in listed if one.chosen), None)
        typing = inbox.typing
        keys = TYPING_KEYS if typing is not None else keys_of(row) if row is not None else ""
        note = one_line(inbox.note)
        told = self._painted(clip(note or keys, columns), YELLOW if note else DIM)
        return [told] if typing is None else [told, self._entry(typing, columns)]

    def _help(self, columns: int) -> list[str]:
        width = max(len(keys) for keys, _ in HELP)
        room = max(1, columns - width - len(GAP))
        told = ((keys if first else "", line) for keys, text in HELP for first, line in _marked(wrapped(text, room)))
        return [clip(f"{pad(keys, width)}{GAP}{line}", columns) for keys, line in told]

    def _shorter(self, path: str) -> str:
        home = self._home
        return "~" + path[len(home) :] if home and (path + "/").startswith(home + "/") else path

    def _painted(self, text: str, style: str) -> str:
        return painted(text, style) if self._coloured else text


def _marked(lines: Sequence[str]) -> list[tuple[bool, str]]:
    """Returns the lines, each with True for the first."""
    return [(number == 0, line) for number, line in enumerate(lines)]


def keys_of(row: Row) -> str:
    """Returns the keys that do something for a row now."""
    item = row.item
    attaches = ["Enter attaches"] if has_terminal(item) else []
    if row.told:
        return "j k move"
    if row.held is not None:
        return "  ".join(["u takes the answer back", *attaches])
    if row.fresh:
        return "  ".join(["…", *attaches])
    if row.unshown and is_asked(item):
        refused = ["n no  b no, because"] if _can_answer(item, accept=False) else []
        return "  ".join([f"Space shows {row.unshown} more", *refused, *attaches])
    if not is_asked(item):
        return "  ".join([*attaches, *([] if item.get("prompt_id") else ["x puts it away"])])
    chosen = list(digits(item))
    told = [
        word for word, accept in (("y yes", True), ("n no  b no, because", False)) if _can_answer(item, accept=accept)
    ]
    told += [f"{min(chosen)}-{max(chosen)} choose" if len(chosen) > 1 else f"{chosen[0]} chooses"] if chosen else []
    told += ["a words"] if takes_words(item) else []
    return "  ".join([*told, *attaches])


def _can_answer(item: Item, *, accept: bool) -> bool:
    try:
        yes_or_no(item, accept=accept)
    except NoAnswer:
        return False
    return True


def gist(item: Item, wall: datetime) -> str:
    """Returns the question in one line: the very command if it is known."""
    command = item.get("command")
    if item["kind"] == "limit" and item.get("until"):
        return f"until {clock_time(item['until'], wall)}"
    question = telling(item.get("prompt_type"), str(item["question"]))
    lines = [one_line(line) for line in question.splitlines() if line.strip()]
    return one_line(str(command)) if command else " · ".join(lines)


def _without_command(question: str, command: str | None) -> str:
    """Returns the question without the line of the command, which is shown already."""
    lines = question.splitlines()
    return "\n".join(line for line in lines if not command or line.strip().removeprefix("$ ") != command.strip())


def shared(room: int, listed: int, detail: int) -> tuple[int, int]:
    """Returns how many of `room` rows the list gets, and how many are empty between it and the chosen one. The list
    gives way to a question, which is shown whole if the room is enough for it."""
    if not detail:
        return min(listed, room), 0
    if room <= 1 + LEAST:
        return (1 if room > LEAST else 0), 0
    if room >= detail + 2:
        return min(listed, room - detail - 1), 1
    return min(listed, max(1, min(LEAST_ROWS, room - 1 - CLOSE_ROWS))), 1


def wrapped(text: str, columns: int) -> list[str]:
    """Returns `text` with invisible characters made visible, in lines that are no wider; words are kept whole if they
    fit. The time is proportional to its length for any content."""
    lines: list[str] = []
    for line in visible(text.expandtabs(4)).splitlines():
        current, used = "", 0
        for word in line.split(" "):
            width = display_width(word)
            if current and used + 1 + width <= columns:
                current, used = f"{current} {word}", used + 1 + width
                continue
            if current:
                lines.append(current)
            *full, current = [word] if width <= columns else _pieces(word, columns)
            lines += full
            used = display_width(current)
        lines.append(current)
    return lines


def _pieces(text: str, columns: int) -> list[str]:
    """Returns `text` in pieces that fit, each of one character at the least."""
    pieces, begin, used = list[str](), 0, 0
    for at, character in enumerate(text):
        width = display_width(character)
        if used + width > columns and at > begin:
            pieces.append(text[begin:at])
            begin, used = at, 0
        used += width
    return [*pieces, text[begin:]]


def _end(text: str, columns: int) -> str:
    """Returns as many of the last characters of `text` as fit."""
    used = 0
    for at in range(len(text) - 1, -1, -1):
        used += display_width(text[at])
        if used > columns:
            return text[at + 1 :]
    return text


def _need(inbox: InboxModel) -> str:
    """Returns the numbers for the title: items that need a person, and those that are finished."""
    waiting, finished = inbox.waiting, inbox.finished
    count = len(inbox.items) - finished
    told = [f"{waiting} of {count} need you" if waiting < count else _needs(count)] if count else []
    return ", ".join([*told, f"{finished} finished"] if finished else told)


def _needs(count: int) -> str:
    return "1 needs you" if count == 1 else f"{count} need you"


def _kind(item: Mapping[str, object]) -> str:
    kind = str(item["kind"])
    return KINDS.get(kind, one_line(kind))
