"""Draws `top` as lines with colours. Pure.

Text of agents is made harmless: of its escape sequences only the colours of its screen are left.
"""

import io
import re
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

from synapsectl.agentrows import FOLDERS_FROM, HEADINGS, row, shorter
from synapsectl.ages import age
from synapsectl.colours import BOLD, DIM, RED, REVERSE, YELLOW, painted
from synapsectl.commands.tasks import HEADINGS as TASK_HEADINGS
from synapsectl.commands.tasks import by_need
from synapsectl.commands.tasks import row as task_row
from synapsectl.eventlines import Lines
from synapsectl.inbox.model import Row
from synapsectl.inbox.paging import LEAST, QuestionPage, page_of
from synapsectl.inbox.view import InboxView, keys_of
from synapsectl.output import CommandOutput, one_line
from synapsectl.top.desk import Desk, Shown
from synapsed.shared.counts import counted
from synapsed.shared.visible import visible

_COLOUR = re.compile(r"(\x1b\[[0-9;:]*m)")
KEYS = "? help  q leave  j k agent  s send  Enter attach  Tab next that asks  z screen  t e tasks, events"
HELP = (
    ("j k ↓ ↑", "the next agent, the one before; g G the first, the last; a click chooses one"),
    ("Tab", "the next agent that waits for you"),
    ("y n", "yes or no to what it asks now, and to no more"),
    ("1 … 9", "the option with that digit; so does a click on it"),
    ("b", "no, because …: the reason is the agent's next message"),
    ("a", "an answer in words of your own, where it takes one"),
    ("u", "take an answer back, before it is typed"),
    ("Space", "the next rows of a long question, PgDn PgUp too: a yes needs all of them"),
    ("x", "put away what asks nothing: a failure, a limit, what is finished"),
    ("s", "write a message to the agent; Enter sends it, Esc leaves it"),
    ("Enter", "attach to the agent; ctrl-] comes back"),
    ("z", "the screen and the question only, or everything"),
    ("t e", "its tasks, or the events, where there is no room for both; again: neither"),
    ("q Esc", "leave; answers that are held are given at once. Ctrl-C drops them"),
)


LIST_MOST, LIST_LEAST, QUESTION_SHARE = 7, 2, 2
"""Limits in a narrow terminal: most and least lines of the list; a question gets at most half of the rows."""
BESIDE = 2
"""Least lines above a question: the agent's name, and the end of its screen."""
ENOUGH = 6
"""Rows for which a question makes room in a narrow terminal; a longer one is paged."""
FRAME, BELOW_LIST = 2, 5
"""Lines of the head and the foot, and of the tasks or events below the list."""


