"""A file that is kept beside the messages that name it: given here to be sent, or come from another host.

Its address is `syn-file:<id>`, or `syn-file:<host>/<id>`: a path below one folder, of names that lead nowhere else.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from synapsed.model.task import FilePart, Part

SCHEME: Final = "syn-file:"
SIZE: Final = "size"
"""Key of such a part's metadata: the file's bytes."""
_ADDRESS: Final = re.compile(r"syn-file:(?:([a-z0-9][a-z0-9-]{0,30})/)?([0-9a-f]{32})")


class KeptFile(NamedTuple):
    """`host` is the host that it came from; None if it was given here."""

    host: str | None
    id: str

    @property
    def uri(self) -> str:
        return f"{SCHEME}{self.id}" if self.host is None else f"{SCHEME}{self.host}/{self.id}"

    @property
    def path(self) -> str:
        """Below the folder of such files."""
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
    """The ids of the files among the parts that were given here, each once."""
    named = [KeptFile.of(part.file.uri) for part in parts if isinstance(part, FilePart)]
    return list(dict.fromkeys(kept.id for kept in named if kept is not None and kept.host is None))
