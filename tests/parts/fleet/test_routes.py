"""`/fleet`: shapes and rights."""

import json
from collections.abc import AsyncGenerator

import pytest

from synapsed.errors import Busy, NotReady, TaskNotFound
from synapsed.interfaces import AgentSource, WaitingSource
from synapsed.kernel import Running
from synapsed.model.agent import AgentView
from synapsed.model.attention import AttentionItem, HostSaid, HostState
from synapsed_fleet.fleet_answers import (
    FleetAgent,
    FleetEvent,
    FleetHeld,
    FleetHost,
    FleetKept,
    FleetOut,
    FleetStatus,
)
from synapsed_fleet.fleet_control import Membership
from tests.api.serving import Api

AT = "2026-05-01T12:00:00Z"


FILE = "ab" * 16
OTHER = "cd" * 16


class FakeFiles:
    """One that comes from `laptop`, and one that was given here."""

    def __init__(self) -> None:
        self.there = [
            FleetKept(id=FILE, host="laptop", state="coming", size=7, have=3, since=AT, problem="it waits"),
            FleetKept(id=OTHER, state="given", name="notes.txt", size=7, have=7, since=AT),
        ]

    async def listed(self) -> list[FleetKept]:
        return self.there

    async def remove(self, host: str | None, file_id: str) -> None:
        if host is not None:
            raise Busy(f"{file_id} is under way")
        found = [one for one in self.there if one.id == file_id and one.host is None]
        if not found:
            raise TaskNotFound("it is not kept", id=file_id)
        self.there.remove(found[0])


