"""External agents: found by their cards, written to in 1.0 and 0.3, followed to the end, over restarts too."""

import asyncio
import contextlib
import json
import stat
import threading
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from a2a.client.card_resolver import parse_agent_card

from synapsed.a2a_types.partial_answer import Snapshot
from synapsed.documents.reading import read
from synapsed.errors import (
    CardChanged,
    CardInvalid,
    ConfigError,
    InvalidRequest,
    NameTaken,
    NotWaiting,
    PromptChanged,
    RemoteRefused,
    StoreError,
    SynapsedError,
    TaskNotCancelable,
    UnknownAgent,
    Unreachable,
)
from synapsed.interfaces import SendRequest
from synapsed.model.events import TaskArtifactAdded, TaskStatusChanged
from synapsed.model.external import KEY
from synapsed.model.task import DataPart, Message, Prompt, Task, TaskState
from synapsed.parts.elsewhere import discovery
from synapsed.parts.elsewhere.remote import Remote
from tests.api.serving import Api
from tests.fakes.control import hold
from tests.parts.elsewhere.elsewhere import Elsewhere, card_03, card_10, elsewhere
from tests.parts.elsewhere.here import PATIENCE_S, Here
from tests.support.ports import free_port

CARDS = {"1.0": card_10, "0.3": card_03}
SECRET = "s3cr3t-of-the-tests"


@pytest.fixture(params=CARDS)
async def far(request, api: Api, here: Here) -> AsyncGenerator[Elsewhere]:
    """The agent `claude` of `api`, added as `far`."""
    async with elsewhere(CARDS[request.param](f"http://127.0.0.1:{api.agent_port}/a2a")) as place:
        added = await here.externals.discover(place.url, "far", headers=None)
        assert added.protocol_version.startswith(request.param)
        yield place


# --- tasks -----------------------------------------------------------------------------------------------------------


async def test_a_message_and_its_answer(far, here: Here, api: Api):
    metadata = {"sender": {"sender_id": "synapse-x-8999", "sender_endpoint": "http://localhost:8999"}, "k": 1}
    task = await here.send("看て", metadata=metadata, priority=3)
    assert (task.agent_id, task.status) == ("external:far", TaskState.SUBMITTED)
    task = await here.over(task)
    assert (task.status, task.answer, task.error) == (TaskState.COMPLETED, "echo: 看て", None)
    theirs = await api.control.tasks.find(task.metadata[KEY]["task_id"])
    assert theirs.message.text == "看て"
    assert theirs.message.message_id == task.message.message_id
    told = json.dumps(theirs.model_dump(mode="json"))
    assert "synapse-x-8999" in told
    assert "http://localhost:8999" not in told
    states = [event.data.state for event in here.store.events.all if isinstance(event.data, TaskStatusChanged)]
    assert states[0] is TaskState.SUBMITTED
    assert states[-1] is TaskState.COMPLETED


async def test_what_it_says_meanwhile_is_told(far, here: Here, api: Api):
    api.control.script = hold
    task = await here.send("hi")
    there = await here.there(task)
    await api.streams(1)
    await api.control.work(there)
    await here.until(task, lambda now: now.status is TaskState.WORKING)

    async def said() -> bool:
        return any(
            isinstance(event.data, TaskArtifactAdded) and "half" in event.data.artifact.text
            for event in here.store.events.all
        )

    async with asyncio.timeout(PATIENCE_S):
        while not await said():
            await api.control.say(there, "half", append=False)
            await asyncio.sleep(0.05)
    await api.control.complete(there, "whole")
    task = await here.over(task)
    assert task.answer == "whole"


async def test_it_asks_and_is_answered(far, here: Here, api: Api):
    api.control.script = hold
    task = await here.send("hi")
    there = await here.there(task)
    await api.control.ask(there, Prompt(prompt_id="p1", type="question", prompt="Which colour?"))
    task = await here.until(task, lambda now: now.status is TaskState.INPUT_REQUIRED)
    assert task.prompt is not None
    assert "colour" in task.prompt.prompt
    with pytest.raises(PromptChanged):
        await here.externals.answer(task, Message.of("blue"), "another")
    await here.externals.answer(task, Message.of("blue"), task.prompt.prompt_id)
    task = await here.over(task)
    assert task.status is TaskState.COMPLETED
    with pytest.raises(NotWaiting):
        await here.externals.answer(task, Message.of("blue"))


