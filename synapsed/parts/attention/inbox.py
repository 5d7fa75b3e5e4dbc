"""The inbox: items that need a person, kept in step with the log of events (`board`, `consequences`).

It has two followers of the log, which read it and keep their places. One keeps the board: it begins with the open items
in the log, and is at the log's end a moment after each event. The other draws conclusions, GRACE_S behind the log, so
that a client that waits for a task has got the task's end by then; its events and its place in the log are one commit,
so that nothing is reported twice, even after a kill.
"""

import asyncio
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import structlog

from synapsed.aio import Timers, cancel_all, pause
from synapsed.clock import Ages, Clock, iso
from synapsed.errors import NotInInbox, NotWaiting, StoreError, SynapsedError
from synapsed.interfaces import (
    Directory,
    EventFilter,
    ProcessState,
    Store,
    Terminals,
    WaitingHere,
)
from synapsed.model.events import AttentionChanged, AttentionItem, Event, Origin
from synapsed.model.external import alias_of
from synapsed.model.task import INTERRUPTED_STATES
from synapsed.parts.attention import board as boards
from synapsed.parts.attention import consequences
from synapsed.parts.attention.board import Board, OpenItem
from synapsed.store.follower import Changes, DurableFollower, Follower

LOOK_EVERY_S = 1.0
"""Seconds between two looks at facts without events: the agents that a person looks at, and the tasks that were
read."""

AROUND = 2000
"""Ids before an item's opening in which a new daemon searches for the whole prompt (`inputRequired`)."""

PAGE = 500
RETRY_S = 5.0

log = structlog.stdlib.get_logger("synapsed.parts.attention")


