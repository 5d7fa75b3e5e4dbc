"""Finds the process and user of a connection, once per connection, for `rights.decide`.

A Unix socket carries its peer's credentials. For a loopback TCP connection Linux has the uid and the socket's inode in
/proc/net/tcp{,6}, and the process in /proc/*/fd; other systems have no such look-up that needs no privileges.

The Linux kernel can also be asked for the user of one socket (sock_diag).

Reading /proc/net/tcp for this, which has a line for each connection of the machine, is too slow if a program opens a
thousand connections.
"""

import asyncio
import os
import select
import socket
import struct
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

from synapsed.api.rights import Peer

SO_PEERPIDFD = 77
"""Option that is not in `socket` yet."""
LINUX = sys.platform.startswith("linux")
RECENT_PIDS = 16
"""Number of processes that are tried first for a socket: a client opens more than one connection."""

type Endpoint = tuple[IPv4Address | IPv6Address, int]
type Ends = tuple[Endpoint, Endpoint]
"""A socket's own end, and the one that it is connected to."""


def _address(text: str) -> IPv4Address | IPv6Address:
    """Returns an address without scope; an IPv4 address that was mapped into IPv6 is returned in its own form."""
    address = ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _decode(text: str) -> Endpoint:
    """Returns the endpoint of `0100007F:1F9A` and its IPv6 counterpart: words in native order, then the port in hex."""
    hexed, _, port = text.partition(":")
    words = struct.unpack(f">{len(hexed) // 8}I", bytes.fromhex(hexed))
    packed = struct.pack(f"={len(words)}I", *words)
    return _address(str(ip_address(packed))), int(port, 16)


def parse_tcp_table(table: str, wanted: Collection[Ends]) -> dict[Ends, tuple[int, int]]:
    """Returns `(uid, inode)` of the sockets `wanted` that are in the text of /proc/net/tcp or tcp6."""
    ports = {(f"{local[1]:04X}", f"{remote[1]:04X}") for local, remote in wanted}
    found = {}
    for line in table.splitlines()[1:]:
        fields = line.split(maxsplit=10)
        if len(fields) < 10 or (fields[1].rpartition(":")[2], fields[2].rpartition(":")[2]) not in ports:
            continue
        ends = _decode(fields[1]), _decode(fields[2])
        if ends in wanted:
            found[ends] = int(fields[7]), int(fields[9])
    return found


def unix_credentials(sock: Any) -> tuple[int | None, int | None]:
    """Returns `(pid, uid)` of the process that connected; None for an unknown one."""
    if LINUX:
        raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("=iII"))
        pid, uid, _ = struct.unpack("=iII", raw)
        return pid or None, uid
    return _bsd_credentials(sock)


def _bsd_credentials(sock: Any) -> tuple[int | None, int | None]:
    """Returns LOCAL_PEERCRED (struct xucred: version, uid, …) and LOCAL_PEERPID of macOS."""
    sol_local, local_peercred, local_peerpid = 0, 1, 2
    try:
        _, uid = struct.unpack_from("=II", sock.getsockopt(sol_local, local_peercred, 76))
    except (OSError, struct.error):
        return None, None
    try:
        pid: int | None = struct.unpack("=i", sock.getsockopt(sol_local, local_peerpid, 4))[0]
    except (OSError, struct.error):
        pid = None
    return pid, uid


@contextmanager
def _handle(sock: Any) -> Iterator[int | None]:
    """Yields a file descriptor that stands for the process that connected, even if its pid is reused later; None if the
    kernel (Linux before 6.5, other systems) has none."""
    handle: int | None = None
    if LINUX:
        with suppress(OSError):
            handle = sock.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _has_exited(handle: int) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(0))


@dataclass(frozen=True, slots=True)
class _Wanted:
    ends: Ends
    own_uid: int
    found: asyncio.Future[tuple[int | None, int | None]]


