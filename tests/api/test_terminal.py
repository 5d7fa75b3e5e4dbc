"""A person's terminal over the WebSocket."""

import asyncio
import json

import pytest
from aiohttp import WSMsgType

from synapsed.api.attached_terminals import DOING_S, UNREAD_S
from synapsed.api.websocket import HEARTBEAT
from synapsed.model.agent import ProcessState
from synapsed.model.events import REMOVED, StateChanged
from tests.api.serving import TOKEN, Api, serving
from tests.fakes.clock import PATIENCE_S, POLL_S, until

AGENT = "synapse-claude-8100"
DEAD_LINE_S = 30.0
"""Seconds after which a line that is dead must be let go of."""


async def redraw(socket) -> None:
    assert await socket.receive_bytes(timeout=30) == b"\x1b[H\x1b[2Jscreen"


async def test_one_that_keeps_the_size(api: Api):
    for query, keeps in (("", False), ("?keep_size=1", True)):
        async with api.http.ws_connect(f"/agents/claude/terminal{query}") as socket:
            await redraw(socket)
            assert api.control.attachments[-1].keep_size is keeps


@pytest.mark.parametrize("client", ["unix", "http"])
async def test_bytes_both_ways(api: Api, client):
    async with getattr(api, client).ws_connect("/agents/claude/terminal?cols=100&rows=30") as socket:
        await redraw(socket)
        (attachment,) = api.control.attachments
        assert (attachment.size, attachment.read_only) == ((100, 30), False)
        for data in (b"ls\r", b"\x00\xff\x1b[A"):
            await socket.send_bytes(data)
            assert await socket.receive_bytes(timeout=30) == data
        await socket.send_json({"type": "resize", "cols": 80, "rows": 25})
        async with asyncio.timeout(PATIENCE_S):
            await attachment.changed.wait()
        assert attachment.size == (80, 25)
        attachment.changed.clear()
        await socket.send_json({"type": "resize", "cols": 10_000, "rows": 65_535})
        async with asyncio.timeout(PATIENCE_S):
            await attachment.changed.wait()
        assert attachment.size == (10_000, 65_535), "however large it is"
        await socket.send_json({"type": "signal", "signal": "SIGINT"})
        assert await socket.receive_bytes(timeout=30) == b"\x03"
        await socket.send_json({"type": "detach"})
        assert (await socket.receive(timeout=30)).type is WSMsgType.CLOSE
    async with asyncio.timeout(PATIENCE_S):
        while not attachment.closed:
            await asyncio.sleep(0)


@pytest.mark.parametrize("client", ["unix", "http"])
async def test_keys_under_a_lease(api: Api, client):
    """What has the lease of another time is not typed, nor what comes behind it until that was heard."""

    async def told(kind: str, **wanted: int) -> dict[str, int]:
        while True:
            message = await socket.receive(timeout=30)
            news = json.loads(message.data) if message.type is WSMsgType.TEXT else {}
            if news.get("type") == kind and wanted.items() <= news.items():
                return news

    def piece(lease: int, number: int, keys: bytes) -> bytes:
        return lease.to_bytes(4) + number.to_bytes(4) + keys

    async with getattr(api, client).ws_connect("/agents/claude/terminal") as socket:
        await redraw(socket)
        (attachment,) = api.control.attachments
        await socket.send_json({"type": "lease", "lease": 0})
        lease = (await told("lease"))["lease"]
        await socket.send_json({"type": "lease", "lease": lease})
        await socket.send_bytes(piece(lease, 1, b"ls"))
        await told("lease", taken=1)
        for number in (2, 3):
            await socket.send_bytes(piece(0, number, b"rm\r"))
        assert await told("late") == {"type": "late", "late": 1, "taken": 1}
        await socket.send_json({"type": "again", "late": 1, "gone": False})
        lease = (await told("lease"))["lease"]
        await socket.send_bytes(piece(lease, 4, b"y"))
        await told("lease", taken=4)
        assert attachment.written == [b"ls", b"y"]
        await socket.send_json({"type": "signal", "signal": "SIGINT"})
        assert (await told("error"))["error"]


@pytest.mark.parametrize("code", [0, 7, -9, None])
async def test_the_exit(api: Api, code):
    async with api.unix.ws_connect("/agents/claude/terminal") as socket:
        await redraw(socket)
        await api.control.tell(AGENT, StateChanged(state=ProcessState.STOPPING))
        api.control.attachments[0].show(b"bye")
        api.control.attachments[0].end()
        await api.control.tell(AGENT, StateChanged(state=ProcessState.EXITED, exit_code=code))
        assert await socket.receive_bytes(timeout=30) == b"bye"
        assert await socket.receive_json(timeout=30) == {"type": "exit", "exit_code": code}
        message = await socket.receive(timeout=30)
        assert (message.type, message.data) == (WSMsgType.CLOSE, 1000)


