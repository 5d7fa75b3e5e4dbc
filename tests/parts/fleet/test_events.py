"""Events of the whole fleet: told and heard behind cursors, and believed by their host's signature alone."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from synapsed.errors import InvalidRequest, NotReady
from synapsed.interfaces import NewEvent
from synapsed.model.events import (
    ActivityChanged,
    AgentReported,
    AttentionChanged,
    DaemonChanged,
    EventData,
    InputRequired,
    TaskArtifactAdded,
    TaskStatusChanged,
    ToolExecution,
    TurnSeen,
)
from synapsed.model.task import Artifact, Prompt, TaskError, TaskState, TextPart
from synapsed_fleet import streams
from synapsed_fleet.envelope import Envelope, encoded
from synapsed_fleet.event_body import EventCursor
from synapsed_fleet.fleet_answers import FleetEvent
from synapsed_fleet.ports import NoBroker
from tests.fakes.clock import JUMPS
from tests.parts.fleet.fakebroker import Killed
from tests.parts.fleet.world import Host, World

AGENT = "synapse-codex-1"
SAID = "what somebody said"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    yield made
    await made.close()


async def happens(host: Host, *data: EventData, agent: str = AGENT) -> None:
    await host.store.commit(events=[NewEvent(agent, one) for one in data])


async def reports(host: Host, *kinds: str) -> None:
    await happens(host, *(AgentReported(kind=kind, message=SAID) for kind in kinds))


async def tell(host: Host) -> None:
    await host.telling.catch_up()


async def heard(reader: Host, after: str | None = "0", **more: Any) -> list[FleetEvent]:
    async with aclosing(reader.hearing.follow(after, newest=True, **more)) as found:
        return [event async for event in found if event is not None]


def kinds(found: list[FleetEvent]) -> list[str]:
    return [str(event.data["kind"]) for event in found if event.event == "agentReported"]


async def test_events_of_all_hosts_are_heard_on_each_and_gone_on_from_a_cursor(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    for each in (laptop, box):
        await tell(each)  # who has just joined tells nothing of before
    await reports(laptop, "one")
    await reports(box, "two", "three")
    await tell(laptop)
    await tell(box)
    for each in (laptop, box):
        found = await heard(each)
        assert kinds(found) == ["one", "two", "three"]
        assert [event.agent for event in found] == ["codex@laptop", "codex@box", "codex@box"]
        assert [event.host for event in found] == ["laptop", "box", "box"]
        assert kinds(await heard(each, found[0].id)) == ["two", "three"]
        assert kinds(await heard(each, host="laptop")) == ["one"]
        assert await heard(each, types=frozenset({"daemon"})) == []
        assert await heard(each, found[-1].id) == []
    assert await heard(box, None) == [], "without a cursor it begins with what comes next"


async def test_what_was_before_a_host_joined_is_not_told(world: World) -> None:
    box = await world.host("box")
    await reports(box, "before")
    await tell(box)
    await reports(box, "after")
    await tell(box)
    assert kinds(await heard(box)) == ["after"]


async def test_a_daemon_killed_at_each_step_of_telling_loses_nothing_and_each_is_shown_once(world: World) -> None:
    box = await world.host("box")
    await tell(box)
    killed = 0
    for step in range(1, 100):
        await reports(box, f"event-{step}")
        box.fuse.at = box.fuse.steps + step
        try:
            await tell(box)
        except Killed:
            killed += 1
            await box.kill()
            await tell(box)
        else:
            break
    assert killed >= 6, "it was killed before and after each write and each publish"
    box.fuse.at = None
    assert kinds(await heard(box)) == [f"event-{step}" for step in range(1, killed + 2)]


async def test_a_stream_that_was_made_again_is_told_the_last_hour_anew(world: World) -> None:
    box = await world.host("box")
    await tell(box)
    await reports(box, "old")
    await tell(box)
    (old,) = await heard(box)
    world.clock.advance(3500)
    await reports(box, "new")
    await tell(box)
    world.clock.advance(200)
    world.broker.wipe()
    await box.kill()
    await tell(box)
    found = await heard(box)
    assert found[0].event == "gap"
    assert found[0].data["to"] == old.number
    assert kinds(found) == ["new"], "what is older than an hour is not told again"
    again = await heard(box, old.id)
    assert again[0].event == "gap", "the cursor is of another stream"
    assert again[0].id is None
    assert kinds(again) == ["new"]


async def test_an_older_copy_of_the_stream_is_told_as_a_gap(world: World) -> None:
    box = await world.host("box")
    await tell(box)
    await reports(box, "one", "two")
    await tell(box)
    last = (await heard(box))[-1].id
    stream = world.broker.streams[streams.EVENTS]
    del stream.messages[1:]
    stream.last = 1
    found = await heard(box, last)
    assert [event.event for event in found] == ["gap", "agentReported"]


async def test_what_is_not_kept_any_more_is_told_as_a_gap(world: World) -> None:
    box = await world.host("box")
    await tell(box)
    await reports(box, "one", "two", "three")
    await tell(box)
    (first, *_) = await heard(box)
    del world.broker.streams[streams.EVENTS].messages[:2]
    found = await heard(box, first.id)
    assert (found[0].event, found[0].data) == ("gap", {"from": 2, "to": 2})
    assert kinds(found) == ["three"]
    assert kinds(await heard(box)) == ["three"], "from the beginning there is no gap: it begins with what there is"


async def test_who_was_away_for_long_tells_a_gap_and_not_everything(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    await tell(box)
    await reports(box, "told")
    await tell(box)
    world.broker.away = True
    await reports(box, *(f"old-{n}" for n in range(40)))
    world.clock.advance(4000)
    await reports(box, "new")
    with pytest.raises(NoBroker):
        await box.telling.catch_up()
    world.broker.away = False
    await box.kill()
    await tell(box)
    found = await heard(laptop)
    assert kinds(found) == ["told", "new"]
    (gap,) = [event for event in found if event.event == "gap"]
    assert gap.data["to"] - gap.data["from"] + 1 == 40
    assert gap.host == "box"


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_clock_that_is_set_while_the_broker_is_away(world: World, jump: float) -> None:
    """What is left out is told of as a gap, and nothing is told twice or later than what came after it."""
    laptop, box = await world.host("laptop"), await world.host("box")
    await tell(box)
    world.broker.away = True
    await reports(box, "before")
    world.clock.jump(jump)
    await reports(box, "wrong")
    with pytest.raises(NoBroker):
        await box.telling.catch_up()
    world.broker.away = False
    await box.kill()
    await tell(box)
    world.clock.jump(-jump)
    await reports(box, "right")
    await tell(box)
    found = await heard(laptop)
    gaps = [event.data["to"] - event.data["from"] + 1 for event in found if event.event == "gap"]
    expected = (["wrong", "right"], [1]) if jump > 0 else (["before", "wrong", "right"], [])
    assert (kinds(found), gaps) == expected


PROMPT = Prompt(prompt_id="p1", type="permission", prompt=SAID)
WITH_WORDS: list[EventData] = [
    AgentReported(kind="note", message=SAID),
    ActivityChanged(activity="waiting", evidence=SAID, prompt=PROMPT),  # type: ignore[arg-type]
    InputRequired(prompt=PROMPT),
    AttentionChanged(id="a1", state="opened", kind="permission", question=SAID),
    ToolExecution(tool_name="Bash", status="started", input={"command": SAID}),
    ToolExecution(tool_name="Bash", status="failed", error=SAID, output={"text": SAID}),
    TurnSeen(text=SAID, answer=SAID),
    TaskStatusChanged(state=TaskState.FAILED, reason=SAID, error=TaskError(code="TIMEOUT", message=SAID)),
    TaskStatusChanged(state=TaskState.INPUT_REQUIRED, prompt=PROMPT),
    TaskArtifactAdded(artifact=Artifact(artifact_id="answer", parts=[TextPart(text=SAID)])),
    DaemonChanged(state="started", version="1", pid=1, agents=2),
]


async def test_what_was_said_is_told_only_where_the_configuration_says_so(world: World) -> None:
    box = await world.host("box")
    await tell(box)
    await happens(box, *WITH_WORDS)
    await tell(box)
    bodies = b"".join(each.body for each in world.broker.streams[streams.EVENTS].messages)
    assert SAID.encode() not in bodies
    found = await heard(box)
    assert [event.data for event in found if event.event == "taskStatus"] == [
        {"state": "failed", "error": {"code": "TIMEOUT"}},
        {"state": "input_required", "prompt": {"prompt_id": "p1", "type": "permission"}},
    ]
    attic = Host(world, "attic")
    attic.content = True
    world.hosts["attic"] = attic
    await attic.start()
    await tell(attic)
    await happens(attic, *WITH_WORDS)
    await tell(attic)
    told = await heard(box, host="attic")
    assert [event.data["question"] for event in told if event.event == "attention"] == [SAID]


def _event(**change: Any) -> bytes:
    right = {"id": 7, "event": "agentReported", "data": {"kind": "x"}, "time": "2026-01-01T00:00:00.000Z"}
    return encoded({**right, "agent": "codex", **change})


LIES = [
    b"",
    b"null",
    b"[]",
    b"\xff\xfe",
    b"{" * 5000,
    _event(agent="codex@box"),
    _event(agent="co\u001bdex"),
    _event(agent="../x"),
    _event(agent=7),
    _event(time="yesterday"),
    _event(time="2026-01-01T00:00:00.000Z\u001b[2J"),
    _event(time=1),
    _event(time="2026-13-41T99:00:00Z"),
    _event(time="0001-01-01T00:00:00Z"),
    _event(task="\u001b]0;x\u0007"),
    _event(task="x" * 65),
    _event(id=-1),
    _event(id="7"),
    _event(id=2**60),
    _event(data=[]),
    _event(data="x"),
    _event(context="x" * 201),
    _event(data={"kind": "x" * 20_000}),
]


async def test_a_member_that_lies_is_not_shown_and_holds_nobody_up(world: World) -> None:
    box, rogue = await world.host("box"), await world.host("rogue")
    for each in (box, rogue):
        await tell(each)
    await reports(box, "first")
    await tell(box)
    (right,) = world.broker.streams[streams.EVENTS].messages

    async def say(subject: str, named: str, body: bytes) -> None:
        await rogue.wire.publish(rogue.outgoing.sign(subject, named, body))

    for n, body in enumerate(LIES):
        await say("syn.ev.rogue.agentReported", f"lie-{n:08d}", body)
    await say("syn.ev.box.agentReported", "as-another", _event())  # a broker that lets it
    copied = Envelope.read(right.subject, right.headers, right.body)
    for change in ({"subject": "syn.ev.rogue.agentReported"}, {"id": "another-id"}, {"body": _event()}):
        fields = {"subject": copied.subject, "id": copied.id, "body": copied.body, "signature": copied.signature}
        await rogue.wire.publish(Envelope(**{**fields, **change}))  # type: ignore[arg-type]
    await rogue.wire.publish(
        Envelope(subject=copied.subject, id=copied.id, body=copied.body, signature=copied.signature, attempt=2)
    )  # a replay
    for subject in ("syn.ev.rogue", "syn.ev.rogue.a.b", "syn.ev.Rogue.x", "syn.ev.rogue.\u001b[2J"):
        await say(subject, "no-subject", _event())
    await reports(box, "last")
    await tell(box)
    assert kinds(await heard(box)) == ["first", "last"]
    world.trust.revoked.add("rogue")
    await say("syn.ev.rogue.agentReported", "who-is-removed", _event())
    assert kinds(await heard(box)) == ["first", "last"]


async def test_hostile_words_under_a_right_signature_come_as_they_are_and_are_shown_harmless(world: World) -> None:
    from synapsectl.eventlines import Lines
    from synapsectl.output import as_json

    box, rogue = await world.host("box"), await world.host("rogue")
    body = _event(
        data={"kind": "\u001b]52;c;aGk=\u0007\u202e\u009b2J", "\u001b[2J": {"a": ["\u0000"]}}, context="\u001b[H"
    )
    await rogue.wire.publish(rogue.outgoing.sign("syn.ev.rogue.agentReported", "hostile-1", body))
    (event,) = await heard(box)
    document = event.model_dump(mode="json")
    for shown in (Lines(on_terminal=True, environ={"NO_COLOR": "1"}).of(document), as_json(document)):
        assert shown.isprintable(), shown


async def test_what_is_no_cursor_and_no_broker_is_said(world: World) -> None:
    box = await world.host("box")
    for wrong in ("x", "-1", "zz-1", "1" * 30):
        with pytest.raises(InvalidRequest):
            await heard(box, wrong)
    world.broker.away = True
    with pytest.raises(NotReady, match="is not reached now"):
        await heard(box)


def test_a_cursor_is_read_as_it_is_written() -> None:
    for text in ("0", "17", "0123abcd-17"):
        assert str(EventCursor.parse(text)) == text


def test_the_body_is_json() -> None:
    assert json.loads(_event())["agent"] == "codex"