class PeerLookup:
    """Looks connections up. `process_of` is `Control.process_of`; `proc` is /proc, or a test's copy of it; `own_pid` is
    the daemon's. A search through the files of all processes may take a tenth of a second. So there is one search at a
    time, and the next one serves all requests that came meanwhile: no request waits for more than two."""

    def __init__(
        self,
        process_of: Callable[[int], Awaitable[str | None]],
        *,
        proc: Path = Path("/proc"),
        own_pid: int | None = None,
    ) -> None:
        self._process_of = process_of
        self._proc = proc
        self._own_pid = own_pid
        self._recent: deque[int] = deque(maxlen=RECENT_PIDS)
        self._wanted: list[_Wanted] = []
        self._looking: asyncio.Task[None] | None = None
        self.looks = 0
        """Number of searches so far."""

    async def unix(self, sock: Any) -> Peer:
        pid, uid = unix_credentials(sock)
        with _handle(sock) as handle:
            settled, agent_id = await self._agent_of(pid)
            if agent_id is None and handle is not None and _has_exited(handle):
                settled = False  # another process may have been found under its pid
        return Peer(transport="unix", uid=uid, settled=settled, agent_id=agent_id)

    async def tcp(self, peername: tuple[Any, ...], sockname: tuple[Any, ...], *, own_uid: int) -> Peer:
        """Returns the peer of a TCP connection; its process is searched only if the uid is `own_uid`. A process of this
        machine is a local peer, even if it connects to an address other than loopback."""
        remote = (_address(peername[0]), int(peername[1]))
        local = (_address(sockname[0]), int(sockname[1]))
        here = remote[0].is_loopback or remote[0] == local[0] or client_uid(peername, sockname) is not None
        if not here:
            return Peer(transport="tcp", loopback=False, can_look_up=False)
        if not LINUX:
            return Peer(transport="tcp", can_look_up=False)
        uid, pid = await self._find((remote, local), own_uid)
        settled, agent_id = await self._agent_of(pid)
        own = pid is not None and pid == self._own_pid
        return Peer(transport="tcp", uid=uid, settled=settled, agent_id=agent_id, own=own)

    async def _agent_of(self, pid: int | None) -> tuple[bool, str | None]:
        """Returns True if it is known whether the process is an agent's, and the agent's id. A process that is gone by
        now proves nothing."""
        if pid is None:
            return False, None
        agent_id = await self._process_of(pid)
        if agent_id is not None:
            return True, agent_id
        return not LINUX or (self._proc / str(pid)).exists(), None

    async def _find(self, ends: Ends, own_uid: int) -> tuple[int | None, int | None]:
        """Returns `(uid, pid)` of the client's end of a connection."""
        wanted = _Wanted(ends, own_uid, asyncio.get_running_loop().create_future())
        self._wanted.append(wanted)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        return await wanted.found

    async def _look(self) -> None:
        try:
            while self._wanted:
                now, self._wanted = self._wanted, []
                await self._look_for(now)
        finally:
            self._looking = None

    async def _look_for(self, all_wanted: Sequence[_Wanted]) -> None:
        try:
            found = await asyncio.to_thread(self._find_all, {wanted.ends: wanted.own_uid for wanted in all_wanted})
        except Exception as error:  # noqa: BLE001 - it goes to the waiters
            for wanted in all_wanted:
                if not wanted.found.done():
                    wanted.found.set_exception(error)
            return
        for wanted in all_wanted:
            if not wanted.found.done():  # the waiter may be gone
                wanted.found.set_result(found.get(wanted.ends, (None, None)))

    def _find_all(self, wanted: Mapping[Ends, int]) -> dict[Ends, tuple[int | None, int | None]]:
        """Returns `(uid, pid)` by the ends; `wanted` has the uid whose processes are searched."""
        self.looks += 1
        rows = self._find_rows(wanted)
        pids = self._find_owners({inode for ends, (uid, inode) in rows.items() if uid == wanted[ends]})
        return {ends: (uid, pids.get(inode) if uid == wanted[ends] else None) for ends, (uid, inode) in rows.items()}

    def _find_rows(self, wanted: Collection[Ends]) -> dict[Ends, tuple[int, int]]:
        rows: dict[Ends, tuple[int, int]] = {}
        for name in ("tcp", "tcp6"):
            if len(rows) < len(wanted):
                with suppress(OSError):
                    rows |= parse_tcp_table((self._proc / "net" / name).read_text("ascii"), wanted)
        return rows

    def _find_owners(self, inodes: Collection[int]) -> dict[int, int]:
        """Returns, by socket, a process that holds it: recent processes are tried first, then the youngest."""
        links = {f"socket:[{inode}]": inode for inode in inodes}
        owners: dict[int, int] = {}
        recent = list(self._recent)
        everyone = sorted((int(name) for name in os.listdir(self._proc) if name.isdigit()), reverse=True)  # noqa: PTH208
        for pid in dict.fromkeys([*recent, *everyone]):
            if not links:
                break
            if held := self._held(pid, links):
                owners |= {links.pop(link): pid for link in held}
                with suppress(ValueError):
                    self._recent.remove(pid)
                self._recent.appendleft(pid)
        return owners

    def _held(self, pid: int, links: Collection[str]) -> set[str]:
        """Returns the sockets of `links` that the process holds. Uses plain strings: pathlib takes ten times as long,
        and there may be ten thousand descriptors."""
        folder = f"{self._proc}/{pid}/fd"
        held: set[str] = set()
        try:
            names = os.listdir(folder)  # noqa: PTH208
        except OSError:
            return held  # gone, or another user's: then it cannot hold a socket of ours either
        for name in names:
            with suppress(OSError):
                if (link := os.readlink(f"{folder}/{name}")) in links:  # noqa: PTH115
                    held.add(link)
                    if len(held) == len(links):
                        break
        return held


_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_ESTABLISHED = 1
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI")
_ID = struct.Struct("!HH16s16s")
_NO_COOKIE = b"\xff" * 8
_UID_AT = 16 + 4 + 48 + 12
"""Offset of the uid in the answer: after its header, family and state, the socket's id, and three counters."""
_ANSWER_MAX = 4096


def client_uid(peername: tuple[Any, ...], sockname: tuple[Any, ...]) -> int | None:
    """Returns the uid of the process at `peername` that has connected to `sockname`; None if it is unknown: on other
    systems, or if the connection is closed by now."""
    if not sys.platform.startswith("linux"):
        return None
    family = socket.AF_INET6 if ":" in peername[0] else socket.AF_INET
    try:
        source, target = (
            ip_address(name[0].partition("%")[0]).packed.ljust(16, b"\0") for name in (peername, sockname)
        )
        wanted = _ID.pack(peername[1], sockname[1], source, target) + b"\0\0\0\0" + _NO_COOKIE
        body = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 1 << _ESTABLISHED) + wanted
        head = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, _NETLINK_SOCK_DIAG) as diag:
            diag.send(head + body)
            answer = diag.recv(_ANSWER_MAX)
    except (OSError, ValueError, struct.error):
        return None
    if len(answer) < _UID_AT + 4 or struct.unpack_from("=H", answer, 4)[0] != _SOCK_DIAG_BY_FAMILY:
        return None
    if answer[17] != _ESTABLISHED:
        return None
    return int(struct.unpack_from("=I", answer, _UID_AT)[0])
