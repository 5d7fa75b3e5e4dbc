"""Each refusal has its code and its message, in one shape, and the daemon goes on."""

import asyncio
import http.client
import io
import json
import os
import re
import subprocess
import sys

import pytest

from synapsed.api.routes.status import StatusQuery
from synapsed.errors import StoreError
from tests.api.serving import TOKEN, Api, serving

SEND = {"message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}}
JSON = {"Content-Type": "application/json"}


async def refused(api: Api, status: int, code: str, method: str, path: str, **options) -> dict:
    async with api.http.request(method, path, **options) as response:
        body = await response.json()
    assert (response.status, body["error"]["code"]) == (status, code), body
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "details"}
    assert body["error"]["message"]
    assert (await api.json(api.http, "GET", "/healthz"))[0] == 200
    return body["error"]


async def test_no_such_agent(api: Api):
    error = await refused(api, 404, "UNKNOWN_AGENT", "POST", "/agents/gemini/tasks/send", json=SEND)
    assert error["details"]["agents"] == ["claude", "codex"]


async def test_an_ambiguous_agent(api: Api):
    api.control.add("second", "claude", 8101)
    api.control.add("third", "claude", 8102)
    api.control.views.pop("synapse-claude-8100")
    error = await refused(api, 409, "AMBIGUOUS", "GET", "/agents/claude/status")
    assert error["details"]["candidates"] == ["second", "third"]


@pytest.mark.parametrize("task", ["00000000-0000-0000-0000-000000000000", "short", "x" * 300])
async def test_no_such_task(api: Api, task):
    await refused(api, 404, "TASK_NOT_FOUND", "GET", f"/agents/claude/tasks/{task}")


async def test_a_full_queue(api: Api):
    agent_id = next(iter(api.control.views))
    api.control.views[agent_id] = api.control.views[agent_id].model_copy(update={"queue": 100})
    async with api.http.post("/agents/claude/tasks/send", json=SEND) as response:
        assert (response.status, response.headers["Retry-After"]) == (429, "7")


@pytest.mark.parametrize(
    ("path", "status", "code"), [("/nothing", 404, "NOT_FOUND"), ("/agents/claude/nothing", 404, "NOT_FOUND")]
)
async def test_no_such_path(api: Api, path, status, code):
    await refused(api, status, code, "GET", path)


async def test_a_wrong_method(api: Api):
    error = await refused(api, 405, "METHOD_NOT_ALLOWED", "GET", "/agents/claude/message")
    assert error["details"]["allow"] == ["POST"]


async def test_what_nobody_foresaw(api: Api, capsys):
    api.control.raises = RuntimeError("a secret inside")
    error = await refused(api, 500, "INTERNAL", "GET", "/agents")
    assert "secret" not in json.dumps(error)
    api.control.raises = StoreError("disk full")
    await refused(api, 503, "STORE_ERROR", "GET", "/agents")
    capsys.readouterr()  # the log of the first


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "message"),
        ({"message": {"parts": []}}, "message.parts"),
        ({"message": {"parts": [{"type": "text"}]}}, "message.parts.0.text"),
        ({"message": {"parts": [{"type": "text", "text": 5}]}}, "message.parts.0.text"),
        ({"message": {"parts": [{"type": "file", "file": {"size": 5}}]}}, "message.parts.0.file.size"),
        ({"message": {"parts": [{"type": "poem", "text": "x"}]}}, "message.parts.0"),
        ({"message": {"parts": [{"type": "text", "text": " \n"}]}}, "message.parts"),
        ({"message": {"role": "boss", "parts": [{"type": "text", "text": "x"}]}}, "message.role"),
        (SEND | {"priority": 6}, "priority"),
        (SEND | {"priority": "5"}, "priority"),
        (SEND | {"priority": True}, "priority"),
        (SEND | {"prioritty": 5}, "prioritty"),
        (SEND | {"metadata": []}, "metadata"),
        (SEND | {"context_id": ""}, "context_id"),
    ],
)
async def test_a_body_that_is_wrong(api: Api, body, field):
    error = await refused(api, 400, "INVALID_REQUEST", "POST", "/agents/claude/tasks/send", json=body)
    assert error["details"]["field"] == field
    assert error["message"].startswith(f"{field}: ")


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"not json",
        b'{"message": NaN}',
        b'{"message": 1e999}',
        b'{"message": "\\ud800"}',
        b'{"message": "\xff"}',
        b"[" * 100_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b"1" * 100_000,
        b"[]",
        b"null",
        b'"x"',
        b"\xef\xbb\xbf{}",
        b"\x00",
    ],
    ids=range(14),
)
async def test_what_is_no_json_object(api: Api, raw):
    await refused(api, 400, "INVALID_REQUEST", "POST", "/agents/claude/tasks/send", data=raw, headers=JSON)


