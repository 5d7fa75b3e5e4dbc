"""Errors between a person and the daemon, one tree; each class carries the exit code of docs/synapsectl.md.

::

    CtlError                .exit_code, .document()
    ├── UsageError          2  the command line is wrong
    ├── NoDaemon            3  nothing answers on the control socket
    │   └── BadAnswer       3  something answers that is no synapsed
    ├── NotOurs             3  somebody else made the control socket: nothing was sent
    ├── NotAllowed          6  a sandbox keeps this process from the control socket
    ├── WrongUser           6  root, in a person's home
    ├── NotInstalled        6  an extra of the package is missing
    ├── MaybeAccepted       8  the connection broke before the answer to a message
    ├── TimedOut            5  a deadline of ours passed; nothing was undone
    └── ApiError            the daemon refused: by its code, see `synapsed.errors.EXIT_CODES`
"""

from typing import Any

DONE = 0
TASK_FAILED = 1
"""The task failed, was canceled or rejected."""
NOT_FOUND = 4
TIMED_OUT = 5
REFUSED = 6
WAITS = 7
"""The task or its agent waits for a person."""
MAYBE_ACCEPTED = 8
"""A message may have been accepted, or not."""


class CtlError(Exception):
    """Root of the tree; the message is for people."""

    exit_code: int = 1
    code: str = "ERROR"

    def document(self) -> dict[str, Any]:
        """Returns the document of `--json`: the shape of every error of synapsed."""
        return {"error": {"code": self.code, "message": str(self), "details": {}}}


class UsageError(CtlError):
    exit_code = 2
    code = "USAGE"


class NoDaemon(CtlError):
    """No daemon answers. `hint` is the command that starts one, if that is the only problem."""

    exit_code = 3
    code = "NO_DAEMON"

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(f"{reason}; {hint}" if hint else reason)
        self.reason = reason
        self.hint = hint


class BadAnswer(NoDaemon):
    """The process that listens on the control socket does not speak as synapsed does, or died in its answer."""

    code = "BAD_ANSWER"


class NotOurs(CtlError):
    """Another user made the control socket, or can have made it. Not a `NoDaemon`: no daemon is started for it, and
    nothing is tried again."""

    exit_code = 3
    code = "NOT_OURS"


class NotAllowed(CtlError):
    """The system keeps this process from the control socket: it is in a sandbox. Not a `NoDaemon`: a daemon may well
    run, and none can be started from here."""

    exit_code = REFUSED
    code = "NOT_ALLOWED"


class WrongUser(CtlError):
    """Root would leave files in a person's home."""

    exit_code = REFUSED
    code = "WRONG_USER"


class NotInstalled(CtlError):
    """An extra of the package is missing; the message says which command installs it."""

    exit_code = REFUSED
    code = "NOT_INSTALLED"


class MaybeAccepted(CtlError):
    """The daemon got the message, but it is unknown if the daemon accepted it. A second message with the same key is
    the same task."""

    exit_code = MAYBE_ACCEPTED
    code = "MAYBE_ACCEPTED"


class TimedOut(CtlError):
    exit_code = TIMED_OUT
    code = "TIMED_OUT"


class ApiError(CtlError):
    """The daemon's own error document; `status` is the HTTP status it came with."""

    def __init__(self, code: str, message: str, *, details: dict[str, Any] | None = None, status: int = 500) -> None:
        super().__init__(message)
        self.code = code
        self.details = details or {}
        self.status = status
        # Imported for an error only: the tree of all errors is a tenth of what a quick verb imports.
        from synapsed.errors import EXIT_CODES

        self.exit_code = EXIT_CODES.get(code, REFUSED)

    def document(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": str(self), "details": self.details}}
