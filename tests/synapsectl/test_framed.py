"""The frames of an attached terminal: any chunking, any size, and what is refused."""

import socket
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsectl.client import Client
from synapsectl.errors import ApiError, BadAnswer
from synapsectl.framed import TerminalConnection
from synapsed.shared.attach_frames import HEAD, KEYS, NEWS, OUTPUT, SCREEN, FrameError, FrameReader, frame
from tests.synapsectl.fake_daemon import FakeDaemon

FRAMES = [(SCREEN, b"redraw"), (OUTPUT, b""), (OUTPUT, b"\x81\0\0\0\x01"), (NEWS, b"{}"), (OUTPUT, b"y" * 70_000)]
RAW = b"".join(frame(kind, payload) for kind, payload in FRAMES)
SIZE = {"cols": 80, "rows": 24}


@given(st.lists(st.integers(0, len(RAW)) | st.integers(0, 40), max_size=10))
def test_frames_in_any_chunking(cuts: list[int]) -> None:
    reader = FrameReader(100_000)
    edges = [0, *sorted(cuts), len(RAW)]
    assert [found for a, b in pairwise(edges) for found in reader.feed(RAW[a:b])] == FRAMES


def test_a_frame_that_is_too_long_is_refused_before_it_comes() -> None:
    with pytest.raises(FrameError):
        FrameReader(10).feed(frame(OUTPUT, b"x" * 11)[:HEAD])


@pytest.mark.parametrize("size", [0, 1, 65_536, 300_000])
def test_every_size_arrives(daemon: FakeDaemon, size: int) -> None:
    daemon.redraw = b"r" * size
    terminal = TerminalConnection.open(Client(str(daemon.socket)), "/agents/claude/terminal", SIZE)
    try:
        frames = terminal.frames()
        assert next(frames)[0] == NEWS
        assert next(frames) == (SCREEN, b"r" * size)
        terminal.keys(b"k" * size)
        while terminal.unsent:
            terminal.flush()
        daemon.until(lambda: len(daemon.typed) == size)
        daemon.exit(0)
        assert next(frames)[0] == NEWS
    finally:
        terminal.close(1)


def test_keys_of_frames_that_the_socket_has_not_taken_whole() -> None:
    """What the other side may have got whole is not given again."""
    ours, theirs = socket.socketpair()
    with theirs:
        terminal = TerminalConnection(ours, b"")
        taken = 0
        while not terminal.unsent:
            terminal.keys(b"%04d" % taken * 250)
            taken += 1
        terminal.command({"type": "redraw"})
        terminal.keys(b"second")
        left = terminal.untyped()
        assert left == b"%04d" % (taken - 1) * 250 + b"second"
        reader, came = FrameReader(100_000), []
        while terminal.unsent:
            came += reader.feed(theirs.recv(1 << 20))
            terminal.flush()
        assert terminal.untyped() == b""
        came += reader.feed(theirs.recv(1 << 20))
        whole = b"".join(keys for kind, keys in came if kind == KEYS)
        assert whole.endswith(left)
        terminal.close(0)


def test_a_broken_connection_has_typed_nothing_of_what_it_did_not_take() -> None:
    ours, theirs = socket.socketpair()
    terminal = TerminalConnection(ours, b"")
    theirs.close()
    terminal.keys(b"typed")
    assert terminal.untyped() == b"typed"
    terminal.close(0)


def test_a_refusal_is_the_daemons_own(daemon: FakeDaemon) -> None:
    client = Client(str(daemon.socket))
    with pytest.raises(ApiError) as caught:
        TerminalConnection.open(client, "/agents/nobody/terminal", SIZE)
    assert caught.value.code == "UNKNOWN_AGENT"
    with pytest.raises(BadAnswer):
        TerminalConnection.open(client, "/agents", {})
