"""Records of devices and tokens: their secrets as hashes only."""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

from synapsed.interfaces import Grant, PushPlace, Right

DESK: Final[frozenset[Right]] = frozenset({"look", "answer", "type"})
"""Rights of a person's own browser."""

NAME_MAX: Final = 64
DEVICES_MAX: Final = 50
TOKENS_MAX: Final = 100
AGENTS_MAX: Final = 20
SERVED_MAX: Final = 10

Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_MAX, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Device(_Record):
    """A paired device. Times are seconds since the epoch; `seen` is written once an hour at the most."""

    id: str
    name: Name
    rights: list[Right]
    digest: str
    paired: float
    seen: float
    push: PushPlace | None = None

    def grant(self) -> Grant:
        return Grant("device", self.id, self.name, frozenset(self.rights))


class ScopedToken(_Record):
    """A token. Times are seconds since the epoch; `expires` is None for one that is valid until it is revoked."""

    id: str
    name: Name
    rights: list[Right]
    agents: list[str] | None = None
    digest: str
    made: float
    expires: float | None = None

    def grant(self) -> Grant:
        agents = None if self.agents is None else frozenset(self.agents)
        return Grant("token", self.id, self.name, frozenset(self.rights), agents, self.expires)


class AccessKept(_Record):
    """Content of the file."""

    version: Literal[1] = 1
    devices: list[Device] = []
    tokens: list[ScopedToken] = []
    served: list[str] = []
    """Names under which a proxy of this machine's (`tailscale serve`) brings requests here, over TLS."""
