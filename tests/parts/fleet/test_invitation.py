"""Invitations and who answers them: one line, one key, once."""

import base64
import contextlib
import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.config.paths import Paths
from synapsed.errors import ConfigError, InvalidRequest, RemoteRefused, Unreachable
from synapsed_fleet import operations, tls
from synapsed_fleet.addresses import local_url, reachable
from synapsed_fleet.invitation import Invitation, asked, authority_at, key_asked_for
from synapsed_fleet.keyring import Keyring, Members, PendingInvitation, Plan
from synapsed_fleet.member_files import Home
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.registrar import VALID_S, join, renew
from synapsed_fleet.trust import CLOCK_S

NOW = 1_800_000_000
PLAN = Plan(("tls://10.0.0.1:4222",), 1 << 30, 1)


@pytest.fixture
def ring(tmp_path: Path) -> Keyring:
    return Keyring.create(tmp_path / "keys", "box", PLAN, clock=lambda: NOW)


def invitation(ring: Keyring, name: str = "laptop") -> Invitation:
    pair = KeyPair.generate("user")
    token = ring.join_token(name, pair.public, issued=NOW, expires=NOW + 900)
    fleet, operator = ring.pair("account").public, ring.pair("operator").public
    return Invitation(name, PLAN.urls, tls.fingerprint(ring.certificate), fleet, operator, token, pair)


def test_a_line_comes_back_whatever_a_mail_program_did_to_it(ring: Keyring) -> None:
    made = invitation(ring)
    line = made.line()
    assert "\n" not in line
    assert len(line) < 1500
    wrapped = "  " + "\n".join(line[at : at + 72] for at in range(0, len(line), 72)) + "\n"
    again = Invitation.parse(wrapped)
    assert again._replace(pair=made.pair) == made
    assert again.pair.seed == made.pair.seed
    assert again.expires == NOW + 900


def test_a_damaged_line_is_told_without_a_word_of_it(ring: Keyring) -> None:
    line = invitation(ring).line()
    for wrong in (line[:-8], line[:200], line.replace(line[60:64], "AAAA"), line + "xxxx", "synapsed-fleet-1."):
        with pytest.raises(InvalidRequest, match="damaged") as told:
            Invitation.parse(wrong)
        assert line[20:40] not in str(told.value)
    with pytest.raises(InvalidRequest, match=r"begins with 'synapsed-fleet-1\.'"):
        Invitation.parse("ssh-ed25519 AAAA")


@given(st.binary(max_size=300))
def test_no_bytes_make_an_invitation(raw: bytes) -> None:
    with pytest.raises(InvalidRequest):
        Invitation.parse("synapsed-fleet-1." + base64.urlsafe_b64encode(raw).decode().rstrip("="))


def members_with(made: Invitation) -> Members:
    return Members(invitations={made.name: PendingInvitation(made.pair.public, NOW + 900)}, plan=PLAN)


def test_a_host_joins_once_and_asking_again_gets_the_same(ring: Keyring) -> None:
    made, host = invitation(ring), KeyPair.generate("user")
    members = members_with(made)
    request = asked(made, host)
    enrolled = join(members, "laptop", request, fleet=made.fleet, now=NOW)
    assert (enrolled.key, enrolled.expires) == (host.public, NOW + VALID_S)
    assert join(members, "laptop", request, fleet=made.fleet, now=NOW + 5) == enrolled  # its answer was lost
    with pytest.raises(InvalidRequest, match="used already"):
        join(members, "laptop", asked(made, KeyPair.generate("user")), fleet=made.fleet, now=NOW + 5)
    with pytest.raises(InvalidRequest, match="has expired"):
        join(members, "laptop", request, fleet=made.fleet, now=NOW + 900)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (-CLOCK_S - 1, "the clock of laptop is 5 minutes behind the fleet's"),
        (-90_000, "1 day behind"),
        (VALID_S + 86_400, "366 days ahead of the fleet's"),
    ],
)
def test_a_host_whose_clock_is_wrong_does_not_use_its_invitation_up(ring: Keyring, wrong: int, words: str) -> None:
    """It would believe no token that it gets, and ask again with another key, which looks as if it was stolen."""
    made = invitation(ring)
    members = members_with(made)
    with pytest.raises(InvalidRequest, match=words):
        join(members, "laptop", {**asked(made, KeyPair.generate("user")), "at": NOW + wrong}, fleet=made.fleet, now=NOW)
    assert members.hosts == {}
    put_right = {**asked(made, host := KeyPair.generate("user")), "at": NOW + 60}
    assert join(members, "laptop", put_right, fleet=made.fleet, now=NOW).key == host.public


