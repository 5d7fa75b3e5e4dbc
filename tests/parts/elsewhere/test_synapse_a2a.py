"""Agents elsewhere that speak as synapse-a2a does: found out, written to, followed, answered, never twice."""

import asyncio

import pytest
from aiohttp import web

from synapsed.errors import CardChanged, CardInvalid, NotReady, RemoteRefused, Unreachable
from synapsed.model.events import TaskArtifactAdded
from synapsed.model.external import KEY
from synapsed.model.task import Message, Task, TaskState
from synapsed.parts.elsewhere import courier, synapse_a2a
from synapsed.parts.elsewhere.courier import CONNECT_TRIES
from synapsed.parts.elsewhere.external_agent import SEEDS
from tests.parts.elsewhere.here import Here
from tests.parts.elsewhere.seedlike import KINDS, Seedlike, seedlike
from tests.support.listening import listening
from tests.support.ports import free_port

SECRET = "s3cr3t-of-the-tests"


@pytest.fixture(params=KINDS)
async def far(request, here: Here):
    async with seedlike(request.param) as place:
        added = await here.externals.discover(place.url, "far", headers=None)
        assert (added.binding, added.endpoint, added.protocol_version) == (SEEDS, place.url, "")
        place.seen.clear()
        yield place


only = pytest.mark.parametrize


def posted(far: Seedlike) -> list[str]:
    return [line for line in far.seen if line.startswith("POST /tasks/send")]


# --- tasks -----------------------------------------------------------------------------------------------------------


async def test_a_message_and_its_answer(far: Seedlike, here: Here):
    metadata = {"sender": {"sender_id": "synapse-x-8999", "sender_endpoint": "http://localhost:8999"}}
    task = await here.over(await here.send("看て", metadata=metadata))
    assert (task.status, task.answer, task.error) == (TaskState.COMPLETED, "echo: 看て", None)
    assert task.exact is (far.kind != "real"), "synapse-a2a reads it off the screen"
    (body,) = far.bodies
    assert body["message"]["parts"] == [{"type": "text", "text": "看て"}]
    assert body["metadata"]["sender"] == {"sender_id": "synapse-x-8999"}
    assert body["metadata"]["response_mode"] == "silent"
    assert task.metadata[KEY]["task_id"] in far.tasks


async def test_it_is_followed_to_its_end(far: Seedlike, here: Here):
    far.answer = None
    task = await here.send("hi")
    there = await here.there(task)
    await here.until(task, lambda now: now.status is TaskState.WORKING)
    far.become(there, status="completed", artifacts=[far.output("late")])
    assert (await here.over(task)).answer == "late"
    assert len(far.bodies) == 1


@only("far", ["documents"], indirect=True)
async def test_what_it_says_meanwhile_is_told_once(far: Seedlike, here: Here):
    far.answer = None
    task = await here.send("hi")
    there = await here.there(task)

    def told() -> str:
        added = [event.data for event in here.store.events.all if isinstance(event.data, TaskArtifactAdded)]
        return "".join(data.artifact.text for data in added if not data.artifact.is_block)

    for said in ("one, ", "one, two, "):
        far.become(there, said=said)
        await here.until(task, lambda now, said=said: told() == said)
    far.become(there, status="completed", artifacts=[far.output("one, two, three")])
    assert (await here.over(task)).answer == "one, two, three" == told()
    assert posted(far) == ["POST /tasks/sendSubscribe"]


async def test_its_failure_is_ours(far: Seedlike, here: Here):
    error = {"code": "RATE_LIMITED", "message": "come back at nine"}
    far.answer = {"status": "failed", "error": error, "artifacts": []}
    task = await here.over(await here.send("hi"))
    assert task.error is not None
    assert (task.status, task.error.code, task.error.message) == (TaskState.FAILED, *error.values())


