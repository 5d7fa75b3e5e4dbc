"""The requests of a program on pipes, each of which is answered once, by one of the daemons. Pure.

Requests are identified by their offset in the program's output, because a program may use an id again; the keeper
writes an answer once for each offset. It remembers the last 512 inputs, so the next daemon asks it for those alone: of
the requests up to `asked_to`, all are answered that are not in `open`.
"""

from collections.abc import Iterable
from typing import Any, Final

from synapsed.pipes.commands import Write
from synapsed.pipes.kept_session import KeptSession
from synapsed.pipes.permission_request import OpenRequest, answer_id
from synapsed.pipes.rpc import METHOD_NOT_FOUND

SAVE_EVERY: Final = 64
"""Largest number of inputs that the keeper takes before the answered requests are saved again."""

REFUSED_MAX: Final = 256
"""Largest number of answers under way to a program that requests things which are not offered, and does not read the
answers: further requests get none."""


class ProgramRequests:
    """Tracks the requests of one launch; `kept`: the state from an earlier daemon."""

    def __init__(self, kept: KeptSession | None) -> None:
        self._kept_to = kept.asked_to if kept is not None else None
        self._kept_open = frozenset(kept.open if kept is not None else ())
        self._asked_to = self._kept_to or 0
        self._waiting: dict[str, OpenRequest] = {}
        self._given: dict[str, OpenRequest] = {}
        """Requests that were answered, while it is not known yet whether the keeper took the answer."""
        self._refused: dict[str, tuple[int, Write]] = {}
        """Answers to requests for things that are not offered, by the ids of their inputs, with their offsets; not
        known to be written."""
        self._failed: set[str] = set()
        """The ids of those that the keeper did not take."""
        self._looks_back = True
        """True while the output that is read was written before this daemon came."""
        self.taken = 0
        """Number of inputs that the keeper has taken since the last save."""

    # --- what the program asks ---

    def comes(self, place: int) -> bool:
        """Notes a request at that offset; returns whether it may be open."""
        self._asked_to = max(self._asked_to, place)
        return self._kept_to is None or place > self._kept_to or place in self._kept_open

    def ask(self, request: OpenRequest) -> None:
        """Adds a request that waits for an answer, or updates one."""
        if request.input_id not in self._given:
            self._waiting[request.input_id] = request

    def refuse(self, message: dict[str, Any], place: int) -> list[Write]:
        """Answers a request for something that is not offered."""
        error = {"code": METHOD_NOT_FOUND, "message": f"not offered: {str(message['method'])[:100]}"}
        write = Write({"id": message["id"], "error": error}, answer_id(message["id"], place))
        if self._looks_back:
            while (
                len(self._refused) >= REFUSED_MAX
            ):  # an older one was answered, or the newer ones would not stand here
                del self._refused[next(iter(self._refused))]
        elif len(self._refused) >= REFUSED_MAX:
            return []
        assert write.input_id is not None
        self._refused[write.input_id] = (place, write)
        return [] if self._looks_back else [write]

    def over(self) -> None:
        """Drops all requests, because the turn that made them is over."""
        self._waiting.clear()
        self._given.clear()

    # --- who answers ---

    @property
    def waiting(self) -> OpenRequest | None:
        """Returns the request that waits longest."""
        return next(iter(self._waiting.values()), None)

    @property
    def all_waiting(self) -> list[OpenRequest]:
        return list(self._waiting.values())

    def get(self, input_id: str) -> OpenRequest | None:
        return self._waiting.get(input_id)

    def give(self, request: OpenRequest) -> None:
        """Notes that it is answered now."""
        self._given[request.input_id] = self._waiting.pop(request.input_id)

    def written(self, input_id: str) -> None:
        """Notes that the keeper took that input."""
        self.taken += 1
        self._waiting.pop(input_id, None)
        self._given.pop(input_id, None)
        self._refused.pop(input_id, None)

    def unwritten(self, input_id: str) -> OpenRequest | None:
        """Notes that the keeper did not take that input; returns the request that waits again. The answer to a request
        for something not offered is written again without a person."""
        if input_id in self._refused:
            self._failed.add(input_id)
        request = self._given.pop(input_id, None)
        if request is not None:
            waiting = [*self._waiting.values(), request]
            self._waiting = {each.input_id: each for each in sorted(waiting, key=lambda each: each.place)}
        return request

    def again(self) -> list[Write]:
        """Returns the answers that the keeper did not take, to be written again: it writes each once."""
        failed, self._failed = self._failed, set()
        return [write for name, (_, write) in self._refused.items() if name in failed]

    # --- the next daemon ---

    def unsure(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        """Yields the requests that an earlier daemon may have answered: the input, and the names under which the keeper
        may know it; those of an earlier version have no offset."""
        asked = {name: request.id for name, request in self._waiting.items()}
        asked |= {name: write.message["id"] for name, (_, write) in self._refused.items()}
        old = self._kept_to is None
        return [(name, (name, answer_id(id_)) if old else (name,)) for name, id_ in asked.items()]

    def looked_back(self) -> list[Write]:
        """Notes that all earlier output is read, and that the keeper was asked about the `unsure` requests."""
        self._looks_back = False
        return [write for _, write in self._refused.values()]

    @property
    def open(self) -> tuple[int, ...]:
        """Returns the offsets of unanswered requests, as far as they are known."""
        asked = [each.place for each in (*self._waiting.values(), *self._given.values())]
        return tuple(sorted({*asked, *(place for place, _ in self._refused.values())}))

    @property
    def asked_to(self) -> int:
        return self._asked_to