def question_most(rows: int) -> int:
    """Returns the most lines of a question in a window of so many rows."""
    return max(LEAST + 1, rows // QUESTION_SHARE)


def below_each_other(rows: int, agents: int, *, below: bool, asks: bool) -> tuple[int, bool]:
    """Returns the lines of the list of `agents` in a narrow window, and True if the tasks or events stay `below` it.
    Where the chosen agent asks something, they leave first, then the list shrinks, until the question has room: without
    room it could not be answered."""
    listed, room = min(LIST_MOST, agents + 1), rows - FRAME - BESIDE - min(ENOUGH, question_most(rows))
    if asks:
        below = below and listed + BELOW_LIST <= room
        listed = listed if below else max(LIST_LEAST, min(listed, room))
    return listed, below


class QuestionShown(NamedTuple):
    """The question of an agent as it is shown: its lines, those of them that are options, by the digit that chooses
    each, its row and the page that they are of."""

    lines: list[str]
    options: dict[int, str]
    row: Row | None = None
    page: QuestionPage | None = None


class Drawing:
    """Draws the panes of `top`. `home` is the person's home folder, for shorter paths."""

    def __init__(self, *, home: str) -> None:
        self._home = home
        self._out = CommandOutput(io.StringIO(), io.StringIO(), columns=None, coloured=True)
        self._view = InboxView(coloured=True, home=home)
        self._lines = Lines(on_terminal=True, environ={})

    def head(self, desk: Desk) -> str:
        if desk.away is not None:
            return painted(one_line(f"synapsed: {desk.away}"), f"{REVERSE};{RED}")
        if not desk.inbox.known:
            return "synapsed · …"
        waiting = desk.inbox.waiting
        told = "nobody needs you" if not waiting else "1 needs you" if waiting == 1 else f"{waiting} need you"
        silent = "".join(f" · {one_line(line)}" for line in desk.inbox.silent)
        return f"synapsed · {counted(len(desk.agents), 'agent')} · {told}{silent}"

    def foot(self, desk: Desk) -> str:
        if desk.note:
            return painted(one_line(desk.note), YELLOW)
        return painted(KEYS, DIM)

    def agents(self, desk: Desk, columns: int) -> list[str]:
        """Returns the headings, and a line for each agent."""
        if not desk.agents:
            return [painted("there are no agents; start one with 'synapsectl start'" if desk.inbox.known else "…", DIM)]
        now = datetime.now(UTC)
        rows = [
            row(agent, now, age=age(agent["since"], now), folder=shorter(agent["cwd"], self._home), columns=columns)
            for agent in desk.agents
        ]
        if columns < FOLDERS_FROM:
            return self._out.table_lines(HEADINGS[:-1], [cells[:-1] for cells in rows], grows="WHAT", columns=columns)
        return self._out.table_lines(HEADINGS, rows, grows="WHAT", columns=columns)

    def question(self, desk: Desk, now: float, columns: int, rows: int) -> QuestionShown:
        """Returns the question of the chosen agent in at most `rows` lines, the last of them with the keys or the
        answer."""
        found = desk.question(now)
        if found is None:
            return QuestionShown([], {})
        self._view.wall = datetime.now(UTC)
        if found.told:
            return QuestionShown([painted(one_line(found.told), DIM)], {})
        typing = desk.inbox.typing is not None and desk.inbox.typing.item["id"] == found.item["id"]
        last = [painted(*self._view.said(found))] if found.answer else [] if typing else [painted(keys_of(found), DIM)]
        whole = self._view.closely(found.item, columns)
        page = page_of(whole.rows, desk.inbox.first_row(found.item, whole.rows), max(0, rows - 1))
        options = {row - page.first: digit for row, digit in whole.digits.items() if page.first <= row < page.end}
        return QuestionShown([*self._view.paged(page, columns), *last], options, found, page)

    def tasks(self, desk: Desk, columns: int, rows: int) -> list[str]:
        found: list[dict[str, Any]] = by_need(list(desk.shown.tasks))[: max(0, rows - 1)]
        if not found:
            return [painted("no tasks", DIM)]
        names = {agent["id"]: agent["name"] for agent in desk.agents}
        cells = [task_row(task, names, max(12, columns // 4)) for task in found]
        return self._out.table_lines(TASK_HEADINGS, cells, grows="WHAT", columns=columns)

    def events(self, desk: Desk, rows: int) -> list[str]:
        """Returns the events, the newest at the bottom."""
        if not desk.events:
            return [painted("nothing has happened since you look here", DIM)]
        names = {agent["id"]: agent["name"] for agent in desk.agents}
        return [self._lines.brief(event, names) for event in islice(desk.events, max(0, len(desk.events) - rows), None)]

    def screen(self, shown: Shown, rows: int) -> list[str]:
        """Returns the end of the agent's screen without the empty rows below it: the latest text is there."""
        lines = shown.screen.split("\n")
        while lines and not _COLOUR.sub("", lines[-1]).strip():
            lines.pop()
        return [only_colours(line) for line in lines[-max(1, rows) :]]

    def title(self, desk: Desk) -> str:
        """Returns the agent of the screen, its place, and the reason why it is missing or outdated."""
        agent = next((one for one in desk.agents if one["name"] == desk.at), None)
        where = painted(f" · {one_line(shorter(agent['cwd'], self._home))}", DIM) if agent is not None else ""
        error = painted(f" · {one_line(desk.shown.error)}", RED) if desk.shown.error and desk.away is None else ""
        return painted(one_line(desk.at or ""), BOLD) + (error or where)


def only_colours(line: str) -> str:
    """Returns `line` with its colours, and all other sequences made visible."""
    pieces = _COLOUR.split(line.rstrip("\r"))
    return "".join(piece if number % 2 else visible(piece) for number, piece in enumerate(pieces))
