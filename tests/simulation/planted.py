"""Bugs that are planted in the product while seeds run: each stands for a class that the simulated world is to find.

python -m tests.simulation.planted [NAME] [--seeds 0:1000]     the first seed that finds each, and its story's end
"""

import asyncio
import contextlib
import itertools
import sqlite3
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any
from unittest import mock

from synapsed.agents.interruption import Interruption
from synapsed.agents.turns import AgentTurns
from synapsed.channels.hooks import HookChannel
from synapsed.interfaces import SendRequest
from synapsed.model.link import LinkTurnRecord
from synapsed.model.task import Task
from synapsed.pty.session import Session
from synapsed.pty.turn_reports import TurnReports
from synapsed.store import idempotency
from synapsed.store.history.indexing import Indexer
from synapsed.store.idempotency import Idempotency
from tests.simulation.plan import draw
from tests.simulation.run import Outcome, play

__all__ = ["PLANTED", "find"]


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

    def task_id_of(request: SendRequest, to: str, said: str | None = None) -> str:
        if request.key is not None:
            request = SendRequest(message=request.message, key=request.key[:5])
        return real(request, to, said)

    with (
        mock.patch.object(idempotency, "task_id_of", task_id_of),
        mock.patch.object(idempotency, "_check_same"),
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
            self.interrupt("canceled")
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


PLANTED: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "commit-left-out": _commit_left_out,
    "id-reused": _id_reused,
    "types-twice": _types_twice,
    "cursor-first": _cursor_first,
    "lease-outlives": _lease_outlives,
    "wrong-state": _wrong_state,
    "hook-before": _hook_before,
    "lock-kept": _lock_kept,
}


def find(name: str, seeds: range) -> Outcome | None:
    """The first of the seeds that finds it, and that is well without it."""
    for seed in seeds:
        with PLANTED[name]():
            outcome = play(draw(seed))
        if outcome.failure is not None and play(outcome.plan).failure is None:
            return outcome
    return None


def main(arguments: list[str]) -> int:
    names = [name for name in arguments if name in PLANTED] or list(PLANTED)
    seeds = range(1000)
    if "--seeds" in arguments:
        seeds = range(*map(int, arguments[arguments.index("--seeds") + 1].split(":")))
    missed = 0
    for name in names:
        found = find(name, seeds)
        missed += found is None
        print(
            f"{name}: {'not found' if found is None else f'seed {found.plan.seed}: {found.failure}'}"[:500], flush=True
        )
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
