"""Who may keep one of three brokers, what it is told, and what members learn of it; no broker runs."""

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nats.errors
import pytest

from synapsed.config.paths import Paths
from synapsed.errors import InvalidRequest, RemoteRefused, Unreachable
from synapsed_fleet import link, tls
from synapsed_fleet.admin import Admin
from synapsed_fleet.broker import BrokerFolder
from synapsed_fleet.broker_cluster import broker_told, request
from synapsed_fleet.keyring import Keyring, Plan, PlannedBroker
from synapsed_fleet.member_files import Home
from synapsed_fleet.membership import keep_urls
from synapsed_fleet.natsserver import ClusterPlace, configuration
from synapsed_fleet.ports import NoBroker
from synapsed_fleet.stream_snapshots import copy_in

BROKERS = tuple(
    PlannedBroker(name, f"tls://{name}.lan:4222", f"tls://{name}.lan:6222") for name in ("box", "attic", "barn")
)


def ring_of(folder: Path, brokers: tuple[PlannedBroker, ...]) -> Keyring:
    return Keyring.create(folder / "keys", "box", Plan(("tls://box.lan:4222",), 1 << 30, 1, brokers=brokers))


def test_a_broker_is_told_what_it_needs_and_no_key(tmp_path: Path) -> None:
    ring = ring_of(tmp_path, BROKERS)
    private, public = tls.make_key()
    told = broker_told(ring, "attic", {"key": public})
    assert [PlannedBroker(*one) for one in told["brokers"]] == list(BROKERS)
    assert ring.members().plan.brokers == BROKERS, "as it was written"
    assert "attic.lan" in tls.names_in(told["certificate"])
    assert tls.days_left(told["certificate"], now=datetime.now(UTC)) > tls.BROKER_DAYS - 1
    seeds = [path.read_text().strip() for path in ring.folder.glob("*.seed")]
    assert not [secret for secret in (*seeds, private, ring.authority.key) if secret in json.dumps(told)]


@pytest.mark.parametrize("key", [None, "", "-----BEGIN PUBLIC KEY-----\n", "é", {}])
def test_what_is_no_key_is_refused(tmp_path: Path, key: object) -> None:
    with pytest.raises(InvalidRequest, match="key cannot be read"):
        broker_told(ring_of(tmp_path, BROKERS), "attic", {"key": key})


def test_who_was_not_named_has_nothing(tmp_path: Path) -> None:
    _, public = tls.make_key()
    with pytest.raises(InvalidRequest, match="was not chosen to keep a broker"):
        broker_told(ring_of(tmp_path, BROKERS), "shed", {"key": public})
    with pytest.raises(InvalidRequest, match="three brokers are wanted"):
        broker_told(ring_of(tmp_path / "two", BROKERS[:2]), "attic", {"key": public})


def test_a_plan_of_an_older_version_is_read(tmp_path: Path) -> None:
    ring = ring_of(tmp_path, ())
    path = ring.folder / "members.json"
    told = json.loads(path.read_text())
    told["plan"] = {key: told["plan"][key] for key in ("urls", "store", "replicas")}
    path.write_text(json.dumps(told))
    assert ring.members().plan == Plan(("tls://box.lan:4222",), 1 << 30, 1)


def test_brokers_let_in_whom_the_authority_has_signed(tmp_path: Path) -> None:
    place = ClusterPlace("0.0.0.0:6222", "attic.lan:6222", "attic.lan:4222", tuple(one.route for one in BROKERS))
    asked = {"name": "attic", "listen": "0.0.0.0:4222", "operator_token": "x", "system_account": "A"}
    cluster = configuration(tmp_path, **asked, cluster=place)["cluster"]
    assert cluster["tls"]["verify"] is True
    assert cluster["tls"]["ca_file"] == str(tmp_path / "ca.pem")
    assert cluster["routes"] == [one.route for one in BROKERS]
    assert "cluster" not in configuration(tmp_path, **asked)


DEEP = b'{"urls":' * 16_000


