"""Makes facts of the notifications about one thread (conversation) of an app server, a server that some programs offer
beside their terminal. Pure, except the clock.

Missed events are read from the thread's own turns, and reported as the same facts. Nothing is reported twice, however
often a turn is read. The list of turns has the calls under the ids of their notifications, and the messages under
others: those are recognized by their words and their order.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from synapsed.channels import Channel, at_path, clean, used
from synapsed.model.facts import (
    AssistantSaid,
    AssistantSaying,
    ChannelFact,
    DiffTold,
    PlanTold,
    PromptAccepted,
    ToolBegan,
    ToolOver,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
    TurnUsed,
)
from synapsed.parts.app_server.items import (
    CalledTool,
    answer_in,
    call_in,
    code_of,
    is_own,
    items_of,
    plan_in,
    says_all,
    text_of_message,
    words_of,
)

KNOWN_MAX = 200
"""Most turns that are remembered."""
ITEMS_MAX = 10_000
"""Most items of one turn that are remembered."""
USED_MAX = 1000
"""Most requests of one turn whose usage is added up."""

RUNS = "inProgress"
"""Status of a turn, and of a call, that is not over."""
MESSAGE_MAX = 2000
"""Most characters of an error's text."""

_MESSAGES = ("userMessage", "agentMessage")

type _Json = dict[str, Any]


class _Turn:
    """The reported state of a turn that is not over."""

    def __init__(self) -> None:
        self.last: tuple[str, str] | None = None
        """Id and text of the program's last message."""
        self.heard: dict[str, str] = {}
        """Method of the last notification about each item, by the item's id."""
        self.ids: dict[tuple[str, int], list[str]] = {}
        """Ids of the messages with the same words, in order."""
        self.used: list[_Json] = []
        self.begun: str | None = None
        """Id of the message that is being written, if its beginning was received."""
        self.refused: str | None = None
        """Reason for which the person's own hook has refused its prompt."""
        self.own = False
        """True if the turn works on a message from synapsed."""
        self.whole = False
        """True if its last item is a complete message of the program that may be an answer."""

    def adds(self, method: str, item: _Json) -> bool:
        """Notes a notification; returns False if it adds nothing to earlier ones. The last message may have grown."""
        id_ = str(item.get("id"))
        if self.heard.get(id_) in (method, "item/completed") and (self.last is None or self.last[0] != id_):
            return False
        if len(self.heard) >= ITEMS_MAX:
            self.heard.clear()
            self.ids.clear()
        self.heard[id_] = method
        if method == "item/completed" and (words := _message_in(item)) is not None:
            ids = self.ids.setdefault(words, [])
            if id_ not in ids:
                ids.append(id_)
        return True

    def listed(self, items: list[_Json]) -> list[_Json]:
        """Returns the items of a list with the ids of their notifications. The last message is forgotten if the list
        has it: messages that were missed may come before it."""
        found, count = [], Counter[tuple[str, int]]()
        for item in items:
            ids: list[str] = []
            if (words := _message_in(item)) is not None:
                ids = self.ids.get(words, ids)[count[words] :]
                count[words] += 1
            found.append({**item, "id": ids[0]} if ids else item)
        if self.last is not None and any(str(item.get("id")) == self.last[0] for item in found):
            self.heard.pop(self.last[0], None)
            self.last = None
        return found