class FakeFleet:
    """A member with one host beside it, and one row under way."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.files = FakeFiles()

    async def status(self) -> FleetStatus:
        return FleetStatus(host="box", connected=True, broker="tls://box:4222", since=AT, outbox={"new": 1}, oldest=AT)

    async def hosts(self) -> list[FleetHost]:
        agent = FleetAgent(name="codex", type="codex", state="running", idle=True)
        return [FleetHost(host="box", state="here"), FleetHost(host="laptop", state="up", seen=AT, agents=[agent])]

    async def events(
        self, after: str | None, *, newest: bool, host: str | None = None, types: frozenset[str] | None = None
    ) -> AsyncGenerator[FleetEvent | None]:
        self.asked.append(("events", after))
        if not newest:
            raise NotReady("its broker is not reached now")
        yield None
        yield FleetEvent(
            id="0123abcd-7", event="daemon", data={"state": "started"}, time=AT, host=host or "laptop", number=3
        )
        yield FleetEvent(id=None, event="gap", data={"from": 4, "to": None}, time=AT)

    async def agents(self) -> list[AgentView]:
        return []

    async def inboxes(self) -> tuple[list[AttentionItem], list[HostSaid]]:
        item = AttentionItem(
            id="i1@laptop",
            agent="codex@laptop",
            agent_id="codex@laptop",
            host="laptop",
            cwd="",
            kind="question",
            question="?",
            since=AT,
        )
        return [item], [HostSaid(name="laptop", state=HostState.UP, items=1)]

    async def outbox(self, host: str | None = None) -> list[FleetOut]:
        self.asked.append(("outbox", host))
        return [FleetOut(id="r1", dst="laptop", kind="msg", task="r1", state="piped", attempt=1, since=AT)]

    async def outbox_retry(self, row: str) -> bool:
        self.asked.append(("retry", row))
        return row == "r1"

    async def outbox_cancel(self, row: str) -> bool:
        self.asked.append(("cancel", row))
        return row == "r1"

    async def quarantine(self) -> list[FleetHeld]:
        return [FleetHeld(at=AT, subject="syn.to.box.laptop.msg", reason="unsigned", size=12)]


@pytest.fixture
def fleet(api: Api) -> FakeFleet:
    made = FakeFleet()
    running = Running()
    running.provides = {Membership: Membership(made), WaitingSource: made, AgentSource: made}
    api.servers.context.parts._running["fleet"] = running
    return made


async def test_each_is_told(api: Api, fleet: FakeFleet):
    status, told = await api.json(api.http, "GET", "/fleet")
    assert (status, told["host"], told["outbox"], told["problem"]) == (200, "box", {"new": 1}, None)
    status, hosts = await api.json(api.http, "GET", "/fleet/hosts")
    assert (status, [one["state"] for one in hosts]) == (200, ["here", "up"])
    assert hosts[1]["agents"][0]["name"] == "codex"
    status, rows = await api.json(api.http, "GET", "/fleet/outbox?host=laptop")
    assert (status, rows[0]["id"]) == (200, "r1")
    assert fleet.asked == [("outbox", "laptop")]
    status, held = await api.json(api.http, "GET", "/fleet/quarantine")
    assert (status, held[0]["reason"]) == (200, "unsigned")


async def test_events_of_the_fleet_are_a_stream_with_places_of_the_fleet(api: Api, fleet: FakeFleet):
    url = f"{api.url}/fleet/events?until=newest&stream=sse"
    async with api.http.get(url, headers={"Last-Event-ID": "0123abcd-6"}) as answer:
        assert answer.status == 200
        lines = (await answer.text()).splitlines()
    assert "id: 0123abcd-7" in lines
    told = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert [(one["event"], one["host"], one["number"]) for one in told] == [
        ("daemon", "laptop", 3),
        ("gap", None, None),
    ]
    assert fleet.asked == [("events", "0123abcd-6")]
    async with api.http.ws_connect(f"{api.url}/fleet/events?until=newest&host=box") as socket:
        assert (await socket.receive_json())["host"] == "box"
    for query, status in (
        ("after=x", 400),
        ("host=B", 400),
        ("types=x", 400),
        ("until=newest", 400),
        ("stream=sse", 503),
    ):
        async with api.http.get(f"{api.url}/fleet/events?{query}") as answer:
            assert answer.status == status, query


async def test_what_waits_on_hosts_of_the_fleet_is_in_the_inbox(api: Api, fleet: FakeFleet):
    status, told = await api.json(api.http, "GET", "/inbox?hosts=1")
    assert status == 200
    assert [one["id"] for one in told["items"]] == ["i1@laptop"]
    assert [(one["name"], one["items"], one["error"]) for one in told["hosts"]] == [("laptop", 1, None)]


async def test_a_row_is_sent_again_or_given_up(api: Api, fleet: FakeFleet):
    assert await api.json(api.http, "POST", "/fleet/outbox/r1/retry", json={}) == (
        200,
        {"status": "retried", "id": "r1"},
    )
    assert await api.json(api.http, "POST", "/fleet/outbox/r1/cancel", json={}) == (
        200,
        {"status": "canceled", "id": "r1"},
    )
    for what in ("retry", "cancel"):
        status, answer = await api.json(api.http, "POST", f"/fleet/outbox/r2/{what}", json={})
        assert (status, answer["error"]["code"]) == (404, "TASK_NOT_FOUND")


async def test_files_are_told_and_removed_unless_they_are_under_way(api: Api, fleet: FakeFleet):
    status, told = await api.json(api.http, "GET", "/fleet/files")
    assert (status, [one["state"] for one in told]) == (200, ["coming", "given"])
    assert told[0]["problem"] == "it waits"
    assert await api.json(api.http, "DELETE", f"/fleet/files/{OTHER}") == (200, {"status": "removed", "id": OTHER})
    for path, code in (
        (f"laptop/{FILE}", "BUSY"),
        (OTHER, "TASK_NOT_FOUND"),
        ("host.creds", "TASK_NOT_FOUND"),
        (f"Laptop/{FILE}", "TASK_NOT_FOUND"),
    ):
        _, answer = await api.json(api.http, "DELETE", f"/fleet/files/{path}")
        assert answer["error"]["code"] == code, path


async def test_a_host_in_no_fleet_says_so(api: Api):
    for method, path in (
        ("GET", "/fleet"),
        ("GET", "/fleet/hosts"),
        ("GET", "/fleet/outbox"),
        ("GET", "/fleet/quarantine"),
        ("GET", "/fleet/events?stream=sse"),
        ("POST", "/fleet/outbox/x/retry"),
    ):
        status, answer = await api.json(api.http, method, path, json={} if method == "POST" else None)
        assert (status, answer["error"]["code"]) == (404, "NOT_IN_FLEET"), path
        assert "synapsectl fleet" in answer["error"]["message"]


async def test_only_a_person_may(api: Api, fleet: FakeFleet):
    api.control.tokens["token-of-codex"] = "synapse-codex-8120"
    agent = {"headers": {"Authorization": "Bearer token-of-codex"}}
    for method, path in (
        ("GET", "/fleet"),
        ("GET", "/fleet/outbox"),
        ("GET", "/fleet/quarantine"),
        ("GET", "/fleet/files"),
        ("DELETE", f"/fleet/files/{OTHER}"),
        ("DELETE", f"/fleet/files/laptop/{FILE}"),
        ("GET", "/fleet/events?stream=sse"),
        ("POST", "/fleet/outbox/r1/retry"),
        ("POST", "/fleet/outbox/r1/cancel"),
    ):
        status, answer = await api.json(api.http, method, path, json={} if method == "POST" else None, **agent)
        assert (status, answer["error"]["code"]) == (403, "FORBIDDEN"), path
    status, _ = await api.json(api.http, "GET", "/fleet/hosts", **agent)
    assert status == 200, "whom it may write to"
    assert fleet.asked == []


@pytest.mark.parametrize("host", ["Box", "a.b", "", "-x", "x" * 32])
async def test_what_is_no_host_is_refused(api: Api, fleet: FakeFleet, host: str):
    status, answer = await api.json(api.http, "GET", "/fleet/outbox", params={"host": host})
    assert (status, answer["error"]["code"]) == (400, "INVALID_REQUEST")
