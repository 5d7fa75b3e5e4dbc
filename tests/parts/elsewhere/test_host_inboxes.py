"""What another host may say of who waits there: bounded, and understood row by row."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from synapsed.model.attention import HostSaid, HostState
from synapsed.parts.elsewhere.hosts import inboxes
from synapsed.parts.elsewhere.hosts.host import Host
from synapsed.parts.elsewhere.hosts.inboxes import HOST_ITEMS, read
from synapsed.parts.elsewhere.hosts.tunnel import Tunnel, TunnelDeps
from synapsed.shared.outside_json import read_json
from tests.fakes.clock import FakeClock

ROW = {
    "id": "i1", "agent": "claude", "agent_id": "synapse-claude-8100", "host": None, "cwd": "/srv", "kind": "permission",
    "question": "Run it?", "since": "2026-01-02T11:00:00.000Z", "prompt_id": "p1",
}  # fmt: skip

type Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


def encoded(*rows: Any) -> bytes:
    return json.dumps(rows).encode()


def test_rows_have_the_names_that_they_have_here():
    ((item,), left_out) = read(encoded(ROW | {"new_in_a_later_version": 1}), "box")
    assert (item.id, item.agent, item.agent_id, item.host) == (
        "i1@box", "claude@box", "synapse-claude-8100@box", "box",
    )  # fmt: skip
    assert left_out == 0


def test_what_is_not_understood_and_what_is_too_much_is_counted():
    items, left_out = read(encoded(ROW | {"kind": "of a later version"}, ROW, 5, *[ROW] * HOST_ITEMS), "box")
    assert (len(items), left_out) == (HOST_ITEMS, 3)


def test_rows_can_be_encoded():
    (item,), left_out = read(encoded(ROW | {"question": "half \ud83d"}, ROW | {"since": float("nan")}), "box")
    assert (item.question, left_out) == ("half \ufffd", 1)


@pytest.mark.parametrize("text", ["", "{}", "[", "[1", "[1,]", "[1 2]", "[]x", "null", "[" * 100_000, "\ud800"])
def test_what_is_no_array_is_refused(text: str):
    with pytest.raises(ValueError):
        read(text.encode("utf-8", "surrogatepass"), "box")


async def answering_nothing(_request: web.Request) -> web.Response:
    return web.Response(status=404)


@pytest.fixture
async def tunnel(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[Tunnel]]]:
    """Makes a tunnel whose daemon answers so, and to what is posted so."""
    async with AsyncExitStack() as stack:

        async def make(name: str, answering: Answering, posted: Answering = answering_nothing) -> Tunnel:
            app = web.Application()
            for path in ("/inbox", "/agents"):
                app.router.add_get(path, answering)
            app.router.add_post("/{path:.*}", posted)
            runner = web.AppRunner(app, handler_cancellation=True)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.UnixSite(runner, str(tmp_path / name)).start()
            deps = TunnelDeps(
                ssh=["false"], environ={}, sockets=tmp_path, clock=FakeClock(), rng=random.Random(1).random
            )
            host = Host(name=name, target=name, added_at="2026-01-02T11:00:00.000Z")
            made = Tunnel(host, deps, on_up=lambda: None)
            stack.push_async_callback(made.close)
            made._become(HostState.UP, None)
            return made

        yield make


async def test_a_bug_in_a_connection_is_named_and_it_is_tried_again(tunnel: Any, monkeypatch: pytest.MonkeyPatch):
    tries = 0
    again = asyncio.Event()

    async def failing() -> None:
        nonlocal tries
        tries += 1
        if tries == 2:
            again.set()
        raise KeyError("of the tests")

    made = await tunnel("box", well)
    monkeypatch.setattr(made, "_connect", failing)
    monkeypatch.setattr(made._backoff, "pause", lambda: 0.0)
    made.start()
    await again.wait()
    assert not made.up
    assert "its log says why" in made.error


async def well(_request: web.Request) -> web.Response:
    return web.Response(body=encoded(ROW))


async def never(_request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


async def test_a_host_that_says_too_much_or_something_else_is_named_and_the_others_are_heard(
    tunnel: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(inboxes, "WITHIN_S", 60.0)
    monkeypatch.setattr(inboxes, "HOST_BYTES", 64 * 1024)

    async def large(_request: web.Request) -> web.Response:
        return web.Response(body=encoded(*[ROW] * 1000))

    async def refuses(_request: web.Request) -> web.Response:
        return web.Response(status=403)

    async def page(_request: web.Request) -> web.Response:
        return web.Response(text="<html>")

    answers = {"a": well, "b": large, "c": refuses, "d": page}
    items, said = await inboxes.everywhere([await tunnel(name, answer) for name, answer in answers.items()])
    assert [item.id for item in items] == ["i1@a"]
    assert [(one.name, one.items) for one in said] == [("a", 1), ("b", 0), ("c", 0), ("d", 0)]
    errors = [one.error for one in said]
    assert errors[0] is None
    for error, why in zip(errors[1:], ("more than 64 KiB", "403", "no inbox"), strict=True):
        assert why in str(error)


@pytest.mark.parametrize("said", [b"[" * 16_000, b'{"a":' * 16_000, b"9" * 5000, b"\xff", b""], ids=lambda raw: raw[:6])
async def test_what_a_host_says_that_is_not_json_is_a_value_error(tunnel: Any, said: bytes):
    """The watch over a tunnel takes that error for a silent daemon, and goes on."""

    async def answering(_request: web.Request) -> web.Response:
        return web.Response(body=said)

    host = await tunnel("a", answering)
    with pytest.raises(ValueError):
        read_json(await host._read("/inbox", 1 << 20))


async def test_a_host_that_does_not_answer_in_time_is_named(tunnel: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inboxes, "WITHIN_S", 0.05)
    host = await tunnel("a", never)
    for items, said in await asyncio.gather(inboxes.everywhere([host]), inboxes.everywhere([host])):
        assert (items, [one.error for one in said]) == ([], ["a did not answer within 0.05 s"])


async def test_a_host_is_asked_once_at_a_time(tunnel: Any):
    under_way, most = 0, 0

    async def counted(request: web.Request) -> web.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(1000):
            await asyncio.sleep(0)
        under_way -= 1
        return await well(request)

    host = await tunnel("a", counted)
    told = await asyncio.gather(*(host.ask("/inbox", within=60, at_most=65536) for _ in range(3)))
    assert (told, most) == ([encoded(ROW)] * 3, 1)


async def test_a_host_that_is_away_is_not_asked(tunnel: Any):
    host = await tunnel("b", never)
    host._become(HostState.DOWN, "No route to host")
    said = HostSaid(name="b", state=HostState.DOWN, error="b is down: No route to host")
    assert await inboxes.everywhere([host]) == ([], [said])