@only(
    ("far", "asks"),
    [
        ("documents", {"prompt": {"type": "selection", "prompt": "Which one?", "options": ["1", "2"], "default": "1"}}),
        ("documents", {"status": {"state": "input_required", "message": {"type": "text", "prompt": "Which one?"}}}),
        ("real", {"metadata": {"permission": {"pty_context": "Which one? (y/n)"}}}),
    ],
    indirect=["far"],
)
async def test_it_asks_and_is_answered(far: Seedlike, here: Here, asks: dict):
    far.answer = None
    task = await here.send("hi")
    far.become(await here.there(task), **{"status": "input_required", **asks})
    task = await here.until(task, lambda now: now.status is TaskState.INPUT_REQUIRED)
    assert task.prompt is not None
    assert task.prompt.prompt.startswith("Which one?")
    keys = [option.key for option in task.prompt.options]
    assert keys == {"real": ["approve", "deny"]}.get(far.kind, ["1", "2"] if "prompt" in asks else [])
    if far.kind == "real":
        with pytest.raises(RemoteRefused, match="'approve' or 'deny'"):
            await here.externals.answer(task, Message.of("blue"), task.prompt.prompt_id)
    answered = await here.externals.answer(task, Message.of("yes"), task.prompt.prompt_id)
    assert answered.answer == ("you said approve" if far.kind == "real" else "you said yes")


async def test_cancel(far: Seedlike, here: Here):
    far.answer = None
    task = await here.send("hi")
    there = await here.there(task)
    if far.kind == "bare":
        with pytest.raises(RemoteRefused):
            await here.externals.cancel(await here.task(task))
        return
    assert (await here.externals.cancel(await here.task(task))).status is TaskState.CANCELED
    assert far.tasks[there]["status"] == "canceled"


async def test_priority(far: Seedlike, here: Here):
    assert (await here.over(await here.send("now", priority=5))).answer == "echo: now"
    expected = ["POST /tasks/send"] if far.kind == "bare" else ["POST /tasks/send-priority?priority=5"]
    assert posted(far)[-1:] == expected
    assert len(far.bodies) == 1


async def test_a_task_that_is_gone_there_fails(far: Seedlike, here: Here):
    far.answer = None
    task = await here.send("hi")
    await here.there(task)
    far.tasks.clear()
    await here.restarted()
    task = await here.over(task)
    assert task.error is not None
    assert task.error.code == "AGENT_EXITED"


# --- never twice -----------------------------------------------------------------------------------------------------


async def test_while_it_is_busy_the_message_waits(far: Seedlike, here: Here, monkeypatch: pytest.MonkeyPatch):
    """synapse-a2a takes one message at a time: another is refused with 409 and `Retry-After`."""
    monkeypatch.setattr(courier, "FIRST_PAUSE_S", 0.01)
    busy = {"status": 409, "headers": {"Retry-After": "0"}, "text": "Agent already has a working task"}
    far.refuse = [web.Response(**busy) for _ in range(2 * CONNECT_TRIES)]
    assert (await here.over(await here.send("hi"))).answer == "echo: hi"
    assert far.refuse == []
    assert len(far.bodies) == 1


async def test_what_waits_for_a_busy_agent_can_be_canceled(far: Seedlike, here: Here):
    far.refuse = [web.Response(status=503, headers={"Retry-After": "60"}, text="initializing") for _ in range(99)]
    task = await here.send("hi")
    await here.until(task, lambda now: now.metadata.get(KEY, {}).get("sending") is False)
    assert (await here.externals.cancel(await here.task(task))).status is TaskState.CANCELED
    assert (await here.over(task)).status is TaskState.CANCELED
    assert far.bodies == []


async def test_what_it_refused_is_sent_by_the_next_daemon(far: Seedlike, here: Here):
    far.refuse = [web.Response(status=429, headers={"Retry-After": "60"}) for _ in range(99)]
    task = await here.send("hi")
    await here.until(task, lambda now: now.metadata.get(KEY, {}).get("sending") is False)
    far.refuse = []
    await here.restarted()
    assert (await here.over(task)).answer == "echo: hi"
    assert len(far.bodies) == 1


async def test_an_answer_that_was_lost_is_looked_for_and_nothing_sent_again(far: Seedlike, here: Here):
    far.cut, far.answer = True, None
    task = await here.send("once")
    if far.kind == "bare":  # it has no list
        task = await here.over(task)
        assert task.error is not None
        assert (task.error.code, "not sent again" in task.error.message) == ("UNDELIVERED", True)
    else:
        there = await here.there(task)
        far.become(there, status="completed", artifacts=[far.output("found")])
        assert (await here.over(task)).answer == "found"
    assert len(far.bodies) == 1


