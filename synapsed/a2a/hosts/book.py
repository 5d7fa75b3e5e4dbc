"""The hosts on disk: `state/hosts/<name>.json`."""

from pathlib import Path

import structlog
from pydantic import ValidationError

from synapsed.a2a.addressbook import read_private
from synapsed.files import write_private
from synapsed.model.host import Host

log = structlog.stdlib.get_logger("synapsed.hosts")


class HostBook:
    """The directory; every method blocks."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def load(self) -> list[Host]:
        """A file that is no entry is passed over, with a word in the log."""
        found = []
        for path in sorted(self._directory.glob("*.json")) if self._directory.is_dir() else ():
            try:
                host = Host.model_validate_json(read_private(path))
            except (OSError, ValidationError) as error:
                log.warning("a host's file cannot be read", file=str(path), error=str(error)[:200])
                continue
            if host.name == path.stem:
                found.append(host)
        return found

    def save(self, host: Host) -> None:
        write_private(self._directory / f"{host.name}.json", host.model_dump_json(indent=2).encode())

    def remove(self, name: str) -> None:
        (self._directory / f"{name}.json").unlink(missing_ok=True)
