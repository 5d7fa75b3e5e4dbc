"""What somebody may do who is let in by more than a process: words of a person's, and the grant that a request is
judged by."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, get_args

type Right = Literal["look", "send", "answer", "type"]
"""`look`: read what a person reads. `send`: send messages, and read the tasks whose id one knows. `answer`: answer what
agents ask, send, cancel and interrupt. `type`: press keys and use terminals, which is to run anything that an agent
could run."""

RIGHTS: Final[tuple[Right, ...]] = get_args(Right.__value__)

SENDS: Final[frozenset[Right]] = frozenset({"send", "answer"})
"""Either lets messages be sent."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A person's, for what has not all of the person's rights. `kind`: what people call that, as `token`; `id`: which
    one it is. `agents`: names of the only agents that it is for; None: all. `expires`: when it is good no more, in
    seconds since the epoch; None: not by itself."""

    kind: str
    id: str
    name: str
    rights: frozenset[str]
    agents: frozenset[str] | None = None
    expires: float | None = None

    def covers(self, agent: str) -> bool:
        """Whether it is for the agent of that name."""
        return self.agents is None or agent in self.agents


class TokenKind(StrEnum):
    ABSENT = "absent"
    CONTROL = "control"
    AGENT = "agent"
    ROUTE = "route"
    """Opens one route, and nothing else."""
    GRANTED = "granted"
    """Known to a part: a person's, but for some things only."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Token:
    """What the request's `Authorization`, or what else it carries, turned out to be."""

    kind: TokenKind = TokenKind.ABSENT
    agent_id: str | None = None
    grant: Grant | None = None
    route: str | None = None
    """The path of the one route that it opens."""
