"""Keeps a durable record of the notices of a sink: one mark for each item, until its notice is taken back.

A mark is written before the notice is sent (`telling`) and again after it (`told`). After a kill in between it is not
known if the notice was sent: it is sent again to sinks that recognise a repeated notice, and not to others.
"""

import asyncio
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from synapsed.interfaces import FollowerState, Store

MARKS_MAX: Final = 2000


class Mark(BaseModel):
    """Mark of one item at one sink. `approve` and `deny` are hashes of the tokens of its buttons, valid until `expires`
    (seconds since the epoch)."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    state: Literal["telling", "told"]
    ref: str = ""
    approve: str = ""
    deny: str = ""
    expires: float = 0


_MARKS = TypeAdapter(dict[str, Mark])


class Marks:
    """Marks of one sink, kept with the followers of the log: encrypted, as there are hashes of tokens in them."""

    def __init__(self, sink: str, store: Store) -> None:
        self._name = f"notify:{sink}"
        self._store = store
        self._marks: dict[str, Mark] = {}
        self._writing = asyncio.Lock()
        """Lock for writes: all marks are written together, and each writer begins with the result of the last one."""

    async def restore(self, *, once: bool, sure: bool = False) -> None:
        """Reads the marks. `once`: a notice that may have been sent counts as sent. `sure`: it is sent again, or taken
        back if its item is over by now."""
        state = await self._store.follower(self._name)
        try:
            marks = _MARKS.validate_json(state.secret) if state is not None and state.secret else {}
        except ValidationError:
            marks = {}
        self._marks = {
            item: mark.model_copy(update={"state": "told"}) if once else mark
            for item, mark in marks.items()
            if once or sure or mark.state == "told"
        }

    async def forget(self) -> None:
        """Removes all marks."""
        await self._store.forget_follower(self._name)

    def __contains__(self, item_id: str) -> bool:
        """Returns True if the sink has got the notice of the item."""
        mark = self._marks.get(item_id)
        return mark is not None and mark.state == "told"

    def get(self, item_id: str) -> Mark | None:
        return self._marks.get(item_id)

    def gone(self, open_items: Iterable[str]) -> list[tuple[str, Mark]]:
        """Returns the marks of items that are not open any more."""
        known = frozenset(open_items)
        return [(item, mark) for item, mark in self._marks.items() if item not in known]

    async def put(self, item_id: str, mark: Mark) -> None:
        async with self._writing:
            await self._put(item_id, mark)

    async def told(self, item_id: str, mark: Mark, ref: str) -> None:
        """Notes that the sink has got the notice; `ref` is its reference for taking the notice back. Buttons that were
        pressed meanwhile stay used."""
        async with self._writing:
            now = self._marks.get(item_id, mark)
            await self._put(item_id, now.model_copy(update={"state": "told", "ref": ref}))

    async def drop(self, item_id: str) -> None:
        async with self._writing:
            await self._keep({item: mark for item, mark in self._marks.items() if item != item_id})

    async def spend(self, item_id: str) -> None:
        """Makes both buttons of the item invalid."""
        async with self._writing:
            await self._spend(item_id)

    async def take(self, token: str, *, now: float) -> tuple[str, bool] | None:
        """Returns the item that the token answers, and True if it means yes; None for a token that is unknown or used.
        A token works once, and makes the other button invalid."""
        if self._by_token(token, now=now) is None:
            return None
        async with self._writing:
            found = self._by_token(token, now=now)  # another press may have been quicker
            if found is not None:
                await self._spend(found[0])
            return found

    async def _spend(self, item_id: str) -> None:
        if (mark := self._marks.get(item_id)) is not None:
            await self._put(item_id, mark.model_copy(update={"approve": "", "deny": "", "expires": 0}))

    async def _put(self, item_id: str, mark: Mark) -> None:
        marks = self._marks | {item_id: mark}
        while len(marks) > MARKS_MAX:
            del marks[next(iter(marks))]
        await self._keep(marks)

    async def _keep(self, marks: dict[str, Mark]) -> None:
        kept = json.dumps({item: mark.model_dump(exclude_defaults=True) for item, mark in marks.items()})
        await self._store.keep_follower(self._name, FollowerState(cursor=0, secret=kept))
        self._marks = marks

    def _by_token(self, token: str, *, now: float) -> tuple[str, bool] | None:
        given = digest(token)
        for item, mark in self._marks.items():
            for known, yes in ((mark.approve, True), (mark.deny, False)):
                if known and now < mark.expires and hmac.compare_digest(given, known):
                    return item, yes
        return None


def new_token() -> str:
    return secrets.token_urlsafe(32)


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
