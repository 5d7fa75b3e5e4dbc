"""The sender of a message, and how well it is known (S17).

::

    tier      who                                             in the terminal
    person    a person of this machine, in his own name       the text as it is
    agent     an agent; the daemon has verified that          [A2A:<task8>:<id>] text
    claimed   a sender with an unverified name                [A2A:<task8>:<id>] text
    external  a sender on another machine                     [A2A:<task8>:<id>] text

A person's message has no sender in its metadata, except if a part has sent it for the person: then the tier is person,
and the name says so. A client's sender is only a claim; the task keeps the verdict on it
(`synapsed.tasks.sender_verdict`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self
from unicodedata import normalize

from synapsed.model.task import Task

KEY = "sender"
"""Key of the sender in a task's metadata."""

SENDER_TASK = "sender_task_id"
"""Key of a request's metadata: the task on the sender's side that its reply completes (S20)."""

SYSTEM = "synapse-system"
"""Sender of messages from synapsed itself; nothing else may use it."""

UNKNOWN = "unknown"
"""Sender of a message from an unknown agent."""

PERSON = "person"
"""Sender of a reply that a person gave in their own name."""

SENDER_MAX = 128
"""Characters of a sender's id."""

_NOT_IN_A_MARK = frozenset("[]:")


class Tier(StrEnum):
    PERSON = "person"
    AGENT = "agent"
    CLAIMED = "claimed"
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """A sender that is not a person in their own name. `id` is an agent's id, or the claimed name."""

    id: str
    tier: Tier
    type: str | None = None
    endpoint: str | None = None

    def metadata(self) -> dict[str, Any]:
        """Returns the fields that a task keeps: `sender_id`, `sender_type`, `sender_endpoint`, `verified`, `tier`."""
        return {
            "sender_id": self.id,
            **({"sender_type": self.type} if self.type is not None else {}),
            **({"sender_endpoint": self.endpoint} if self.endpoint is not None else {}),
            "verified": self.tier is Tier.AGENT,
            "tier": self.tier.value,
        }

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Self | None:
        """Returns the sender in a task's metadata; None if a person sent it."""
        told = metadata.get(KEY)
        given = told if isinstance(told, dict) else {"sender_id": told}
        raw = given.get("sender_id")
        sender_id = (
            "".join(c for c in raw if c.isprintable() and c not in _NOT_IN_A_MARK) if isinstance(raw, str) else ""
        )
        if not sender_id:
            return None
        tier = given.get("tier")
        return cls(
            id=sender_id[:SENDER_MAX],
            tier=Tier(tier) if tier in list(Tier) else Tier.CLAIMED,
            type=_text(given.get("sender_type")),
            endpoint=_text(given.get("sender_endpoint")),
        )


def is_system(sender_id: str) -> bool:
    """Returns True if a reader would take `sender_id` for synapsed itself: in capitals or full width, too."""
    return normalize("NFKC", sender_id).strip().removeprefix("@").casefold() == SYSTEM


def sender_of(task: Task) -> Sender | None:
    """Returns the sender of the task; None for a person."""
    return Sender.of(task.metadata)


def sender_id_of(task: Task) -> str | None:
    """Returns the id of the sender; None for a person."""
    sender = sender_of(task)
    return sender.id if sender is not None else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