async def test_an_answer_is_not_for_what_is_asked_there_by_then(far, here: Here, api: Api):
    """Somebody there was faster: a yes to one command is no answer to the next."""
    api.control.script = hold
    task = await here.send("hi")
    there = await here.there(task)
    await api.control.ask(there, Prompt(prompt_id="p1", type="permission", prompt="Run ls?"))
    task = await here.until(task, lambda now: now.status is TaskState.INPUT_REQUIRED)
    asked = (await api.control.tasks.find(there)).model_copy(
        update={"prompt": Prompt(prompt_id="p2", type="permission", prompt="Run rm?")}
    )
    await api.control.store.commit(tasks=[asked])  # and nobody has been told of it yet
    with pytest.raises(RemoteRefused, match="another"):
        await here.externals.answer(task, Message.of("yes"))
    assert (await api.control.tasks.find(there)).status is TaskState.INPUT_REQUIRED


async def test_a_stream_begins_with_where_the_task_is(far, here: Here, api: Api):
    api.control.script = hold
    there = await here.there(await here.send("hi"))
    await api.control.ask(there, Prompt(prompt_id="p1", type="question", prompt="Which colour?"))
    async with contextlib.aclosing((await here.externals.remote("far")).follow(there)) as stream:
        told = await anext(stream)
    assert isinstance(told, Snapshot)
    assert told.state is TaskState.INPUT_REQUIRED


async def test_of_two_connections_that_are_made_at_once_one_is_closed(far, here: Here, monkeypatch):
    closed = []
    close = Remote.close

    async def noted(self: Remote) -> None:
        closed.append(self)
        await close(self)

    monkeypatch.setattr(Remote, "close", noted)
    one, other = await asyncio.gather(here.externals.remote("far"), here.externals.remote("far"))
    assert one is other
    assert [each is one for each in closed] == [False]


async def test_a_stream_that_is_not_heard_to_its_end_is_closed(far, here: Here, api: Api, monkeypatch):
    streams = []

    def noted(method):
        def stream(*args, **options):
            streams.append(method(*args, **options))
            return streams[-1]

        return stream

    monkeypatch.setattr(Remote, "follow", noted(Remote.follow))
    monkeypatch.setattr(Remote, "stream", noted(Remote.stream))
    api.control.script = hold
    task = await here.send("hi")
    there = await here.there(task)
    await api.streams(1)
    await api.control.complete(there, "done")
    await here.over(task)
    assert streams
    assert all(stream.ag_frame is None for stream in streams)


async def test_cancel(far, here: Here, api: Api):
    api.control.script = hold
    task = await here.send("hi")
    there = await here.there(task)
    canceled = await here.externals.cancel(await here.task(task))
    assert canceled.status is TaskState.CANCELED
    assert (await api.control.tasks.find(there)).status is TaskState.CANCELED
    assert (await here.over(task)).status is TaskState.CANCELED
    with pytest.raises(TaskNotCancelable):
        await here.externals.cancel(await here.task(task))


async def test_its_failure_is_ours(far, here: Here, api: Api):
    api.control.script = hold
    task = await here.send("hi")
    await api.control.fail(await here.there(task), "CONTEXT_FULL", "the conversation is too long")
    task = await here.over(task)
    assert task.error is not None
    assert (task.status, task.error.code) == (TaskState.FAILED, "CONTEXT_FULL")
    assert task.error.message == "the conversation is too long"


async def test_a_restart_goes_on_with_what_is_followed(far, here: Here, api: Api):
    api.control.script = hold
    task = await here.send("hi")
    there = await here.there(task)
    await here.restarted()
    await api.control.complete(there, "late")
    assert (await here.over(task)).answer == "late"
    assert len(api.control.store._tasks) == 1


async def test_what_is_sent_before_the_daemon_goes_on_has_one_courier(far, here: Here, api: Api):
    """Requests are answered while the agents are adopted; only then it goes on with what was under way."""
    api.control.script = hold
    await here.restarted(resume=False)
    task = await here.send("x")
    await here.externals.resume()
    assert [one.get_name() for one in asyncio.all_tasks()].count(f"external {task.id}") == 1
    await api.control.complete(await here.there(task), "once")
    assert (await here.over(task)).answer == "once"
    assert len(api.control.store._tasks) == 1


