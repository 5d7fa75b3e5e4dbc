"""The protocol as a stranger speaks it: raw frames on the socket."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import synapsed.keeper
from synapsed.keeper import frames
from synapsed.keeper.clients import MAX_CLIENTS
from synapsed.keeper.frames import Decoder, Frame, encode
from synapsed.keepers.launchers import LaunchedKeeper
from tests.keeper.conftest import DEADLINE_S, Lab, until_file


class Peer:
    """A connection that can misbehave."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.frames: list[Frame] = []
        self._decoder = Decoder()

    @classmethod
    async def connect(cls, keeper: LaunchedKeeper) -> "Peer":
        return cls(*await asyncio.open_unix_connection(str(keeper.socket_path)))

    async def hello(self) -> Frame:
        self.send(frames.HELLO, {"min": 1, "max": 1})
        return await self.next()

    def send(self, kind: int, header: dict[str, object], payload: bytes = b"") -> None:
        self.writer.write(encode(kind, header, payload))

    async def next(self) -> Frame:
        async with asyncio.timeout(DEADLINE_S):
            while not self.frames:
                data = await self.reader.read(65536)
                if not data:
                    raise EOFError
                self.frames += self._decoder.feed(data)
        return self.frames.pop(0)

    async def ends(self) -> bool:
        async with asyncio.timeout(DEADLINE_S):
            return await self.reader.read() == b""

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@pytest.fixture
async def keeper(lab: Lab) -> LaunchedKeeper:
    keeper = await lab.shell("stty raw -echo; : >up; exec cat")
    await until_file(lab.root / "up")
    return keeper


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "bad_magic"),
        (encode(frames.PING, {"req": 1}), "no_hello"),
        (encode(frames.HELLO, {"min": 2, "max": 9}), "version"),
        (encode(frames.HELLO, {}), "bad_field"),
        (encode(frames.HELLO, {"min": 1, "max": 1}) + encode(frames.PING, {}), "bad_field"),
    ],
)
async def test_who_breaks_the_protocol_is_told_and_closed(
    lab: Lab, keeper: LaunchedKeeper, raw: bytes, code: str
) -> None:
    peer = await Peer.connect(keeper)
    peer.writer.write(raw)
    frame = await peer.next()
    if frame.type == frames.WELCOME:
        frame = await peer.next()
    assert frame.type == frames.REFUSED
    assert (frame.header["req"], frame.header["code"]) == (None, code)
    assert await peer.ends()
    await peer.close()
    assert (await lab.connect(keeper)).hello.pid == keeper.pid  # nobody else is harmed


async def test_versions_are_negotiated(keeper: LaunchedKeeper) -> None:
    peer = await Peer.connect(keeper)
    peer.send(frames.HELLO, {"min": 1, "max": 7, "client": "from the future"})
    welcome = await peer.next()
    assert (welcome.type, welcome.header["version"]) == (frames.WELCOME, 1)
    await peer.close()


@pytest.mark.parametrize(
    ("kind", "header", "code"),
    [
        (0x7F, {}, "unknown_type"),
        (frames.RESIZE, {"cols": 0, "rows": 24}, "bad_field"),
        (frames.RESIZE, {"cols": "80", "rows": 24}, "bad_field"),
        (frames.SIGNAL, {"signum": 64, "target": "everyone"}, "bad_field"),
        (frames.SIGNAL, {"signum": 32}, "bad_signal"),
        (frames.SUBSCRIBE, {"offset": -1}, "bad_field"),
        (frames.SUBSCRIBE, {"offset": 1 << 40}, "beyond_end"),
        (frames.READ, {"start": 0, "limit": frames.MAX_PAYLOAD + 1}, "bad_field"),
        (frames.READ, {"start": 0, "channel": "stderr"}, "no_channel"),
        (frames.WRITE, {"id": ""}, "bad_field"),
        (frames.WRITE, {"id": "x" * 201}, "bad_field"),
        (frames.STOP, {"grace_s": -1}, "bad_field"),
        (frames.STOP, {"grace_s": "soon"}, "bad_field"),
        (frames.ACK_EXIT, {"launch_id": "another"}, "other_launch"),
        (frames.CLOSE_INPUT, {}, "no_pipes"),
    ],
)
async def test_a_bad_request_is_refused_and_the_connection_goes_on(
    keeper: LaunchedKeeper, kind: int, header: dict[str, object], code: str
) -> None:
    peer = await Peer.connect(keeper)
    await peer.hello()
    peer.send(kind, {"req": 5, **header})
    peer.send(frames.PING, {"req": 6, "a field of the future": True})
    refused, reply = await peer.next(), await peer.next()
    assert (refused.type, refused.header["req"], refused.header["code"]) == (frames.REFUSED, 5, code)
    assert (reply.type, reply.header["req"]) == (frames.REPLY, 6)
    await peer.close()


