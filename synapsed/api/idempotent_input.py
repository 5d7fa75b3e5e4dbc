"""Types input that has an `Idempotency-Key` only once, and gives the same answer when it comes again, even if the
daemon was killed in between.

A second request during the first one waits for it. If nothing was typed (it was refused), the key is free again, so
that the same may be tried once more. If something may have been typed and the result is unknown, it is never typed
again under that key: a person has to look, and decide again.
"""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from synapsed.errors import InvalidRequest, OutcomeUnknown, SynapsedError
from synapsed.store.acts import ActLog

REMEMBERED: Final = 1000
"""Number of outcomes in memory, with their requests and errors."""


@dataclass(slots=True)
class _Under[T]:
    """An input that was begun under a key."""

    body: str
    """Digest of the request."""
    task: asyncio.Task[T]
    """Ends with the outcome."""


class Acts:
    def __init__(self, kept: ActLog) -> None:
        self._kept = kept
        self._under: dict[str, _Under[Any]] = {}

    async def once[T: BaseModel](
        self, name: str, body: BaseModel, act: Callable[[], Coroutine[Any, Any, T]], kind: type[T]
    ) -> T:
        """Returns the answer of `act`, which is completed even if its caller leaves. `name` has the caller, the key,
        the action and its subject. Raises InvalidRequest for a key that has come with another body before,
        OutcomeUnknown, StoreError if nothing can be recorded, and the errors of `act`."""
        digest = _digest(name, body)
        name = hashlib.sha256(name.encode()).hexdigest()
        known = self._under.get(name)
        if known is None:
            known = _Under(digest, asyncio.ensure_future(self._do(name, digest, act, kind)))
            known.task.add_done_callback(_consume_result)
            self._remember(name, known)
        elif known.body != digest:
            raise _other_body()
        outcome: T = await asyncio.shield(known.task)
        return outcome

    async def _do[T: BaseModel](
        self, name: str, body: str, act: Callable[[], Coroutine[Any, Any, T]], kind: type[T]
    ) -> T:
        try:
            if (before := await self._kept.get(name)) is None:
                await self._kept.begin(name, body)
        except BaseException:
            self._under.pop(name, None)
            raise
        if before is not None and before.body not in (None, body):
            self._under.pop(name, None)  # the key stays that of the first body
            raise _other_body()
        if before is not None and before.answer is not None:
            return kind.model_validate(before.answer)
        if before is not None:
            raise OutcomeUnknown(
                "a request with this key was begun before, and the daemon ended before it knew the result: look at the "
                "agent's screen before you repeat it under another key"
            )
        try:
            answer = await act()
        except SynapsedError as error:
            if not error.undone:
                raise
            if error.details.get("sent"):
                raise OutcomeUnknown(
                    f"it may have arrived, and is not sent again ({error.message}): look at the task before you try it "
                    "again"
                ) from error
            await self._free(name)
            raise
        await self._kept.done(name, answer.model_dump(mode="json"))
        return answer

    async def _free(self, name: str) -> None:
        """Frees the name, because nothing was done under it: the same may be tried once more."""
        await self._kept.undone(name)
        self._under.pop(name, None)

    def _remember(self, name: str, under: _Under[Any]) -> None:
        self._under[name] = under
        if len(self._under) > REMEMBERED:
            over = next((key for key, one in self._under.items() if one.task.done()), None)
            if over is not None:
                del self._under[over]


def _digest(name: str, body: BaseModel) -> str:
    """Returns a digest that distinguishes the bodies under one name. The typed text may be a short secret, and the
    digest is kept in a file; so the name goes into the digest, with its key, which that file does not have."""
    return hashlib.sha256(f"{name}\0{body.model_dump_json(exclude_defaults=True)}".encode()).hexdigest()


def _other_body() -> InvalidRequest:
    return InvalidRequest("Idempotency-Key: it came with another body before: take another one")


def _consume_result(task: asyncio.Task[Any]) -> None:
    """Fetches the result, since there may be no waiter any more."""
    if not task.cancelled():
        task.exception()
