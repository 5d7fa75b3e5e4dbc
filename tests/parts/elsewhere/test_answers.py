"""What an agent elsewhere may answer, in every dialect: too much, nothing that is JSON, nothing that can be kept."""

import asyncio
import contextlib
import gzip
import json
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from aiohttp import web

from synapsed.documents.reading import KEYS_MAX, VALUES_MAX
from synapsed.model.task import Task, TaskState
from synapsed.parts.elsewhere import remote, synapse_a2a, synapse_a2a_json
from tests.parts.elsewhere.elsewhere import card_03, card_10
from tests.parts.elsewhere.here import Here
from tests.support.gated import one_each
from tests.support.listening import listening

TEXT = "the answer"
JSON = "application/json"
STREAM = "text/event-stream"


def rest_card(endpoint: str) -> dict[str, Any]:
    card = card_10(endpoint)
    card["supportedInterfaces"][0]["protocolBinding"] = "HTTP+JSON"
    return card


def seeds_card(endpoint: str) -> dict[str, Any]:
    return {"name": "far", "url": endpoint, "capabilities": {"streaming": False}}


def streaming_card(endpoint: str) -> dict[str, Any]:
    return {**seeds_card(endpoint), "capabilities": {"streaming": True}}


def result(task: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": task}


def of_10(artifact: dict[str, Any]) -> dict[str, Any]:
    status = {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-01-01T00:00:00Z"}
    return {"task": {"id": "t", "contextId": "c", "status": status, "artifacts": [{"artifactId": "a", **artifact}]}}


def of_03(artifact: dict[str, Any]) -> dict[str, Any]:
    parts = [{"kind": "text" if "text" in part else "data", **part} for part in artifact["parts"]]
    task = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}}
    return {**task, "artifacts": [{"artifactId": "a", "parts": parts}]}


def of_seeds(artifact: dict[str, Any]) -> dict[str, Any]:
    parts = [{"type": "text" if "text" in part else "data", **part} for part in artifact["parts"]]
    return {"task": {"id": "t", "status": "completed", "artifacts": [{"type": "text", "parts": parts}]}}


def done(task: dict[str, Any]) -> dict[str, Any]:
    return {**task, "type": "done", "taskId": task["id"]}


DIALECTS: dict[str, tuple[Callable[[str], dict[str, Any]], Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "JSON-RPC": (card_10, lambda artifact: result(of_10(artifact))),
    "HTTP+JSON": (rest_card, of_10),
    "0.3": (card_03, lambda artifact: result(of_03(artifact))),
    "seeds": (seeds_card, of_seeds),
    "seeds' streams": (streaming_card, lambda artifact: done(of_seeds(artifact)["task"])),
}
STREAMED = ("0.3", "seeds' streams")


class Far:
    """Answers whatever it is sent with `body`, as a stream of one event where the dialect streams."""

    def __init__(self, dialect: str) -> None:
        self._card, self.task = DIALECTS[dialect]
        self.body = b""
        self.headers: dict[str, str] = {}
        self.streams = dialect in STREAMED
        self.asked: list[str] = []
        self.url = ""

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/.well-known/agent-card.json", self._tell)
        app.router.add_route("OPTIONS", "/tasks/send", self._allow)
        app.router.add_route("*", "/{tail:.*}", self._answer)
        return app

    async def _tell(self, request: web.Request) -> web.Response:
        return web.json_response(self._card(self.url))

    async def _allow(self, request: web.Request) -> web.Response:
        return web.Response(headers={"Allow": "POST"})

    async def _answer(self, request: web.Request) -> web.Response:
        if request.method == "GET" and not self.asked:
            return web.Response(status=404)
        self.asked.append(request.headers.get("Accept-Encoding", ""))
        streams = self.streams and request.method == "POST"
        body = b"data: %b\n\n" % self.body if streams else self.body
        return web.Response(
            body=body if not self.headers else gzip.compress(body),
            content_type=STREAM if streams else JSON,
            headers=self.headers,
        )


@contextlib.asynccontextmanager
async def answering(dialect: str, here: Here) -> AsyncGenerator[Far]:
    far = Far(dialect)
    async with listening(far.app()) as port:
        far.url = f"http://127.0.0.1:{port}"
        await here.externals.discover(far.url, "far", headers=None)
        yield far


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch):
    """A message whose answer could not be read is looked for once only."""
    monkeypatch.setattr(synapse_a2a, "LATE_S", (0.0,))


@pytest.fixture(params=DIALECTS)
async def far(request: pytest.FixtureRequest, here: Here):
    async with answering(request.param, here) as far:
        yield far


async def failed(here: Here) -> str:
    """Why."""
    task = await here.over(await here.send("hi"))
    assert task.error is not None, task
    assert task.status is TaskState.FAILED
    return task.error.message


async def said(far: Far, here: Here, part: dict[str, Any]) -> Task:
    far.body = json.dumps(far.task({"parts": [part]})).encode()
    return await here.over(await here.send("hi"))


