"""Bugs that are planted in the product while seeds run: each stands for a class that the simulated world is to find.

python -m tests.simulation.planted [NAME] [--seeds 0:1000]     the first seed that finds each, and how that fails
  --shrink                                                     the least plan that still does
"""

import asyncio
import contextlib
import itertools
import sqlite3
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from unittest import mock

from synapsed.agents.interruption import Interruption
from synapsed.agents.turns import AgentTurns
from synapsed.errors import StoreError
from synapsed.interfaces import SendRequest
from synapsed.model.link import LinkTurnRecord
from synapsed.model.task import Task
from synapsed.parts.history.indexing import Indexer
from synapsed.parts.hooks.channel import HookChannel
from synapsed.pty.channel_turn import ChannelTurn
from synapsed.pty.message_evidence import TurnReports
from synapsed.pty.session import Session
from synapsed.pty.turn_types import Command, Phase
from synapsed.pty.viewers import Viewer
from synapsed.store import idempotency
from synapsed.store.idempotency import Idempotency
from synapsed.store.store import SqliteStore
from tests.simulation.plan import Act, Fault, Plan, draw
from tests.simulation.run import Outcome, play, shrink
from tests.simulation.served import served

__all__ = ["PLANTED", "find", "shrunken"]


@contextlib.contextmanager
def _commit_left_out() -> Iterator[None]:
    """A turn's record is believed and was never written."""
    real = AgentTurns.handle

    async def handle(self: AgentTurns, event: Any, link: Any) -> None:
        turn = self._turn
        if isinstance(event, LinkTurnRecord) and turn is not None and turn.task.id == event.record.task_id:
            turn.record = event.record
            link.recorded(event.record)
        else:
            await real(self, event, link)

    with mock.patch.object(AgentTurns, "handle", handle):
        yield


@contextlib.contextmanager
def _id_reused() -> Iterator[None]:
    """Messages under different keys become the same task."""
    real = idempotency.task_id_of

    def task_id_of(request: SendRequest, *more: Any, **also: Any) -> str:
        if request.key is not None:
            request = SendRequest(message=request.message, key=request.key[:5])
        return real(request, *more, **also)

    with (
        mock.patch.object(idempotency, "task_id_of", task_id_of),
        mock.patch.object(idempotency, "_refusal", return_value=None),
    ):
        yield


@contextlib.contextmanager
def _types_twice() -> Iterator[None]:
    """Who goes on after a restart gives its keys an id of its own, by which no keeper knows them."""
    real, lives = Session.input_id, itertools.count(1)
    numbers: dict[int, int] = {}

    def input_id(self: Session, part: str) -> str:
        return f"{real(self, part)}.{numbers.setdefault(id(self), next(lives))}"

    with mock.patch.object(Session, "input_id", input_id):
        yield


@contextlib.contextmanager
def _cursor_first() -> Iterator[None]:
    """The history's cursor is durable before what it stands for."""
    real = Indexer._write

    def write(self: Indexer, docs: list[Any], used: list[Any], done: Any) -> None:
        file = self._file
        assert isinstance(file, sqlite3.Connection)
        file.execute("BEGIN IMMEDIATE")
        file.execute("UPDATE progress SET cursor = ?, at = ?", (done[0], done[1]))
        file.execute("COMMIT")
        real(self, docs, used, done)

    with mock.patch.object(Indexer, "_write", write):
        yield


@contextlib.contextmanager
def _lease_outlives() -> Iterator[None]:
    """A stop keeps messages away while it lasts, and goes on to when it is over."""

    def end(self: Interruption, *, over: bool = False) -> None:
        if self.pending is not None and (over or self.pending.confirmed):
            self.pending.end()

    with mock.patch.object(Interruption, "end", end):
        yield


@contextlib.contextmanager
def _wrong_state() -> Iterator[None]:
    """Whoever cancels a message that waits stops the one that runs."""
    real = AgentTurns.cancel

    async def cancel(self: AgentTurns, task_id: str) -> Any:
        if self._turn is not None and any(task.id == task_id for task in self._mailbox):
            self.interruption.begin("canceled")
        return await real(self, task_id)

    with mock.patch.object(AgentTurns, "cancel", cancel):
        yield


@contextlib.contextmanager
def _hook_before() -> Iterator[None]:
    """What the turn before reported counts for this one."""
    real = TurnReports.is_younger

    def is_younger(self: TurnReports, fact: Any, state: Any) -> bool:
        return real(self, fact, state) or (state.submitted and state.submit_offset is not None)

    with (
        mock.patch.object(TurnReports, "is_younger", is_younger),
        mock.patch.object(HookChannel, "_is_late", return_value=False),
    ):
        yield


@contextlib.contextmanager
def _lock_kept() -> Iterator[None]:
    """Where sending failed, the key stays locked."""

    @asynccontextmanager
    async def once(self: Idempotency, request: SendRequest, to: str) -> AsyncGenerator[tuple[str, Task | None]]:
        task_id = idempotency.task_id_of(request, to)
        self._kept = getattr(self, "_kept", {})  # type: ignore[attr-defined]
        lock = self._kept.setdefault(task_id, asyncio.Lock())  # type: ignore[attr-defined]
        await lock.acquire()
        yield task_id, await self._store.task(task_id)
        lock.release()

    with mock.patch.object(Idempotency, "once", once):
        yield


@contextlib.contextmanager
def _full_disk_believed() -> Iterator[None]:
    """What the disk refused is taken for written."""
    real = SqliteStore._write

    async def write(self: SqliteStore, change: Any, events: Any) -> Any:
        try:
            return await real(self, change, events)
        except StoreError:
            for task in change.tasks:
                self._recent.put(task)
            return []

    with mock.patch.object(SqliteStore, "_write", write):
        yield


