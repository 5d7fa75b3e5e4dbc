"""Bodies and answers of `/web/…`, `/control/devices` and `/control/tokens`."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from synapsed.clock import iso
from synapsed.interfaces import Right
from synapsed.parts.web.certificates import read
from synapsed.parts.web.codes import CODE_LENGTH_MAX
from synapsed.parts.web.pairs import Pair
from synapsed.parts.web.records import AGENTS_MAX, NAME_MAX, Device, Name, ScopedToken

_Code = Annotated[str, StringConstraints(min_length=1, max_length=CODE_LENGTH_MAX)]
_Address = Annotated[str, StringConstraints(min_length=1, max_length=256)]
_Rights = Annotated[list[Right], Field(min_length=1, max_length=5)]
DAYS_MAX = 3660


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class SessionBody(_Body):
    """`POST /web/session`: `name` is the name that the device wants."""

    code: _Code
    name: Name | None = None


class CodeBody(_Body):
    """`POST /control/web/code`: properties of the device that brings the code. `here`: it is for a browser of this
    machine, and not for one that a proxy brings."""

    rights: _Rights
    name: Name | None = None
    here: bool = False


_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = rf"^{_LABEL}(\.{_LABEL})+\.?$"
"""A host's whole name, like box.tailnet.ts.net."""


class ServeBody(_Body):
    """`POST /control/web/serve`: a proxy of this machine's brings requests for `name`, over TLS; or, with `on` false,
    no longer."""

    name: Annotated[str, StringConstraints(max_length=253, pattern=_HOST)]
    on: bool = True


class TokenBody(_Body):
    """`POST /control/tokens`: `agents`: any addresses, null for all; `days`: null until it is revoked."""

    name: Name
    rights: _Rights
    agents: Annotated[list[_Address], Field(min_length=1, max_length=AGENTS_MAX)] | None = None
    days: Annotated[float, Field(gt=0, le=DAYS_MAX)] | None = None


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DeviceAnswer(_Answer):
    """A paired device; times are RFC 3339 in UTC."""

    id: str
    name: str = Field(max_length=NAME_MAX)
    rights: list[Right]
    paired: str
    seen: str = Field(description="When it last opened the page, give or take an hour")
    push: bool = Field(description="True if its browser is notified of what waits")

    @classmethod
    def of(cls, device: Device) -> "DeviceAnswer":
        return cls(
            id=device.id,
            name=device.name,
            rights=device.rights,
            paired=iso(device.paired),
            seen=iso(device.seen),
            push=device.push is not None,
        )


class PageDevice(_Answer):
    id: str
    name: str
    push: bool = Field(description="True if its browser is notified of what waits")


class MeAnswer(_Answer):
    """The visitor of the page. `device` is null for a person with the control token."""

    device: PageDevice | None
    rights: list[Right]
    push_key: str | None = Field(description="Public key of signed pushes, with which the page subscribes")
    version: str
    page: str = Field(description="Version of the daemon's page; an open page compares it with its own")


class OwnCertificate(_Answer):
    """SHA-256 of the certificate that a browser gets, and of the authority that has signed it, as `AB:CD:…`;
    `download`: address of that authority, for devices that are to trust it."""

    fingerprint: str
    authority: str
    ends: str
    download: str

    @classmethod
    def of(cls, pair: Pair | None, addresses: Sequence[str]) -> "OwnCertificate | None":
        if pair is None or pair.authority is None or not addresses:
            return None
        return cls(
            fingerprint=pair.told.fingerprint,
            authority=read(pair.authority).fingerprint,
            ends=iso(pair.told.ends.timestamp()),
            download=f"{addresses[0]}web/authority.crt",
        )


class CodeAnswer(_Answer):
    """`addresses`: of the page, those first that other machines reach; the code goes after them as `#code=CODE`.
    `certificate`: null unless the daemon has made the one of its listener with TLS itself."""

    code: str
    rights: list[Right]
    expires_in: float = Field(description="Seconds")
    addresses: list[str]
    certificate: OwnCertificate | None = None


class ServedAnswer(_Answer):
    served: list[str]


class TokenAnswer(_Answer):
    """A token for scripts; `token` only when it is made: later only its hash is kept."""

    id: str
    name: str
    rights: list[Right]
    agents: list[str] | None
    made: str
    expires: str | None
    token: str | None = None

    @classmethod
    def of(cls, kept: ScopedToken, token: str | None = None) -> "TokenAnswer":
        return cls(
            id=kept.id,
            name=kept.name,
            rights=kept.rights,
            agents=kept.agents,
            made=iso(kept.made),
            expires=None if kept.expires is None else iso(kept.expires),
            token=token,
        )