async def test_the_exit_of_an_agent_that_is_removed(api: Api):
    async with api.unix.ws_connect("/agents/claude/terminal") as socket:
        await redraw(socket)
        api.control.attachments[0].end()
        await api.control.tell(AGENT, StateChanged(state=REMOVED))
        assert await socket.receive_json(timeout=30) == {"type": "exit", "exit_code": None}


async def test_an_exit_of_which_nobody_tells(control, tmp_path):
    async with serving(control, tmp_path, exit_wait=0.01) as api, api.unix.ws_connect("/agents/claude/terminal") as s:
        await redraw(s)
        api.control.attachments[0].end()
        assert await s.receive_json(timeout=30) == {"type": "exit", "exit_code": None}


async def test_read_only(api: Api):
    async with api.unix.ws_connect("/agents/claude/terminal?read_only=1") as socket:
        await redraw(socket)
        await socket.send_bytes(b"x")
        error = await socket.receive_json(timeout=30)
        assert (error["type"], error["error"]["code"]) == ("error", "FORBIDDEN")
        api.control.attachments[0].show(b"still there")
        assert await socket.receive_bytes(timeout=30) == b"still there"


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        "{}",
        '{"type": "fly"}',
        '{"type": "resize"}',
        '{"type": "resize", "cols": 0, "rows": 10}',
        '{"type": "resize", "cols": 10, "rows": 100000}',
        '{"type": "resize", "cols": "10", "rows": 10}',
        '{"type": "signal", "signal": "SIGKILL"}',
    ],
)
async def test_text_frames_that_are_wrong(api: Api, text):
    async with api.unix.ws_connect("/agents/claude/terminal") as socket:
        await redraw(socket)
        await socket.send_str(text)
        error = json.loads(await socket.receive_str(timeout=30))
        assert (error["type"], error["error"]["code"]) == ("error", "INVALID_REQUEST")
        await socket.send_bytes(b"x")
        assert await socket.receive_bytes(timeout=30) == b"x"


async def test_a_frame_that_is_too_large(control, tmp_path):
    async with (
        serving(control, tmp_path, ws_message=1000) as api,
        api.unix.ws_connect("/agents/claude/terminal") as socket,
    ):
        await redraw(socket)
        await socket.send_bytes(b"x" * 1001)
        message = await socket.receive(timeout=30)
        assert (message.type, message.data) == (WSMsgType.CLOSE, 1009)


async def test_the_daemon_lets_go_of_its_agents(api: Api):
    """An output that ends because the daemon goes is no exit of the program."""
    async with api.unix.ws_connect("/agents/claude/terminal") as socket:
        await redraw(socket)
        api.servers.end_streams()
        api.control.attachments[0].end()
        message = await socket.receive(timeout=30)
        assert (message.type, message.data) == (WSMsgType.CLOSE, 1001)


async def test_the_daemon_goes(api: Api):
    async with api.unix.ws_connect("/agents/claude/terminal") as socket:
        await redraw(socket)
        closing = asyncio.create_task(api.servers.close())
        message = await socket.receive(timeout=30)
        assert (message.type, message.data) == (WSMsgType.CLOSE, 1001)
        async with asyncio.timeout(PATIENCE_S):
            await closing
    assert api.control.attachments[0].closed


async def test_refusals_before_the_upgrade(api: Api):
    status, body = await api.json(api.unix, "GET", "/agents/claude/terminal")
    assert (status, body["error"]["code"]) == (400, "INVALID_REQUEST")
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}
    for path, code in (
        ("/agents/gemini/terminal", "UNKNOWN_AGENT"),
        ("/agents/claude/terminal?cols=0", "INVALID_REQUEST"),
        ("/agents/claude/terminal?rows=x", "INVALID_REQUEST"),
    ):
        _, body = await api.json(api.unix, "GET", path, headers=upgrade)
        assert body["error"]["code"] == code
    api.control.tokens["t"] = AGENT
    headers = upgrade | {"Authorization": "Bearer t"}
    _, body = await api.json(api.unix, "GET", "/agents/claude/terminal", headers=headers)
    assert body["error"]["code"] == "FORBIDDEN"
    assert api.control.attachments == []
    assert TOKEN
    _, body = await api.json(api.unix, "GET", "/agents/claude/terminal", headers=upgrade)
    assert "needs Sec-WebSocket-Version: 13 and a Sec-WebSocket-Key" in body["error"]["message"]
    assert all(attached.closed for attached in api.control.attachments)


@pytest.mark.night
async def test_a_line_by_tcp_that_dies_in_silence_is_let_go_of(api: Api) -> None:
    """The agent writes nothing, and no answer to a ping comes back: as from a laptop whose lid was closed."""
    assert HEARTBEAT * 1.5 <= DEAD_LINE_S
    assert UNREAD_S + DOING_S <= DEAD_LINE_S
    async with api.http.ws_connect("/agents/claude/terminal", autoping=False):
        await until(lambda: api.control.attachments)
        async with asyncio.timeout(2 * DEAD_LINE_S + PATIENCE_S):
            while not api.control.attachments[0].closed:
                await asyncio.sleep(POLL_S)
