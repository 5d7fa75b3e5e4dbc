"""The look-ups, on a copy of /proc and on real connections."""

import asyncio
import os
import socket
import subprocess
import sys
from ipaddress import ip_address

import pytest

from synapsed.api.peer_lookup import SO_PEERPIDFD, PeerLookup, parse_tcp_table, unix_credentials

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux'")

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
TCP = HEAD + (
    "   0: 00000000:1F9A 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 111 1 0 100 0 0 10 0\n"
    "   1: 0100007F:1F9A 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 222 1 0 20 4 0 10 -1\n"
    "   2: 0100007F:C350 0100007F:1F9A 01 00000000:00000000 00:00000000 00000000  1001        0 333 1 0 20 4 0 10 -1\n"
)
V6 = "00000000000000000000000001000000"
MAPPED = "0000000000000000FFFF00000100007F"
TCP6 = HEAD + (
    f"   0: {V6}:C350 {V6}:1F9A 01 00000000:00000000 00:00000000 00000000  1002        0 444 1 0 20 4 0 10 -1\n"
    f"   1: {MAPPED}:C351 {MAPPED}:1F9A 01 00000000:00000000 00:00000000 00000000  1003        0 555 1 0 20 4 0 10 -1\n"
)
little_endian = pytest.mark.skipif(sys.byteorder != "little", reason="the tables are of a little-endian machine")


def end(address: str, port: int):
    return ip_address(address), port


@little_endian
@pytest.mark.parametrize(
    ("table", "local", "remote", "expected"),
    [
        (TCP, end("127.0.0.1", 50000), end("127.0.0.1", 8090), (1001, 333)),
        (TCP, end("127.0.0.1", 8090), end("127.0.0.1", 50000), (1000, 222)),
        (TCP, end("127.0.0.1", 50001), end("127.0.0.1", 8090), None),
        (TCP, end("127.0.0.2", 50000), end("127.0.0.1", 8090), None),
        (TCP6, end("::1", 50000), end("::1", 8090), (1002, 444)),
        (TCP6, end("127.0.0.1", 50001), end("127.0.0.1", 8090), (1003, 555)),
        (HEAD, end("::1", 50000), end("::1", 8090), None),
        ("", end("::1", 50000), end("::1", 8090), None),
    ],
)
def test_parse_tcp_table(table, local, remote, expected):
    ends = local, remote
    other = end("127.0.0.9", 1), end("127.0.0.9", 2)
    assert parse_tcp_table(table, {ends, other}) == ({} if expected is None else {ends: expected})


