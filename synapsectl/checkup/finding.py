"""The result of one check, as `synapsectl doctor` shows it."""

import shlex
from collections.abc import Iterable
from typing import Any, NamedTuple

OK = "ok"
NOTE = "note"
"""Status of something that is not wrong, but worth knowing, or a matter of taste."""
WRONG = "wrong"


class Finding(NamedTuple):
    """The result of one check; `mend` is the command or the action that makes it OK."""

    what: str
    status: str
    detail: str
    mend: str = ""

    def document(self) -> dict[str, Any]:
        return {"check": self.what, "status": self.status, "detail": self.detail, "mend": self.mend or None}


def command(*words: object) -> str:
    """Returns a command line that can be pasted into a shell."""
    return shlex.join(str(word) for word in _flat(words))


def _flat(words: Iterable[object]) -> Iterable[object]:
    for word in words:
        if isinstance(word, list | tuple):
            yield from word
        else:
            yield word
