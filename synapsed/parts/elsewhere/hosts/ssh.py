"""How ssh is called, and what it says. Pure.

Whom to trust and by which key is for ssh's own configuration: nothing here asks for, or keeps, a password (BatchMode).
"""

import json
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Final

from synapsed.errors import InvalidRequest
from synapsed.parts.elsewhere.hosts.host import Host

CONNECT_S: Final = 15
ALIVE_S: Final = 15
ALIVE_TIMES: Final = 3
"""A connection that is silent for so many intervals is dead."""
FIRST_PAUSE_S: Final = 1.0
LAST_PAUSE_S: Final = 60.0
JITTER: Final = 0.2
SAID_MAX: Final = 500
"""Characters of ssh's complaints that are shown."""

_TARGET = re.compile(r"(?:ssh://)?(?:[A-Za-z0-9_.+-]+@)?(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.%]+\])(?::[0-9]{1,5})?/?")
_SOCKET = re.compile(r"/[A-Za-z0-9._/+@=,-]{1,250}")

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
    """`target` if it is a destination that ssh cannot take for anything else. Raises InvalidRequest."""
    if len(target) > 300 or target.startswith("-") or not _TARGET.fullmatch(target):
        raise InvalidRequest(
            f"target: {target[:80]!r} is no destination: give ssh://[user@]host[:port], or a name of your ssh_config",
            field="target",
        )
    return target


def check_socket(path: str) -> str:
    """`path` if ssh can forward it: it takes colons, blanks and `$` for something else. Raises InvalidRequest."""
    if not _SOCKET.fullmatch(path):
        raise InvalidRequest(
            f"socket: {path[:120]!r} cannot be forwarded: it must be an absolute path of plain characters",
            field="socket",
        )
    return path


def look_up(program: Sequence[str], host: Host) -> list[str]:
    """The command that asks synapsectl over there where its daemon listens."""
    return [*program, *_OPTIONS, "-T", "--", host.target, f"{shlex.quote(host.synapsectl)} version --json"]


def forward(program: Sequence[str], host: Host, *, local: str, remote: str) -> list[str]:
    """The command that brings the socket `remote` here as `local`, for as long as its stdin is open: `cat` over there
    ends with it, and so ssh does when the daemon was killed."""
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
    """The path in what `synapsectl version --json` printed, whatever a login shell has printed around it. Raises
    InvalidRequest."""
    for line in reversed(output.splitlines()):
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, dict) and isinstance(path := told.get("socket"), str):
            return check_socket(path)
    raise InvalidRequest("synapsectl over there does not say where its daemon listens: is it as new as this one?")


def said(stderr: str, code: int | None) -> str:
    """Why ssh has ended, for a person."""
    lines = [line for raw in stderr.splitlines() if (line := "".join(c for c in raw if c.isprintable()).strip())]
    if lines:
        return " / ".join(lines[-3:])[:SAID_MAX]
    return f"ssh ended with code {code}" if code else "the connection was closed"


class Backoff:
    """The pauses between attempts: each twice as long as the one before, with a random share taken off."""

    def __init__(self, rng: Callable[[], float]) -> None:
        self._rng = rng
        self._next = FIRST_PAUSE_S

    def pause(self) -> float:
        """Seconds before the next attempt."""
        pause, self._next = self._next, min(self._next * 2, LAST_PAUSE_S)
        return pause * (1 - JITTER * self._rng())

    def reset(self) -> None:
        """It has worked."""
        self._next = FIRST_PAUSE_S
