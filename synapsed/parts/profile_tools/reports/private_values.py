"""The private words of a person at this machine: values of variables and settings that are secret, and names."""

import contextlib
import getpass
import os
import platform
import pwd
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from synapsed.model.masking import is_secret_key, secret_spans
from synapsed.parts.profile_tools.reports.private_words import COMMON, GRAM, PERSON, Word
from synapsed.shared.regex import regex

VALUE_MIN: Final = 5
"""Letters of a value that is masked wherever it stands."""
NAME_MIN: Final = 4
_NAMED = regex(
    r"(?:^|_)(?:KEYS?|PAT|PASS|PWD|PASSCODE|CREDS?|CREDENTIALS?|DSN|SECRETS?|TOKENS?|COOKIES?|SIGNATURE|PIN|OTP)(?:_|$)"
    r"|(?i:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|APIKEY)$"
)
"""Names of variables whose values are secret, besides those of `is_secret_key`."""
_RANDOM = regex(r"(?=.*\d)(?=.*[A-Za-z])[\w+=.~-]{16,1024}", re.ASCII)
_WORDS = regex(r"(?:[a-z]+|\d[\d.]*)(?:[-_.](?:[a-z]+|\d[\d.]*))*")
"""A value that is no secret by its look, such as the name of a model."""
_PLAIN = COMMON | {"false", "enabled", "disabled", "never", "always", "default", "required", "optional"}


def secret_values(value: Any, key: str = "") -> Iterator[Word]:
    """Yields the secrets of nested settings: values under a name of secrets, and values that look like secrets."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from secret_values(item, str(name))
    elif isinstance(value, list | tuple):
        yield from secret_values(" ".join(item for item in value if isinstance(item, str)))  # an option and its value
        for item in value:
            yield from secret_values(item, key)
    elif isinstance(value, str) and not _is_place(value):
        named = is_secret_key(key) or _NAMED.search(key)
        if named or (_RANDOM.fullmatch(value) and not _WORDS.fullmatch(value)):
            yield from _word(value)
        for start, end in secret_spans(f"{key}={value}"):
            yield from _word(f"{key}={value}"[start:end])


def _word(value: str) -> Iterator[Word]:
    if len(value.strip()) >= VALUE_MIN and value.strip().lower() not in _PLAIN:
        yield Word(value, "value of a setting", whole=len(value) < GRAM)


def _is_place(value: str) -> bool:
    """Returns True for paths that are there."""
    return all(part.startswith("/") and os.path.exists(part) for part in value.split(":"))  # noqa: PTH110 - as text


def names(environ: Mapping[str, str]) -> Iterator[Word]:
    """Yields the names of the person and of the machine."""
    found = [Path(environ.get("HOME", "")).name, platform.node().partition(".")[0]]
    with contextlib.suppress(OSError, KeyError):
        found += [getpass.getuser(), pwd.getpwuid(os.getuid()).pw_gecos.partition(",")[0]]
    for name in dict.fromkeys(found):
        if len(name) >= NAME_MIN and name.lower() not in COMMON:
            yield Word(name, PERSON, whole=True)
