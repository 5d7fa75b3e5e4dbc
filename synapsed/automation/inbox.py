"""Who needs a person, kept in step with the log of events (`synapsed.attention`).

Two followers. One keeps the board: it begins with what the log says is open, and is at the log's end a moment after
each event. The other draws conclusions, GRACE_S behind the log, so that whoever waits for a task has been given its
end by then; what it tells and how far it has come are one commit, so that nothing is told twice, whatever is killed.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, NamedTuple

import structlog

from synapsed.aio import Timers, pause
from synapsed.attention import board as boards
from synapsed.attention import consequences
from synapsed.attention.board import Board, OpenItem
from synapsed.clock import Ages, Clock, iso
from synapsed.errors import NotInInbox, NotWaiting, StoreError, SynapsedError
from synapsed.interfaces import Directory, EventFilter, Store, Terminals
from synapsed.model.agent import AgentView, ProcessState
from synapsed.model.attention import AttentionItem
from synapsed.model.events import AttentionChanged, Event, Origin
from synapsed.model.follower import FollowerState

FOLLOWER: Final = "attention"

LOOK_EVERY_S = 1.0
"""Between two looks at what no event tells of: who looks at which agent, which tasks were read."""

AROUND = 2000
"""Ids before an item was opened among which a new daemon looks for what its program was about to do."""

PAGE = 500
PAGE_SIZE = 4 * 1024 * 1024
STORE_RETRY_S = 5.0

log = structlog.stdlib.get_logger("synapsed.attention")


class PersonInbox:
    """Life: `restore`, `start` once the agents are there, …, `close`."""

    def __init__(
        self, *, directory: Directory, terminals: Terminals, store: Store, clock: Clock, timers: Timers
    ) -> None:
        self._directory = directory
        self._terminals = terminals
        self._store = store
        self._clock = clock
        self._ages = Ages(clock)
        self._timers = timers
        self._board = Board()
        self._made: dict[str, _Made] = {}
        """What is shown of the items that are open, until something of it changes."""
        self._cursor = 0
        """Of the board."""
        self._concluded = self._saved = 0
        self._moved = asyncio.Event()
        self._advanced = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def restore(self) -> None:
        """Take up what the log says is open."""
        events = self._store.events
        self._cursor = events.last_id
        for view in self._directory.agents():
            opened = await events.open_attention(view.id)
            if opened:
                around = await self._around(view.id, opened)
                self._board.restore(opened, around)
        state = await self._store.follower(FOLLOWER)
        self._concluded = self._saved = state.cursor if state is not None else self._cursor
        if state is None:
            await self._store.keep_follower(FOLLOWER, FollowerState(cursor=self._cursor))

    def start(self) -> None:
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [
                loop.create_task(self._repeated(self._keep), name="inbox"),
                loop.create_task(self._repeated(self._conclude), name="inbox conclusions"),
                loop.create_task(self._repeated(self._look), name="inbox looks"),
            ]

    async def close(self) -> None:
        """May be called again."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        self._advanced.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        if tasks:
            await self._save()

    # --- what is in it ---

    def __len__(self) -> int:
        return len(self.open())

    def open(self) -> list[OpenItem]:
        """What needs a person, the oldest first. A limit of an agent that is stopped needs nobody."""
        return [item for item, _ in self._counted()]

    def items(self) -> list[AttentionItem]:
        """The same, as it is shown. Only what has changed since the last call is made."""
        looked = functools.cache(self._looked_at)
        made: dict[str, _Made] = {}
        for item, view in self._counted():
            about = _About(view.name, view.cwd, looked(item.agent_id))
            known = self._made.get(item.id)
            if known is None or known.item is not item or known.about != about:
                known = _Made(item, about, _as_shown(item, about))
            made[item.id] = known
        self._made = made
        return [one.shown for one in made.values()]

    def _counted(self) -> Iterator[tuple[OpenItem, AgentView]]:
        """Each with its agent, which is looked at once however many items it has."""
        seen = functools.cache(self._view)
        for item in self._board.items:
            view = seen(item.agent_id)
            if view is not None and _counts(item, view):
                yield item, view

    def get(self, item_id: str) -> OpenItem | None:
        """The item, if it still needs a person."""
        item = self._board.get(item_id)
        view = self._view(item.agent_id) if item is not None else None
        return item if item is not None and view is not None and _counts(item, view) else None

    def shown(self, item: OpenItem) -> AttentionItem:
        """The item as it is shown to people; its agent may be gone by now."""
        view = self._view(item.agent_id)
        name, cwd = (view.name, view.cwd) if view is not None else (item.agent_id, "")
        return _as_shown(item, _About(name, cwd, self._looked_at(item.agent_id)))

    def outcome(self, item_id: str) -> dict[str, str | None]:
        """What became of an item that is not open any more."""
        told = self._board.outcome(item_id)
        if told is None:
            return {"state": "gone", "by": None, "who": None, "where": None}
        return {"state": told.state, "by": told.by, "who": told.who, "where": told.where}

    @property
    def moved(self) -> asyncio.Event:
        """Is set at the next change of what is in it, and is another one then: take hold of it before you look."""
        return self._moved

    async def put_away(self, item_id: str, origin: Origin) -> None:
        """A person has seen what asks nothing. Raises NotInInbox, NotWaiting."""
        item = self._board.get(item_id)
        if item is None:
            raise NotInInbox(f"there is nothing {item_id[:80]!r} in the inbox: it may be over", id=item_id[:80])
        if item.asks:
            raise NotWaiting("its program waits for an answer: approve, deny or answer it", id=item.id)
        await self._store.commit(events=[consequences.closed(item, by=origin)])
        await self._caught_up(self._store.events.last_id)

    # --- in step with the log ---

    async def _repeated(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it until the store is closed; one fault does not end it."""
        while True:
            try:
                await work()
            except StoreError as error:
                if error.details.get("reason") == "closed":
                    return
                log.warning("the store refused", error=error.message)
                await pause(self._timers, STORE_RETRY_S)
            except Exception:
                log.exception("the inbox has a fault")
                await pause(self._timers, STORE_RETRY_S)
            else:
                return

    async def _keep(self) -> None:
        """Keep the board."""
        which = EventFilter(types=boards.TYPES)
        events = self._store.events
        while (after := await events.changed(self._cursor, which)) is not None:
            page = await events.page(max(after, self._cursor), which, limit=PAGE, size=PAGE_SIZE)
            before = self._board.items if page.events else []
            for event in page.events:
                self._board.take(event)
            self._cursor = page.upto
            self._advanced.set()
            if page.events and before != self._board.items:
                self._wake()

    async def _conclude(self) -> None:
        """Tell what follows from what happened."""
        which = EventFilter(types=consequences.TYPES)
        events = self._store.events
        while (after := await events.changed(self._concluded, which)) is not None:
            page = await events.page(max(after, self._concluded), which, limit=PAGE, size=PAGE_SIZE)
            for event in page.events:
                left = event.at + consequences.GRACE_S - self._clock.wall()
                await pause(self._timers, min(left, consequences.GRACE_S))
                await self._conclude_from(event)
            self._concluded = page.upto

    async def _conclude_from(self, event: Event) -> None:
        await self._caught_up(event.id)
        if event.id <= self._store.events.born(event.agent_id):
            return  # of an agent that was removed, while another has its id
        task, heard = None, False
        if consequences.needs_task(event) and event.task_id is not None:
            heard = event.task_id in self._store.events.heard
            task = None if heard else await self._store.task(event.task_id)
        facts = consequences.Facts(self._state(event.agent_id), task, heard or self._looked_at(event.agent_id))
        if told := consequences.follows(event, self._board, facts):
            await self._store.keep_follower(FOLLOWER, FollowerState(cursor=event.id), events=told)
            self._saved = event.id
            await self._caught_up(self._store.events.last_id)
        self._concluded = event.id

    def _age(self, agent_id: str, since: float) -> float:
        return self._ages.of(f"{agent_id} {since}", since)

    async def _look(self) -> None:
        while True:
            await pause(self._timers, LOOK_EVERY_S)
            await self._save()
            items = self._board.items
            if not items:
                continue
            heard = self._store.events.heard
            over = [
                *consequences.stable(self._board, age=self._age),
                *consequences.seen(
                    self._board,
                    (item.task_id for item in items if item.task_id is not None and item.task_id in heard),
                    {item.agent_id for item in items if self._terminals.looked_at(item.agent_id)},
                ),
            ]
            if over:
                await self._store.commit(events=over)
                await self._caught_up(self._store.events.last_id)

    async def _save(self) -> None:
        """Make durable how far the conclusions have come; not for each event, of which most have none."""
        if self._concluded > self._saved:
            self._saved = self._concluded
            await self._store.keep_follower(FOLLOWER, FollowerState(cursor=self._concluded))

    async def _caught_up(self, upto: int) -> None:
        """Returns when the board has taken the event `upto`, and all before it."""
        while self._cursor < upto and self._tasks and not self._tasks[0].done():
            self._advanced.clear()
            await self._advanced.wait()

    async def _around(self, agent_id: str, opened: Iterable[Event]) -> list[Event]:
        """Events of the agent that say what its items are about: no other items. Calls only around what is asked: an
        alert may stand for months."""
        asking = [event for event in opened if isinstance(event.data, AttentionChanged) and event.data.prompt_id]
        calls = await self._since(agent_id, asking, boards.TYPES - {"attention"})
        return [*calls, *await self._since(agent_id, opened, frozenset({"agentState"}))]

    async def _since(self, agent_id: str, opened: Iterable[Event], types: frozenset[str]) -> list[Event]:
        """Those of `types` from a while before the first of `opened`."""
        first = min((event.id for event in opened), default=None)
        if first is None:
            return []
        events, after, found = self._store.events, max(0, first - AROUND), list[Event]()
        while batch := await events.read(after, agent_id=agent_id, types=types, limit=PAGE):
            found += batch
            after = batch[-1].id
        return found

    def _wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _view(self, agent_id: str) -> AgentView | None:
        try:
            return self._directory.view(agent_id)
        except SynapsedError:
            return None

    def _state(self, agent_id: str) -> ProcessState | None:
        view = self._view(agent_id)
        return view.state if view is not None else None

    def _looked_at(self, agent_id: str) -> bool:
        return self._terminals.looked_at(agent_id)


class _About(NamedTuple):
    """What an item shows besides itself: its agent's name and folder, and whether somebody looks at it."""

    name: str
    cwd: str
    looked_at: bool


class _Made(NamedTuple):
    """`shown` was made of the others."""

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
        looked_at=about.looked_at,
    )


def _counts(item: OpenItem, view: AgentView) -> bool:
    return item.kind != "limit" or view.state is not ProcessState.STOPPED