def test_members_learn_where_the_brokers_are_and_forget_nothing(tmp_path: Path) -> None:
    home = Home(Paths.from_environ({"SYNAPSED_HOME": str(tmp_path), "HOME": str(tmp_path)}))
    home.configure({"name": "laptop", "urls": ["tls://box.lan:4222"], "work": {"classes": ["codex"]}})
    urls = [one.url for one in BROKERS]
    assert keep_urls(home, json.dumps({"urls": urls}).encode())
    assert not keep_urls(home, json.dumps({"urls": urls[:2]}).encode()), "it is no news"
    for wrong in (
        b"",
        b"[]",
        b"{}",
        b'{"urls": []}',
        b'{"urls": [7]}',
        b'{"urls": ["http://x:1"]}',
        b'{"urls": "x"}',
        DEEP,
    ):
        assert not keep_urls(home, wrong)
    told = home.config_file.read_text()
    assert all(url in told for url in urls)
    assert 'classes = [\n    "codex",\n]' in told


class FakeAnswer:
    """Who answers for the fleet: each question is answered by the next of `answers`, the last one again and again."""

    def __init__(self, *answers: Exception | dict[str, object] | bytes) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def __call__(self, subject: str, body: bytes, *, timeout: float) -> SimpleNamespace:
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(data=answer if isinstance(answer, bytes) else json.dumps(answer).encode())


NO_LEADER: dict[str, object] = {"error": {"code": "UNREACHABLE", "message": "the brokers have no leader"}}


async def test_who_joins_during_an_election_is_answered_after_it() -> None:
    ask = FakeAnswer(nats.errors.NoRespondersError(), nats.errors.TimeoutError(), NO_LEADER, {"jwt": "x"})
    assert await request(ask, "syn.adm.join.laptop", {}, pause=0.0) == {"jwt": "x"}
    assert ask.asked == 4


@pytest.mark.parametrize("answer", [nats.errors.NoRespondersError(), NO_LEADER])
async def test_nobody_is_asked_for_ever(answer: Exception | dict[str, object]) -> None:
    with pytest.raises(Unreachable, match="for the fleet"):
        await request(FakeAnswer(answer), "syn.adm.join.laptop", {}, patience=0.0, pause=0.0)


async def test_what_is_refused_is_not_asked_again() -> None:
    ask = FakeAnswer({"error": {"code": "INVALID_REQUEST", "message": "the invitation has expired"}})
    with pytest.raises(RemoteRefused, match="has expired"):
        await request(ask, "syn.adm.join.laptop", {}, pause=0.0)
    assert ask.asked == 1


@pytest.mark.parametrize("answer", [DEEP, b'{"a":' + b"9" * 5000 + b"}", b"\xff", b"[]", b""], ids=lambda raw: raw[:8])
async def test_an_answer_that_cannot_be_read_is_told_as_such(answer: bytes, tmp_path: Path) -> None:
    ask = FakeAnswer(answer)
    with pytest.raises(RemoteRefused, match="cannot be read"):
        await request(ask, "syn.adm.join.laptop", {}, pause=0.0)
    broker: Any = SimpleNamespace(request=ask)
    with pytest.raises(RemoteRefused, match="cannot be read"):
        await Admin(broker).forget("laptop")
    told: Any = {"config": {}, "state": {}}
    with pytest.raises(Unreachable):
        await copy_in(broker, {"name": "IN"}, told, tmp_path / "copy", chunk=1000)
    message: Any = SimpleNamespace(data=answer, headers=None)
    with pytest.raises(NoBroker, match="no object"):
        link._answer_of(message)


async def test_copies_are_kept_until_the_server_runs_that_they_are_for(tmp_path: Path) -> None:
    folder = BrokerFolder(tmp_path)
    folder.settings.write_text(json.dumps({"name": "box", "fleet": "A", "system": "S"}))
    nobody: Any = None
    assert await folder.unpack(nobody, replicas=1, store=1) == []

    def runs(store: str) -> None:
        (tmp_path / "nats.conf").write_text(json.dumps({"jetstream": {"store_dir": str(tmp_path / store)}}))

    runs("store")
    (tmp_path / "moving").mkdir()
    (tmp_path / "moving" / "whole.json").write_text("[]")
    folder.regroup(None, empty=True)
    with pytest.raises(Unreachable, match="is to be started again"):
        await folder.unpack(nobody, replicas=3, store=1)
    assert folder.moving.is_packed()
    runs(folder.read()["store"])
    assert await folder.unpack(nobody, replicas=3, store=1) == []
    assert not folder.moving.is_packed()