@contextlib.contextmanager
def _key_expires() -> Iterator[None]:
    """A key is forgotten after a day, by a clock that somebody may set."""
    real = Idempotency.once

    @asynccontextmanager
    async def once(self: Idempotency, request: SendRequest, to: str) -> AsyncGenerator[tuple[str, Task | None]]:
        async with real(self, request, to) as (task_id, known):
            old = known is not None and time.time() - datetime.fromisoformat(known.created_at).timestamp() > 86400
            yield task_id, None if old else known

    with mock.patch.object(Idempotency, "once", once):
        yield


@contextlib.contextmanager
def _slow_client_cut() -> Iterator[None]:
    """A viewer that takes little loses what it has no room for, and is drawn nothing again."""

    def drop(self: Viewer, *, behind: bool) -> None:
        self._waiting.clear()
        self._size = 0

    with mock.patch.object(Viewer, "_drop", drop):
        yield


@contextlib.contextmanager
def _given_unasked() -> Iterator[None]:
    """A message is given to a server again without the question whether it is there."""

    def begin(self: ChannelTurn, *, fresh: bool) -> list[Command]:
        return self._submit() if self.phase is Phase.SENDING else self._find()

    with mock.patch.object(ChannelTurn, "begin", begin):
        yield


@contextlib.contextmanager
def _joined_counts() -> Iterator[None]:
    """What a turn says before a message joins it counts as said to the message."""
    real = ChannelTurn._accept

    def accept(self: ChannelTurn, turn: str, what: str, now: float, *, joining: bool = False) -> list[Command]:
        return real(self, turn, what, now)

    with mock.patch.object(ChannelTurn, "_accept", accept):
        yield


def _looked_on(plan: Plan) -> Plan:
    """Somebody looks on at each agent from the first message on."""
    lookers = tuple(Act(plan.acts[0].at, "attach", n) for n in range(len(plan.players)))
    return replace(plan, acts=lookers + plan.acts)


def _set_forward(plan: Plan) -> Plan:
    """At last the clock is set three days ahead, and a client sends its first message once more."""
    end = plan.acts[-1].at + 2.0
    again = Act(end + 1.0, "again", plan.acts[0].agent)
    return replace(plan, acts=(*plan.acts, again), faults=(*plan.faults, Fault(end, "jump", 0, 0, 11.0)))


@dataclass(frozen=True, slots=True)
class Planted:
    plant: Callable[[], AbstractContextManager[None]]
    rules: frozenset[str]
    """What it breaks; what breaks another rule is the planting, or a bug of the product's."""
    shape: Callable[[Plan], Plan]
    """Adds what it takes to tell, where few plans have that."""


def _planted(
    plant: Callable[[], AbstractContextManager[None]], *rules: str, shape: Callable[[Plan], Plan] = lambda plan: plan
) -> Planted:
    return Planted(plant, frozenset(rules), shape)


PLANTED = {
    "commit-left-out": _planted(_commit_left_out, "no key without a cause"),
    "id-reused": _planted(_id_reused, "no id twice"),
    "types-twice": _planted(_types_twice, "given at most once", "given at most once, alone", "ends with a reason"),
    "cursor-first": _planted(_cursor_first, "cursors stand behind their rows"),
    "lease-outlives": _planted(_lease_outlives, "ends within its bounds"),
    "wrong-state": _planted(_wrong_state, "ends with a reason"),
    "hook-before": _planted(_hook_before, "its own answer", "no defect (ValueError)"),
    "lock-kept": _planted(_lock_kept, "answered within its bounds"),
    "full-disk": _planted(_full_disk_believed, "no key without a cause", "never unsaid"),
    "key-expires": _planted(_key_expires, "given at most once", "never unsaid", shape=_set_forward),
    "given-unasked": _planted(_given_unasked, "given at most once", shape=served),
    "joined-counts": _planted(_joined_counts, "its own answer", shape=served),
    "slow-client": _planted(_slow_client_cut, "whoever looks on sees it", shape=_looked_on),
}


def find(name: str, seeds: range) -> Outcome | None:
    """The first of the seeds that finds it, and that is well without it."""
    bug = PLANTED[name]
    for seed in seeds:
        with bug.plant():
            outcome = play(bug.shape(draw(seed)))
        if outcome.rule in bug.rules and play(outcome.plan).failure is None:
            return outcome
    return None


def shrunken(name: str, found: Outcome) -> Outcome:
    """The smallest plan by which the bug is found."""
    with PLANTED[name].plant():
        return shrink(found)


def main(arguments: list[str]) -> int:
    names = [name for name in arguments if name in PLANTED] or list(PLANTED)
    seeds = range(1000)
    if "--seeds" in arguments:
        seeds = range(*map(int, arguments[arguments.index("--seeds") + 1].split(":")))
    missed = 0
    for name in names:
        found = find(name, seeds)
        missed += found is None
        print(f"{name}: {'not found' if found is None else _told(found)}", flush=True)
        if found is not None and "--shrink" in arguments:
            small = shrunken(name, found)
            print(f"shrunken: {_told(small)}\n{small.plan}", flush=True)
    return missed


def _told(found: Outcome) -> str:
    plan = found.plan
    told = f"{len(plan.acts)} acts, {len(plan.faults)} faults, {plan.size} of all, {found.steps} steps: {found.failure}"
    return f"seed {plan.seed}, {told}"[:400]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
