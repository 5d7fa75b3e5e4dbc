"""The registrar goes on, whatever a member, an invitation's holder or the broker does."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import nats.errors
import pytest
from structlog.testing import capture_logs

from synapsed_fleet import registrar
from synapsed_fleet.broker import BrokerFolder
from synapsed_fleet.keyring import Enrolled, Keyring, Plan
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.registrar import Registrar
from tests.support.patience import PATIENCE_S

NOW = 1_800_000_000
DEADLINE = PATIENCE_S
DEEP = b"[" * 16_000


class Asked:
    """A request as it comes from the broker."""

    def __init__(self, what: str, data: bytes) -> None:
        self.subject = f"syn.adm.{what}.box"
        self.reply = f"{'_JOIN' if what == 'join' else '_INBOX'}_box.1"
        self.data = data


class FakeClient:
    """A connection to the broker, with requests that come at once; `fails` names the call that raises."""

    is_connected = True

    def __init__(self, asked: list[Asked], fails: str = "", error: Exception | None = None) -> None:
        self._asked = asked
        self._fails = fails
        self._error = error
        self.answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def subscribe(self, subject: str, cb: Callable[[Any], Any]) -> None:
        self._trouble("subscribe")
        for one in self._asked:
            await cb(one)

    async def flush(self) -> None:
        self._trouble("flush")

    async def publish(self, subject: str, data: bytes) -> None:
        self._trouble("publish")
        self.answers.put_nowait(json.loads(data))

    def _trouble(self, name: str) -> None:
        if self._error is not None and name == self._fails:
            raise self._error


class FakeAdmin:
    """Does nothing; `ensure_work` fails with an error that nobody expects."""

    def __init__(self, client: FakeClient) -> None: ...

    async def ensure(self, **_: Any) -> list[str]:
        return []

    async def ensure_work(self, classes: list[str], **_: Any) -> None:
        raise KeyError("config")

    async def publish_fleet(self, token: str) -> None: ...

    async def publish_brokers(self, urls: object) -> None: ...


@pytest.fixture
def ring(tmp_path: Path) -> Keyring:
    ring = Keyring.create(tmp_path / "keys", "box", Plan(("tls://10.0.0.1:4222",), 1 << 30, 1), clock=lambda: NOW)
    with ring.changing() as members:
        members.hosts["box"] = Enrolled(KeyPair.generate("user").public, NOW, NOW + 900)
    return ring


@contextlib.asynccontextmanager
async def running(
    ring: Keyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clients: list[FakeClient]
) -> AsyncIterator[asyncio.Task[None]]:
    left = list(clients)

    @contextlib.asynccontextmanager
    async def connected(*_: Any, **__: Any) -> AsyncIterator[FakeClient]:
        yield left.pop(0) if len(left) > 1 else left[0]

    async def revoke(*_: Any) -> None: ...

    monkeypatch.setattr(registrar, "connected", connected)
    monkeypatch.setattr(registrar, "revoke", revoke)
    monkeypatch.setattr(registrar, "Admin", FakeAdmin)
    monkeypatch.setattr(registrar, "PAUSE_S", 0.01)
    task = asyncio.ensure_future(
        Registrar(ring, ["tls://127.0.0.1:1"], BrokerFolder(tmp_path / "broker"), clock=lambda: NOW).run()
    )
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def answer(client: FakeClient, task: asyncio.Task[None]) -> dict[str, Any]:
    """The next answer; the registrar's own error if it ends before."""
    got = asyncio.ensure_future(client.answers.get())
    await asyncio.wait([got, task], timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    return got.result()


HOSTILE = [
    DEEP,
    b'{"at": ' + b"9" * 5000 + b"}",
    b'{"at": ' + b"9" * 290 + b', "v": 1}',
    b'{"key": "\\ud800", "classes": ["\\ud800"]}',
    b"\xff",
    b"[]",
]


@pytest.mark.parametrize("what", ["join", "renew", "classes", "broker"])
async def test_whatever_is_asked_it_answers_the_next(
    ring: Keyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    key = ring.members().hosts["box"].key
    client = FakeClient([*(Asked(what, data) for data in HOSTILE), Asked("renew", json.dumps({"key": key}).encode())])
    async with running(ring, tmp_path, monkeypatch, [client]) as task:
        for data in HOSTILE:
            assert (await answer(client, task))["error"]["code"] == "INVALID_REQUEST", data[:40]
        assert "jwt" in await answer(client, task)


async def test_a_request_that_nobody_expected_is_told_in_the_log_and_is_answered(
    ring: Keyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = FakeClient([Asked("classes", b'{"classes": ["gpu"]}')])
    with capture_logs() as logs:
        async with running(ring, tmp_path, monkeypatch, [client]) as task:
            assert (await answer(client, task))["error"]["code"] == "INTERNAL"
    assert [entry["log_level"] for entry in logs if "what" in entry] == ["error"]


@pytest.mark.parametrize("fails", ["subscribe", "publish"])
@pytest.mark.parametrize("error", [nats.errors.TimeoutError(), KeyError("x")])
async def test_a_lost_connection_is_followed_by_another(
    ring: Keyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str, error: Exception
) -> None:
    asked = Asked("renew", json.dumps({"key": ring.members().hosts["box"].key}).encode())
    lost, next_ = FakeClient([asked], fails, error), FakeClient([asked])
    with capture_logs() as logs:
        async with running(ring, tmp_path, monkeypatch, [lost, lost, next_]) as task:
            assert "jwt" in await answer(next_, task)
    told = [entry["log_level"] for entry in logs if entry["log_level"] == "error"]
    assert told == (["error"] if isinstance(error, KeyError) else []), "a defect is told, and once"