@pytest.mark.parametrize(
    "query", ["?priority=0", "?priority=6", "?priority=x", "?priority=", "?priority=" + "9" * 5000]
)
async def test_a_query_that_is_wrong(api: Api, query):
    path = f"/agents/claude/tasks/send-priority{query}"
    error = await refused(api, 400, "INVALID_REQUEST", "POST", path, json=SEND)
    assert error["details"]["field"] == "priority"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", "", "x"]
)
async def test_a_wrong_content_type(api: Api, kind):
    options = {"data": json.dumps(SEND).encode(), "headers": {"Content-Type": kind}}
    await refused(api, 415, "UNSUPPORTED_MEDIA", "POST", "/agents/claude/tasks/send", **options)
    assert api.control.calls == []


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "application/a2a+json", "Application/JSON"])
async def test_right_content_types(api: Api, kind):
    async with api.http.post("/agents/claude/tasks/send", data=json.dumps(SEND), headers={"Content-Type": kind}) as got:
        assert got.status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "a@localhost", "localhost:x", "0.0.0.0"],
)
async def test_a_foreign_host(api: Api, host):
    await refused(api, 403, "FORBIDDEN", "POST", "/agents/claude/tasks/send", json=SEND, headers={"Host": host})
    assert api.control.calls == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8090", "[::1]", "[::1]:99"])
async def test_hosts_of_this_machine(api: Api, host):
    async with api.http.get("/healthz", headers={"Host": host}) as response:
        assert response.status == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:1", "https://localhost", "", "file://", "http://"]
)
async def test_a_foreign_origin(api: Api, origin):
    await refused(api, 403, "FORBIDDEN", "POST", "/agents/claude/tasks/send", json=SEND, headers={"Origin": origin})
    await refused(api, 403, "FORBIDDEN", "GET", "/agents", headers={"Origin": origin})


async def test_its_own_origin(api: Api):
    async with api.http.get("/agents", headers={"Origin": api.url}) as response:
        assert response.status == 200


def raw_request(port: int, head: str, body: bytes = b"") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.connect()
    connection.sock.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
    response = http.client.HTTPResponse(connection.sock)
    response.begin()
    answer = response.status, response.read()
    response.close()
    connection.close()
    return answer


@pytest.mark.parametrize(
    "head",
    [
        "GET /agents HTTP/1.1\nHost: localhost\nHost: evil.example",
        "GET /agents HTTP/1.1\nHost: localhost\nAuthorization: Bearer a\nAuthorization: Bearer b",
        "GET /agents HTTP/1.1\nHost: localhost\nOrigin: http://localhost\nOrigin: http://evil.example",
        "POST /agents/claude/message HTTP/1.1\nHost: localhost\nContent-Type: a/b\nContent-Type: c/d",
        "POST /agents/claude/message HTTP/1.1\nHost: localhost\nContent-Length: 2\nContent-Length: 3",
        "POST /agents/claude/message HTTP/1.1\nHost: localhost\nContent-Length: 2\nTransfer-Encoding: chunked",
        "GARBAGE",
    ],
    ids=range(7),
)
async def test_doubled_and_broken_heads(api: Api, head):
    status, body = await asyncio.to_thread(raw_request, api.port, head)
    assert status == 400, body
    assert b"Traceback" not in body
    assert (await api.json(api.http, "GET", "/healthz"))[0] == 200


async def test_no_host_at_all(api: Api):
    status, _ = await asyncio.to_thread(raw_request, api.port, "GET /agents HTTP/1.1")
    assert status in (400, 403)


@pytest.mark.parametrize("chunked", [False, True])
async def test_eleven_megabytes(api: Api, chunked):
    """The client gets to read the answer, however it sends."""
    text = "x" * (11 * 1024 * 1024)
    raw = json.dumps({"content": text}).encode()

    def post() -> tuple[int, dict]:
        connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=60)
        body = (raw[at : at + 65536] for at in range(0, len(raw), 65536)) if chunked else raw
        connection.request("POST", "/agents/claude/message", body, JSON, encode_chunked=chunked)
        response = connection.getresponse()
        answer = response.status, json.loads(response.read())
        connection.close()
        return answer

    status, body = await asyncio.to_thread(post)
    assert (status, body["error"]["code"]) == (413, "TOO_LARGE")
    assert api.control.calls == []
    assert (await api.json(api.http, "GET", "/healthz"))[0] == 200


async def test_nine_megabytes(api: Api):
    text = "x" * (9 * 1024 * 1024)
    raw = io.BytesIO(json.dumps({"content": text}).encode())
    status, body = await api.json(api.http, "POST", "/agents/claude/message", data=raw, headers=JSON)
    assert status == 200
    assert (await api.control.tasks.find(body["task_id"])).message.text == text


@pytest.mark.parametrize("value", ["Bearer wrong", "Bearer ", "Basic eDp5", TOKEN, "Bearer \u00e9"])
async def test_a_token_nobody_has(api: Api, value):
    await refused(api, 401, "UNAUTHORIZED", "GET", "/agents", headers={"Authorization": value})


