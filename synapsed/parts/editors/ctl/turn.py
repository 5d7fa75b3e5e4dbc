"""Makes the updates about one task for an editor: its text as it comes, and in the end exactly the agent's answer.
Pure.

Text is only ever added: a sent text is the beginning of the following one, or the message comes whole under another id.
Blanks at the end of the present text wait for the next word, since a screen does not show them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from synapsectl.messages import SYSTEM
from synapsed.parts.editors.ctl.content import chunks, id_for, text_of
from synapsed.parts.editors.ctl.order import TurnOrder

ANSWER = "answer"
_BLOCKS = f"{ANSWER}."
"""Ids of the artifacts that are pieces of the answer, which is sent whole."""


class _Said:
    """One message: `whole` as the daemon has it, `said` as far as it was sent, under `message_id`."""

    __slots__ = ("message_id", "said", "whole")

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.whole = ""
        self.said = ""


class Turn:
    """The updates of one task, in order."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.order = TurnOrder()
        self._messages: dict[str, _Said] = {}
        self._number = 0
        self._over = False

    def asked(self, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yields the task's message, for an editor that has not sent it."""
        sender = (document.get("metadata") or {}).get("sender") or {}
        meta = {"task": self.task} | ({"sender": sender["sender_id"]} if sender.get("sender_id") else {})
        words = text_of((document.get("message") or {}).get("parts") or [])
        return chunks("user_message_chunk", words, id_for(self.task, "user"), meta)

    def piece(self, told: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yields updates for an `artifact` of the task's stream; none once the task is over."""
        if self._over:
            return iter(())
        artifact = told["artifact"]
        last = bool(told.get("lastChunk", True))
        return self._artifact(artifact, append=bool(told.get("append")), last=last, exact=False)

    def end(self, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yields the rest of a task that is over."""
        if not self._over:
            self._over = True
            for artifact in document.get("artifacts") or []:
                yield from self._artifact(artifact, append=False, last=True, exact=True)

    def _artifact(
        self, artifact: Mapping[str, Any], *, append: bool, last: bool, exact: bool
    ) -> Iterator[dict[str, Any]]:
        name = str(artifact.get("artifact_id") or artifact.get("name"))
        if name.startswith(_BLOCKS):
            return
        text = "".join(str(part.get("text", "")) for part in artifact.get("parts") or [] if part.get("type") == "text")
        message = self._message(name, text)
        message.whole = message.whole + text if append else text
        told = message.whole if exact else message.whole.rstrip()
        if told == message.said or (not exact and message.said.startswith(told)):
            return
        if not told.startswith(message.said):
            if not last:
                return  # it may yet be taken back
            message.message_id, message.said = self._next_id(name), ""
        piece, message.said = told[len(message.said) :], told
        yield from chunks("agent_message_chunk", piece, message.message_id)

    def _message(self, name: str, text: str) -> _Said:
        """Returns the message of an artifact. An earlier message that was first sent as the answer is found again."""
        found = self._messages.get(name)
        if found is None:
            answer = self._messages.get(ANSWER)
            if answer is not None and answer.said and text.startswith(answer.said):
                found = self._messages.pop(ANSWER)
            else:
                found = _Said(self._next_id(name))
            self._messages[name] = found
        return found

    def _next_id(self, name: str) -> str:
        """Returns the next id; the first message has the task's own id."""
        self._number += 1
        return self.task if self._number == 1 else id_for(self.task, name, self._number)


def is_shown(document: Mapping[str, Any]) -> bool:
    """Returns True if a task is a turn for a person to see: not the instructions at the agent's start, and not a
    sender's own task that stands for a reply."""
    metadata = document.get("metadata") or {}
    sender = metadata.get("sender") or {}
    return metadata.get("direction") != "outgoing" and sender.get("sender_id") != SYSTEM


def seen(event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields a turn that a person has typed at the agent's terminal (`turnSeen`)."""
    data, place = event["data"], ("turn", event.get("agent"), event.get("id"))
    if isinstance(data.get("text"), str):
        yield from chunks("user_message_chunk", data["text"], id_for(*place, "user"), {"terminal": True})
    if isinstance(data.get("answer"), str):
        yield from chunks("agent_message_chunk", data["answer"], id_for(*place, "answer"))