@only("far", ["documents", "real"], indirect=True)
async def test_a_message_that_arrives_late_is_found(far: Seedlike, here: Here, monkeypatch):
    monkeypatch.setattr(synapse_a2a, "LATE_S", [0.0] + [0.01] * 1000)
    task = await cut_off(here)
    await here.restarted()
    while far.seen.count("GET /tasks") < 3:
        await asyncio.sleep(0.01)
    far.make(synapse_a2a.body_of(task.message, {}))
    assert (await here.over(task)).answer == "echo: once"


@only("far", ["documents", "real"], indirect=True)
async def test_what_is_in_no_list_may_have_arrived_and_is_not_sent_again(far: Seedlike, here: Here, monkeypatch):
    monkeypatch.setattr(synapse_a2a, "LATE_S", [0.0, 0.01])
    task = await cut_off(here)
    await here.restarted()
    task = await here.over(task)
    assert task.error is not None
    assert (task.error.code, "not sent again" in task.error.message) == ("UNDELIVERED", True)
    assert posted(far) == []


@only("far", ["bare", "real"], indirect=True)
@only("refusal", [{"status": 400, "text": "No text content"}, {"status": 500, "text": "agent process not running"}])
async def test_a_refusal_is_the_tasks_failure(far: Seedlike, here: Here, refusal: dict):
    far.refuse = [web.Response(**refusal)]
    task = await here.over(await here.send("hi"))
    assert task.error is not None
    assert (task.error.code, refusal["text"] in task.error.message) == ("UNDELIVERED", True)


async def test_credentials_that_it_refuses(far: Seedlike, here: Here):
    far.refuse = [web.Response(status=401)]
    task = await here.over(await here.send("hi"))
    assert task.error is not None
    assert task.error.code == "AUTH_REQUIRED"


async def test_redirects_are_not_followed(far: Seedlike, here: Here):
    far.refuse = [web.Response(status=307, headers={"Location": "http://169.254.169.254/"})]
    task = await here.over(await here.send("hi"))
    assert task.error is not None
    assert (task.error.code, "307" in task.error.message) == ("UNDELIVERED", True)


async def test_an_answer_without_bounds_is_cut_off(far: Seedlike, here: Here, monkeypatch):
    from synapsed.parts.elsewhere import remote_protocol

    far.answer = None
    task = await here.send("hi")
    there = await here.there(task)
    monkeypatch.setattr(remote_protocol, "ANSWER_BYTES", 10_000)
    far.become(there, status="completed", artifacts=[far.output("x" * 20_000)])
    task = await here.over(task)
    assert task.error is not None
    assert (task.error.code, "more than 10000 bytes" in task.error.message) == ("MODEL_ERROR", True)


async def cut_off(here: Here) -> Task:
    """A task of a daemon that was killed in the middle of a send."""
    now = "2026-01-01T00:00:00Z"
    task = Task(
        agent_id="external:far",
        message=Message.of("once"),
        metadata={KEY: {"alias": "far", "sending": True}},
        created_at=now,
        updated_at=now,
    )
    await here.store.commit(tasks=[task])
    return task


# --- found out -------------------------------------------------------------------------------------------------------


async def test_it_is_looked_at_again_before_a_send(far: Seedlike, here: Here):
    await here.restarted()
    assert (await here.over(await here.send("hi"))).answer == "echo: hi"
    assert far.seen[0].startswith("GET /.well-known/agent")
    assert len(posted(far)) == len([line for line in far.seen if line.startswith("POST")]), "and nothing else is posted"


@only("far", ["real"], indirect=True)
async def test_another_agent_in_its_place_is_refused(far: Seedlike, here: Here):
    for name in ("somebody else", None):
        far.card = None if name is None else {**(far.card or {}), "name": name}
        await here.restarted()
        with pytest.raises(CardChanged, match="add it again"):
            await here.send("hi")
    assert far.bodies == []


@only("far", ["real"], indirect=True)
async def test_one_that_was_added_as_an_a2a_agent_is_found_out(far: Seedlike, here: Here):
    """As an earlier version did, for which a card without interfaces was one of 0.3."""
    taken_for = here.externals.view("far").model_copy(update={"binding": "JSONRPC", "protocol_version": "0.3"})
    here.book.save(taken_for)
    await here.restarted()
    assert (await here.over(await here.send("hi"))).answer == "echo: hi"
    assert here.externals.view("far").binding == SEEDS
    await here.restarted()
    assert here.externals.view("far").binding == SEEDS, "it is remembered"


