"""What a program says in one turn: its messages, of which the last is the answer. Pure.

Which text is an answer, the protocol leaves open: every text comes as a chunk of a message, warnings and notices too.
What was learnt of the programs: a notice says that it is informational, or has no `messageId` where the program's own
messages have one.
"""

from dataclasses import dataclass, field
from typing import Any

MESSAGES_MAX = 1000
"""Messages of a turn that are kept; further ones go into the last."""


@dataclass(slots=True)
class _Message:
    name: str
    """Its id; where it has none, one of ours."""
    has_id: bool
    text: str = ""


@dataclass(slots=True)
class TurnSpeech:
    """`ids`: the program has given a message an id before, so that what has none is no message of its own."""

    ids: bool = False
    messages: list[_Message] = field(default_factory=list)
    heard: bool = False
    """The program did something: it said, thought, planned or called something."""
    missed: bool = False
    """What was said before is gone."""
    _broken: bool = False
    """Something else came: text without an id is another message from here on."""

    def chunk(self, update: dict[str, Any]) -> tuple[str, str] | None:
        """An `agent_message_chunk`: the message's name and the piece, None for what is no answer's."""
        self.heard = True
        content = update.get("content")
        text = content.get("text") if isinstance(content, dict) and content.get("type") == "text" else None
        if not isinstance(text, str) or not text or _informational(update) or _informational(content):
            return None
        given = update.get("messageId")
        has_id = isinstance(given, str) and bool(given)
        self.ids = self.ids or has_id
        message = self._message(given if has_id else None)
        message.text += text
        return None if self.ids and not has_id else (message.name, text)

    def _message(self, given: str | None) -> _Message:
        if given is not None:
            found = next((message for message in reversed(self.messages) if message.name == given), None)
        else:
            last = self.messages[-1] if self.messages else None
            found = last if last is not None and not last.has_id and not self._broken else None
        if found is None and len(self.messages) >= MESSAGES_MAX:
            found = self.messages[-1]
        if found is None:
            found = _Message(given or f"m{len(self.messages) + 1}", given is not None)
            self.messages.append(found)
        self._broken = False
        return found

    def interlude(self) -> None:
        """A tool call or a plan came."""
        self.heard = self._broken = True

    @property
    def own(self) -> list[_Message]:
        """The program's messages, without notices, in order."""
        return [message for message in self.messages if message.text.strip() and (message.has_id or not self.ids)]

    @property
    def notices(self) -> str:
        """What was said beside them."""
        return "\n".join(message.text for message in self.messages if self.ids and not message.has_id)

    @property
    def answer(self) -> str | None:
        return self.own[-1].text if self.own else None


def _informational(told: Any) -> bool:
    """Whether some program's `_meta` calls it so."""
    meta = told.get("_meta") if isinstance(told, dict) else None
    if not isinstance(meta, dict):
        return False
    kinds = [meta.get("kind"), *(each.get("kind") for each in meta.values() if isinstance(each, dict))]
    return "informational" in kinds
