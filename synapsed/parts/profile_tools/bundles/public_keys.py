"""The public keys of the signers of bundles, as text. Pure. The configuration imports this module."""

import base64
from typing import NamedTuple

from synapsed.shared.regex import regex

KIND = "ed25519:"
SIZE = 32
"""Bytes of a key."""
_NAME = regex(r"[\x21-\x7e](?:[\x20-\x7e]{0,62}[\x21-\x7e])?")


class PublicKey(NamedTuple):
    """A public key in the form `ed25519:BASE64 NAME`; the name is for people, and may be missing."""

    text: str
    name: str

    @classmethod
    def parse(cls, value: str) -> "PublicKey":
        """Parses a key. Raises ValueError. A key has one spelling only."""
        text, _, name = value.strip().partition(" ")
        name = name.strip()
        try:
            raw = base64.b64decode(text.removeprefix(KIND), validate=True)
        except ValueError:
            raw = b""
        if not text.startswith(KIND) or len(raw) != SIZE or as_text(raw) != text:
            raise ValueError("must be 'ed25519:' with a public key, as 'synapsectl profiles key' prints it, and a name")
        if name and _NAME.fullmatch(name) is None:
            raise ValueError("must have a name of 1 to 64 plain characters behind the key")
        return cls(text, name)

    @property
    def raw(self) -> bytes:
        return base64.b64decode(self.text.removeprefix(KIND))

    @property
    def shown(self) -> str:
        """Returns the text for people: its name, and the beginning of the key."""
        short = f"{self.text[: len(KIND) + 12]}…"
        return f"{self.name} ({short})" if self.name else short


def as_text(raw: bytes) -> str:
    return f"{KIND}{base64.b64encode(raw).decode()}"
