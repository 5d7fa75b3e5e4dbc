"""What the admin is answered by brokers that have no leader."""

import contextlib
import json
from types import SimpleNamespace
from typing import Any

import nats.errors
import pytest

from synapsed.errors import ConfigError, RemoteRefused, Unreachable
from synapsed_fleet import external_broker
from synapsed_fleet.admin import NOT_FOUND, Admin
from synapsed_fleet.streams import IN, mail_of, work_of


@pytest.mark.parametrize(("code", "said"), [(503, Unreachable), (504, Unreachable), (400, RemoteRefused)])
async def test_what_may_be_better_soon_is_no_refusal(code: int, said: type[Exception]) -> None:
    class Client:
        async def request(self, subject: str, payload: bytes, timeout: float) -> Any:
            error = {"code": code, "err_code": 10008, "description": "JetStream system temporarily unavailable"}
            return SimpleNamespace(data=json.dumps({"error": error}).encode())

    with pytest.raises(said, match="temporarily unavailable"):
        await Admin(Client()).state()  # type: ignore[arg-type]


async def test_a_consumer_has_no_more_under_way_than_the_account_may() -> None:
    """As an account at somebody else's broker may be limited: the consumer would be refused."""
    kept: dict[str, Any] = {}

    class Client:
        async def request(self, subject: str, payload: bytes, timeout: float) -> Any:
            told: dict[str, Any] = {"config": kept}
            if subject == "$JS.API.INFO":
                told = {"limits": {"max_ack_pending": 500}}
            elif "CREATE" in subject:
                kept.update(json.loads(payload)["config"])
            elif not kept:
                told = {"error": {"code": 404, "err_code": NOT_FOUND[0], "description": "consumer not found"}}
            return SimpleNamespace(data=json.dumps(told).encode())

    admin = Admin(Client())  # type: ignore[arg-type]
    assert await admin.ensure_consumer(IN, mail_of("box", replicas=1)) == ["the consumer SYN_IN/box was made"]
    assert kept["max_ack_pending"] == 500
    assert await admin.ensure_consumer(IN, mail_of("box", replicas=1)) == []


@pytest.mark.parametrize("code", [503, 400])
@pytest.mark.parametrize("published", ["fleet", "brokers"])
async def test_a_full_stream_is_no_success(published: str, code: int) -> None:
    class Client:
        async def request(self, subject: str, payload: bytes, timeout: float) -> Any:
            error = {"code": code, "err_code": 10077, "description": "maximum bytes exceeded"}
            return SimpleNamespace(data=json.dumps({"error": error, "stream": "SYN_HOSTS", "seq": 0}).encode())

    admin = Admin(Client())  # type: ignore[arg-type]
    with pytest.raises(Unreachable if code == 503 else RemoteRefused, match="maximum bytes exceeded"):
        await (admin.publish_fleet("token") if published == "fleet" else admin.publish_brokers(["tls://a:1"]))


class Silent:
    """A client of a broker that fails as `error` says; it answers `flushes` pings before that."""

    def __init__(self, error: Exception, flushes: int = 0, info: dict[str, Any] | None = None) -> None:
        self.error, self.flushes, self.info = error, flushes, info or {}

    async def request(self, subject: str, payload: bytes, timeout: float) -> Any:
        if "STREAM.INFO" in subject:
            return SimpleNamespace(data=json.dumps(self.info).encode())
        raise self.error

    async def flush(self, timeout: float) -> None:
        self.flushes -= 1
        if self.flushes < 0:
            raise nats.errors.TimeoutError


@pytest.mark.parametrize(
    "error", [nats.errors.TimeoutError(), nats.errors.ConnectionClosedError(), nats.errors.NoRespondersError()]
)
async def test_a_broker_that_does_not_say_whose_it_is(error: Exception) -> None:
    with pytest.raises(Unreachable):
        await external_broker._owner(Silent(error))  # type: ignore[arg-type]


async def test_a_broker_without_a_fleet() -> None:
    missing = {"error": {"code": 404, "err_code": 10059, "description": "stream not found"}}
    client = Silent(nats.errors.NoRespondersError(), info=missing)
    assert await external_broker._owner(client) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "flushes", "said"),
    [
        (nats.errors.TimeoutError(), 2, None),
        (nats.errors.TimeoutError(), 1, Unreachable),
        (nats.errors.NoRespondersError(), 0, Unreachable),
        (nats.errors.ConnectionClosedError(), 2, Unreachable),
        (nats.errors.NoRespondersError(), 2, ConfigError),
    ],
)
async def test_silence_is_a_refusal_from_a_broker_that_answers(
    error: Exception, flushes: int, said: type[Exception] | None
) -> None:
    with pytest.raises(said) if said is not None else contextlib.nullcontext():
        await external_broker._may_not(Silent(error, flushes), "syn.to.other")  # type: ignore[arg-type]


@pytest.mark.parametrize("there", [True, False])
async def test_a_wrong_consumer_of_work_is_told(there: bool) -> None:
    class Client:
        async def request(self, subject: str, payload: bytes, timeout: float) -> Any:
            told: dict[str, Any] = {"error": {"code": 404, "err_code": 10059, "description": "stream not found"}}
            if subject == "$JS.API.INFO":
                told = {}
            elif there and "CONSUMER.NAMES" in subject:
                told = {"consumers": ["gpu"]}
            elif there and subject.endswith("CONSUMER.INFO.SYN_WORK.gpu"):
                told = {"config": {**work_of("gpu", replicas=1), "max_deliver": 99}}
            return SimpleNamespace(data=json.dumps(told).encode())

    found = await Admin(Client()).wrong(replicas=1, store=1 << 30, hosts=())  # type: ignore[arg-type]
    assert any("work of the class gpu: " in one for one in found) == there
