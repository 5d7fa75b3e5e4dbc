"""Tracks the requests of a program on pipes, so that each is answered once, by this daemon or another one. Pure.

Requests are identified by their offset in the program's output, because a program may use an id again; the keeper
writes one answer for each offset. But it remembers only the last 512 inputs. So the answered requests are saved: up to
the offset `asked_to` all are answered, except those in `open`, and the next daemon asks the keeper only about the rest.
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
"""Largest number of refusals under way to a program that requests things that are not offered, and does not read the
answers: further such requests get no answer."""


class ProgramRequests:
    """The requests of one launch; `kept` is the state from an earlier daemon."""

    def __init__(self, kept: KeptSession | None) -> None:
        self._kept_to = kept.asked_to if kept is not None else None
        self._kept_open = frozenset(kept.open if kept is not None else ())
        self._asked_to = self._kept_to or 0
        self._waiting: dict[str, OpenRequest] = {}
        self._given: dict[str, OpenRequest] = {}
        """Answered requests for which the keeper has not yet confirmed that it wrote the answer."""
        self._refused: dict[str, tuple[int, Write]] = {}
        """Answers to requests for things that are not offered, by input id, with the requests' offsets; the keeper has
        not yet confirmed them."""
        self._failed: set[str] = set()
        """The input ids of those that the keeper refused to write."""
        self._looks_back = True
        """True while the output that is read is older than this daemon."""
        self.taken = 0
        """Number of inputs that the keeper has taken since the last save."""

    # --- the program's requests ---

    def comes(self, place: int) -> bool:
        """Notes a request at that offset. Returns True if it may be unanswered."""
        self._asked_to = max(self._asked_to, place)
        return self._kept_to is None or place > self._kept_to or place in self._kept_open

    def ask(self, request: OpenRequest) -> None:
        """Adds a request that waits for an answer, or updates it."""
        if request.input_id not in self._given:
            self._waiting[request.input_id] = request

    def refuse(self, message: dict[str, Any], place: int) -> list[Write]:
        """Returns the error for a request for something that is not offered, to be written now; empty while older
        output is read (`looked_back` returns it), or if too many are under way."""
        error = {"code": METHOD_NOT_FOUND, "message": f"not offered: {str(message['method'])[:100]}"}
        write = Write({"id": message["id"], "error": error}, answer_id(message["id"], place))
        if self._looks_back:
            while (
                len(self._refused) >= REFUSED_MAX
            ):  # the oldest was answered: no more than REFUSED_MAX were ever under way
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

    # --- answers ---

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
        """Notes that the request is being answered."""
        self._given[request.input_id] = self._waiting.pop(request.input_id)

    def written(self, input_id: str) -> None:
        """Notes that the keeper has written that input."""
        self.taken += 1
        self._waiting.pop(input_id, None)
        self._given.pop(input_id, None)
        self._refused.pop(input_id, None)

    def unwritten(self, input_id: str) -> OpenRequest | None:
        """Notes that the keeper refused to write that input. Returns the request that waits for a person again, if it
        answered one; an answer to a request for something not offered is written again by `again`."""
        if input_id in self._refused:
            self._failed.add(input_id)
        request = self._given.pop(input_id, None)
        if request is not None:
            waiting = [*self._waiting.values(), request]
            self._waiting = {each.input_id: each for each in sorted(waiting, key=lambda each: each.place)}
        return request

    def again(self) -> list[Write]:
        """Returns the refusals that the keeper did not write, so that they are tried again."""
        failed, self._failed = self._failed, set()
        return [write for name, (_, write) in self._refused.items() if name in failed]

    # --- the next daemon ---

    def unsure(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        """Returns the requests that an earlier daemon may have answered: the answer's input id, and all input ids under
        which the keeper may know the answer (an earlier version's had no offset)."""
        asked = {name: request.id for name, request in self._waiting.items()}
        asked |= {name: write.message["id"] for name, (_, write) in self._refused.items()}
        old = self._kept_to is None
        return [(name, (name, answer_id(id_)) if old else (name,)) for name, id_ in asked.items()]

    def looked_back(self) -> list[Write]:
        """Notes that all earlier output is read, and that the keeper was asked about the `unsure` requests. Returns the
        refusals that are still to be written."""
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