class PersonInbox(WaitingHere):
    """The person's inbox. First call `restore`, then `start` once the agents are there, and at the end `close`."""

    def __init__(
        self, *, directory: Directory, terminals: Terminals, store: Store, clock: Clock, timers: Timers
    ) -> None:
        self._directory = directory
        self._terminals = terminals
        self._store = store
        self._clock = clock
        self._ages = Ages(clock)
        self._timers = timers
        self._keeper = BoardKeeper(directory, store, timers, on_change=self._wake)
        self._board = self._keeper.board
        self._conclusions = Conclusions(self._keeper, directory, terminals, store=store, clock=clock, timers=timers)
        self._made: dict[str, _Made] = {}
        """Shown forms of the open items; each is made again after a change."""
        self._moved = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    async def restore(self) -> None:
        await self._keeper.restore()
        await self._conclusions.restore()

    def start(self) -> None:
        if self._looking is None:
            self._keeper.start()
            self._conclusions.start()
            self._looking = asyncio.get_running_loop().create_task(self._look(), name="inbox looks")

    async def close(self) -> None:
        """Stops the followers. May be called again."""
        if (looking := self._looking) is not None:
            self._looking = None
            await cancel_all([looking])
            await self._conclusions.close()
            await self._keeper.close()

    # --- what is in it ---

    def __len__(self) -> int:
        return len(self.open())

    def open(self) -> list[OpenItem]:
        """Returns the open items, the oldest first, without limits of stopped agents, which need no person."""
        return [item for item, _ in self._counted()]

    def items(self) -> list[AttentionItem]:
        """Returns the same items in the form that clients get. Only items that changed since the last call are made
        again."""
        looked = functools.cache(self._looked_at)
        made: dict[str, _Made] = {}
        for item, whose in self._counted():
            about = _About(*whose[:2], terminal=whose.state is not None, looked_at=looked(item.agent_id))
            known = self._made.get(item.id)
            if known is None or known.item is not item or known.about != about:
                known = _Made(item, about, _as_shown(item, about))
            made[item.id] = known
        self._made = made
        return [one.shown for one in made.values()]

    def _counted(self) -> Iterator[tuple[OpenItem, "_Whose"]]:
        """Yields each item with its agent, which is looked up once for all its items."""
        seen = functools.cache(self._whose)
        for item in self._board.items:
            whose = seen(item.agent_id)
            if whose is not None and _counts(item, whose):
                yield item, whose

    def get(self, item_id: str) -> OpenItem | None:
        """Returns the item, if it still needs a person."""
        item = self._board.get(item_id)
        whose = self._whose(item.agent_id) if item is not None else None
        return item if item is not None and whose is not None and _counts(item, whose) else None

    def outcome(self, item_id: str) -> dict[str, str | None]:
        """Returns the end of an item that is not open any more."""
        told = self._board.outcome(item_id)
        if told is None:
            return {"state": "gone", "by": None, "who": None, "where": None}
        return {"state": told.state, "by": told.by, "who": told.who, "where": told.where}

    @property
    def moved(self) -> asyncio.Event:
        """Event that is set at the next change of the items, and replaced then: take the event before you look at the
        items."""
        return self._moved

    async def put_away(self, item_id: str, origin: Origin) -> None:
        """Notes that a person has seen an item that asks nothing. Raises NotInInbox, NotWaiting."""
        item = self._board.get(item_id)
        if item is None:
            raise NotInInbox(f"there is nothing {item_id[:80]!r} in the inbox: it may be over", id=item_id[:80])
        if item.asks:
            raise NotWaiting("its program waits for an answer: approve, deny or answer it", id=item.id)
        await self._store.commit(events=[consequences.closed(item, by=origin)])
        await self._keeper.reached(self._store.events.last_id)

    # --- inside ---

    async def _look(self) -> None:
        """Looks at intervals at facts without events. Returns when the store is closed."""
        while True:
            await pause(self._timers, LOOK_EVERY_S)
            try:
                await self._conclusions.save()
                await self._look_once()
            except StoreError as error:
                if error.details.get("reason") == "closed":
                    return
                log.warning("the store refused", error=error.message)
                await pause(self._timers, RETRY_S)
            except Exception:
                log.exception("the inbox has a fault")
                await pause(self._timers, RETRY_S)

    async def _look_once(self) -> None:
        items, heard = self._board.items, self._store.events.heard
        over = [
            *consequences.stable(self._board, age=lambda agent_id, since: self._ages.of(f"{agent_id} {since}", since)),
            *consequences.seen(
                self._board,
                (item.task_id for item in items if item.task_id is not None and item.task_id in heard),
                {item.agent_id for item in items if self._looked_at(item.agent_id)},
            ),
        ]
        if over:
            await self._store.commit(events=over)
            await self._keeper.reached(self._store.events.last_id)

    def _wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _whose(self, agent_id: str) -> "_Whose | None":
        """Returns the agent of an item; None if it was removed."""
        if (alias := alias_of(agent_id)) is not None:
            return _Whose(alias, "", None)
        try:
            view = self._directory.view(agent_id)
        except SynapsedError:
            return None
        return _Whose(view.name, view.cwd, view.state)

    def _looked_at(self, agent_id: str) -> bool:
        return alias_of(agent_id) is None and self._terminals.looked_at(agent_id)


class BoardKeeper(Follower):
    """Keeps the board, a moment behind the log. `on_change` is called when the items change."""

    name = "inbox"
    wants = EventFilter(types=boards.TYPES)

    def __init__(self, directory: Directory, store: Store, timers: Timers, *, on_change: Callable[[], None]) -> None:
        super().__init__(store.events, timers)
        self._store = store
        self.board = Board()
        self._directory = directory
        self._on_change = on_change
        self._items = self.board.items

    async def restore(self) -> None:
        """Reads the open items from the log."""
        if self.cursor >= 0:
            return
        self.cursor = self._events.last_id
        elsewhere = [task.agent_id for task in await self._store.open_tasks() if task.status in INTERRUPTED_STATES]
        here = [view.id for view in self._directory.agents()]
        for agent_id in dict.fromkeys([*here, *(one for one in elsewhere if alias_of(one) is not None)]):
            opened = await self._events.open_attention(agent_id)
            if opened:
                self.board.restore(opened, await self._around(agent_id, opened))

    async def handle(self, event: Event) -> None:
        self.board.take(event)

    async def keep(self, event_id: int, changes: Changes) -> None:
        await self._store.commit(events=changes.events)

    async def handled(self) -> None:
        before, self._items = self._items, self.board.items
        if before != self._items:
            self._on_change()

    async def _around(self, agent_id: str, opened: Iterable[Event]) -> list[Event]:
        """Returns the agent's events that describe its items, without other items. Prompts are read only around
        questions: an alert may stay open for months."""
        asking = [event for event in opened if isinstance(event.data, AttentionChanged) and event.data.prompt_id]
        calls = await self._since(agent_id, asking, boards.TYPES - {"attention"})
        return [*calls, *await self._since(agent_id, opened, frozenset({"agentState"}))]

    async def _since(self, agent_id: str, opened: Iterable[Event], types: frozenset[str]) -> list[Event]:
        """Returns the events of `types` from a while before the first of `opened`."""
        first = min((event.id for event in opened), default=None)
        if first is None:
            return []
        after, found = max(0, first - AROUND), list[Event]()
        while batch := await self._events.read(after, agent_id=agent_id, types=types, limit=PAGE):
            found += batch
            after = batch[-1].id
        return found


