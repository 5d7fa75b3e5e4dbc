"""The list of agents of another host: bounded, and understood row by row, beside the event loop."""

import asyncio
import json
import threading
from typing import Any

from aiohttp import web

from synapsed.interfaces import AgentView
from synapsed.parts.elsewhere.hosts import inboxes, listing
from synapsed.parts.elsewhere.hosts import tunnel as tunnels
from tests.fakes.control import FakeControl
from tests.parts.elsewhere.test_host_inboxes import ROW as ITEM
from tests.parts.elsewhere.test_host_inboxes import encoded, tunnel

__all__ = ["tunnel"]

ROW = json.loads(FakeControl().add("claude", "claude", 8100).model_dump_json())


def answering(*rows: Any) -> Any:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=json.dumps(rows).encode())

    return answer


async def test_rows_have_the_names_that_they_have_here(tunnel: Any):
    host = await tunnel("box", answering(ROW | {"new_in_a_later_version": 1}))
    (found,) = await host.agents()
    assert (found.name, found.id, found.host) == ("claude@box", f"{ROW['id']}@box", "box")


async def test_a_row_that_is_not_understood_does_not_hide_the_others(tunnel: Any):
    rows = (5, ROW | {"state": "of a later version"}, ROW | {"since": float("nan")}, ROW | {"name": "half \ud83d"}, ROW)
    host = await tunnel("box", answering(*rows))
    assert [found.name for found in await host.agents()] == ["half \ufffd@box", "claude@box"], "each can be encoded"


async def test_too_many_are_cut_off(tunnel: Any):
    found, left_out = listing.agents(json.dumps([ROW] * (listing.ROWS_MAX + 2)).encode(), "box")
    assert (len(found), left_out) == (listing.ROWS_MAX, 2)


async def test_an_answer_that_is_too_large_or_no_list_is_none(tunnel: Any, monkeypatch: Any):
    monkeypatch.setattr(tunnels, "AGENTS_MAX", len(json.dumps([ROW])))
    host = await tunnel("one", answering(ROW, ROW))
    assert await host.agents() == []
    host = await tunnel("two", answering(ROW))
    assert len(await host.agents()) == 1

    async def no_list(_request: web.Request) -> web.Response:
        return web.Response(body=b'{"agents": []}')

    assert await (await tunnel("three", no_list)).agents() == []


async def test_it_is_read_beside_the_event_loop(tunnel: Any, monkeypatch: Any):
    """While it is being read, others go on."""
    reading, may = asyncio.Event(), threading.Event()
    loop, read = asyncio.get_running_loop(), listing.agents

    def slowly(answer: bytes, host: str) -> Any:
        loop.call_soon_threadsafe(reading.set)
        may.wait()
        return read(answer, host)

    monkeypatch.setattr(listing, "agents", slowly)
    host = await tunnel("box", answering(ROW))
    asked = asyncio.create_task(host.agents())
    await reading.wait()
    may.set()
    assert len(await asked) == 1


def test_what_hosts_list_is_read_in_one_way():
    """Agents and inboxes: of what is no row, too much, or of a later version, both say as much."""
    odd = [5, None, {"name": "alone"}]
    told = [inboxes.read(encoded(*odd, ITEM), "box"), listing.agents(encoded(*odd, ROW), "box")]
    assert [(len(found), left_out, found[0].host) for found, left_out in told] == [(1, 3, "box")] * 2
    assert listing.known(AgentView, encoded(*odd, ROW, ROW), "box", ("name",), most=1)[1] == 4