@only("far", ["real"], indirect=True)
async def test_one_that_speaks_a2a_by_now_is_found_out(far: Seedlike, here: Here):
    far.card = {
        **(far.card or {}),
        "url": f"{far.url}/a2a",
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
    }
    await here.restarted()
    task = await here.over(await here.send("hi"))
    assert here.externals.view("far").binding == "JSONRPC"
    assert task.error is not None, "the fake has nothing there"
    assert far.seen[-1] == "POST /a2a"


async def test_credentials_go_along_and_to_it_alone(here: Here):
    async with seedlike("real") as far:
        await here.externals.discover(far.url, "far", headers={"X-Key": SECRET})
        await here.over(await here.send("hi"))
        assert all(headers.get("X-Key") == SECRET for headers in far.headers)
        far.card = {**(far.card or {}), "url": "http://elsewhere.example"}
        assert (await here.externals.discover(far.url, "far", headers=None)).endpoint == far.url


@only("status", [401, 403])
async def test_one_that_lets_nobody_in(here: Here, status: int):
    async def closed(request: web.Request) -> web.Response:
        return web.Response(status=404 if "well-known" in request.path else status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", closed)
    async with listening(app) as port:
        with pytest.raises(CardInvalid, match="credentials are missing"):
            await here.externals.discover(f"http://127.0.0.1:{port}", "far", headers=None)


async def test_a_server_that_is_none_is_none(here: Here):
    """It answers everything alike: a page, or an error of its own."""
    for answer in (web.Response(text="<html>"), web.json_response({"error": "no"}, status=400)):

        async def always(request: web.Request, answer=answer) -> web.Response:
            if "well-known" in request.path:
                return web.Response(status=404)
            return web.Response(body=answer.body, status=answer.status, content_type=answer.content_type)

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", always)
        async with listening(app) as port:
            with pytest.raises(CardInvalid, match="no agent that speaks as synapse-a2a does"):
                await here.externals.discover(f"http://127.0.0.1:{port}", "far", headers=None)


async def test_the_plainest_server_is_found_out(here: Here):
    """One that knows neither OPTIONS nor a word for a task that is not there."""
    tasks = {}

    async def serve(request: web.Request) -> web.Response:
        if request.method == "POST" and request.path == "/tasks/send":
            text = (await request.json())["message"]["parts"][0]["text"]
            tasks["1"] = {"id": "1", "status": "completed", "artifacts": [{"type": "text", "data": f"plain: {text}"}]}
            return web.json_response(tasks["1"])
        if request.method == "GET" and request.path == "/tasks/1":
            return web.json_response(tasks["1"])
        return web.Response(status=501 if request.method == "OPTIONS" else 404)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", serve)
    async with listening(app) as port:
        added = await here.externals.discover(f"http://127.0.0.1:{port}", "far", headers=None)
        assert (added.binding, added.name) == (SEEDS, f"127.0.0.1:{port}")
        assert tasks == {}
        assert (await here.over(await here.send("hi"))).answer == "plain: hi"


async def test_one_that_went_away_is_told_before_there_is_a_task(here: Here):
    async with seedlike("real") as far:
        await here.externals.discover(far.url, "far", headers=None)
    await here.restarted()
    with pytest.raises(Unreachable):
        await here.send("hi")
    assert not here.store._tasks


async def test_what_was_never_sent_is_sent_by_the_next_daemon(here: Here):
    """Nobody listened: that much is certain."""
    async with seedlike("real") as far:
        await here.externals.discover(far.url, "far", headers=None)
        gone = here.externals.view("far").model_copy(update={"endpoint": f"http://127.0.0.1:{free_port()}"})
        here.externals._agents["far"] = gone
        task = await here.send("hi")
        await here.until(task, lambda now: now.metadata.get(KEY, {}).get("sending") is False)
        here.book.save(gone.model_copy(update={"endpoint": far.url}))
        await here.restarted()
        assert (await here.over(task)).answer == "echo: hi"
        assert len(far.bodies) == 1


async def test_on_its_way_it_cannot_be_canceled(here: Here):
    async with seedlike("bare") as far:
        await here.externals.discover(far.url, "far", headers=None)
        far.cut = True
        task = await cut_off(here)
        with pytest.raises(NotReady):
            await here.externals.cancel(task)