class AppTurns:
    """Follows the turns; `say` gets the facts."""

    def __init__(self, name: str, channel: Channel, say: Callable[[ChannelFact], None]) -> None:
        self._name = name
        self._channel = channel
        self._say = say
        self.thread: str | None = None
        self.open: dict[str, _Turn] = {}
        """Turns that are not over, by id."""
        self.over: dict[str, None] = {}
        """Turns whose end was reported."""

    def began(self, turn: str) -> None:
        if turn not in self.over:
            self.open.setdefault(turn, _Turn())

    def read(self, turn: _Json, *, runs: bool) -> None:
        """Reports the parts of a turn, read from its thread, that were not reported before; `runs`: it is not over."""
        id_ = str(turn.get("id"))
        if id_ in self.over:
            return
        self.began(id_)
        for item in self.open[id_].listed(items_of(turn)):
            self._hear_item("item/started" if item.get("status") == RUNS else "item/completed", {"item": item}, id_)
        if not runs:
            self.end({"turn": turn}, id_)

    def hear(self, method: str, params: _Json, turn: str) -> None:
        """Handles a notification about a turn."""
        match method:
            case "turn/started":
                self.began(turn)
            case "item/started" | "item/completed":
                self._hear_item(method, params, turn)
            case "item/agentMessage/delta":
                self._hear_piece(params, turn)
            case "thread/tokenUsage/updated":
                known = self.open.get(turn)
                if known is not None and len(known.used) < USED_MAX:
                    known.used.append(params)
            case "hook/completed":
                self._hear_hook(params, turn)
            case "turn/plan/updated" | "turn/diff/updated":
                self._hear_work(method, params, turn)
            case "turn/completed":
                self.end(params, turn)

    def _hear_hook(self, params: _Json, turn: str) -> None:
        """Handles a hook's end. A prompt that a hook refuses is in no item: the turn is completed without a message."""
        run = params.get("run")
        if words_of(run, "eventName") == "userPromptSubmit" and words_of(run, "status") in ("blocked", "stopped"):
            entries = at_path(run, "entries")
            words = (
                [text for entry in entries if (text := words_of(entry, "text"))] if isinstance(entries, list) else []
            )
            self.open.setdefault(turn, _Turn()).refused = clean("\n".join(words)) or "a hook has refused the prompt"

    def _hear_item(self, method: str, params: _Json, turn: str) -> None:
        item = params.get("item")
        if not isinstance(item, dict):
            return
        kind = item.get("type")
        if kind in _MESSAGES and turn not in self.over:
            self.began(turn)
        known = self.open.get(turn)
        if kind == "userMessage":
            method = "item/completed"  # it is whole when it begins
        elif known is not None:
            known.whole = method == "item/completed" and says_all(item)
        if known is not None and not known.adds(method, item):
            return
        match kind:
            case "userMessage" if known is not None:
                self._accept(item, turn, known)
            case "agentMessage" if known is not None and method == "item/started":
                known.begun = str(item.get("id"))
            case "agentMessage" if known is not None:
                self._said(str(item.get("id")), clean(str(item.get("text") or "")), turn, known)
            case _ if (call := call_in(item, self._channel.called)) is not None:
                self._hear_call(method, call, turn)

    def _hear_call(self, method: str, call: CalledTool, turn: str) -> None:
        common: dict[str, Any] = {
            "channel": self._name,
            "at_ns": time.monotonic_ns(),
            "session": self.thread,
            "turn": turn or None,
            "call": call.id,
            "tool": call.tool,
            "input": call.input,
        }
        if method == "item/started":
            self._say(ToolBegan(**common))
        else:
            self._say(
                ToolOver(
                    **common, output=call.output, error=call.error, denied=call.denied, duration_ms=call.duration_ms
                )
            )

    def _accept(self, item: _Json, turn: str, known: _Turn) -> None:
        """Handles a user's message. A person may write while a turn works on synapsed's message: before that is
        answered, the person's message is part of the same turn. After that, synapsed's turn is reported as ended with
        its answer, and all that follows is the person's."""
        own = is_own(key := words_of(item, "clientId"))
        if known.own and not own:
            if not known.whole or known.last is None:
                return
            now, answer = time.monotonic_ns(), known.last[1]
            self._say(TurnEnded(channel=self._name, at_ns=now, session=self.thread, turn=turn, answer=answer))
        known.own, known.last = own, None  # earlier text answers another message
        self._say(
            PromptAccepted(
                channel=self._name,
                at_ns=time.monotonic_ns(),
                session=self.thread,
                turn=turn,
                prompt=text_of_message(item),
                key=key if own else None,
                own=own,
            )
        )

    def _said(self, id_: str, text: str, turn: str, known: _Turn) -> None:
        """Notes that a message is complete, so the message before it was not the answer, and is reported."""
        if known.last is not None and known.last[0] != id_ and known.last[1]:
            now = time.monotonic_ns()
            self._say(
                AssistantSaid(
                    channel=self._name,
                    at_ns=now,
                    session=self.thread,
                    turn=turn,
                    message_id=known.last[0],
                    text=known.last[1],
                )
            )
        known.last = (id_, text)

    def _hear_piece(self, params: _Json, turn: str) -> None:
        known, piece, id_ = self.open.get(turn), params.get("delta"), str(params.get("itemId"))
        if known is None or known.begun != id_ or not isinstance(piece, str):
            return  # its beginning was missed
        now = time.monotonic_ns()
        self._say(
            AssistantSaying(
                channel=self._name, at_ns=now, session=self.thread, turn=turn, message_id=id_, piece=clean(piece)
            )
        )

    def _hear_work(self, method: str, params: _Json, turn: str) -> None:
        now = time.monotonic_ns()
        if method == "turn/plan/updated":
            if (known := self.open.get(turn)) is not None:
                known.whole = False  # a plan is a call of the program that is no item
            steps, note = plan_in(params), words_of(params, "explanation")
            self._say(PlanTold(channel=self._name, at_ns=now, session=self.thread, turn=turn, steps=steps, note=note))
        elif isinstance(diff := params.get("diff"), str):
            self._say(DiffTold(channel=self._name, at_ns=now, session=self.thread, turn=turn, diff=clean(diff)))

    def end(self, params: _Json, turn: str) -> None:
        """Ends the turn; reported once."""
        if turn in self.over:
            return
        self.over[turn] = None
        while len(self.over) > KNOWN_MAX:
            del self.over[next(iter(self.over))]
        known = self.open.pop(turn, _Turn())
        common: dict[str, Any] = {
            "channel": self._name,
            "at_ns": time.monotonic_ns(),
            "session": self.thread,
            "turn": turn,
        }
        line = self._channel.usage
        if line is not None and (found := used(known.used, line)) is not None:
            self._say(TurnUsed(**common, **found))
        match at_path(params, "turn.status"):
            case "completed" if known.refused is not None and known.last is None:
                self._say(TurnFailed(**common, code="UNDELIVERED", message=known.refused[:MESSAGE_MAX]))
            case "completed":
                self._say(TurnEnded(**common, answer=known.last[1] if known.last is not None else _summary(params)))
            case "failed":
                code, message = code_of(self._channel, at_path(params, "turn.error"))
                self._say(TurnFailed(**common, code=code, message=message))
            case _:
                self._say(TurnInterrupted(**common))


def _summary(params: _Json) -> str | None:
    """Returns the answer in the report of the turn's end; None if it has no answer: the turn's messages are then
    requested."""
    turn = params.get("turn")
    if not isinstance(turn, dict) or turn.get("itemsView") == "notLoaded":
        return "" if isinstance(turn, dict) and turn.get("items") == [] else None
    return answer_in(turn)


def _message_in(item: _Json) -> tuple[str, int] | None:
    """Returns the kind of a message and the hash of its key or words; None for an item that is no message."""
    match kind := item.get("type"):
        case "userMessage":
            return str(kind), hash(words_of(item, "clientId") or text_of_message(item))
        case "agentMessage":
            return str(kind), hash(str(item.get("text") or ""))
        case _:
            return None
