"""The model of the inbox: its rows and its keys. Pure: keys, new items and the time go in, commands come out.

An answer is held for a moment before it is typed, so that `u` can take it back. It is for one prompt, by its id: if
that prompt is answered elsewhere or changes meanwhile, the answer is dropped. A row that is closed elsewhere stays, dim
and with the name of its closer, for `SHOWN_S`, and as long as it is the chosen one: so no other row moves under a key
that is being pressed. A key answers a question only if that question stood on the screen for `NOTICED_S` before the key
was pressed: so a key that is held, or was pressed for the question before, does not answer it. A key that may agree
needs the whole question: all of its rows were shown, the last of them for as long.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from synapsectl.inbox.answer_keys import KeyPress
from synapsectl.inbox.items import (
    Chosen,
    Item,
    NoAnswer,
    by_digit,
    has_terminal,
    in_words,
    is_asked,
    is_finished,
    order,
    takes_words,
    who_answered,
    with_reason,
    yes_or_no,
)
from synapsectl.inbox.paging import QuestionPage, unshown

SHOWN_S = 5.0
"""Seconds for reading the result of a row."""
NOTICED_S = 0.7
"""Seconds within which no person can have read a question that came to the front, and decided."""
TYPED_ON_S = 1.0
"""Longest pause in seconds of a person who still types words after their question is over, or where no question takes
words."""
WAYS = frozenset({"up", "down", "home", "end", "pageup", "pagedown", "tab", "redraw"})
"""Keys that are no part of words."""
ASKED = ("question", "command", "diff", "options")
"""Fields of an item with what is asked. They may change under one prompt: a channel tells the command later."""
TOO_SMALL = "the window is too small for the question: make it larger"
NOTE_S = 8.0
CLOSED_MAX = 500
"""Events about closed rows that are kept, in case they come before the row is gone."""
WORDS_MAX = 10_000
"""Characters of an answer."""


class Give(NamedTuple):
    """Gives this answer to the program."""

    item: Item
    answer: Chosen


class MarkSeen(NamedTuple):
    """Marks the item as seen by a person."""

    item: Item


class Attach(NamedTuple):
    """Puts the terminal on the agent."""

    item: Item


class InboxAct(Enum):
    QUIT = "quit"
    REDRAW = "redraw"
    BELL = "bell"


Command = Give | MarkSeen | Attach | InboxAct


class Held(NamedTuple):
    """An answer that can be taken back until `due`; `number` orders them."""

    answer: Chosen
    due: float
    number: int


class Gone(NamedTuple):
    """A row that is over, and is shown until `until`."""

    item: Item
    told: str
    until: float


class Row(NamedTuple):
    """A row of the display. `held`: seconds until its answer is typed; `told`: its result."""

    item: Item
    chosen: bool
    answer: str = ""
    held: float | None = None
    told: str = ""
    fresh: bool = False
    """True if the item has not been shown long enough to be answered."""
    unshown: int = 0
    """Rows at the end of its question that have not been shown."""


class Stands(NamedTuple):
    """The question on the screen, by its row, its prompt and its text, and the time since which it is there."""

    item_id: str
    prompt_id: str | None
    rows: tuple[str, ...]
    since: float
    read_at: float
    """Time when the last of them was shown."""
    read: int = 0
    """Number of its rows that have been shown."""
    first: int = 0
    """First row of the page that is there."""
    end: int = 0
    """Row after the last of that page."""
    to: int = 0
    """First row of the next page to be drawn."""


class Typing(NamedTuple):
    """An answer that is being typed; with `refusal`, the text is the reason for that no."""

    item: Item
    text: str = ""
    refusal: Chosen | None = None


class InboxModel:
    """The state of the inbox: takes keys and new items, and returns commands. `hold`: seconds in which an answer can be
    taken back."""

    def __init__(self, *, hold: float) -> None:
        self._hold_s = hold
        self.items: list[Item] = []
        self.typing: Typing | None = None
        self.help = False
        self.away: str | None = None
        self.silent: Sequence[str] = ()
        """A line for each other host that does not report its items."""
        self._known = False
        """True if the daemon has sent its items."""
        self._at: str | None = None
        self._stands: Stands | None = None
        self._pressed = float("-inf")
        """The earliest time at which the present key can have been pressed."""
        self._typed_on = float("-inf")
        """Time up to which keys still belong to words that no question takes."""
        self._held: dict[str, Held] = {}
        self._given: dict[str, Chosen] = {}
        """Answers that are being typed into their programs, or were."""
        self._taken: dict[str, float] = {}
        """Times at which rows with accepted answers are to be gone; a row that stays longer asks again."""
        self._gone: dict[str, Gone] = {}
        self._closed: dict[str, Mapping[str, Any]] = {}
        self._note = ""
        self._note_until = 0.0
        self._count = 0
        self._does: dict[str, Callable[[float], list[Command]]] = {
            "q": self._quit,
            "esc": self._quit,
            "?": self._help,
            **dict.fromkeys(("j", "down", "tab"), lambda now: self._move(1)),
            **dict.fromkeys(("k", "up"), lambda now: self._move(-1)),
            **dict.fromkeys(("g", "home"), lambda now: self._move(-len(self._ids()))),
            **dict.fromkeys(("G", "end"), lambda now: self._move(len(self._ids()))),
            **dict.fromkeys((" ", "pagedown"), lambda now: self.turn(1)),
            "pageup": lambda now: self.turn(-1),
            "y": lambda now: self._decide(now, accept=True),
            "n": lambda now: self._decide(now, accept=False),
            "b": self._because,
            "a": self._words,
            "u": self._undo,
            "x": self._put_away,
            "enter": self._attach,
            "redraw": lambda now: [InboxAct.REDRAW],
        }
        """The key table, without the digits."""

    # --- news ---

    def told(self, items: Sequence[Item], now: float) -> list[Command]:
        """Takes the items that wait for a person now."""
        before = {one["id"]: one for one in self.items}
        after = {one["id"]: one for one in items}
        for item_id, item in before.items():
            if item_id not in after:
                self._end(item, now)
            elif any(after[item_id].get(name) != item.get(name) for name in ("prompt_id", *ASKED)):
                self._changed(item, after[item_id], now)
        for item_id in after:
            self._gone.pop(item_id, None)
        new = self._known and any(item_id not in before for item_id in after)
        self.items, self._known = list(items), True
        self._choose_one()
        return [InboxAct.BELL] if new else []

    def closed(self, event: Mapping[str, Any]) -> None:
        """Takes an event that says who closed a row."""
        if event.get("state") == "opened":
            return
        self._closed[str(event.get("id"))] = event
        while len(self._closed) > CLOSED_MAX:
            self._closed.pop(next(iter(self._closed)))

    def answered(self, item_id: str, error: str | None, now: float) -> None:
        """Takes the result of an answer, or of another action: `error` if it was refused."""
        if error is not None:
            self._given.pop(item_id, None)
            self._say(error, now)
        else:
            self._taken[item_id] = now + SHOWN_S

    # --- time ---

    def due(self, now: float) -> list[Command]:
        """Returns the answers whose time has come."""
        commands = [self._give(item_id) for item_id, held in list(self._held.items()) if held.due <= now]
        for item_id, gone in list(self._gone.items()):
            if gone.until <= now and item_id != self._at:
                del self._gone[item_id]
        for item_id, until in list(self._taken.items()):
            if until <= now:
                del self._taken[item_id]
                self._given.pop(item_id, None)
        if self._note_until <= now:
            self._note = ""
        return [one for one in commands if one is not None]

    def next_due(self, now: float) -> float | None:
        """Returns the seconds until the next timed change."""
        times = [held.due for held in self._held.values()]
        times += [gone.until for item_id, gone in self._gone.items() if item_id != self._at]
        times += [self._note_until] if self._note else []
        if self._stands is not None and now < self._stands.read_at + NOTICED_S:
            times.append(self._stands.read_at + NOTICED_S)
        return max(0.0, min(times) - now) if times else None

    def give_all(self) -> list[Command]:
        """Returns every held answer, at once, because the person leaves."""
        return [one for one in (self._give(item_id) for item_id in list(self._held)) if one is not None]

    @property
    def held(self) -> list[tuple[Item, Chosen]]:
        """Returns the answers that are not typed yet."""
        known = {one["id"]: one for one in self.items}
        return [(known[item_id], held.answer) for item_id, held in self._held.items() if item_id in known]

    # --- keys ---

    def choose(self, item_id: str | None) -> None:
        """Chooses the row that keys are for, from outside of this model; None: no row is chosen."""
        self._at = item_id

    def drawn(self, row: Row | None, page: QuestionPage | None, now: float) -> None:
        """Notes that this row is on the screen now, with this page of its question."""
        if row is None or page is None:
            self._stands = None
            return
        stands = self._stands
        if stands is None or not _is_for(stands, row.item) or stands.rows != page.rows:
            stands = Stands(row.item["id"], row.item.get("prompt_id"), page.rows, now, now)
        if page.first <= stands.read < page.end:
            stands = stands._replace(read=page.end, read_at=now)
        self._stands = stands._replace(first=page.first, end=page.end)

    def first_row(self, item: Item, rows: Sequence[str]) -> int:
        """Returns the row of the question of `item` that its page begins with; 0 unless these rows are shown
        already."""
        stands = self._stands
        return stands.to if stands is not None and _is_for(stands, item) and stands.rows == tuple(rows) else 0

    def turn(self, by: int) -> list[Command]:
        """Turns to the next page of the question on the screen, or to the one before."""
        if self._stands is not None:
            first, end = self._stands.first, self._stands.end
            self._stands = self._stands._replace(to=end if by > 0 else max(0, first - max(1, end - first)))
        return []

    def key(self, key: KeyPress, now: float, pressed: float | None = None) -> list[Command]:
        """Handles a key; `pressed` is the time at which it was pressed, if that is not `now`."""
        self._pressed = now if pressed is None else pressed
        if self.typing is not None:
            return self._typed(self.typing, key, now)
        if now < self._typed_on and key.name != "redraw":
            ended = key.name in WAYS or key.name in ("enter", "esc")
            self._typed_on = float("-inf") if ended else now + TYPED_ON_S
            if key.name not in WAYS:
                return []
        if self.help and key.name not in ("q", "redraw"):
            self.help = False
            return []
        if (does := self._does.get(key.name)) is not None:
            return does(now)
        if len(key.name) == 1 and key.name in "123456789":
            digit = key.name
            return self._hold(now, lambda item: by_digit(item, digit))
        if len(key.name) == 1 or key.name == "paste":
            self._refuse("words are typed behind a, where a row takes them; ? tells the keys", now)
        return []

    def _quit(self, now: float) -> list[Command]:
        return [*self.give_all(), InboxAct.QUIT]

    def _help(self, now: float) -> list[Command]:
        self.help = True
        return []

    def _move(self, by: int) -> list[Command]:
        rows = self._ids()
        if rows:
            at = rows.index(self._at) if self._at in rows else 0
            self._at = rows[max(0, min(len(rows) - 1, at + by))]
        return []

    def _decide(self, now: float, *, accept: bool) -> list[Command]:
        return self._hold(now, lambda item: yes_or_no(item, accept=accept), whole=accept)

    def _hold(self, now: float, answer: Callable[[Item], Chosen], *, whole: bool = True) -> list[Command]:
        item = self._answerable(now, whole=whole)
        if item is None:
            return []
        try:
            chosen = answer(item)
        except NoAnswer as refused:
            self._refuse(str(refused), now)
            return []
        self._keep(item, chosen, now)
        return []

    def _keep(self, item: Item, chosen: Chosen, now: float) -> None:
        self._count += 1
        self._held[item["id"]] = Held(chosen, now + self._hold_s, self._count)
        self._say("", now)
        # The next row that waits for an answer is chosen; if there is no other, this one stays chosen.
        rows = sorted(self.items, key=order)
        at = [one["id"] for one in rows].index(item["id"])
        waiting = [one for one in rows[at + 1 :] + rows[:at] if self._waits(one)]
        waiting.sort(key=lambda one: order(one)[0])
        self._at = waiting[0]["id"] if waiting else item["id"]

    def _undo(self, now: float) -> list[Command]:
        """Takes back the chosen row's answer, else the last one."""
        if not self._held:
            self._say("nothing can be taken back: what is typed is typed", now)
            return []
        item_id = self._at if self._at in self._held else max(self._held, key=lambda one: self._held[one].number)
        del self._held[item_id]
        self._at = item_id
        return []

    def _words(self, now: float) -> list[Command]:
        item = self._answerable(now)
        if item is not None and takes_words(item):
            self.typing = Typing(item)
        elif item is not None:
            more = ", or Enter to attach" if has_terminal(item) else ""
            self._refuse(f"it takes no words: press the digit of an option{more}", now)
        return []

    def _because(self, now: float) -> list[Command]:
        item = self._answerable(now, whole=False)
        if item is not None:
            try:
                self.typing = Typing(item, refusal=yes_or_no(item, accept=False))
            except NoAnswer as refused:
                self._refuse(str(refused), now)
        return []

    def _typed(self, typing: Typing, key: KeyPress, now: float) -> list[Command]:
        match key.name:
            case "esc":
                self.typing = None
            case "enter":
                self.typing = None
                self._entered(typing, now)
            case "backspace":
                self.typing = typing._replace(text=typing.text[:-1])
            case "clear":
                self.typing = typing._replace(text="")
            case "paste":
                self._add(typing, _with_newlines(key.text), now)
            case "redraw":
                return [InboxAct.REDRAW]
            case name if len(name) == 1:
                self._add(typing, name, now)
        return []

    def _add(self, typing: Typing, text: str, now: float) -> None:
        whole = typing.text + text
        if len(whole) > WORDS_MAX:
            self._say(f"at most {WORDS_MAX:,} characters: the rest was left out", now)
        self.typing = typing._replace(text=whole[:WORDS_MAX])

    def _entered(self, typing: Typing, now: float) -> None:
        """Holds the words as an answer. The item may have changed meanwhile, but not its question (`_changed`)."""
        item = next((one for one in self.items if one["id"] == typing.item["id"]), None)
        if typing.refusal is not None and not typing.text.strip():
            self._say("there is no reason in it: n says no without one", now)
        elif item is not None:
            refusal = typing.refusal
            self._keep(item, with_reason(refusal, typing.text) if refusal else in_words(item, typing.text), now)

    def _attach(self, now: float) -> list[Command]:
        """Attaches, to answer by hand: a held answer of this row is dropped, the others are given."""
        item = self._chosen(now)
        if item is None:
            return []
        if not has_terminal(item):
            self._refuse(f"{item['agent']} has no terminal to attach to: answer it from here", now)
            return []
        self._held.pop(item["id"], None)
        self._stands = None
        return [*self.give_all(), Attach(item)]

    def _put_away(self, now: float) -> list[Command]:
        item = self._chosen(now)
        if item is None:
            return []
        if item.get("prompt_id"):
            more = ", or press Enter to attach" if has_terminal(item) else ""
            self._say(f"it asks something: answer it{more}", now)
            return []
        if not self._stood(item, self._pressed):
            return self._unread(now)
        self._move(1)
        return [MarkSeen(item)]

    # --- what is shown ---

    @property
    def known(self) -> bool:
        return self._known

    @property
    def note(self) -> str:
        return self._note

    @property
    def waiting(self) -> int:
        """The number of items that wait for a person to do something."""
        return sum(1 for one in self.items if not is_finished(one) and self._waits(one))

    @property
    def finished(self) -> int:
        """The number of items that only report a finished task."""
        return sum(1 for one in self.items if is_finished(one))

    def rows(self, now: float) -> list[Row]:
        """Returns the rows in their order, with the closed ones among them."""
        shown = []
        for item in self._in_order():
            item_id = item["id"]
            held, given, gone = self._held.get(item_id), self._given.get(item_id), self._gone.get(item_id)
            chosen = item_id == self._at
            if gone is not None:
                shown.append(Row(item, chosen, told=gone.told))
            elif held is not None:
                shown.append(Row(item, chosen, answer=held.answer.label, held=max(0.0, held.due - now)))
            else:
                stands = self._of(item)
                left = len(stands.rows) - stands.read if stands is not None else 0
                fresh = not (self._stood(item, now) if left else self._is_read(item, now))
                shown.append(Row(item, chosen, answer=given.label if given else "", fresh=fresh, unshown=left))
        return shown

    # --- inside ---

    def _in_order(self) -> list[Item]:
        every = [*self.items, *(gone.item for gone in self._gone.values())]
        return sorted(every, key=order)

    def _waits(self, item: Item) -> bool:
        """Returns True for an item without an answer yet."""
        return item["id"] not in self._held and item["id"] not in self._given

    def _ids(self) -> list[str]:
        return [one["id"] for one in self._in_order()]

    def _choose_one(self) -> None:
        ids = self._ids()
        if self._at not in ids:
            self._at = ids[0] if ids else None

    def _chosen(self, now: float) -> Item | None:
        """Returns the item of the chosen row, if it is not over."""
        if self._at in self._gone:
            self._refuse("that is over", now)
            return None
        return next((one for one in self.items if one["id"] == self._at), None)

    def _answerable(self, now: float, *, whole: bool = True) -> Item | None:
        """Returns the chosen item if it can be answered; an answer that may agree to it needs the `whole` question."""
        item = self._chosen(now)
        if item is not None and item["id"] in self._given:
            self._refuse("its answer is being typed", now)
            return None
        if item is None or not is_asked(item):
            return item
        stands = self._of(item)
        if whole and stands is not None and (left := len(stands.rows) - stands.read):
            self._say(unshown(left) if stands.end else TOO_SMALL, now)
            return None
        if not (self._is_read(item, self._pressed) if whole else self._stood(item, self._pressed)):
            self._unread(now)
            return None
        return item

    def _of(self, item: Item) -> Stands | None:
        """Returns what is on the screen, if it is the question of `item`."""
        return self._stands if self._stands is not None and _is_for(self._stands, item) else None

    def _stood(self, item: Item, at: float) -> bool:
        """Returns True if the question of `item` had stood on the screen long enough at the time `at`."""
        stands = self._of(item)
        return stands is not None and at - stands.since >= NOTICED_S

    def _is_read(self, item: Item, at: float) -> bool:
        """Returns True if the whole question of `item` had been shown at the time `at`, its last row long enough."""
        stands = self._of(item)
        return stands is not None and stands.read == len(stands.rows) and at - stands.read_at >= NOTICED_S

    def _unread(self, now: float) -> list[Command]:
        self._refuse("one key answers one question: read this one, then press again", now)
        return []

    def _give(self, item_id: str) -> Command | None:
        answer = self._held.pop(item_id).answer
        item = next((one for one in self.items if one["id"] == item_id), None)
        if item is None:
            return None
        self._given[item_id] = answer
        return Give(item, answer)

    def _end(self, item: Item, now: float) -> None:
        """Handles an item that is no longer in the inbox."""
        item_id = item["id"]
        held, given = self._held.pop(item_id, None), self._given.pop(item_id, None)
        closed = self._closed.get(item_id)
        if given is not None:
            told = f"answered: {given.label}"
        else:
            told = who_answered(closed) if closed is not None else "no longer asked"
            if not is_asked(item):
                told = "over"
        if held is not None:
            self._say(f"{item['agent']}: {told}; your answer was not typed", now)
        if self.typing is not None and self.typing.item["id"] == item_id:
            self._lose_words(f"{item['agent']}: {told}", now)
        self._gone[item_id] = Gone(item, told, now + SHOWN_S)

    def _changed(self, before: Item, item: Item, now: float) -> None:
        """Handles an item whose question has changed."""
        if before.get("prompt_id") != item.get("prompt_id"):
            self._given.pop(item["id"], None)
        if self._held.pop(item["id"], None) is not None:
            self._say(f"{item['agent']} asks something else now; your answer was not typed", now)
        if self.typing is not None and self.typing.item["id"] == item["id"]:
            self._lose_words(f"{item['agent']} asks something else now", now)

    def _lose_words(self, why: str, now: float) -> None:
        """Drops words that are being typed: a typist does not see at once that they are lost, and a letter of them is
        no answer."""
        self.typing, self._typed_on = None, now + TYPED_ON_S
        self._say(f"{why}; what you typed was not sent", now)

    def _refuse(self, why: str, now: float) -> None:
        """Refuses a key that does nothing here: it may be the first letter of a word, and the letters after it are no
        answers either."""
        self._typed_on = now + TYPED_ON_S
        self._say(why, now)

    def _say(self, text: str, now: float) -> None:
        self._note, self._note_until = text, now + NOTE_S


def _with_newlines(pasted: str) -> str:
    """Returns the text with newlines: a terminal sends line ends of a paste as Enter."""
    return pasted.replace("\r\n", "\n").replace("\r", "\n")


def _is_for(stands: Stands, item: Item) -> bool:
    return (stands.item_id, stands.prompt_id) == (item["id"], item.get("prompt_id"))
