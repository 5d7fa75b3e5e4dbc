"""`/fleet`: shapes and rights."""

import pytest

from synapsed.model.fleetviews import FleetAgent, FleetHeld, FleetHost, FleetOut, FleetStatus
from tests.api.serving import Api

AT = "2026-05-01T12:00:00Z"


class FakeFleet:
    """A member with one host beside it, and one row under way."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []

    async def status(self) -> FleetStatus:
        return FleetStatus(host="box", connected=True, broker="tls://box:4222", since=AT, outbox={"new": 1}, oldest=AT)

    async def hosts(self) -> list[FleetHost]:
        agent = FleetAgent(name="codex", type="codex", state="running", idle=True)
        return [FleetHost(host="box", state="here"), FleetHost(host="laptop", state="up", seen=AT, agents=[agent])]

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
    api.servers._context.fleet = made
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


async def test_a_host_in_no_fleet_says_so(api: Api):
    for method, path in (
        ("GET", "/fleet"),
        ("GET", "/fleet/hosts"),
        ("GET", "/fleet/outbox"),
        ("GET", "/fleet/quarantine"),
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
