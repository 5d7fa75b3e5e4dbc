"""What is typed under an `Idempotency-Key` of its caller: once, and answered alike when it comes again, over a kill
of the daemon too.

Who comes while it is under way waits for it. Where nothing was typed (it was refused), the key is free again, so that
the same may be tried once more. Where something may have been typed and nobody knows more, it is never typed again
under that key: a person looks, and decides again.
"""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from synapsed.errors import InvalidRequest, NotReady, NotTaken, OutcomeUnknown, RequestError
from synapsed.store.acts import ActLog

REMEMBERED: Final = 1000
"""Outcomes in memory: what came with them, and how they failed."""


@dataclass(slots=True)
class _Under[T]:
    """`body`: a digest of what was asked for. `task` ends with the outcome."""

    body: bytes
    task: asyncio.Task[T]


class Acts:
    def __init__(self, kept: ActLog) -> None:
        self._kept = kept
        self._under: dict[str, _Under[Any]] = {}

    async def once[T: BaseModel](
        self, name: str, body: BaseModel, act: Callable[[], Coroutine[Any, Any, T]], kind: type[T]
    ) -> T:
        """What `act` answers, which is done to its end although who asked for it leaves. `name` has the caller, the
        key, and what is done to what. Raises InvalidRequest for a key that came with another body, OutcomeUnknown,
        StoreError where nothing can be noted, and what `act` raises."""
        name = hashlib.sha256(name.encode()).hexdigest()
        digest = hashlib.sha256(body.model_dump_json().encode()).digest()
        known = self._under.get(name)
        if known is None:
            known = _Under(digest, asyncio.ensure_future(self._do(name, act, kind)))
            known.task.add_done_callback(_seen)
            self._remember(name, known)
        elif known.body != digest:
            raise InvalidRequest("Idempotency-Key: it came with another body before: take another one")
        outcome: T = await asyncio.shield(known.task)
        return outcome

    async def _do[T: BaseModel](self, name: str, act: Callable[[], Coroutine[Any, Any, T]], kind: type[T]) -> T:
        try:
            if (before := await self._kept.get(name)) is None:
                await self._kept.begin(name)
        except BaseException:
            self._under.pop(name, None)
            raise
        if before is not None and before.answer is not None:
            return kind.model_validate(before.answer)
        if before is not None:
            raise OutcomeUnknown(
                "this was begun before under the same key, and the daemon ended before it knew what became of it: look "
                "at the agent's screen before you try it again"
            )
        try:
            answer = await act()
        except (RequestError, NotReady) as error:
            if not isinstance(error, NotTaken):
                await self._kept.undone(name)
                self._under.pop(name, None)
            raise
        await self._kept.done(name, answer.model_dump(mode="json"))
        return answer

    def _remember(self, name: str, under: _Under[Any]) -> None:
        self._under[name] = under
        if len(self._under) > REMEMBERED:
            over = next((key for key, one in self._under.items() if one.task.done()), None)
            if over is not None:
                del self._under[over]


def _seen(task: asyncio.Task[Any]) -> None:
    """It may be that nobody waits for it any more."""
    if not task.cancelled():
        task.exception()
