"""Rights that a person can grant to a client, and the credentials of a request."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, get_args

type Right = Literal["look", "send", "answer", "type", "manage"]
"""`look`: read all that a person reads. `send`: send messages, and read tasks by their id. `answer`: answer the
questions of agents, send, cancel and interrupt. `type`: press keys and use terminals, which amounts to running anything
that an agent could run. `manage`: start agents where there is one already, stop and restart them."""

RIGHTS: Final[tuple[Right, ...]] = get_args(Right.__value__)

SENDS: Final[frozenset[Right]] = frozenset({"send", "answer"})
"""Rights of which each allows to send messages."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant by a person, with only a part of the person's rights."""

    kind: str
    """The word for it in messages, such as `token`."""
    id: str
    """Its id of that kind."""
    name: str
    rights: frozenset[str]
    agents: frozenset[str] | None = None
    """Names of the only agents that it covers; None: all."""
    expires: float | None = None
    """Its end, in seconds since the epoch; None: no end."""

    def covers(self, agent: str) -> bool:
        return self.agents is None or agent in self.agents


class TokenKind(StrEnum):
    ABSENT = "absent"
    CONTROL = "control"
    AGENT = "agent"
    ROUTE = "route"
    """Opens one route, and nothing else."""
    GRANTED = "granted"
    """A token of a person's with limited rights, which a part knows."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Token:
    """Kind of the request's `Authorization`, or of the other credentials that it carries."""

    kind: TokenKind = TokenKind.ABSENT
    agent_id: str | None = None
    grant: Grant | None = None
    route: str | None = None
    """The path of the one route that it opens."""
