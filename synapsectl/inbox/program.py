"""Runs the inbox on a terminal: performs the decisions of the pure parts.

Answers are given in threads of their own, since a program may take seconds to accept one; so the keys stay quick.
Leaving by `q` types held answers at once; after a kill they are not typed, and the person gets a list of them.
"""

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.decisions import check_reads, tell_why
from synapsectl.errors import CtlError
from synapsectl.fullscreen import FullScreen
from synapsectl.inbox.answer_keys import HOLD, KeyPress, KeyReader
from synapsectl.inbox.everywhere import Merged, look, missing
from synapsectl.inbox.items import Chosen, Item
from synapsectl.inbox.model import Attach, Command, Give, InboxAct, InboxModel, MarkSeen
from synapsectl.inbox.view import InboxView
from synapsectl.live import Live, LiveView
from synapsectl.prompts import WhoAsks, answer, who_answers
from synapsectl.reach import reach

TICK = 1.0
"""Seconds between two drawings at the most: ages and seconds pass."""
GIVE_DEADLINE = 15.0
"""Seconds to wait for answers that are under way when a person leaves."""
EVENTS = "attention"


def give(ctx: CommandContext, item: Item, chosen: Chosen) -> None:
    """Answers the question of `item`, and nothing else, then sends the agent the reason. Raises CtlError."""
    there, name = reach(ctx, item["agent"])
    client, because = there.client, chosen.because
    agent = who_answers(client, name) if because is not None else {}
    if because is not None:
        check_reads(client, agent)
    answer(client, WhoAsks(name, name, item.get("task"), None), chosen.text, item["prompt_id"])
    if because is not None:
        try:
            tell_why(client, agent, because)
        except CtlError as error:
            raise CtlError(f"it was answered no, but the reason was not sent: {error}") from error


def put_away(ctx: CommandContext, item: Item) -> None:
    """Marks the item as seen by a person. Raises ApiError, NoDaemon."""
    there, _ = reach(ctx, item["agent"])
    item_id = str(item["id"]).rpartition("@")[0] if item.get("host") else item["id"]
    there.client.post(f"/inbox/{item_id}/seen")