async def test_how_far_a_message_has_come_no_client_says(far, here: Here, api: Api):
    told = {"task_id": "0" * 36, "context_id": "c", "via": "fleet"}
    task = await here.over(await here.send("x", metadata={KEY: told}))
    assert (task.status, task.answer) == (TaskState.COMPLETED, "echo: x")
    assert task.metadata[KEY]["task_id"] != told["task_id"]


async def test_a_task_that_is_gone_there_fails(far, here: Here, api: Api):
    api.control.script = hold
    task = await here.send("hi")
    await here.there(task)
    api.control.store._tasks.clear()
    await here.restarted()
    task = await here.over(task)
    assert task.error is not None
    assert task.error.code == "AGENT_EXITED"


# --- cut off while it was on its way ---------------------------------------------------------------------------------


async def cut_off(here: Here, *, sent: bool) -> Task:
    """A task of a daemon that was killed in the middle of a send."""
    from synapsed.clock import iso

    now = iso(1_700_000_000)
    task = Task(
        agent_id="external:far",
        message=Message.of("once"),
        metadata={KEY: {"alias": "far", "sending": True}} if sent else {},
        created_at=now,
        updated_at=now,
    )
    await here.store.commit(tasks=[task])
    return task


@pytest.mark.parametrize("far", ["1.0"], indirect=True)
async def test_what_arrived_is_found_and_not_sent_again(far, here: Here, api: Api):
    task = await cut_off(here, sent=True)
    await api.control.tasks.send("synapse-claude-8100", SendRequest(message=task.message))
    await here.restarted()
    assert (await here.over(task)).answer == "echo: once"
    assert len(api.control.store._tasks) == 1


@pytest.mark.parametrize("far", ["1.0"], indirect=True)
async def test_what_never_arrived_is_sent(far, here: Here, api: Api):
    for sent in (True, False):
        task = await cut_off(here, sent=sent)
        await here.restarted()
        assert (await here.over(task)).answer == "echo: once"
    assert len(api.control.store._tasks) == 2


@pytest.mark.parametrize("far", ["0.3"], indirect=True)
async def test_where_nobody_can_tell_it_fails_and_is_not_sent_again(far, here: Here, api: Api):
    task = await cut_off(here, sent=True)
    await here.restarted()
    task = await here.over(task)
    assert task.error is not None
    assert task.error.code == "UNDELIVERED"
    assert "not sent again" in task.error.message
    assert not api.control.store._tasks


# --- cards -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://x", "http"),
        ("nonsense", "http"),
        ("http://user:pw@x/", "no user"),
        ("http://x/?q=1", "no user"),
        ("http://[", "url"),
        ("http://x:99999/", "url"),
        ("http://x/\x7f", "url"),
        (f"http://{'x' * 70_000}/", "url"),
    ],
)
async def test_addresses_that_are_none(here: Here, url, why):
    with pytest.raises(InvalidRequest, match=why):
        await here.externals.discover(url, "far", headers=None)


async def test_credentials_never_go_in_the_clear_to_another_machine(here: Here):
    with pytest.raises(InvalidRequest, match="in the clear"):
        await here.externals.discover("http://far.example", "far", headers={"X-Key": SECRET})


async def test_nobody_there(here: Here):
    with pytest.raises(Unreachable, match="cannot be reached"):
        await here.externals.discover(f"http://127.0.0.1:{free_port()}", "far", headers=None)
    assert here.externals.agents() == []


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"card": b"<html>"}, "is no agent card"),
        ({"card": b"[]"}, "is no agent card"),
        ({"card": b"{}"}, "offers none"),
        ({"card": b"[" * 5000}, "is no agent card"),
        ({"card": b" " * (1 << 20) + b"  "}, "at most"),
        ({"card": card_10("http://elsewhere.example/a2a")}, "another host, elsewhere.example"),
        ({"card": card_10("file:///etc/passwd")}, "no address"),
        ({"card": card_10("http://[")}, "no address"),
        ({"card": card_10("http://127.0.0.1:99999/")}, "no address"),
        ({"card": card_10("http://127.0.0.1/\x7f")}, "no address"),
        ({"card": card_10("http://127.0.0.1/", supportedInterfaces=[{"url": "x", "protocolBinding": "GRPC"}])}, "GRPC"),
        ({"status": 404}, "HTTP 404"),
        ({"status": 401}, "credentials are missing"),
        ({"status": 302, "headers": {"Location": "http://169.254.169.254/"}}, "redirects to 'http://169.254"),
    ],
)
async def test_cards_that_are_none(here: Here, changes, why):
    async with elsewhere(card_10("http://127.0.0.1:1/a2a")) as place:
        for name, value in changes.items():
            setattr(place, name, value)
        with pytest.raises(CardInvalid, match=why):
            await here.externals.discover(place.url, "far", headers=None)


