"""Answers to another host: by the path that they have there, under their key, and what is refused there by its name."""

import json
from typing import Any

import pytest
from aiohttp import web

from synapsed.errors import InvalidRequest, NotReady, NotTaken, PromptChanged, SynapsedError
from synapsed.parts.elsewhere.hosts import answers
from tests.parts.elsewhere.test_host_inboxes import never, tunnel

__all__ = ["tunnel"]

GIVEN = {"agent": "a b/c", "task": None, "text": "y", "prompt_id": "p1", "key": "k1"}


async def test_where_an_answer_goes(tunnel: Any):
    seen: list[Any] = []

    async def take(request: web.Request) -> web.Response:
        seen.append((request.raw_path, request.headers.get("Idempotency-Key"), await request.json()))
        return web.json_response({"status": "input_provided"})

    host = await tunnel("a", never, posted=take)
    await answers.give(host, **GIVEN)
    await answers.give(host, **GIVEN | {"task": "t/1", "key": None})
    await answers.put_away(host, "i#1")
    body = {"input": "y", "prompt_id": "p1"}
    assert seen == [
        ("/control/agents/a%20b%2Fc/input", "k1", body),
        ("/agents/a%20b%2Fc/tasks/t%2F1/input", None, body),
        ("/inbox/i%231/seen", None, {}),
    ]


@pytest.mark.parametrize("dots", [".", ".."])
async def test_dots_lead_to_no_other_path(tunnel: Any, dots: str):
    async def take(request: web.Request) -> web.Response:
        pytest.fail(f"{request.raw_path} was asked for")

    host = await tunnel("a", never, posted=take)
    for asked in ({"agent": dots}, {"task": dots}, {"agent": dots, "task": "t1"}):
        with pytest.raises(InvalidRequest, match="neither a name nor an id"):
            await answers.give(host, **GIVEN | asked)
    with pytest.raises(InvalidRequest, match="neither a name nor an id"):
        await answers.put_away(host, dots)


REFUSALS: list[tuple[int, Any, type[SynapsedError]]] = [
    (409, {"error": {"code": "PROMPT_CHANGED", "message": "another one"}}, PromptChanged),
    (503, {"error": {"code": "BUSY", "message": "later"}}, SynapsedError),
    (403, {"error": {"code": "FORBIDDEN", "message": "not you"}}, NotTaken),
    (401, {"error": {"code": "UNAUTHORIZED", "message": "not you"}}, NotTaken),
    (418, {"error": {"code": "OF_A_LATER_VERSION", "message": "tea"}}, NotTaken),
    (500, {"error": {"code": "INTERNAL", "message": "oh"}}, NotReady),
    (400, [], NotTaken),
    (409, {"error": {"code": "PROMPT_CHANGED", "message": "half \ud83d"}}, PromptChanged),
    (502, "<html>", NotReady),
]


@pytest.mark.parametrize(("status", "document", "kind"), REFUSALS)
async def test_what_is_refused_there(tunnel: Any, status: int, document: Any, kind: type[SynapsedError]):
    async def refuse(_request: web.Request) -> web.Response:
        return web.Response(status=status, text=json.dumps(document))

    with pytest.raises(kind, match="a: ") as told:
        await answers.give(await tunnel("a", never, posted=refuse), **GIVEN)
    told.value.message.encode()


@pytest.mark.parametrize("code", sorted(answers._KINDS))
def test_every_refusal_has_an_error_here(code: str) -> None:
    told = answers._refusal(503, json.dumps({"error": {"code": code, "message": "why"}}).encode(), "box")
    assert (told.code, told.message, told.details) == (code, "box: why", {"host": "box"})


async def test_an_answer_that_is_too_long_or_does_not_come(tunnel: Any, monkeypatch: pytest.MonkeyPatch):
    async def large(_request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 2_000_000)

    with pytest.raises(NotReady, match="more than 1024 KiB"):
        await answers.give(await tunnel("a", never, posted=large), **GIVEN)
    monkeypatch.setattr(answers, "WITHIN_S", 0.05)
    with pytest.raises(NotReady, match="did not report the result within"):
        await answers.give(await tunnel("b", never, posted=never), **GIVEN)