class Conclusions(DurableFollower):
    """Follower that reports the consequences of events, GRACE_S after them."""

    name = "attention"
    wants = EventFilter(types=consequences.TYPES)

    def __init__(
        self,
        keeper: BoardKeeper,
        directory: Directory,
        terminals: Terminals,
        *,
        store: Store,
        clock: Clock,
        timers: Timers,
    ) -> None:
        super().__init__(store, timers)
        self._keeper = keeper
        self._directory = directory
        self._terminals = terminals
        self._clock = clock

    async def due(self, event: Event) -> None:
        left = event.at + consequences.GRACE_S - self._clock.wall()
        await self._pause(min(left, consequences.GRACE_S))
        await self._keeper.reached(event.id)

    async def handle(self, event: Event) -> Changes | None:
        if event.id <= self._store.events.born(event.agent_id):
            return None  # of a removed agent, whose id another one has now
        task, heard = None, False
        if consequences.needs_task(event) and event.task_id is not None:
            heard = event.task_id in self._store.events.heard
            task = None if heard else await self._store.task(event.task_id)
        looked_at = heard or self._terminals.looked_at(event.agent_id)
        told = consequences.follows(
            event, self._keeper.board, consequences.Facts(self._state(event.agent_id), task, looked_at)
        )
        return Changes(told) if told else None

    async def keep(self, event_id: int, changes: Changes) -> None:
        await super().keep(event_id, changes)
        if changes.events:
            await self._keeper.reached(self._store.events.last_id)

    def _state(self, agent_id: str) -> ProcessState | None:
        try:
            return self._directory.view(agent_id).state
        except SynapsedError:
            return None


class _Whose(NamedTuple):
    """The agent of an item: its name, its folder, and its state. The state is None for an agent elsewhere, of which
    only the questions are known."""

    name: str
    cwd: str
    state: ProcessState | None


class _About(NamedTuple):
    """Facts that an item shows beside itself: its agent's name and folder, and True if the agent has a terminal, and if
    a person looks at it."""

    name: str
    cwd: str
    terminal: bool
    looked_at: bool


class _Made(NamedTuple):
    """Shown form of an item: `shown` was made of the other fields."""

    item: OpenItem
    about: _About
    shown: AttentionItem


def _as_shown(item: OpenItem, about: _About) -> AttentionItem:
    prompt = item.prompt
    return AttentionItem(
        id=item.id,
        agent=about.name,
        agent_id=item.agent_id,
        cwd=about.cwd,
        kind=item.kind,
        question=item.question,
        command=prompt.command if prompt is not None else None,
        diff=prompt.diff if prompt is not None else None,
        options=prompt.options if prompt is not None else [],
        since=iso(item.since),
        task=item.task_id,
        prompt_id=item.prompt_id,
        prompt_type=prompt.type if prompt is not None else None,
        own_words=prompt.own_words if prompt is not None else False,
        until=item.until,
        terminal=about.terminal,
        looked_at=about.looked_at,
    )


def _counts(item: OpenItem, whose: _Whose) -> bool:
    return item.kind != "limit" or whose.state is not ProcessState.STOPPED
