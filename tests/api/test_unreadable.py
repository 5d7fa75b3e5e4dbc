"""What is no request, or too much of one: every one is answered, in the form that every error has."""

import asyncio
import itertools
import json
from collections.abc import Iterable

import pytest

from synapsed.api.early_refusals import FIELD_MAX, HEADERS_MAX, LINE_MAX
from tests.api.serving import Api
from tests.support.patience import PATIENCE_S

HOST = b"Host: localhost\r\n"
GET = b"GET /healthz HTTP/1.1\r\n" + HOST
SEND = b"POST /agents/claude/tasks/send HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n" + HOST
NOT_TEXT = b"\xff\xc3"

INVALID = (400, "INVALID_REQUEST")
FORBIDDEN = (403, "FORBIDDEN")
MEDIA = (415, "UNSUPPORTED_MEDIA")
LARGE = "TOO_LARGE"

UNREADABLE = {
    "garbage": (b"hello\r\n\r\n", INVALID, "this port speaks HTTP/1.1"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", INVALID, "use http://"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (505, "INVALID_REQUEST"), "use HTTP/1.1"),
    "HTTP/2.0": (b"GET /healthz HTTP/2.0\r\n" + HOST + b"\r\n", (505, "INVALID_REQUEST"), "use HTTP/1.1"),
    "HTTP/0.9": (b"GET /healthz\r\n\r\n", (505, "INVALID_REQUEST"), "use HTTP/1.1"),
    "HTTP/1.0 without a host": (b"GET /healthz HTTP/1.0\r\n\r\n", FORBIDDEN, "send 'Host: localhost:PORT'"),
    "no host": (b"GET /healthz HTTP/1.1\r\n\r\n", INVALID, "Missing 'Host'"),
    "broken host": (b"GET / HTTP/1.1\r\nHost: [::1\r\nConnection: close\r\n\r\n", FORBIDDEN, "'[::1' is no host"),
    "two hosts": (GET + HOST + b"\r\n", INVALID, "Duplicate 'Host'"),
    "unknown method": (b"FOO / HTTP/1.1\r\n" + HOST + b"\r\n", (501, "METHOD_NOT_ALLOWED"), "no method FOO"),
    "small method": (b"get / HTTP/1.1\r\n" + HOST + b"\r\n", (501, "METHOD_NOT_ALLOWED"), "in capitals"),
    "no version": (b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n", INVALID, "Bad status line"),
    "no URL": (b"GET http://[::1/ HTTP/1.1\r\n" + HOST + b"\r\n", INVALID, "percent-encode"),
    "raw bytes": (b"GET /h\xff HTTP/1.1\r\n" + HOST + b"\r\n", INVALID, "percent-encode"),
    "long target": (b"GET /?" + b"x" * LINE_MAX + b" HTTP/1.1\r\n" + HOST + b"\r\n", (414, LARGE), f"{LINE_MAX} bytes"),
    "long header": (GET + b"X: " + b"y" * 2 * FIELD_MAX + b"\r\n\r\n", (431, LARGE), f"{FIELD_MAX} bytes"),
    "long name": (GET + b"y" * (FIELD_MAX + 1) + b": 1\r\n\r\n", (431, LARGE), f"{FIELD_MAX} bytes"),
    "many headers": (GET + b"X: 1\r\n" * HEADERS_MAX + b"\r\n", (431, LARGE), f"{HEADERS_MAX} headers"),
    "no colon": (GET + b"no colon\r\n\r\n", INVALID, "Invalid header token"),
    "NUL": (GET + b"X: a\0b\r\n\r\n", INVALID, "Invalid header value"),
    "folded": (GET + b"X: a\r\n b\r\n\r\n", INVALID, "after header value"),
    "length in words": (SEND + b"Content-Length: abc\r\n\r\n{}", INVALID, "Content-Length"),
    "negative length": (SEND + b"Content-Length: -1\r\n\r\n{}", INVALID, "Content-Length"),
    "two lengths": (SEND + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", INVALID, "Content-Length"),
    "endless length": (SEND + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n{}", INVALID, "Content-Length"),
    "large length": (SEND + b"Content-Length: 999999999999\r\n\r\n", (413, LARGE), "are taken"),
    "length and chunks": (
        SEND + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", INVALID, "Transfer-Encoding"
    ),
    "transfer coding": (SEND + b"Transfer-Encoding: foo\r\n\r\n0\r\n\r\n", INVALID, "Transfer-Encoding"),
    "chunk's size": (SEND + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", INVALID, "chunk"),
    "chunk's end": (SEND + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx0\r\n\r\n", INVALID, "chunk"),
    "chunks of a GET": (GET + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", INVALID, "chunk"),
    "gzip": (SEND + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", MEDIA, "send it as it is"),
    "expectation": (SEND + b"Expect: foo\r\nContent-Length: 2\r\n\r\n{}", (417, "INVALID_REQUEST"), "100-continue"),
    "not upgraded": (
        GET.replace(b"/healthz", b"/agents/claude/terminal") + b"Connection: close\r\n\r\n", INVALID, "send an upgrade"
    ),
}  # fmt: skip
"""What is sent, the status and code of the answer, and a part of its message."""


async def answers(port: int, pieces: Iterable[bytes], *, all_sent: bool = False) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of what the server says until it ends the connection: one answer, and no more.
    `all_sent`: the client says that it sends nothing more; the server waits for the rest of a body else."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)
    if all_sent:
        writer.write_eof()
    async with asyncio.timeout(PATIENCE_S):
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    assert int(headers["content-length"]) == len(body.encode()), body
    return int(first.split(" ")[1]), headers, body.encode()


@pytest.mark.parametrize("case", UNREADABLE)
async def test_what_cannot_be_read_is_answered_in_the_form_of_every_error(api: Api, case: str) -> None:
    sent, (status, code), part = UNREADABLE[case]
    for port, raw in ((api.port, sent), (api.agent_port, sent.replace(b"/agents/claude", b""))):
        got, headers, body = await answers(port, [raw], all_sent=case == "large length")
        assert headers["content-type"].partition(";")[0] == "application/json"
        assert headers["x-content-type-options"] == "nosniff"
        error = json.loads(body)["error"]
        assert (got, error["code"], set(error)) == (status, code, {"code", "message", "details"})
        assert part in error["message"]


@pytest.mark.parametrize("case", ["chunk's size", "chunk's end"])
async def test_a_body_that_goes_wrong_after_its_headers(api: Api, case: str) -> None:
    """The route reads it already."""
    sent, (status, code), _ = UNREADABLE[case]
    head, _, body = sent.partition(b"\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        got, _, answer = await answers(api.port, [head + b"\r\n\r\n", body])
    assert (got, json.loads(answer)["error"]["code"]) == (status, code)


async def test_the_unix_socket_says_the_same(api: Api) -> None:
    reader, writer = await asyncio.open_unix_connection(str(api.path))
    writer.write(UNREADABLE["garbage"][0])
    async with asyncio.timeout(PATIENCE_S):
        _, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert json.loads(body)["error"]["code"] == "INVALID_REQUEST"


READ = ["A2A-Version", "A2A-Extensions", "Accept", "Authorization", "Content-Type", "Expect", "Idempotency-Key"]
READ += ["If-Modified-Since", "If-None-Match", "Last-Event-ID", "Origin", "Upgrade", "X-Forwarded-Host", "X-Other"]
ROUTES = ["GET /events", "GET /agents/claude/a2a/rest/tasks", "GET /agents/claude/.well-known/agent-card.json"]
ROUTES += ["POST /agents/claude/a2a", "POST /agents/claude/tasks/send"]


async def test_a_header_whose_bytes_are_no_text_is_named(api: Api) -> None:
    for route, name in itertools.product(ROUTES, READ):
        head = f"{route} HTTP/1.1\r\nConnection: close\r\n{name}: ".encode() + NOT_TEXT + b"\r\n" + HOST + b"\r\n"
        status, _, body = await answers(api.port, [head])
        error = json.loads(body)["error"]
        assert (status, error["code"], error["details"]["field"]) == (*INVALID, name), route


@pytest.mark.parametrize("header", [b"Cookie: " + NOT_TEXT, "X-Name: Zoë".encode()])
async def test_cookies_of_others_and_text_do_no_harm(api: Api, header: bytes) -> None:
    status, _, _ = await answers(api.port, [GET + b"Connection: close\r\n" + header + b"\r\n\r\n"])
    assert status == 200


async def test_a_parameter_may_be_as_long_as_it_is_described(api: Api) -> None:
    """4,096 characters of four bytes, each of which is written as three."""
    cwd = "%F0%9F%A6%94" * 4096
    status, answer = await api.json(api.unix, "GET", f"/control/conversations?profile=claude&cwd=/{cwd[12:]}")
    assert status == 200, answer


async def test_what_follows_chunks_is_no_header_of_the_next_request(api: Api) -> None:
    """aiohttp's parser would give it to that one, whoever's it is."""
    sent = (
        b"POST /agents/claude/tasks/send HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    )
    body = b"\r\n2\r\n{}\r\n0\r\nX-Of: one\r\nAuthorization: Bearer one\r\n\r\n"
    status, headers, answer = await answers(api.port, [sent + HOST + body + GET + b"\r\n"])
    assert (status, json.loads(answer)["error"]["code"]) == INVALID
    assert headers["connection"] == "close"
