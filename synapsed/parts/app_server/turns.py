"""Makes facts of the notifications about one thread (conversation) of an app server, a server that some programs offer
beside their terminal. Pure, except the clock.

Missed events are read from the thread's own turns, and reported as the same facts. No prompt and no end of a turn is
reported twice.
"""

import time
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
"""Most turns, and most messages, that are remembered."""
USED_MAX = 1000
"""Most requests of one turn whose usage is added up."""

MESSAGE_MAX = 2000
"""Most characters of an error's text."""

type _Json = dict[str, Any]


class _Turn:
    """The reported state of a turn that is not over."""

    def __init__(self) -> None:
        self.last: tuple[str, str] | None = None
        """Id and text of the program's last message."""
        self.used: list[_Json] = []
        self.begun: str | None = None
        """Id of the message that is being written, if its beginning was received."""
        self.refused: str | None = None
        """Reason for which the person's own hook has refused its prompt."""
        self.own = False
        """True if the turn works on a message from synapsed."""
        self.whole = False
        """True if its last item is a complete message of the program that may be an answer."""


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
        self._accepted: dict[str, None] = {}
        """User's messages that were reported, by their items' ids."""

    def began(self, turn: str) -> None:
        if turn not in self.over:
            self.open.setdefault(turn, _Turn())

    def read(self, turn: _Json, *, runs: bool) -> None:
        """Reports the parts of a turn, read from its thread, that were not reported before; `runs`: it is not over."""
        id_ = str(turn.get("id"))
        if id_ in self.over:
            return
        self.began(id_)
        for item in items_of(turn):
            self._hear_item("item/completed", {"item": item}, id_)
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
        if (known := self.open.get(turn)) is not None and item.get("type") != "userMessage":
            known.whole = method == "item/completed" and says_all(item)
        match item.get("type"):
            case "userMessage":
                self._accept(item, turn)
            case "agentMessage" if method == "item/started":
                self.open.setdefault(turn, _Turn()).begun = str(item.get("id"))
            case "agentMessage":
                self._said(str(item.get("id")), clean(str(item.get("text") or "")), turn)
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

    def _accept(self, item: _Json, turn: str) -> None:
        """Handles a user's message. A person may write while a turn works on synapsed's message: before that is
        answered, the person's message is part of the same turn. After that, synapsed's turn is reported as ended with
        its answer, and all that follows is the person's."""
        id_ = str(item.get("id"))
        if id_ in self._accepted:
            return
        _keep(self._accepted, id_)
        known, key = self.open.setdefault(turn, _Turn()), words_of(item, "clientId")
        own = is_own(key)
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

    def _said(self, id_: str, text: str, turn: str) -> None:
        """Notes that a message is complete, so the message before it was not the answer, and is reported."""
        known = self.open.setdefault(turn, _Turn())
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
        _keep(self.over, turn)
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


def _keep(kept: dict[str, None], id_: str) -> None:
    kept[id_] = None
    while len(kept) > KNOWN_MAX:
        del kept[next(iter(kept))]
