"""Finds the owner of the second address of `localhost`, if the daemon could not bind it (`synapsed.process.loopback`).

Linux lists the owner of every listening socket in /proc/net/tcp{,6}; its process only for the same user. On other
systems it is only known that a process listens.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from synapsectl.checkup.finding import NOTE, WRONG, Finding
from synapsed.process.file_owners import user_name
from synapsed.process.loopback import host_port, other

CONNECT_TIMEOUT_S = 2.0
_LISTENS = "0A"
"""TCP_LISTEN, as /proc has it."""


class Holder(NamedTuple):
    """The owner of a listening socket; None for each fact that is unknown."""

    uid: int | None
    pid: int | None = None
    program: str = ""

    @property
    def words(self) -> str:
        if self.uid is None:
            return "another program"
        who = "you" if self.uid == os.getuid() else user_name(self.uid)
        process = f", pid {self.pid} ({self.program})" if self.pid is not None else ""
        return f"a program of {who} (uid {self.uid}){process}"


def look_at_main(listen: str, served: list[str]) -> Iterator[Finding]:
    """Checks the main port; `listen` is the wanted address, `served` are the daemon's addresses, if one runs."""
    address, _, port = listen.rpartition(":")
    twin = other(address.strip("[]"))
    if twin is None or host_port(twin, int(port)) in served:
        return
    if (found := holder(twin, int(port))) is not None:
        mend = "end it, then restart the daemon, or set another port with 'listen' under [api] of config.toml"
        yield _finding("main port", host_port(twin, int(port)), found, f"the page is told as http://{listen}/", mend)


def look_at_agents(agents: list[dict[str, Any]]) -> Iterator[Finding]:
    """Checks each agent whose endpoint has an address in place of `localhost`: the daemon found the other address of
    `localhost` in use."""
    for agent in agents:
        told = urlsplit(agent["endpoint"])
        twin = other(told.hostname or "")
        if agent.get("host") or twin is None or told.port is None or told.port != agent["port"]:
            continue
        found = holder(twin, told.port) or Holder(None)
        mend = f"end it, then restart the daemon; or give {agent['name']} another port"
        yield _finding(
            f"agent {agent['name']}", host_port(twin, told.port), found, f"told as {agent['endpoint']}", mend
        )


def _finding(what: str, place: str, found: Holder, told: str, mend: str) -> Finding:
    status = NOTE if found.uid == os.getuid() else WRONG
    return Finding(what, status, f"at {place} listens {found.words}, and 'localhost' may lead there; {told}", mend)


def holder(address: str, port: int, proc: Path = Path("/proc")) -> Holder | None:
    """Returns the owner of the socket that listens there; None if there is no such socket."""
    tables = []
    for name in ("tcp6", "tcp"):
        with contextlib.suppress(OSError):
            tables.append((proc / "net" / name).read_text("ascii"))
    if not tables:
        return Holder(None) if _is_answered(address, port) else None
    for table in tables:
        if (row := parse_listeners(table, address, port)) is not None:
            uid, inode = row
            return Holder(uid, *_process(proc, inode))
    return None


def parse_listeners(table: str, address: str, port: int) -> tuple[int, int] | None:
    """Returns `(uid, inode)` of the socket that takes connections to `address`, or to any address of its family."""
    packed = ip_address(address).packed
    hexed = "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))
    wanted = [f"{hexed}:{port:04X}", f"{'0' * len(hexed)}:{port:04X}"]
    found: dict[str, tuple[int, int]] = {}
    for line in table.splitlines()[1:]:
        fields = line.split(maxsplit=10)
        if len(fields) >= 10 and fields[1] in wanted and fields[3] == _LISTENS:
            found[fields[1]] = int(fields[7]), int(fields[9])
    return next((found[place] for place in wanted if place in found), None)


def _process(proc: Path, inode: int) -> tuple[int | None, str]:
    """Returns pid and name of the process that has the socket `inode`, as far as they are visible."""
    link = f"socket:[{inode}]"
    for folder in proc.glob("[0-9]*/fd"):
        if link in _open_in(folder):
            with contextlib.suppress(OSError):
                return int(folder.parent.name), (folder.parent / "comm").read_text(errors="replace").strip()
    return None, ""


def _open_in(folder: Path) -> Iterator[str]:
    with contextlib.suppress(OSError):  # gone, or another user's
        for one in list(folder.iterdir()):
            with contextlib.suppress(OSError):
                yield str(one.readlink())


def _is_answered(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True
