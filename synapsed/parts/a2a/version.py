"""The version of A2A that a request speaks (specification 3.6): `A2A-Version`, of which major and minor count."""

from typing import Final

from synapsed.a2a_types.a2a_errors import VERSION_NOT_SUPPORTED, A2aError
from synapsed.shared.regex import regex

V10: Final = "1.0"
V03: Final = "0.3"
"""Version of a request without the header: clients of 0.3 send no version."""
_VERSION: Final = regex(r"(\d{1,4}\.\d{1,4})(\.\d{1,6})?")
SHOWN: Final = 20
"""Most characters of an unknown version that are shown."""


def said_version(said: str | None) -> str:
    """Returns major and minor of the client's version; a text that is no version comes back as it is, and is not
    served."""
    text = (said or V03).strip()
    match = _VERSION.fullmatch(text)
    return match[1] if match else text


def require_version(said: str | None, *served: str) -> str:
    """Returns the version to serve, one of `served`. Raises A2aError (-32009)."""
    version = said_version(said)
    if version not in served:
        hint = "" if said else f" (none was sent, which means {V03})"
        raise A2aError(
            VERSION_NOT_SUPPORTED,
            f"A2A-Version {version[:SHOWN]!r} is not served here{hint}; send 'A2A-Version: {served[0]}'",
            metadata={"requestedVersion": version[:SHOWN], "supportedVersions": ", ".join(served)},
        )
    return version