async def test_more_streams_than_allowed(control, tmp_path):
    async with serving(control, tmp_path, streams=1) as api:
        async with api.http.get("/events?stream=sse") as response:
            assert response.status == 200
            error = await refused(api, 429, "QUEUE_FULL", "GET", "/events?stream=sse")
        assert error["details"] == {"limit": 1}


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="needs root to become somebody else")
@pytest.mark.parametrize("path", ["/agents", "/healthz", "/agents/claude/status"])
async def test_another_user(api: Api, path):
    code = (
        "import os, sys, http.client, encodings.idna\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))\n"
        "c.request('GET', sys.argv[2], headers={k: v for k, v in [a.split('=') for a in sys.argv[3:]]})\n"
        "r = c.getresponse(); print(r.status, r.read().decode())\n"
    )

    def run(*headers: str) -> str:
        command = [sys.executable, "-S", "-E", "-c", code, str(api.port), path, *headers]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd="/").stdout

    answer = await asyncio.to_thread(run)
    assert answer.startswith('403 {"error": {"code": "FORBIDDEN"')
    answer = await asyncio.to_thread(run, f"Authorization=Bearer {TOKEN}")
    assert answer.startswith("200 ")


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="needs root to become somebody else")
async def test_another_user_on_the_unix_socket(api: Api):
    """Refused by the file already; and by its credentials where the file were open."""
    code = (
        "import os, socket, sys\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "try: s.connect(sys.argv[1])\n"
        "except PermissionError: print('refused'); sys.exit()\n"
        "s.sendall(b'GET /agents HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n')\n"
        "print(s.makefile().read())\n"
    )

    def run() -> str:
        command = [sys.executable, "-S", "-E", "-c", code, str(api.path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd="/").stdout

    assert (await asyncio.to_thread(run)).strip() == "refused"
    for place in (api.path, *list(api.path.parents)[:3]):
        if place.stat().st_uid == 0:
            place.chmod(0o777)
    answer = await asyncio.to_thread(run)
    assert "refused" in answer or "403 Forbidden" in answer


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("limt=3", "limt: this path has no such parameter; it takes status, context_id, limit"),
        ("limit=3&limit=4", "limit: came more than once"),
        ("context_id=%00", "context_id: must be at most 4096 characters, none of them NUL, not '\\x00'"),
        ("limit=3.0", "limit: must be an integer from 1 to 500, not '3.0'"),
        ("status=done", "status: must be of submitted, working"),
    ],
)
async def test_parameters_that_are_not_taken(api: Api, query, told):
    status, answer = await api.json(api.http, "GET", f"/agents/claude/tasks?{query}")
    assert (status, answer["error"]["code"]) == (400, "INVALID_REQUEST")
    assert answer["error"]["message"].startswith(told)


@pytest.mark.parametrize("query", ["detail=maybe", "detail=2", "explain=on", "explain=", "explain", "detail=%C4%B0"])
async def test_flags_are_one_or_zero(api: Api, query):
    status, answer = await api.json(api.http, "GET", f"/agents/claude/status?{query}")
    assert (status, answer["error"]["details"]["expected"]) == (400, "1 or 0")


@pytest.mark.parametrize("word", ["1", "true", "True", "TRUE", "yes", "0", "false", "False", "no", "No"])
async def test_flags_are_as_programs_write_them_and_as_described(api: Api, word: str):
    status, answer = await api.json(api.http, "GET", f"/agents/claude/status?explain={word}")
    assert (status, "explain" in answer) == (200, word.lower() in {"1", "true", "yes"})
    described = next(one["schema"] for one in StatusQuery.parameters() if one["name"] == "explain")
    assert re.search(described["pattern"], word)
    assert re.search(described["pattern"], described["default"])


async def test_data_may_be_null_and_whole_numbers_written_with_a_point(api: Api):
    body = {"message": {"parts": [{"type": "data", "data": None}]}, "priority": 2.0}
    status, answer = await api.json(api.http, "POST", "/agents/claude/tasks/send", json=body)
    assert status == 200
    assert answer["task"]["message"]["parts"] == [{"type": "data", "data": None, "metadata": None}]
    assert answer["task"]["priority"] == 2


@pytest.mark.parametrize(
    "path",
    [
        "/healthz",
        "/nothing",
        "/agents/claude/status",
        "/agents/claude/screen",
        "/agents/nobody/status",
        "/openapi.json",
    ],
)
async def test_no_answer_is_taken_for_a_page_of_a_browser(api: Api, path):
    async with api.http.get(path) as response:
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]


async def test_no_stream_either(api: Api):
    async with api.http.get("/events", headers={"Accept": "text/event-stream"}) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        assert response.headers["X-Content-Type-Options"] == "nosniff"
