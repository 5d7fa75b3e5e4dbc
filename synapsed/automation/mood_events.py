"""Tells how the person who works with an agent seems to feel: `synapsed.moods` on the events of the log.

A follower of the log with a durable cursor, and one of each agent with what its scorer goes on from. They are written
in the commit that tells a change, so that it is told once; where nothing is told, they are written now and then, and a
daemon that was killed in between goes over the same events again, to the same end.
"""

import asyncio

import structlog

from synapsed.aio import Timers, cancel_all, pause
from synapsed.config import AgentConfig, Config
from synapsed.errors import StoreError, SynapsedError
from synapsed.interfaces import Directory, EventFilter, NewEvent, Store
from synapsed.model.events import REMOVED, Event, StateChanged
from synapsed.model.follower import FollowerState
from synapsed.moods.mood_record import MoodState
from synapsed.moods.scorer import TYPES, Scorer, asks_for_text

CURSOR = "moods"
"""Name of the follower."""

SAVE_EVERY = 200
"""Events after which the cursor is written although nothing is told, and what has changed with it."""

BATCH = 100
BATCH_SIZE = 1 << 20
"""Events, and characters of their JSON, that are read at a time."""

STORE_RETRY_S = 5.0

_PLAIN = AgentConfig()

_WHICH = EventFilter(types=TYPES | {"agentState"})

log = structlog.stdlib.get_logger("synapsed.moods")


class Moods:
    """Life: `restore`, `start`, …, `close`. `config` is what counts now."""

    def __init__(self, *, directory: Directory, store: Store, timers: Timers, config: Config) -> None:
        self.config = config
        self._directory = directory
        self._store = store
        self._timers = timers
        self._scorers: dict[str, tuple[int, Scorer]] = {}
        """By agent, with the last event that it has taken."""
        self._unsaved: set[str] = set()
        self._silent: set[str] = set()
        """Agents that are not to be told of, and of which nothing is kept any more."""
        self._cursor = 0
        self._saved = 0
        self._taking = False
        """An event is taken, and what follows from it may not be durable yet."""
        self._running: asyncio.Task[None] | None = None

    async def restore(self) -> None:
        """Go on where the last daemon was; without one, with what happens from now on."""
        state = await self._store.follower(CURSOR)
        if state is None:
            state = FollowerState(cursor=self._store.events.last_id)
            await self._store.keep_follower(CURSOR, state)
        self._cursor = self._saved = state.cursor
        self._scorers.clear()
        self._unsaved.clear()
        self._taking = False

    def start(self) -> None:
        self._running = self._running or asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """May be called again."""
        if self._running is None:
            return
        await cancel_all([self._running])
        self._running = None
        if not self._taking:
            try:
                await self._save()
            except StoreError as error:
                log.warning("the store refused", error=error.message)

    async def _run(self) -> None:
        again = False
        while True:
            try:
                if again:
                    await self.restore()  # what was taken and is not durable is taken once more
                await self._follow()
            except StoreError as error:
                if error.details.get("reason") == "closed":
                    return
                log.warning("the store refused", error=error.message)
            except Exception:  # it is tried again, and ends nothing else
                log.exception("the events could not be looked at", after=self._cursor)
            else:
                return  # the store is closed
            again = True
            await pause(self._timers, STORE_RETRY_S)

    async def _follow(self) -> None:
        events, cursor = self._store.events, self._cursor
        while True:
            page = await events.page(cursor, _WHICH, limit=BATCH, size=BATCH_SIZE)
            for event in page.events:
                self._taking = True
                await self._look(event)
                self._taking = False
                self._cursor = event.id
            self._cursor = page.upto
            if self._cursor - self._saved >= SAVE_EVERY:
                await self._save()
            following = await events.changed(self._cursor, _WHICH)
            if following is None:
                return
            cursor = following

    async def _look(self, event: Event) -> None:
        agent_id = event.agent_id
        if isinstance(event.data, StateChanged):
            if event.data.state == REMOVED:
                await self._forget(agent_id)
        elif event.id <= self._store.events.born(agent_id):
            pass  # of an agent that was removed, while another has its id
        elif not self._wanted(agent_id):
            if agent_id not in self._silent:
                await self._forget(agent_id)
                self._silent.add(agent_id)
        else:
            self._silent.discard(agent_id)
            try:
                await self._take(agent_id, event)
            except StoreError:
                raise
            except Exception:  # one event's fault must not end it, nor come again with what was kept
                log.exception("an event was not understood", event_id=event.id, agent=agent_id)
                await self._forget(agent_id)

    def _wanted(self, agent_id: str) -> bool:
        """Whether the agent is to be told of; one that is no more is not."""
        if not agent_id or not self.config.moods.enabled:
            return False
        try:
            name = self._directory.view(agent_id).name
        except SynapsedError:
            return False
        return self.config.agents.get(name, _PLAIN).moods

    async def _take(self, agent_id: str, event: Event) -> None:
        taken, scorer = await self._scorer(agent_id)
        if event.id <= taken:
            return
        said = None
        if asks_for_text(event) and event.task_id is not None:
            said = await self._store.said(event.task_id)
        updates = scorer.take(event, said)
        self._scorers[agent_id] = (event.id, scorer)
        self._unsaved.add(agent_id)
        if updates:
            told = [NewEvent(agent_id, update, event.task_id, event.context_id) for update in updates]
            await self._store.keep_follower(_of(agent_id), self._state(agent_id), events=told)
            self._unsaved.discard(agent_id)

    async def _scorer(self, agent_id: str) -> tuple[int, Scorer]:
        known = self._scorers.get(agent_id)
        if known is None:
            kept = await self._store.follower(_of(agent_id))
            state = MoodState.model_validate_json(kept.secret) if kept is not None and kept.secret else None
            known = (0 if kept is None else kept.cursor, Scorer(state))
        return known

    async def _forget(self, agent_id: str) -> None:
        """What was known of it: when it is told of again, that begins with nothing."""
        self._scorers.pop(agent_id, None)
        self._unsaved.discard(agent_id)
        self._silent.discard(agent_id)
        await self._store.forget_follower(_of(agent_id))

    async def _save(self) -> None:
        if self._cursor == self._saved and not self._unsaved:
            return
        others = {_of(agent_id): self._state(agent_id) for agent_id in self._unsaved}
        await self._store.keep_follower(CURSOR, FollowerState(cursor=self._cursor), others=others)
        self._unsaved.clear()
        self._saved = self._cursor

    def _state(self, agent_id: str) -> FollowerState:
        taken, scorer = self._scorers[agent_id]
        return FollowerState(cursor=taken, secret=scorer.state.model_dump_json())


def _of(agent_id: str) -> str:
    return f"mood:{agent_id}"
