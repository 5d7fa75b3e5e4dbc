"""What `top` asks the daemon, in threads of their own: a daemon that takes its time keeps nobody from pressing keys."""

import json
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from synapsectl.client import agent_path
from synapsectl.commands.tasks import by_need
from synapsectl.context import CommandContext
from synapsectl.errors import CtlError
from synapsectl.inbox.items import look
from synapsectl.inbox.model import Command, Give, MarkSeen
from synapsectl.inbox.program import EVENTS as ATTENTION
from synapsectl.inbox.program import GIVE_DEADLINE, give, put_away
from synapsectl.live import Live
from synapsectl.messages import build_parts
from synapsectl.reach import reach
from synapsectl.sending import ask
from synapsectl.top.desk import EVENTS_MAX, Desk, Shown

SCREEN_APART = 0.4
"""Seconds between two looks at the chosen agent's screen."""
TASKS_APART = 1.0
"""Seconds between two looks at its tasks, at the least."""
TASKS_MAX = 50
"""Tasks that are kept to be shown."""
DRAWN = "screen"
"""Tells that a screen has become another: that is to be seen."""
PRIORITY = 1
"""Of a message: that of `send`."""


class Watching:
    """`take` is called where the desk may be touched; the rest is the threads'."""

    def __init__(self, ctx: CommandContext) -> None:
        self._ctx = ctx
        self._live = Live(ctx.client, self._look, changed=lambda: None, on_event=self._on_event)
        self._events: deque[dict[str, Any]] = deque(maxlen=EVENTS_MAX)
        self._done: queue.SimpleQueue[Callable[[Desk, float], None]] = queue.SimpleQueue()
        """What became of what a person did, and who saw to a question; emptied ten times a second."""
        self._threads: list[threading.Thread] = []
        self._wanted = ""
        self._wake = threading.Event()
        self._over = threading.Event()
        self._stale = False
        self._shown = Shown("")
        self._seen: Any = None

    def start(self) -> None:
        self._live.start()
        threading.Thread(target=self._follow, daemon=True).start()

    def stop(self) -> None:
        """Ask no more."""
        self._live.stop()
        self._over.set()
        self._wake.set()

    def take(self, desk: Desk, now: float) -> list[Command]:
        """Give the desk what is new."""
        commands: list[Command] = []
        while not self._done.empty():
            self._done.get()(desk, now)
        while self._events:
            desk.events.append(self._events.popleft())
        seen = self._live.seen
        if seen is not self._seen:
            self._seen = seen
            desk.away = str(seen.away) if seen.away is not None else None
            if seen.told is not None and seen.away is None:
                agents, items = seen.told
                commands = desk.told(agents, items, now)
        desk.show(self._shown)
        if desk.at and desk.at != self._wanted:
            self._wanted = desk.at
            self._wake.set()
        return commands

    # --- what a person does ---

    def do(self, command: Command) -> None:
        """Raises nothing: what became of it is told to the desk."""
        match command:
            case Give(item, answer):
                self._start(item["id"], item["agent"], lambda: give(self._ctx, item, answer.text))
            case MarkSeen(item):
                self._start(item["id"], item["agent"], lambda: put_away(self._ctx, item))

    def send(self, agent: str, text: str) -> None:
        self._start(None, agent, lambda: self._send(agent, text))

    def tell(self, text: str) -> None:
        """Something went wrong elsewhere."""
        self._done.put(lambda desk, now: desk.say(text, now))

    def finish(self) -> bool:
        """Wait for what is under way; whether it has ended."""
        until = time.monotonic() + GIVE_DEADLINE
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _send(self, agent: str, text: str) -> None:
        there, name = reach(self._ctx, agent)
        message = {"role": "user", "parts": build_parts(text, [])}
        body = {"message": message, "metadata": {}, "priority": PRIORITY}
        ask(there.client, name, body, sender=None, response=False, wait=False)

    def _start(self, item_id: str | None, agent: str, what: Callable[[], None]) -> None:
        """Do `what` beside the keys."""

        def run() -> None:
            error = None
            try:
                what()
            except CtlError as refused:
                error = f"{agent}: {refused}"
            self._done.put(partial(_ended, item_id, agent, error))

        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    # --- the threads ---

    def _look(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        return self._ctx.client.get("/agents", {"hosts": 1}), look(self._ctx.client)

    def _on_event(self, event: Any) -> None:
        document = json.loads(event.data)  # of the daemon's own: it is an event, or several
        for one in document["data"] if document.get("event") == "batchEvents" else [document]:
            if not isinstance(one.get("data"), dict) or "time" not in one or one.get("event") == "artifact":
                continue
            if one["event"] == ATTENTION:
                self._done.put(partial(_closed, one["data"]))
            if one["event"] != DRAWN:
                self._events.append(one)
            self._stale = True

    def _follow(self) -> None:
        """Look at the chosen agent, until it is over."""
        looked = 0.0
        while not self._over.is_set():
            agent = self._wanted
            if agent:
                other = self._shown.agent != agent
                tasks = other or (self._stale and time.monotonic() - looked > TASKS_APART)
                if tasks:
                    looked, self._stale = time.monotonic(), False
                self._shown = self._closely(agent, Shown(agent) if other else self._shown, tasks=tasks)
            self._wake.wait(SCREEN_APART)
            self._wake.clear()

    def _closely(self, agent: str, before: Shown, *, tasks: bool) -> Shown:
        found = before.tasks
        try:
            there, name = reach(self._ctx, agent)
            if tasks:
                every = there.client.get("/control/tasks", {"agent": name})
                found = tuple(by_need(every)[:TASKS_MAX])
            screen = there.client.get_bytes(agent_path(name, "screen"), {"format": "coloured"})
        except CtlError as error:
            self._stale = self._stale or tasks
            return Shown(agent, before.screen, str(error), found)
        return Shown(agent, screen.decode("utf-8", "replace"), tasks=found)


def _closed(data: dict[str, Any], desk: Desk, now: float) -> None:
    desk.inbox.closed(data)


def _ended(item_id: str | None, agent: str, error: str | None, desk: Desk, now: float) -> None:
    if item_id is not None:
        desk.inbox.answered(item_id, error, now)
    else:
        desk.say(error or f"{agent} was sent your message", now)
