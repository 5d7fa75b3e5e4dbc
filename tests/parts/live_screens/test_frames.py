"""`…/screen/live`: an agent's screen as rows of a page, as it changes."""

import asyncio
from typing import Any

from aiohttp import WSMsgType

from synapsed.model.agent import ProcessState
from synapsed.model.events import StateChanged
from synapsed.parts.live_screens.frames import LiveScreens
from tests.api.serving import Api
from tests.support.patience import PATIENCE_S

AGENT = "synapse-claude-8100"


async def heard(socket: Any) -> dict[str, Any]:
    message: dict[str, Any] = await socket.receive_json(timeout=30)
    return message


def show(api: Api, *rows: str) -> None:
    api.control.rows = list(rows)
    api.control.watches.note()


def put(api: Api, state: ProcessState) -> None:
    api.control.views[AGENT] = api.control.views[AGENT].model_copy(update={"state": state})


async def test_the_screen_and_what_changes(api: Api):
    async with api.unix.ws_connect("/agents/claude/screen/live") as socket:
        first = await heard(socket)
        assert first["whole"] is True
        assert first["lines"] == {"0": [[10, "the screen"]]}
        assert first["cursor"] == [0, 10]
        show(api, '[[3,"new"]]')
        second = await heard(socket)
        assert (second["whole"], second["lines"]) == (False, {"0": [[3, "new"]]})
        assert second["frame"] > first["frame"]
    assert api.control.attachments == []


async def test_a_screen_is_drawn_once_for_all_who_look(api: Api):
    async with (
        api.unix.ws_connect("/agents/claude/screen/live") as one,
        api.http.ws_connect("/agents/claude/screen/live") as two,
    ):
        await heard(one), await heard(two)
        drawn = api.control.drawn
        show(api, '[[3,"new"]]')
        assert await heard(one) == await heard(two)
        assert api.control.drawn == drawn + 1


async def test_who_does_not_read_gets_the_newest(api: Api):
    async with api.unix.ws_connect("/agents/claude/screen/live") as quick:
        await heard(quick)
        async with api.unix.ws_connect("/agents/claude/screen/live", autoping=False) as slow:
            frames = 0
            for number in range(6):
                show(api, f'[[{len(str(number))},"{number}"]]')
                while (await heard(quick))["lines"] != {"0": [[1, str(number)]]}:
                    pass
            while (await heard(slow))["lines"].get("0") != [[1, "5"]]:
                frames += 1
            assert frames <= 6


async def test_a_program_that_ends_and_comes_back(api: Api):
    async with api.unix.ws_connect("/agents/claude/screen/live") as socket:
        await heard(socket)
        put(api, ProcessState.EXITED)
        watches, api.control.watches = api.control.watches, type(api.control.watches)()
        watches.end()
        still = await heard(socket)
        while still["still"] != "no program runs":
            still = await heard(socket)
        put(api, ProcessState.RUNNING)
        api.control.rows = ['[[4,"back"]]']
        await api.control.tell(AGENT, StateChanged(state=ProcessState.RUNNING))
        back = await heard(socket)
        while back["still"] is not None:
            back = await heard(socket)
        assert back["lines"] == {"0": [[4, "back"]]}


async def test_an_agent_that_is_removed(api: Api):
    async with api.unix.ws_connect("/agents/claude/screen/live") as socket:
        await heard(socket)
        watches, api.control.watches = api.control.watches, type(api.control.watches)()
        del api.control.views[AGENT]
        watches.end()
        message = await socket.receive(timeout=30)
        while message.type is WSMsgType.TEXT:
            message = await socket.receive(timeout=30)
        assert message.type is WSMsgType.CLOSE


async def test_nothing_is_drawn_for_nobody(api: Api):
    async with api.unix.ws_connect("/agents/claude/screen/live") as socket:
        await heard(socket)
    async with asyncio.timeout(PATIENCE_S):
        while api.servers.context.parts.provided(LiveScreens).drawn:
            await asyncio.sleep(0)
    drawn = api.control.drawn
    show(api, '[[3,"new"]]')
    async with api.unix.get("/agents/claude/screen?format=text") as answer:
        await answer.text()
    assert api.control.drawn == drawn


async def test_another_agent_may_not_look(api: Api):
    api.control.tokens["of-codex"] = "synapse-codex-8120"
    headers = {"Authorization": "Bearer of-codex"}
    async with api.http.get("/agents/claude/screen/live", headers=headers) as answer:
        assert answer.status == 403


async def test_a_page_is_no_websocket(api: Api):
    async with api.unix.get("/agents/claude/screen/live") as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (400, "INVALID_REQUEST")