async def test_a_large_card_does_not_hold_up_the_loop(here: Here, monkeypatch: pytest.MonkeyPatch):
    threads: list[threading.Thread] = []

    def parsed(told: dict[str, Any]) -> Any:
        threads.append(threading.current_thread())
        return parse_agent_card(told)

    async def read_in_pieces(raw: bytes) -> Any:
        pieces.append(len(raw))
        return await read(raw)

    def whole(raw: bytes) -> Any:
        raise AssertionError("it is read in one go")

    pieces: list[int] = []
    monkeypatch.setattr(discovery, "parse_agent_card", parsed)
    monkeypatch.setattr(discovery, "read", read_in_pieces)
    monkeypatch.setattr(discovery, "read_object", whole)
    large = card_10("http://127.0.0.1:1/a2a", description="x" * 900_000)
    async with elsewhere(large) as place:
        await here.externals.discover(place.url, "far", headers=None)
    assert threads
    assert threading.main_thread() not in threads
    assert min(pieces) > 900_000


async def test_another_host_is_a_persons_decision(here: Here):
    async with elsewhere(card_10("http://elsewhere.example/a2a")) as place:
        added = await here.externals.discover(place.url, "far", headers=None, other_host=True)
        assert added.endpoint == "http://elsewhere.example/a2a"
        given = {"headers": {"X-Key": SECRET}, "other_host": True}
        with pytest.raises(InvalidRequest, match="in the clear"):
            await here.externals.discover(place.url, "far", **given)
        assert (await here.externals.discover(place.url, "far", **given, in_the_clear=True)).in_the_clear


async def test_a_card_that_changed_is_another_agent(far, here: Here, api: Api):
    assert (await here.over(await here.send("hi"))).answer == "echo: hi"
    far.card = {**far.card, "name": "somebody else"}
    await here.restarted()
    with pytest.raises(CardChanged, match=r"somebody else.*external add"):
        await here.send("hi")
    assert len(api.control.store._tasks) == 1
    await here.externals.discover(far.url, "far", headers=None)
    assert (await here.over(await here.send("hi"))).answer == "echo: hi"


async def test_an_agent_that_went_away_is_told_before_there_is_a_task(here: Here, api: Api):
    async with elsewhere(card_10(f"http://127.0.0.1:{api.agent_port}/a2a")) as place:
        await here.externals.discover(place.url, "far", headers=None)
    with pytest.raises(Unreachable):
        await here.send("hi")
    assert not here.store._tasks


# --- the address book ------------------------------------------------------------------------------------------------


async def test_credentials_are_kept_apart_sent_along_and_never_shown(here: Here, api: Api):
    async with elsewhere(card_10(f"http://127.0.0.1:{api.agent_port}/a2a")) as place:
        agent = await here.externals.discover(place.url, "far", headers={"X-Key": SECRET})
        assert place.seen[-1]["X-Key"] == SECRET
        assert agent.authenticated
        for path in here.folder.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert (SECRET in path.read_text()) == (path.name == "far.secret")
        assert SECRET not in json.dumps([one.model_dump() for one in here.externals.agents()])
        await here.externals.discover(place.url, "far", headers=None)
        assert place.seen[-1]["X-Key"] == SECRET, "kept where nothing else is said"
        await here.externals.discover(place.url, "far", headers={})
        assert "X-Key" not in place.seen[-1]
        assert [path.name for path in here.folder.iterdir()] == ["far.json"]


async def test_credentials_that_others_can_read_are_refused(here: Here, api: Api):
    async with elsewhere(card_10(f"http://127.0.0.1:{api.agent_port}/a2a")) as place:
        await here.externals.discover(place.url, "far", headers={"X-Key": SECRET})
        (here.folder / "far.secret").chmod(0o644)
        with pytest.raises(ConfigError, match="chmod 600"):
            await here.send("hi")


