"""The command lines of ssh, and the meaning of its output. Pure.

Trust and keys are left to ssh's own configuration: nothing here asks for, or keeps, a password (BatchMode).
"""

import shlex
from collections.abc import Callable, Sequence
from typing import Final

from synapsed.errors import InvalidRequest
from synapsed.parts.elsewhere.hosts.host import Host
from synapsed.shared.outside_json import NotJson, read_object
from synapsed.shared.regex import regex

CONNECT_S: Final = 15
ALIVE_S: Final = 15
ALIVE_TIMES: Final = 3
"""Silent intervals after which a connection is dead."""
FIRST_PAUSE_S: Final = 1.0
LAST_PAUSE_S: Final = 60.0
JITTER: Final = 0.2
SAID_MAX: Final = 500
"""Most characters of ssh's complaints that are shown."""

_TARGET = regex(r"(?:ssh://)?(?:[A-Za-z0-9_.+-]+@)?(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.%]+\])(?::[0-9]{1,5})?/?")
_SOCKET = regex(r"/[A-Za-z0-9._/+@=,-]{1,250}")

_OPTIONS: Final = (
    *("-o", "BatchMode=yes"),
    *("-o", f"ConnectTimeout={CONNECT_S}"),
    *("-o", f"ServerAliveInterval={ALIVE_S}"),
    *("-o", f"ServerAliveCountMax={ALIVE_TIMES}"),
    # A process of our own, whose end is the connection's.
    *("-o", "ControlMaster=no"),
    *("-o", "ControlPath=none"),
    *("-o", "PermitLocalCommand=no"),
    *("-o", "RemoteCommand=none"),
    *("-o", "RequestTTY=no"),
    *("-o", "ForwardAgent=no"),
    *("-o", "ForwardX11=no"),
)


def check_target(target: str) -> str:
    """Returns `target` if ssh cannot mistake it for an option. Raises InvalidRequest."""
    if len(target) > 300 or target.startswith("-") or not _TARGET.fullmatch(target):
        raise InvalidRequest(
            f"target: {target[:80]!r} is no destination: give ssh://[user@]host[:port], or a name of your ssh_config",
            field="target",
        )
    return target


def check_socket(path: str) -> str:
    """Returns `path` if ssh can forward it: colons, blanks and `$` have a meaning for ssh. Raises InvalidRequest."""
    if not _SOCKET.fullmatch(path):
        raise InvalidRequest(
            f"socket: {path[:120]!r} cannot be forwarded: it must be an absolute path of plain characters",
            field="socket",
        )
    return path


def look_up(program: Sequence[str], host: Host) -> list[str]:
    """Returns the command that asks synapsectl on the other host where its daemon listens."""
    return [*program, *_OPTIONS, "-T", "--", host.target, f"{shlex.quote(host.synapsectl)} version --json"]


def forward(program: Sequence[str], host: Host, *, local: str, remote: str) -> list[str]:
    """Returns the command that brings the socket `remote` here as `local`, while its stdin is open: `cat` over there
    ends with stdin, so ssh ends too if the daemon is killed."""
    return [
        *program,
        *_OPTIONS,
        *("-o", "ExitOnForwardFailure=yes"),
        *("-o", "StreamLocalBindUnlink=yes"),
        *("-o", "StreamLocalBindMask=0177"),
        "-T",
        "-L",
        f"{local}:{remote}",
        "--",
        host.target,
        "cat",
    ]


def socket_in(output: str) -> str:
    """Returns the path in the output of `synapsectl version --json`; skips text that a login shell printed around it.
    Raises InvalidRequest."""
    for line in reversed(output.splitlines()):
        try:
            path = read_object(line).get("socket")
        except NotJson:
            continue
        if isinstance(path, str):
            return check_socket(path)
    raise InvalidRequest(
        "synapsectl on that host does not say where its daemon listens: it may be older than this one; upgrade it"
    )


def said(stderr: str, code: int | None) -> str:
    """Returns the reason of ssh's end, for a person."""
    lines = [line for raw in stderr.splitlines() if (line := "".join(c for c in raw if c.isprintable()).strip())]
    if lines:
        return " / ".join(lines[-3:])[:SAID_MAX]
    return f"ssh ended with code {code}" if code else "the connection was closed"


class Backoff:
    """Pauses between attempts: each is twice as long as the one before, less a random share."""

    def __init__(self, rng: Callable[[], float]) -> None:
        self._rng = rng
        self._next = FIRST_PAUSE_S

    def pause(self) -> float:
        """Returns the seconds before the next attempt."""
        pause, self._next = self._next, min(self._next * 2, LAST_PAUSE_S)
        return pause * (1 - JITTER * self._rng())

    def reset(self) -> None:
        """Starts with the shortest pause again, after an attempt that worked."""
        self._next = FIRST_PAUSE_S