async def test_an_answer_is_read(far: Far, here: Here):
    assert (await said(far, here, {"text": TEXT})).answer == TEXT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({str(number): 0 for number in range(KEYS_MAX)}, f"more than {KEYS_MAX} keys"),
        ([0] * VALUES_MAX, f"more than {VALUES_MAX} values"),
        ([{}] * VALUES_MAX, f"more than {VALUES_MAX} values"),
    ],
    ids=["keys", "values", "objects"],
)
async def test_more_values_than_a_request_may_have_are_refused_unread(far: Far, here: Here, data: Any, words: str):
    task = await said(far, here, {"data": {"it": data}})
    assert task.error is not None
    assert words in task.error.message


async def test_text_has_as_many_commas_and_colons_as_it_likes(far: Far, here: Here):
    text = 'so: "it", [is], {as}, \\ it, is,\n\r\n\n' * (VALUES_MAX // 4)
    assert (await said(far, here, {"text": text})).answer == text


async def test_what_is_compressed_is_not_unpacked(far: Far, here: Here):
    """A kilobyte of it is a megabyte."""
    far.body = json.dumps(far.task({"parts": [{"text": "x" * 1_000_000}]})).encode()
    far.headers = {"Content-Encoding": "gzip"}
    assert "compressed" in await failed(here)
    assert set(far.asked) == {"identity"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    one_each([b"", b"[" * 100_000, b"null", b"{", b'{"a":' * 100_000, b"\xff", b"[]", b"0", b'"task"'], kind=len),
    ids=["nothing", "deep list", "null", "half", "deep object", "bytes", "list", "number", "text"],
)
async def test_what_is_no_answer_is_an_error(far: Far, here: Here, body: bytes):
    far.body = body
    why = await failed(here)
    assert "far" in why or far.url in why


async def test_half_a_character_is_no_text(far: Far, here: Here):
    """JSON can name a half of a surrogate pair; no file and no terminal can take it."""
    task = await said(far, here, {"text": "\ud800"})
    assert task.error is not None
    assert far.url in task.error.message


async def test_a_large_task_of_the_seeds_is_made_beside_the_loop(here: Here, monkeypatch: pytest.MonkeyPatch):
    made: list[threading.Thread] = []
    artifact_of = synapse_a2a_json.artifact_of

    def noted(told: Any, number: int) -> Any:
        made.append(threading.current_thread())
        return artifact_of(told, number)

    monkeypatch.setattr(synapse_a2a_json, "artifact_of", noted)
    async with answering("seeds", here) as far:
        await said(far, here, {"text": "x" * 100_000})
        assert made
        assert threading.main_thread() not in made


@pytest.mark.parametrize("dialect", ["JSON-RPC", "HTTP+JSON", "0.3"])
async def test_tasks_of_a2a_are_made_beside_the_loop(here: Here, monkeypatch: pytest.MonkeyPatch, dialect: str):
    """Where the SDK has made its own types of them: that takes longest."""
    made: list[threading.Thread] = []

    def noting(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def noted(told: Any) -> Any:
            made.append(threading.current_thread())
            return make(told)

        return noted

    for name in ("snapshot_of", "update_of"):
        monkeypatch.setattr(remote, name, noting(getattr(remote, name)))
    async with answering(dialect, here) as far:
        assert (await said(far, here, {"text": TEXT})).answer == TEXT
    assert made
    assert threading.main_thread() not in made


def test_a_task_of_the_seeds_has_not_thousands_of_artifacts():
    task = {"id": "t", "status": "completed", "artifacts": [{"parts": [0]}] * (synapse_a2a_json.PIECES_MAX // 2)}
    assert len(synapse_a2a_json.snapshot_of(task).artifacts or ()) == synapse_a2a_json.PIECES_MAX // 2
    with pytest.raises(ValueError, match=f"more than {synapse_a2a_json.PIECES_MAX} artifacts"):
        synapse_a2a_json.snapshot_of({**task, "artifacts": [*task["artifacts"], 0]})
    piece = {"taskId": "t", "artifact": {"parts": [0] * (synapse_a2a_json.PIECES_MAX + 1)}}
    with pytest.raises(ValueError, match=f"more than {synapse_a2a_json.PIECES_MAX} parts"):
        synapse_a2a_json.event_of("artifact", piece, "t")


async def test_a_fault_of_our_own_ends_the_task_too(here: Here, monkeypatch: pytest.MonkeyPatch):
    """On the way of those who send by a stream: nobody waits for ever."""

    def faulty(update: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(remote, "update_of", faulty)
    async with answering("0.3", here) as far:
        task = await said(far, here, {"text": TEXT})
    assert task.error is not None
    assert task.error.message == "the daemon failed on the way; its log says why"


async def test_others_have_the_loop_while_a_large_answer_is_read(here: Here):
    """Nobody is kept waiting for the whole of it."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with answering("seeds", here) as far:
        beside = asyncio.create_task(others())
        text = "x" * 8_000_000
        try:
            assert (await said(far, here, {"text": text})).answer == text
        finally:
            beside.cancel()
    assert turns > len(text) // 65536
