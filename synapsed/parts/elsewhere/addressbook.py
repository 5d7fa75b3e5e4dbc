"""The external agents on disk: `~/.a2a/external/<alias>.json`, and their credentials in `<alias>.secret` (mode
0600)."""

import json
import os
import stat
import threading
from dataclasses import asdict
from pathlib import Path

import structlog
from pydantic import ValidationError

from synapsed.errors import ConfigError
from synapsed.interfaces import NAME_PATTERN
from synapsed.parts.elsewhere.credentials import NONE, Credentials
from synapsed.parts.elsewhere.external_agent import ExternalAgent
from synapsed.shared.files import write_private

FILE_MAX = 256 * 1024
"""Bytes that are read of a file at most."""

log = structlog.stdlib.get_logger("synapsed.external")


class AddressBook:
    """The directory of the address book; every method blocks."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._changing = threading.Lock()
        """Lock of the files: a cancelled request's thread goes on."""

    def load(self) -> list[ExternalAgent]:
        """Returns the known agents; skips a file that is no entry, and logs that."""
        found = []
        for path in sorted(self._directory.glob("*.json")) if self._directory.is_dir() else ():
            try:
                agent = ExternalAgent.model_validate_json(read_private(path))
            except (OSError, ValidationError) as error:
                log.warning("an external agent's file cannot be read", file=str(path), error=str(error)[:200])
                continue
            if agent.alias == path.stem and NAME_PATTERN.fullmatch(agent.alias):
                found.append(agent)
        return found

    def save(self, agent: ExternalAgent) -> None:
        write_private(self._directory / f"{agent.alias}.json", agent.model_dump_json(indent=2).encode())

    def renew(self, agent: ExternalAgent) -> None:
        """Saves the agent if it has a file: one that was removed meanwhile does not come back."""
        with self._changing:
            if (self._directory / f"{agent.alias}.json").exists():
                self.save(agent)

    def save_secret(self, alias: str, credentials: Credentials) -> None:
        """Saves the credentials; removes the file if they are empty."""
        path = self._secret(alias)
        if credentials:
            write_private(path, json.dumps(asdict(credentials)).encode())
        else:
            path.unlink(missing_ok=True)

    def secret(self, alias: str) -> Credentials:
        """Returns the saved credentials. Raises ConfigError if others can read the file, or it holds no credentials."""
        path = self._secret(alias)
        try:
            if stat.S_IMODE(path.lstat().st_mode) & 0o077:
                raise ConfigError(f"{path}: others can read these credentials; 'chmod 600' it", file=str(path))
            told = json.loads(read_private(path))
            return Credentials(_texts(told["headers"]), _texts(told.get("query", {})))
        except FileNotFoundError:
            return NONE
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            # Not chained: the text of such an error quotes what it could not read.
            raise ConfigError(f"{path}: holds no credentials; add the agent again", file=str(path)) from None

    def remove(self, alias: str) -> None:
        with self._changing:
            for path in (self._secret(alias), self._directory / f"{alias}.json"):
                path.unlink(missing_ok=True)

    def _secret(self, alias: str) -> Path:
        return self._directory / f"{alias}.secret"


def _texts(told: dict[str, object]) -> dict[str, str]:
    return {str(name): str(value) for name, value in told.items()}


def read_private(path: Path) -> str:
    """Returns the text of a file that is no link, up to `FILE_MAX`."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, encoding="utf-8", errors="replace") as file:
        return file.read(FILE_MAX)
