"""JSON-RPC in the messages of one WebSocket: calls that wait for their answers, and the server's notifications."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp

from synapsed.errors import ChannelAway, MessageRefused
from synapsed.parts.app_server.items import words_of
from synapsed.shared.outside_json import NotJson, read_object

REQUEST_S = 10.0
"""Seconds that an answer may take."""
LARGE = 64 * 1024
"""Characters above which a message is parsed in a thread."""

type _Json = dict[str, Any]


class AppConnection:
    """Calls over an open `socket`, whose answers `read` passes on."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._asked: dict[int, asyncio.Future[_Json]] = {}
        self._number = 0

    async def read(self, hear: Callable[[_Json], None]) -> None:
        """Passes each message to `hear`, in order; answers go to their callers first. Returns when the socket is
        closed. Raises an error of `hear`. All calls end then."""
        try:
            async for message in self._socket:
                if message.type is aiohttp.WSMsgType.TEXT and (told := await _told_in(message.data)) is not None:
                    self._answered(told)
                    hear(told)
        finally:
            self.drop()  # nobody reads an answer any more

    def _answered(self, told: _Json) -> None:
        number = told.get("id")
        if isinstance(told.get("method"), str) or not isinstance(number, int):
            return
        if (future := self._asked.get(number)) is not None and not future.done():
            future.set_result(told)

    async def call(self, method: str, params: Mapping[str, Any]) -> _Json:
        """Returns the server's answer. Raises ChannelAway, MessageRefused."""
        self._number += 1
        number, future = self._number, asyncio.get_running_loop().create_future()
        self._asked[number] = future
        try:
            await self.send({"id": number, "method": method, "params": params})
            answer: _Json = await asyncio.wait_for(future, REQUEST_S)
        except TimeoutError:
            raise ChannelAway(f"its server does not answer {method}", sent=True) from None
        finally:
            self._asked.pop(number, None)
        if "error" in answer:
            raise MessageRefused(f"its server refuses {method}: {words_of(answer, 'error.message') or 'no reason'}")
        result = answer.get("result")
        return result if isinstance(result, dict) else {}

    async def send(self, message: Mapping[str, Any]) -> None:
        """Sends a message. Raises ChannelAway, also if the server has read nothing of a large one for too long."""
        try:
            async with asyncio.timeout(REQUEST_S):
                await self._socket.send_str(json.dumps(message))
        except TimeoutError:
            raise ChannelAway("its server does not read", sent=True) from None
        except (aiohttp.ClientError, OSError) as error:
            raise ChannelAway(f"its server closed the connection: {error}", sent=True) from None

    def drop(self) -> None:
        """Ends all calls, because the socket is closed: no answer comes any more."""
        for future in self._asked.values():
            if not future.done():
                future.set_exception(ChannelAway("its server closed the connection", sent=True))
                future.exception()  # its caller may have been cancelled; the error counts as retrieved
        self._asked.clear()


async def _told_in(text: str) -> _Json | None:
    """Returns the object of a message, None if it is no object."""
    try:
        return await asyncio.to_thread(read_object, text) if len(text) > LARGE else read_object(text)
    except NotJson:
        return None
