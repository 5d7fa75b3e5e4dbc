"""Answers to what waits for a person on another host, given over its control socket as a person there does."""

import asyncio
import json
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

WITHIN_S: Final = 45.0
"""For a program to take an answer, which takes it seconds."""
SEEN_WITHIN_S: Final = 5.0
SAID_MAX: Final = 500
"""Characters of what is refused over there."""


async def give(tunnel: Tunnel, *, agent: str, task: str | None, text: str, prompt_id: str, key: str | None) -> None:
    """The answer to `prompt_id` of that agent or task, once however often it comes under `key`. Raises what is refused
    over there, and NotReady where nobody knows what became of it."""
    path = f"/agents/{_part(agent)}/tasks/{_part(task)}/input" if task else f"/control/agents/{_part(agent)}/input"
    await _post(tunnel, path, {"input": text, "prompt_id": prompt_id}, key=key, within=WITHIN_S)


async def put_away(tunnel: Tunnel, item: str) -> None:
    """Say over there that a person has seen it. Raises as `give` does."""
    await _post(tunnel, f"/inbox/{_part(item)}/seen", {}, key=None, within=SEEN_WITHIN_S)


async def _post(tunnel: Tunnel, path: str, body: dict[str, Any], *, key: str | None, within: float) -> None:
    name = tunnel.host.name
    try:
        async with asyncio.timeout(within):
            status, answer = await tunnel.post(path, body, key=key)
    except TimeoutError:
        raise NotReady(f"{name} did not say within {within:g} s what became of it", host=name) from None
    except (OSError, ClientError, ValueError) as error:
        raise NotReady(f"{name} does not answer: {str(error)[:200]}", host=name) from None
    if status >= 400:
        raise _refusal(status, answer, name)


def _part(text: str) -> str:
    """A piece of a path. Dots alone would lead to another path, however they are quoted."""
    if text in (".", ".."):
        raise InvalidRequest(f"{text!r} is neither a name nor an id; `synapsectl inbox` shows both")
    return quote(text, safe="")


def _refusal(status: int, answer: bytes, host: str) -> SynapsedError:
    """What was said over there, as an error of the same name here, but where it does not let this daemon in."""
    try:
        told = json.loads(answer)["error"]
        code, message = str(told["code"]), str(told["message"])[:SAID_MAX]
    except (ValueError, TypeError, KeyError, RecursionError):
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