@pytest.fixture
def proc(tmp_path):
    """Process 77 of ours holds the socket 333."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text(TCP)
    (tmp_path / "net" / "tcp6").write_text(TCP6)
    for pid in ("1", "77", "78"):
        (tmp_path / pid / "fd").mkdir(parents=True)
    (tmp_path / "self").mkdir()
    (tmp_path / "77" / "fd" / "5").symlink_to("socket:[333]")
    (tmp_path / "78" / "fd" / "5").symlink_to("pipe:[333]")
    return tmp_path


@linux
@little_endian
@pytest.mark.parametrize(
    ("port", "own_uid", "agents", "uid", "settled", "agent_id"),
    [
        (50000, 1001, {}, 1001, True, None),
        (50000, 1001, {77: "claude"}, 1001, True, "claude"),
        (50000, 1000, {77: "claude"}, 1001, False, None),
        (50001, 1003, {}, 1003, False, None),
        (50009, 1001, {}, None, False, None),
    ],
    ids=["own", "an agent's", "another user", "no process found", "no row"],
)
async def test_tcp(proc, port, own_uid, agents, uid, settled, agent_id):
    async def process_of(pid):
        return agents.get(pid)

    lookup = PeerLookup(process_of, proc=proc)
    for _ in range(2):  # the second time by what it remembers
        peer = await lookup.tcp(("127.0.0.1", port), ("127.0.0.1", 8090), own_uid=own_uid)
        assert (peer.uid, peer.settled, peer.agent_id) == (uid, settled, agent_id)
        assert peer.loopback
        assert peer.can_look_up


@linux
@little_endian
async def test_two_hundred_at_once_are_looked_up_in_two_looks(proc):
    """The second is for all who came during the first, the next client among them."""

    async def process_of(pid):
        return f"agent of {pid}"

    lookup = PeerLookup(process_of, proc=proc)
    ports = range(50001, 50201)
    row = TCP.splitlines()[3]
    rows = [row.replace("C350", f"{port:04X}").replace(" 333 ", f" {port} ") for port in ports]
    (proc / "net" / "tcp").write_text("\n".join([*TCP.splitlines(), *rows, ""]))
    for port in ports:
        pid = proc / str(100 + port // 2) / "fd"
        pid.mkdir(parents=True, exist_ok=True)
        (pid / str(port)).symlink_to(f"socket:[{port}]")

    async def looked_up(port: int) -> str | None:
        peer = await lookup.tcp(("127.0.0.1", port), ("127.0.0.1", 8090), own_uid=1001)
        assert (peer.uid, peer.settled) == (1001, True)
        return peer.agent_id

    given_up = asyncio.create_task(looked_up(50000))
    peers = [asyncio.create_task(looked_up(port)) for port in ports]
    await asyncio.sleep(0)  # all have begun
    given_up.cancel()
    assert await asyncio.gather(*peers) == [f"agent of {100 + port // 2}" for port in ports]
    assert await looked_up(50000) == "agent of 77"
    assert lookup.looks <= 3


@linux
async def test_a_look_that_fails_is_told_to_all_who_wait(proc, monkeypatch):
    async def process_of(pid):
        return None

    lookup = PeerLookup(process_of, proc=proc)
    tables = lookup._find_rows
    monkeypatch.setattr(lookup, "_find_rows", lambda _: 1 / 0)
    looks = (lookup.tcp(("127.0.0.1", port), ("127.0.0.1", 8090), own_uid=1001) for port in (50000, 50001))
    failed = await asyncio.gather(*looks, return_exceptions=True)
    assert [type(one) for one in failed] == [ZeroDivisionError, ZeroDivisionError]
    monkeypatch.setattr(lookup, "_find_rows", tables)
    assert (await lookup.tcp(("127.0.0.1", 50000), ("127.0.0.1", 8090), own_uid=1001)).uid == 1001


async def test_remote_peers_are_not_looked_up(proc):
    async def process_of(pid):
        raise AssertionError

    peer = await PeerLookup(process_of, proc=proc).tcp(("192.0.2.7", 50000), ("192.0.2.1", 8090), own_uid=1001)
    assert not peer.loopback


@linux
async def test_a_process_that_is_gone_proves_nothing(tmp_path):
    async def process_of(pid):
        return None

    left, right = socket.socketpair()
    with left, right:
        assert unix_credentials(left) == (os.getpid(), os.getuid())
        assert not (await PeerLookup(process_of, proc=tmp_path).unix(left)).settled
        assert (await PeerLookup(process_of).unix(left)).settled


@linux
async def test_a_real_connection():
    async def process_of(pid):
        return f"agent of {pid}"

    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, peername = server.accept()
        with accepted:
            lookup = PeerLookup(process_of)
            peer = await lookup.tcp(peername, accepted.getsockname(), own_uid=os.getuid())
            itself = PeerLookup(process_of, own_pid=os.getpid())
            assert (await itself.tcp(peername, accepted.getsockname(), own_uid=os.getuid())).own
        assert not peer.own
        assert client is not None
    assert (peer.uid, peer.agent_id) == (os.getuid(), f"agent of {os.getpid()}")


@linux
async def test_a_pid_that_is_another_process_by_now(tmp_path):
    """The one that connected has ended; what runs under its pid proves nothing."""
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()
        connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        subprocess.run([sys.executable, "-c", connect, path], check=True)
        connection, _ = listener.accept()

    async def process_of(pid):
        (tmp_path / str(pid)).mkdir(exist_ok=True)
        return

    with connection:
        try:
            os.close(connection.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD))
        except OSError:
            pytest.skip("the kernel gives no handles of peers")
        assert not (await PeerLookup(process_of, proc=tmp_path).unix(connection)).settled
