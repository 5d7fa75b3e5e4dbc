"""A bundle of profiles: a line with the signer's public key and the signature, then the archive that is signed. Pure.

::

    synapsed-profiles-1 ed25519:PUBLIC-KEY SIGNATURE\\n     (base64)
    the archive                                             (`archive`)

The archive is not read before the signature is verified. The line has one spelling only, and so has the bundle.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from synapsed.errors import Forbidden, InvalidRequest
from synapsed.parts.profile_tools.bundles.archive import MANIFEST, pack, unpack
from synapsed.parts.profile_tools.bundles.public_keys import PublicKey
from synapsed.shared.regex import regex

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MAGIC = "synapsed-profiles-1"
_HEAD_MAX = 256
_LINE = regex(rf"{MAGIC} (?P<key>ed25519:[A-Za-z0-9+/=]{{44}}) (?P<signature>[A-Za-z0-9+/=]{{88}})\n")
NO_KEYS = (
    "no key is trusted: get the signer's public key from the signer, and write it in config.toml as "
    '[profiles] keys = ["ed25519:… NAME"]'
)

Release = Annotated[str, Field(pattern=r"^\d{1,6}(\.\d{1,6}){1,3}([-.][0-9A-Za-z.-]{1,30})?$", max_length=60)]


class HeldProfile(BaseModel):
    """A profile of the bundle, and the versions of the program that it fits: it was tested on `verified`, and works
    from `since` on."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str = Field(max_length=64)
    verified: str | None = Field(default=None, max_length=60)
    since: str | None = Field(default=None, max_length=60)


class Manifest(BaseModel):
    """The bundle's description of itself. `made`: seconds since 1970; `made_with`: the version of synapsed; `needs`:
    the oldest version that can use the bundle."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    made: float = Field(ge=0, le=4e10)
    made_with: Release
    needs: Release
    profiles: list[HeldProfile] = Field(min_length=1, max_length=200)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A verified bundle."""

    digest: str
    signer: PublicKey
    manifest: Manifest
    files: Mapping[str, bytes]


def seal(manifest: Manifest, files: Mapping[str, bytes], key: "Ed25519PrivateKey") -> bytes:
    """Returns the bundle. Raises InvalidRequest."""
    from synapsed.parts.profile_tools.bundles.keys import public_text, sign

    archive = pack({**files, MANIFEST: manifest.model_dump_json(indent=1).encode()})
    return f"{MAGIC} {public_text(key)} {sign(key, _signed(archive))}\n".encode() + archive


def open_bundle(content: bytes, trusted: Iterable[str]) -> Bundle:
    """Verifies and opens a bundle. Raises Forbidden if it is not signed by one of the `trusted` keys, InvalidRequest if
    it is no bundle."""
    from synapsed.parts.profile_tools.bundles.keys import is_signed

    head, newline, archive = content[:_HEAD_MAX].partition(b"\n")
    found = _LINE.fullmatch((head + newline).decode("latin-1"))
    if found is None:
        raise InvalidRequest("this is no bundle of profiles, or one for another version of synapsed")
    archive = content[len(head) + 1 :]
    keys = [PublicKey.parse(text) for text in trusted]
    if not keys:
        raise Forbidden(NO_KEYS)
    signer = next((key for key in keys if key.text == found["key"]), None)
    if signer is None:
        raise Forbidden(f"it is signed with {found['key']}, which is not among [profiles] keys of config.toml")
    if not is_signed(signer.raw, _signature(found["signature"]), _signed(archive)):
        raise Forbidden(f"the signature of {signer.shown} does not fit: the bundle was changed, or damaged on its way")
    return _checked(hashlib.sha256(content).hexdigest(), signer, unpack(archive))


def _signed(archive: bytes) -> bytes:
    return f"{MAGIC}\n".encode() + archive


def _signature(text: str) -> bytes:
    """Returns the signature's bytes; empty for a text in any other than the one spelling."""
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        return b""
    return raw if base64.b64encode(raw).decode() == text else b""


def _checked(digest: str, signer: PublicKey, files: dict[str, bytes]) -> Bundle:
    try:
        manifest = Manifest.model_validate_json(files.pop(MANIFEST, b""))
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidRequest(f"manifest.json: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    names = [f"profiles/{each.name}.toml" for each in manifest.profiles]
    there = [name for name in files if name.startswith("profiles/")]
    if sorted(names) != sorted(there):
        raise InvalidRequest("manifest.json: names other profiles than there are")
    return Bundle(digest, signer, manifest, files)


def numbers(release: str) -> tuple[int, ...]:
    """Returns the sort key of a release of synapsed."""
    found = re.match(r"[\d.]*", release)
    assert found is not None
    return tuple(int(number) for number in found[0].split(".") if number)