async def test_what_cannot_be_written_is_named_and_nothing_is_added(here: Here, api: Api):
    here.folder.parent.mkdir(parents=True, exist_ok=True)
    here.folder.write_text("a file where the directory should be")
    async with elsewhere(card_10(f"http://127.0.0.1:{api.agent_port}/a2a")) as place:
        with pytest.raises(StoreError, match=r"far\.secret cannot be written: "):
            await here.externals.discover(place.url, "far", headers={"X-Key": SECRET})
    assert here.externals.find("far") is None


async def test_they_are_remembered_and_forgotten(far, here: Here, api: Api):
    api.control.script = hold
    task = await here.send("hi")
    await here.there(task)
    before = here.externals.view("@far")
    with pytest.raises(NameTaken):
        await here.externals.discover("http://127.0.0.1:1", "far", headers=None)
    await here.restarted()
    assert here.externals.view("far").model_copy(update={"last_seen": before.last_seen}) == before
    await here.externals.remove("far")
    assert (await here.over(task)).metadata["reason"] == "removed"
    assert list(here.folder.iterdir()) == []
    with pytest.raises(UnknownAgent, match="external add"):
        here.externals.view("far")
    assert here.externals.find("far") is None


async def test_tasks_that_end_while_their_agent_is_removed_do_not_stop_that(far, here: Here, api: Api):
    api.control.script = hold
    first, second = [await here.send(text) for text in ("one", "two")]
    await here.there(first)
    await here.there(second)
    running = here.externals._under_way
    running[first.id].add_done_callback(lambda _: running[second.id].cancel())
    await here.externals.remove("far")
    assert list(here.folder.iterdir()) == []
    for task in (first, second):
        assert (await here.over(task)).metadata["reason"] == "removed"


async def test_a_late_answer_does_not_bring_a_removed_agent_back(far, here: Here, monkeypatch: pytest.MonkeyPatch):
    """The file is written in a thread, which goes on when its task is canceled."""
    writing, may, written = threading.Event(), threading.Event(), threading.Event()
    renew = here.book.renew

    def slowly(agent: Any) -> None:
        writing.set()
        may.wait()
        renew(agent)
        written.set()

    monkeypatch.setattr(here.book, "renew", slowly)
    here.externals._checked.clear()
    late = asyncio.create_task(here.externals.seen("far"))
    await asyncio.to_thread(writing.wait)
    late.cancel()
    await here.externals.remove("far")
    may.set()
    await asyncio.to_thread(written.wait)
    assert list(here.folder.iterdir()) == []
    await here.restarted()
    assert here.externals.agents() == []


async def test_files_that_are_none_are_passed_over(here: Here):
    here.folder.mkdir(parents=True)
    (here.folder / "broken.json").write_text("{")
    (here.folder / "other.json").write_text('{"alias": "x"}')
    (here.folder / "link.json").symlink_to("/etc/passwd")
    await here.externals.restore()
    assert here.externals.agents() == []


@pytest.mark.parametrize("alias", ["", "a b", "../x", "external:x", "x" * 65])
async def test_aliases_are_names(here: Here, alias):
    with pytest.raises(SynapsedError, match="cannot name an agent"):
        await here.externals.discover("http://127.0.0.1:1", alias, headers=None)


@pytest.mark.parametrize("alias", ["synapse-system", "Person", "unknown", "synapse-claude-8100"])
async def test_no_alias_is_the_name_of_a_sender_that_it_is_not(here: Here, alias: str):
    with pytest.raises(SynapsedError, match="seem to come from it"):
        await here.externals.discover("http://127.0.0.1:1", alias, headers=None)


async def test_what_is_more_than_text_goes_there(far, here: Here, api: Api):
    message = Message(parts=[DataPart(data={"a": [1, None]})])
    task = await here.over(await here.externals.send("far", SendRequest(message=message)))
    theirs = await api.control.tasks.find(task.metadata[KEY]["task_id"])
    assert theirs.message.parts == [DataPart(data={"a": [1, None]})]


async def test_what_was_taken_under_a_key_is_answered_although_its_agent_is_away(here: Here, api: Api) -> None:
    async with elsewhere(card_10(f"http://127.0.0.1:{api.agent_port}/a2a")) as place:
        await here.externals.discover(place.url, "far", headers=None)
        task = await here.over(await here.send("hi", key="k"))
    await here.restarted()  # and looks at the card before it sends
    again = await here.send("hi", key="k")
    assert (again.id, again.status) == (task.id, TaskState.COMPLETED)
    with pytest.raises(Unreachable):
        await here.send("hi", key="another")
