"""What a device or a token may do: words of a person's, and the grant that a request is judged by."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

type Right = Literal["look", "send", "answer", "type"]
"""`look`: read what a person reads. `send`: send messages, and read the tasks whose id one knows. `answer`: answer what
agents ask, send, cancel and interrupt. `type`: press keys and use terminals, which is to run anything that an agent
could run."""

RIGHTS: Final[tuple[Right, ...]] = get_args(Right.__value__)

SENDS: Final[frozenset[Right]] = frozenset({"send", "answer"})
"""Either lets messages be sent."""

DESK: Final[frozenset[Right]] = frozenset({"look", "answer", "type"})
PHONE: Final[frozenset[Right]] = frozenset({"look", "answer"})
"""What a device gets if nothing else is said."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Of one device or token, which `id` names. `agents`: names of the only agents that it is for; None: all.
    `expires`: when it is good no more, in seconds since the epoch; None: not by itself."""

    kind: Literal["device", "token"]
    id: str
    name: str
    rights: frozenset[str]
    agents: frozenset[str] | None = None
    expires: float | None = None

    def covers(self, agent: str) -> bool:
        """Whether it is for the agent of that name."""
        return self.agents is None or agent in self.agents
