"""Makes the requests of `top` to the daemon in threads of their own, so that keys work while the daemon is slow."""

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
from synapsectl.inbox.everywhere import Merged, look, missing
from synapsectl.inbox.model import Command, Give, InboxAct, MarkSeen
from synapsectl.inbox.program import EVENTS as ATTENTION
from synapsectl.inbox.program import GIVE_DEADLINE, give, put_away
from synapsectl.live import Live, LiveView
from synapsectl.messages import build_parts
from synapsectl.reach import reach
from synapsectl.sending import ask
from synapsectl.top.desk import EVENTS_MAX, Desk, Shown

SCREEN_APART = 0.4
"""Seconds between two looks at the chosen agent's screen."""
TASKS_APART = 1.0
"""Least seconds between two reads of the chosen agent's tasks."""
TASKS_MAX = 50
"""Tasks that are kept to be shown."""
DRAWN = "screen"
"""Type of the event that a screen has changed, which is visible anyway."""
PRIORITY = 1
"""Priority of a message: that of `send`."""


class Watching:
    """Reads and does things. `take` is called where the desk may be touched; the threads do the rest."""

    def __init__(self, ctx: CommandContext) -> None:
        self._ctx = ctx
        client = ctx.client
        self._here = Live(
            client,
            lambda: (client.get("/agents"), client.get("/inbox")),
            changed=lambda: None,
            on_event=self._on_event,
        )
        self._there = Live(
            client, lambda: (client.get("/agents", {"hosts": 1}), look(client)), changed=lambda: None, events=ATTENTION
        )
        """Reads other hosts apart, so that none of them delays this one."""
        self._merged = Merged()
        self._events: deque[dict[str, Any]] = deque(maxlen=EVENTS_MAX)
        self._done: queue.SimpleQueue[Callable[[Desk, float], None]] = queue.SimpleQueue()
        """Results of a person's actions, and closers of questions; emptied ten times a second."""
        self._threads: list[threading.Thread] = []
        self._wanted = ""
        self._wake = threading.Event()
        self._over = threading.Event()
        self._stale = False
        self._shown = Shown("")
        self._seen = (LiveView(), LiveView())

    def start(self) -> None:
        self._here.start()
        self._there.start()
        threading.Thread(target=self._follow, daemon=True).start()

    def stop(self) -> None:
        """Ends the requests."""
        self._here.stop()
        self._there.stop()
        self._over.set()
        self._wake.set()

    def take(self, desk: Desk, now: float) -> list[Command]:
        """Gives the desk the changes."""
        commands: list[Command] = []
        while not self._done.empty():
            self._done.get()(desk, now)
        while self._events:
            desk.events.append(self._events.popleft())
        here, there = self._here.seen, self._there.seen
        if here is not self._seen[0] or there is not self._seen[1]:
            commands = self._tell(desk, here, there, now)
        desk.show(self._shown)
        if desk.at and desk.at != self._wanted:
            self._wanted = desk.at
            self._wake.set()
        return commands

    def _tell(self, desk: Desk, here: LiveView, there: LiveView, now: float) -> list[Command]:
        first = self._seen[1].told is None  # the first data of other hosts are no news
        self._seen = (here, there)
        desk.away = str(here.away) if here.away is not None else None
        if here.told is None:
            return []
        agents, items = here.told
        self._merged.here(items)
        if there.told is not None:
            everywhere, told = there.told
            names = {agent["name"] for agent in agents}
            agents = [*agents, *(agent for agent in everywhere if agent["name"] not in names)]
            self._merged.there(told)
        desk.inbox.silent = missing(self._merged.hosts)
        every = self._merged.items
        if every is None or here.away is not None:
            return []
        return [one for one in desk.told(agents, every, now) if not (first and one is InboxAct.BELL)]

    # --- what a person does ---

    def do(self, command: Command) -> None:
        """Does a command; raises nothing, because its result goes to the desk."""
        match command:
            case Give(item, answer):
                self._start(item["id"], item["agent"], lambda: give(self._ctx, item, answer))
            case MarkSeen(item):
                self._start(item["id"], item["agent"], lambda: put_away(self._ctx, item))

    def send(self, agent: str, text: str) -> None:
        self._start(None, agent, lambda: self._send(agent, text))

    def tell(self, text: str) -> None:
        """Reports an error from elsewhere."""
        self._done.put(lambda desk, now: desk.say(text, now))

    def finish(self) -> bool:
        """Waits for actions under way; returns True if they have ended."""
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
        """Does `what` in a thread, so that the keys stay quick."""

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

    def _on_event(self, event: Any) -> None:
        document = json.loads(event.data)  # from the daemon: it is an event, or several
        for one in document["data"] if document.get("event") == "batchEvents" else [document]:
            if not isinstance(one.get("data"), dict) or "time" not in one or one.get("event") == "artifact":
                continue
            if one["event"] == ATTENTION:
                self._done.put(partial(_closed, one["data"]))
            if one["event"] != DRAWN:
                self._events.append(one)
            self._stale = True

    def _follow(self) -> None:
        """Reads screen and tasks of the chosen agent, until `stop`."""
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
