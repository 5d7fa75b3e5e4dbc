"""Answers to questions on another host, given over its control socket as a person there gives them."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

from aiohttp import ClientError

from synapsed.errors import (
    AgentError,
    Forbidden,
    InvalidRequest,
    LockedOut,
    NotReady,
    NotTaken,
    RequestError,
    SynapsedError,
    Unauthorized,
)
from synapsed.parts.elsewhere.hosts.tunnel import Tunnel
from synapsed.shared.outside_json import NotJson, read_object

WITHIN_S: Final = 45.0
"""Longest time in seconds for an answer to be taken by a program on the other host, which needs some seconds for it."""
SEEN_WITHIN_S: Final = 5.0
SAID_MAX: Final = 500
"""Most characters of a refusal's text that are shown."""


async def give(tunnel: Tunnel, *, agent: str, task: str | None, text: str, prompt_id: str, key: str | None) -> None:
    """Gives the answer to `prompt_id` of that agent or task, only once for each `key`. Raises the error of the host's
    refusal, and NotReady if it is not known whether the answer arrived."""
    path = f"/agents/{_part(agent)}/tasks/{_part(task)}/input" if task else f"/control/agents/{_part(agent)}/input"
    await _post(tunnel, path, {"input": text, "prompt_id": prompt_id}, key=key, within=WITHIN_S)


async def put_away(tunnel: Tunnel, item: str) -> None:
    """Tells the host that a person has seen the item. Raises the same errors as `give`."""
    await _post(tunnel, f"/inbox/{_part(item)}/seen", {}, key=None, within=SEEN_WITHIN_S)


async def _post(tunnel: Tunnel, path: str, body: dict[str, Any], *, key: str | None, within: float) -> None:
    name = tunnel.host.name
    try:
        async with asyncio.timeout(within):
            status, answer = await tunnel.post(path, body, key=key)
    except TimeoutError:
        raise NotReady(
            f"{name} did not report the result within {within:g} s: look at its inbox before you repeat it", host=name
        ) from None
    except (OSError, ClientError, ValueError) as error:
        raise NotReady(f"{name} does not answer: {str(error)[:200]}", host=name) from None
    if status >= 400:
        raise _refusal(status, answer, name)


def _part(text: str) -> str:
    """Returns a quoted piece of a path. Raises for dots alone, which lead to another path however they are quoted."""
    if text in (".", ".."):
        raise InvalidRequest(f"{text!r} is neither a name nor an id; `synapsectl inbox` shows both")
    return quote(text, safe="")


def _refusal(status: int, answer: bytes, host: str) -> SynapsedError:
    """Returns the host's refusal as an error of the same name here, unless the host refused this daemon itself."""
    try:
        told = read_object(answer)["error"]
        code, message = str(told["code"]), str(told["message"])[:SAID_MAX]
    except (NotJson, TypeError, KeyError):
        code, message = "", f"HTTP {status}"
    kind = _KINDS.get(code, NotReady if status >= 500 else NotTaken)
    return kind(f"{host}: {message}", host=host)


def _all(kind: type[SynapsedError]) -> Iterator[type[SynapsedError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _all(each)


_KINDS: Final = {
    kind.code: kind
    for root in (RequestError, AgentError)
    for kind in _all(root)
    if kind not in (Unauthorized, Forbidden, LockedOut)
}
