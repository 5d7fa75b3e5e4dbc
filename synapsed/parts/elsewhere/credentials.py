"""Credentials for one agent elsewhere: they go with every request to it, and are in no message."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from synapsed.errors import ExternalError

_SHORTEST: Final = 6
"""Characters of a secret that is looked for in what an agent says: a shorter one would be found everywhere."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Headers and members of the query, with their values."""

    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.headers or self.query)

    def covered(self, text: str) -> str:
        """Returns the text without secrets that an agent may have repeated in it."""
        values = [*self.headers.values(), *self.query.values()]
        values += [inner for name, value in self.headers.items() for inner in _within(name, value)]
        secrets = {word for value in values for word in (value, quote(value, safe=""), *value.split())}
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) >= _SHORTEST:
                text = text.replace(secret, "…")
        return text

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keeps the secrets out of the errors that are raised within."""
        try:
            yield
        except ExternalError as error:
            error.message = self.covered(error.message)
            error.args = (error.message,)
            raise


def _within(name: str, value: str) -> list[str]:
    """Returns the secrets within a header: the values of cookies, name and password of HTTP Basic."""
    if name.lower() == "cookie":
        return [one.partition("=")[2].strip() for one in value.split(";")]
    scheme, _, encoded = value.partition(" ")
    if scheme.lower() != "basic":
        return []
    try:
        decoded = base64.b64decode(encoded, validate=True).decode()
    except ValueError:
        return []
    return [decoded, decoded.partition(":")[2]]


NONE: Final = Credentials()