@pytest.mark.parametrize(
    ("now", "words"),
    [(NOW + 960, "1 minute ago by the clock of this host"), (NOW - 7200, "at least 2 hours behind")],
)
async def test_a_clock_that_is_wrong_is_told_before_anything_is_asked(
    ring: Keyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: int, words: str
) -> None:
    monkeypatch.setattr(operations.time, "time", lambda: float(now))
    home = Home(Paths.from_environ({"HOME": str(tmp_path), "SYNAPSED_HOME": str(tmp_path / "home")}))
    with pytest.raises(InvalidRequest, match=words):
        await operations.join(home, SimpleNamespace(fleet=None), {"line": invitation(ring).line()})


@pytest.mark.parametrize("name", ["person", "unknown", "synapse-system", "synapse-claude-8100"])
async def test_no_host_of_a_fleet_has_a_reserved_name(ring: Keyring, tmp_path: Path, name: str) -> None:
    home = Home(Paths.from_environ({"HOME": str(tmp_path), "SYNAPSED_HOME": str(tmp_path / "home")}))
    with pytest.raises(InvalidRequest, match="cannot name a host: synapsed uses this name"):
        await operations.create(home, SimpleNamespace(fleet=None), {"name": name})
    assert not home.keyring.exists()
    Keyring.create(home.keyring.folder, "box", PLAN)
    with pytest.raises(InvalidRequest, match="cannot name a host: synapsed uses this name"):
        operations.invite(home, SimpleNamespace(fleet=None), {"name": name})
    assert home.keyring.members().invitations == {}
    with pytest.raises(InvalidRequest, match="cannot name a host: synapsed uses this name"):
        await operations.join(home, SimpleNamespace(fleet=None), {"line": invitation(ring, name).line()})


def test_who_has_no_invitation_does_not(ring: Keyring) -> None:
    made, host = invitation(ring), KeyPair.generate("user")
    with pytest.raises(InvalidRequest, match="no invitation for 'laptop'"):
        join(Members(), "laptop", asked(made, host), fleet=made.fleet, now=NOW)


def test_a_broker_cannot_put_its_own_key_into_a_request(ring: Keyring) -> None:
    """It sees the request and may change it; the invitation's key has signed the host's."""
    made, host, thief = invitation(ring), KeyPair.generate("user"), KeyPair.generate("user")
    request = asked(made, host)
    forged = [
        {**request, "key": thief.public},
        {**request, "key": thief.public, "by_host": asked(made, thief)["by_host"]},
        {**request, "by_invitation": request["by_host"]},
        {**asked(made._replace(pair=thief), thief)},
        {**request, "v": 2},
        {**request, "by_host": None},
        {**request, "key": 7},
        "no object",
        [],
    ]
    for document in forged:
        with pytest.raises(InvalidRequest):
            key_asked_for(document, fleet=made.fleet, name="laptop", invited=made.pair.public)
    with pytest.raises(InvalidRequest):
        key_asked_for(request, fleet=made.fleet, name="other", invited=made.pair.public)
    with pytest.raises(InvalidRequest):
        key_asked_for(request, fleet=KeyPair.generate("account").public, name="laptop", invited=made.pair.public)
    assert key_asked_for(request, fleet=made.fleet, name="laptop", invited=made.pair.public) == host.public


def test_a_name_that_is_invited_again_has_one_key_that_counts(ring: Keyring) -> None:
    first, second = invitation(ring), invitation(ring)
    members = members_with(first)
    old, new = KeyPair.generate("user"), KeyPair.generate("user")
    join(members, "laptop", asked(first, old), fleet=first.fleet, now=NOW)
    members.invitations["laptop"] = PendingInvitation(second.pair.public, NOW + 1900)
    assert members.revoked == {}
    join(members, "laptop", asked(second, new), fleet=first.fleet, now=NOW + 1000)
    assert members.hosts["laptop"].key == new.public
    assert members.revoked == {old.public: NOW + 1000}


def test_a_token_is_renewed_for_the_key_that_a_host_has(ring: Keyring) -> None:
    made, host = invitation(ring), KeyPair.generate("user")
    members = members_with(made)
    join(members, "laptop", asked(made, host), fleet=made.fleet, now=NOW)
    later = NOW + VALID_S // 2
    assert renew(members, "laptop", {"key": host.public}, now=later).expires == later + VALID_S
    for document in ({"key": KeyPair.generate("user").public}, {}, [], None):
        with pytest.raises(InvalidRequest):
            renew(members, "laptop", document, now=later)
    del members.hosts["laptop"]
    with pytest.raises(InvalidRequest):
        renew(members, "laptop", {"key": host.public}, now=later)


# --- the key ring ---


def test_its_files_are_its_owners_alone(ring: Keyring) -> None:
    with ring.changing():
        pass
    assert ring.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in ring.folder.iterdir()} == {0o600}