class InboxProgram:
    """Runs the inbox until the person leaves. `hold`: seconds in which an answer can be taken back; `attach` puts the
    terminal on an agent, and returns when the person comes back."""

    def __init__(self, ctx: CommandContext, fd: int, *, hold: float, attach: Callable[[str], None]) -> None:
        self._ctx = ctx
        self._attach = attach
        self._screen = FullScreen(fd, encoding=ctx.out.stdout.encoding)
        self._model = InboxModel(hold=hold)
        self._view = InboxView(coloured=ctx.out.coloured, home=ctx.environ.get("HOME", ""))
        self._keys = KeyReader()
        self._news: queue.SimpleQueue[Callable[[float], None]] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        wake = self._screen.wake
        self._here = Live(
            ctx.client, lambda: ctx.client.get("/inbox"), changed=wake, events=EVENTS, on_event=self._on_event
        )
        self._there = Live(ctx.client, lambda: look(ctx.client), changed=wake, events=EVENTS)
        self._merged = Merged()
        self._shown = (LiveView(), LiveView())
        self._leaving = False

    def run(self) -> int | None:
        """Runs; returns the signal that ended it, None if the person left. Raises TerminalGone."""
        with self._screen as screen, self._here, self._there:
            while not self._over():
                self._take_news()
                now = time.monotonic()
                for command in self._model.due(now):
                    self._do(command)
                self._draw(now)
                none = True
                for pressed in screen.pressed(self._patience(now), lambda: self._keys.pasting):
                    none = False
                    self._press(self._keys.feed(pressed))
                    if self._over():
                        break
                if none and self._keys.waits:
                    self._press(self._keys.flush())
        if self._leaving:
            self._finish()
        else:
            self._tell_dropped()
        return screen.ended

    def _press(self, keys: list[KeyPress]) -> None:
        for key in keys:
            now = time.monotonic()
            for command in self._model.key(key, now, self._screen.pressed_at) if not self._over() else ():
                self._do(command)

    def _over(self) -> bool:
        return self._leaving or self._screen.ended is not None

    # --- inside -----------------------------------------------------------------------------------------------------

    def _patience(self, now: float) -> float:
        if self._keys.waits:
            return HOLD
        due = self._model.next_due(now)
        return TICK if due is None else min(TICK, due)

    def _draw(self, now: float) -> None:
        columns, rows = size = self._screen.size()
        taken = self._screen.draw(self._view.lines(self._model, now, datetime.now(UTC), columns, rows))
        if taken and self._screen.size() == size:
            chosen = (row for row in self._model.rows(now) if row.chosen)
            self._model.drawn(next(chosen, None), self._view.page, time.monotonic())
        self._screen.title(f"({self._model.waiting}) synapsed" if self._model.waiting else "synapsed")

    def _take_news(self) -> None:
        """Takes what the threads have put into the queue."""
        now = time.monotonic()
        with suppress(queue.Empty):
            while True:
                self._news.get_nowait()(now)
        here, there = self._here.seen, self._there.seen
        if here is self._shown[0] and there is self._shown[1]:
            return
        first = self._shown[1].told is None  # the first data of other hosts are no news
        self._shown = (here, there)
        self._model.away = str(here.away) if here.away is not None else None
        if here.told is not None:
            self._merged.here(here.told)
        if there.told is not None:
            self._merged.there(there.told)
        self._model.silent = missing(self._merged.hosts)
        if (items := self._merged.items) is not None and here.away is None:
            for command in self._model.told(items, now):
                if not (first and command is InboxAct.BELL):
                    self._do(command)

    def _on_event(self, event: Any) -> None:
        """Takes an event, in the thread of `Live`."""
        import json

        document = json.loads(event.data)  # from the daemon: it is an event, or several
        for one in document["data"] if document.get("event") == "batchEvents" else [document]:
            data = one.get("data")
            if one.get("event") == EVENTS and isinstance(data, dict):
                self._news.put(partial(self._closed, data))

    def _closed(self, data: dict[str, Any], now: float) -> None:
        self._model.closed(data)

    def _do(self, command: Command) -> None:
        match command:
            case Give(item, answer):
                self._start(item, lambda: give(self._ctx, item, answer))
            case MarkSeen(item):
                self._start(item, lambda: put_away(self._ctx, item))
            case Attach(item):
                self._screen.apart(lambda: self._attach_to(item))
            case InboxAct.QUIT:
                self._leaving = True
            case InboxAct.REDRAW:
                self._screen.forget()
            case InboxAct.BELL:
                self._screen.bell()

    def _start(self, item: Item, what: Callable[[], None]) -> None:
        """Does `what` in a thread, so that the keys stay quick."""

        def run() -> None:
            error = None
            try:
                what()
            except CtlError as refused:
                error = f"{item['agent']}: {refused}"
            self._news.put(partial(self._model.answered, item["id"], error))
            self._screen.wake()

        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _attach_to(self, item: Item) -> None:
        try:
            self._attach(item["agent"])
        except CtlError as error:
            self._news.put(partial(self._model.answered, item["id"], str(error)))

    def _finish(self) -> None:
        """Waits for answers under way; reports those that were refused."""
        until = time.monotonic() + GIVE_DEADLINE
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._take_news()
        if any(thread.is_alive() for thread in self._threads):
            self._ctx.out.note("an answer is still being typed: 'synapsectl inbox' shows what became of it")
        elif self._model.note:
            self._ctx.out.note(self._model.note)

    def _tell_dropped(self) -> None:
        for item, chosen in self._model.held:
            self._ctx.out.note(f"{item['agent']} was not answered: {chosen.label}")
