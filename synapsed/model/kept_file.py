"""Files that are kept apart from the messages that name them: they were given at this host to be sent, or came from
another host.

The address of such a file is `syn-file:<id>`, or `syn-file:<host>/<id>`: this is a path below one folder, and its names
cannot lead out of it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from synapsed.model.task import FilePart, Part
from synapsed.shared.regex import regex

SCHEME: Final = "syn-file:"
SIZE: Final = "size"
"""Key of the metadata of a part with such a file: its size in bytes."""
_ADDRESS: Final = regex(r"syn-file:(?:([a-z0-9][a-z0-9-]{0,30})/)?([0-9a-f]{32})")


class KeptFile(NamedTuple):
    """The parts of an address. `host` is the host that the file came from; None if it was given at this host."""

    host: str | None
    id: str

    @property
    def uri(self) -> str:
        return f"{SCHEME}{self.id}" if self.host is None else f"{SCHEME}{self.host}/{self.id}"

    @property
    def path(self) -> str:
        """The path below the folder of such files."""
        return f"out/{self.id}" if self.host is None else f"in/{self.host}/{self.id}"

    @classmethod
    def of(cls, uri: str | None) -> Self | None:
        """Returns the file of an address; None if `uri` is no such address."""
        found = _ADDRESS.fullmatch(uri or "")
        return None if found is None else cls(found[1], found[2])


def is_kept(part: Part) -> bool:
    """Returns True if the part names such a file, or seems to."""
    return isinstance(part, FilePart) and (part.file.uri or "").startswith(SCHEME)


def given_here(parts: Sequence[Part]) -> list[str]:
    """Returns the ids of the files among the parts that were given at this host, each once."""
    named = [KeptFile.of(part.file.uri) for part in parts if isinstance(part, FilePart)]
    return list(dict.fromkeys(kept.id for kept in named if kept is not None and kept.host is None))