def test_a_change_that_fails_is_not_kept(ring: Keyring) -> None:
    with contextlib.suppress(KeyError), ring.changing() as members:
        members.revoked["x"] = 1
        raise KeyError
    assert ring.members().revoked == {}


def test_the_fleets_token_changes_only_with_who_is_revoked(ring: Keyring) -> None:
    before, key = ring.account_token, KeyPair.generate("user").public
    with ring.changing() as members:
        members.invitations["a"] = PendingInvitation(key, NOW)
    assert ring.account_token == before
    with ring.changing() as members:
        members.revoked[key] = NOW
    assert ring.account_token != before
    from synapsed_fleet.jwt import read

    assert read(ring.account_token).issued > read(before).issued  # though this clock stands still
    assert read(ring.account_token).nats["revocations"] == {key: NOW}


def test_a_change_that_was_killed_between_its_files_is_told_by_the_next(ring: Keyring) -> None:
    before, key = ring.account_token, KeyPair.generate("user").public
    with ring.changing() as members:
        members.revoked[key] = NOW
    (ring.folder / "account.jwt").write_text(before)
    with ring.changing():
        pass
    assert ring.account_token != before


@pytest.mark.parametrize("name", ["operator.seed", "account.seed", "members.json"])
def test_a_missing_file_is_named(ring: Keyring, name: str) -> None:
    (ring.folder / name).unlink()

    def use() -> None:
        with ring.changing() as members:
            members.revoked["U"] = 1
            ring.pair("account")

    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        use()


def test_a_damaged_seed_is_named_and_not_shown(ring: Keyring) -> None:
    (ring.folder / "account.seed").write_text("SAAHELLO")
    with pytest.raises(ConfigError, match=r"account\.seed") as told:
        ring.pair("account")
    assert "HELLO" not in str(told.value)


def test_there_is_one_fleet_per_ring(ring: Keyring) -> None:
    with pytest.raises(ConfigError, match="keys of a fleet already"):
        Keyring.create(ring.folder, "other", PLAN)
    ring.destroy()
    assert not ring.exists()
    Keyring.create(ring.folder, "other", PLAN)


# --- certificates ---


@contextlib.contextmanager
def shown(certificate: tls.Pem, folder: Path) -> Iterator[int]:
    """A server with this certificate; its port."""
    (folder / "cert").write_text(certificate.certificate)
    (folder / "key").write_text(certificate.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    raw, _ = server.accept()
                except OSError:
                    return
                with contextlib.suppress(OSError), context.wrap_socket(raw, server_side=True) as secure:
                    secure.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def test_the_authority_is_known_by_its_hash_alone(tmp_path: Path) -> None:
    now = datetime.datetime.now(datetime.UTC)
    ours, theirs = tls.make_authority("A" * 56, now=now), tls.make_authority("B" * 56, now=now)
    mine = tls.make_broker(ours, ["127.0.0.1"], now=now)
    with shown(mine, tmp_path) as port:
        urls = [f"tls://127.0.0.1:{port}"]
        assert authority_at(urls, tls.fingerprint(ours.certificate)) == ours.certificate
        assert authority_at(["tls://127.0.0.1:1", *urls], tls.fingerprint(ours.certificate)) == ours.certificate
        with pytest.raises(RemoteRefused, match="not the broker of this invitation"):
            authority_at(urls, tls.fingerprint(theirs.certificate))
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1: .*is its port open from here"):
        authority_at(["tls://127.0.0.1:1"], tls.fingerprint(ours.certificate))


def test_a_brokers_certificate_names_it_wherever_it_is() -> None:
    now = datetime.datetime.now(datetime.UTC)
    authority = tls.make_authority("A" * 56, now=now)
    made = tls.make_broker(authority, ["10.0.0.1", "box.lan", "::1"], now=now)
    assert tls.names_in(made.certificate) == {"synapsed-broker", "10.0.0.1", "box.lan", "::1"}
    assert tls.days_left(made.certificate, now=now) == pytest.approx(tls.BROKER_DAYS, abs=1)
    assert made.certificate.endswith(authority.certificate)
    late = now + datetime.timedelta(days=tls.BROKER_DAYS + 1)
    assert tls.days_left(made.certificate, now=late) < 0


# --- addresses ---


def test_a_host_is_found_where_it_listens() -> None:
    assert reachable({}, "10.1.2.3:4222") == ["10.1.2.3"]
    assert reachable({}, "[fd00::1]:4222") == ["fd00::1"]
    assert reachable({}, "0.0.0.0:4222")
    assert local_url("0.0.0.0:4222") == "tls://127.0.0.1:4222"
    assert local_url("[::]:4222") == "tls://[::1]:4222"
    assert local_url("10.1.2.3:1") == "tls://10.1.2.3:1"
