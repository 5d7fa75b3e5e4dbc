"""The requests of a program on pipes, each of which is answered once, by whichever daemon. Pure.

Requests are known by their place in the program's output, for a program may give an id again; the keeper writes an
answer once for each place. It remembers the last 512 inputs, so that the next daemon asks it for those alone: of what
was asked up to `asked_to`, all is answered that is not among what is `open`.
"""

from collections.abc import Iterable
from typing import Any, Final

from synapsed.pipes.commands import Write
from synapsed.pipes.kept_session import KeptSession
from synapsed.pipes.permission_request import OpenRequest, answer_id
from synapsed.pipes.rpc import METHOD_NOT_FOUND

SAVE_EVERY: Final = 64
"""Inputs that the keeper may have taken since it was kept what is answered."""

REFUSED_MAX: Final = 256
"""Answers that may be under way to a program that asks for what is not offered, and does not read them: it is not told
of more."""


class ProgramRequests:
    """Of one launch; `kept`: what an earlier daemon knew."""

    def __init__(self, kept: KeptSession | None) -> None:
        self._kept_to = kept.asked_to if kept is not None else None
        self._kept_open = frozenset(kept.open if kept is not None else ())
        self._asked_to = self._kept_to or 0
        self._waiting: dict[str, OpenRequest] = {}
        self._given: dict[str, OpenRequest] = {}
        """Answered; whether the keeper took the answer is not known yet."""
        self._refused: dict[str, tuple[int, Write]] = {}
        """Answers to what is not offered, by the ids of their inputs, with their places; not known to be written."""
        self._failed: set[str] = set()
        """Those of them that the keeper did not take."""
        self._looks_back = True
        """What is read was written before this daemon came."""
        self.taken = 0
        """Inputs that the keeper has taken since this was kept."""

    # --- what the program asks ---

    def comes(self, place: int) -> bool:
        """A request stands at that place; whether it may be open."""
        self._asked_to = max(self._asked_to, place)
        return self._kept_to is None or place > self._kept_to or place in self._kept_open

    def ask(self, request: OpenRequest) -> None:
        """A request that waits for somebody, or what is asked by one now."""
        if request.input_id not in self._given:
            self._waiting[request.input_id] = request

    def refuse(self, message: dict[str, Any], place: int) -> list[Write]:
        """A request for what is not offered."""
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
        """The turn that asked is over: nobody waits for an answer."""
        self._waiting.clear()
        self._given.clear()

    # --- who answers ---

    @property
    def waiting(self) -> OpenRequest | None:
        """The one that waits longest."""
        return next(iter(self._waiting.values()), None)

    @property
    def all_waiting(self) -> list[OpenRequest]:
        return list(self._waiting.values())

    def get(self, input_id: str) -> OpenRequest | None:
        return self._waiting.get(input_id)

    def give(self, request: OpenRequest) -> None:
        """It is answered now."""
        self._given[request.input_id] = self._waiting.pop(request.input_id)

    def written(self, input_id: str) -> None:
        """The keeper took that input."""
        self.taken += 1
        self._waiting.pop(input_id, None)
        self._given.pop(input_id, None)
        self._refused.pop(input_id, None)

    def unwritten(self, input_id: str) -> OpenRequest | None:
        """The keeper did not: the request that waits again. What is not offered is answered again by itself."""
        if input_id in self._refused:
            self._failed.add(input_id)
        request = self._given.pop(input_id, None)
        if request is not None:
            waiting = [*self._waiting.values(), request]
            self._waiting = {each.input_id: each for each in sorted(waiting, key=lambda each: each.place)}
        return request

    def again(self) -> list[Write]:
        """Answers that the keeper did not take are written again: it does so once."""
        failed, self._failed = self._failed, set()
        return [write for name, (_, write) in self._refused.items() if name in failed]

    # --- the next daemon ---

    def unsure(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        """What an earlier daemon may have answered: the input, and the names under which the keeper may know it; those
        of a version before have no place."""
        asked = {name: request.id for name, request in self._waiting.items()}
        asked |= {name: write.message["id"] for name, (_, write) in self._refused.items()}
        old = self._kept_to is None
        return [(name, (name, answer_id(id_)) if old else (name,)) for name, id_ in asked.items()]

    def looked_back(self) -> list[Write]:
        """All that was written before is read, and of what is `unsure` the keeper was asked."""
        self._looks_back = False
        return [write for _, write in self._refused.values()]

    @property
    def open(self) -> tuple[int, ...]:
        """Where what is not answered stands, as far as that is known."""
        asked = [each.place for each in (*self._waiting.values(), *self._given.values())]
        return tuple(sorted({*asked, *(place for place, _ in self._refused.values())}))

    @property
    def asked_to(self) -> int:
        return self._asked_to