async def test_a_brief_ping_is_answered_with_its_number_and_no_more(keeper: LaunchedKeeper) -> None:
    peer = await Peer.connect(keeper)
    await peer.hello()
    peer.send(frames.PING, {"req": 6, "brief": True})
    assert (await peer.next()).header == {"req": 6}
    await peer.close()


async def test_a_client_that_asks_and_does_not_read_is_not_read_from(lab: Lab, keeper: LaunchedKeeper) -> None:
    good = await lab.connect(keeper)
    await good.write(b"x" * 200_000, "fill")
    async with asyncio.timeout(DEADLINE_S):
        while (await good.ping()).spool_end < 200_000:
            pass
    peer = await Peer.connect(keeper)
    await peer.hello()
    request = encode(frames.READ, {"req": 1, "start": 0, "limit": frames.MAX_PAYLOAD})
    peer.writer.transport.set_write_buffer_limits(high=0)
    peer.writer.write(request * 100_000)  # 20 GB of answers, if anybody made them
    for _ in range(20):
        await good.ping()
    if sys.platform == "linux":
        status = Path(f"/proc/{keeper.keeper_pid}/status").read_text()
        assert int(status.split("VmRSS:")[1].split()[0]) < 32_000
    peer.writer.transport.abort()
    assert (await good.ping()).pid == keeper.pid


async def test_a_daemon_that_is_stopped_holds_up_nobody(lab: Lab) -> None:
    """Subscribed, and not reading at all: the program goes on, and others are served."""
    keeper = await lab.python("import os\nfor n in range(400): os.write(1,b'%09d\\n'%n*1000)")
    peer = await Peer.connect(keeper)
    await peer.hello()
    peer.send(frames.SUBSCRIBE, {"req": 1, "offset": 0})
    peer.writer.transport.pause_reading()
    watcher = await lab.watch(keeper)
    record = await watcher.until_exit()
    assert record.final_offset == len(watcher.output) == 400 * 1000 * 11
    peer.writer.transport.resume_reading()
    received = 0
    while (frame := await peer.next()).type != frames.EXITED:
        if frame.type == frames.OUTPUT:
            assert frame.header["offset"] == received
            received += len(frame.payload)
    assert received == record.final_offset
    await peer.close()


async def test_connections_are_bounded(keeper: LaunchedKeeper) -> None:
    peers = [await Peer.connect(keeper) for _ in range(MAX_CLIENTS)]
    for peer in peers:
        await peer.hello()
    extra = await Peer.connect(keeper)
    assert await extra.ends()
    await extra.close()
    await peers.pop().close()
    again = await Peer.connect(keeper)
    while True:
        try:
            assert (await again.hello()).type == frames.WELCOME
            break
        except (EOFError, ConnectionError):  # the keeper has not seen the other one leave yet
            again = await Peer.connect(keeper)
    for peer in [*peers, again]:
        await peer.close()


@pytest.mark.skipif(os.getuid() != 0, reason="takes root to be somebody else")
async def test_another_uid_is_refused(lab: Lab, keeper: LaunchedKeeper) -> None:
    """The directory keeps strangers out; were it open, the keeper would."""
    for path in (lab.root, keeper.socket_path.parent, keeper.socket_path):
        path.chmod(0o777)
    hello = encode(frames.HELLO, {"min": 1, "max": 1})
    script = (
        "import os,socket,sys\nos.setuid(65534)\ns=socket.socket(socket.AF_UNIX)\n"
        f"s.connect({str(keeper.socket_path)!r})\n"
        f"try:\n  s.sendall({hello!r}); print(len(s.recv(100)))\nexcept OSError: print(0)"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", script, stdout=subprocess.PIPE)
    output, _ = await process.communicate()
    assert output.strip() == b"0"
    assert (await lab.connect(keeper)).hello.pid == keeper.pid


async def test_two_clients_see_the_same_and_both_may_write(lab: Lab, keeper: LaunchedKeeper) -> None:
    one, two = await lab.watch(keeper), await lab.watch(keeper)
    await one.client.write(b"from one ")
    await two.until_output(b"from one ")
    await two.client.write(b"from two ")
    for watcher in (one, two):
        assert await watcher.until_output(b"from two ") == b"from one from two "


async def test_a_keeper_loads_what_it_needs_and_no_more() -> None:
    """Every module here is paid for once per agent."""
    here = Path(synapsed.keeper.__file__).parent
    script = (
        f"import sys\nsys.path.append({str(here.parent.parent)!r})\n"
        "import synapsed.keeper.launch\nprint(*sorted(sys.modules))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-S", "-E", "-I", "-c", script, stdout=subprocess.PIPE
    )
    output, _ = await process.communicate()
    loaded = set(output.decode().split())
    ours = {name for name in loaded if name.startswith("synapsed.")}
    assert all(name.startswith("synapsed.keeper") for name in ours)
    heavy = {"asyncio", "typing", "dataclasses", "pathlib", "subprocess", "shutil", "ctypes", "logging", "tempfile"}
    assert loaded & heavy == set()
