"""Tokens and whom a member believes: made, read, and refused in each way in which one may not be the fleet's."""

import base64
import json
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed_fleet import jwt
from synapsed_fleet.broker_permissions import HOST, JOIN, scopes
from synapsed_fleet.jwt import BadToken, Scope, read
from synapsed_fleet.membership import is_due
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.peer_certificates import NotMet, Peers
from synapsed_fleet.trust import NotTrusted, Trust
from tests.fakes.clock import JUMPS, FakeClock

NOW = 1_800_000_000
DAY = 86_400


class Fleet:
    """The keys of one fleet, in memory."""

    def __init__(self) -> None:
        self.operator, self.account = KeyPair.generate("operator"), KeyPair.generate("account")
        self.signers = {HOST: KeyPair.generate("account"), JOIN: KeyPair.generate("account")}

    def token(self, *, revoked: dict[str, int] | None = None, now: float = NOW, operator: KeyPair | None = None) -> str:
        made = scopes(host=self.signers[HOST].public, join=self.signers[JOIN].public)
        return jwt.account(
            operator or self.operator,
            public=self.account.public,
            name="fleet",
            scopes=made,
            revoked=revoked or {},
            jetstream=True,
            now=now,
        )

    def trust(self, **how: object) -> Trust:
        token = self.token(**how)  # type: ignore[arg-type]
        return Trust(fleet=self.account.public, operator=self.operator.public, account_token=token)

    def host(self, name: str = "box", *, key: KeyPair | None = None, role: str = HOST, **times: float) -> str:
        issued, expires = times.get("issued", NOW - DAY), times.get("expires", NOW + DAY)
        return jwt.user(
            self.signers[role],
            account=self.account.public,
            public=(key or KeyPair.generate("user")).public,
            name=name,
            now=issued,
            expires=expires,
        )


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def test_a_host_of_the_fleet_is_believed(fleet: Fleet) -> None:
    key = KeyPair.generate("user")
    member = fleet.trust().host(fleet.host("laptop-2", key=key), now=NOW)
    assert (member.host, member.key, member.expires) == ("laptop-2", key.public, NOW + DAY)


def test_a_token_of_another_fleet_is_not(fleet: Fleet) -> None:
    other = Fleet()
    with pytest.raises(NotTrusted, match="not of this fleet"):
        fleet.trust().host(other.host(), now=NOW)
    mixed = jwt.user(
        other.signers[HOST],
        account=fleet.account.public,
        public=KeyPair.generate("user").public,
        name="box",
        now=NOW,
        expires=None,
    )
    with pytest.raises(NotTrusted, match="not signed by a key of this fleet"):
        fleet.trust().host(mixed, now=NOW)


def test_an_invitation_makes_nobody_a_host_nor_a_host_an_invitation(fleet: Fleet) -> None:
    with pytest.raises(NotTrusted, match="for the role 'host'"):
        fleet.trust().host(fleet.host(role=JOIN), now=NOW)
    with pytest.raises(NotTrusted, match="for the role 'join'"):
        fleet.trust().invited(fleet.host(), now=NOW)
    assert fleet.trust().invited(fleet.host(role=JOIN), now=NOW).host == "box"


def test_the_fleets_own_key_signs_no_host(fleet: Fleet) -> None:
    """The admin's users have all rights at the broker, and are nobody to a member."""
    pair = KeyPair.generate("user")
    token = jwt.full_user(fleet.account, public=pair.public, name="box", now=NOW, expires=NOW + DAY)
    with pytest.raises(NotTrusted):
        fleet.trust().host(token, now=NOW)


def test_who_was_removed_is_believed_no_more_and_a_new_token_is(fleet: Fleet) -> None:
    key = KeyPair.generate("user")
    trust = fleet.trust(revoked={key.public: NOW - 10})
    with pytest.raises(NotTrusted, match="revoked"):
        trust.host(fleet.host(key=key), now=NOW)
    assert trust.host(fleet.host(key=key, issued=NOW - 5), now=NOW).host == "box"
    with pytest.raises(NotTrusted, match="revoked"):
        fleet.trust(revoked={"*": NOW}).host(fleet.host(), now=NOW)


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ({"expires": NOW - 3 * DAY}, "expired 3 days ago by the clock of this host"),
        ({"expires": NOW}, "expired 0 s ago"),
        ({"issued": NOW + 2 * DAY, "expires": NOW + 9 * DAY}, "issued 2 days ahead of the clock of this host"),
    ],
)
def test_times_are_told_with_the_clock(fleet: Fleet, times: dict[str, float], told: str) -> None:
    with pytest.raises(NotTrusted, match=told):
        fleet.trust().host(fleet.host(**times), now=NOW)


def test_a_little_difference_of_clocks_is_none(fleet: Fleet) -> None:
    assert fleet.trust().host(fleet.host(issued=NOW + 200), now=NOW)


@pytest.mark.parametrize("name", ["", "Box", "a.b", "a*", "-a", "a" * 32, "a>", "_fleet", "a\n"])
def test_what_is_no_name_is_nobody(fleet: Fleet, name: str) -> None:
    with pytest.raises(NotTrusted, match="no name of a host"):
        fleet.trust().host(fleet.host(name), now=NOW)


def test_the_account_is_the_operators_word(fleet: Fleet) -> None:
    foreign = fleet.token(operator=KeyPair.generate("operator"))
    with pytest.raises(NotTrusted, match="not signed by its operator"):
        Trust(fleet=fleet.account.public, operator=fleet.operator.public, account_token=foreign)
    with pytest.raises(NotTrusted, match="not for this fleet"):
        Trust(fleet=Fleet().account.public, operator=fleet.operator.public, account_token=fleet.token())
    with pytest.raises(NotTrusted):
        fleet.trust().renewed(foreign)


def test_a_newer_word_of_the_operator_replaces_and_an_older_does_not(fleet: Fleet) -> None:
    key = KeyPair.generate("user")
    trust = fleet.trust()
    newer = trust.renewed(fleet.token(revoked={key.public: NOW}, now=NOW + 1))
    assert newer.is_revoked(key.public, NOW)
    assert newer.renewed(trust.account_token) is newer
    assert newer.renewed(newer.account_token) is newer


def parts(token: str) -> list[dict[str, object]]:
    return [json.loads(base64.urlsafe_b64decode(part + "==")) for part in token.split(".")[:2]]


def packed(*documents: object) -> list[str]:
    return [base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in documents]


@pytest.mark.parametrize("alg", ["none", "HS256", "ed25519", "", None])
def test_no_other_way_of_signing_is_known(fleet: Fleet, alg: object) -> None:
    header, claims = parts(fleet.host())
    token = ".".join([*packed({**header, "alg": alg}, claims), ""])
    with pytest.raises(BadToken, match="not signed by a key of NATS"):
        read(token)


def test_changed_claims_are_not_what_was_signed(fleet: Fleet) -> None:
    token = fleet.host()
    header, claims = parts(token)
    changed = ".".join([*packed(header, {**claims, "name": "admin"}), token.rpartition(".")[2]])
    with pytest.raises(BadToken, match="signature"):
        read(changed)


def test_who_is_no_account_signs_no_user() -> None:
    """A user's token whose issuer is a user, or an operator."""
    pair = KeyPair.generate("user")
    for signer in (KeyPair.generate("user"), KeyPair.generate("operator")):
        token = jwt.user(signer, account="A", public=pair.public, name="box", now=NOW, expires=None)
        with pytest.raises(BadToken, match="signature"):
            read(token)


@given(st.text(max_size=200) | st.lists(st.text(alphabet="abcXYZ019-_=", max_size=40), max_size=4).map(".".join))
def test_whatever_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(BadToken):
        read(text)


def test_deep_and_large_documents_are_refused() -> None:
    deep = base64.urlsafe_b64encode(b"[" * 100_000).decode().rstrip("=")
    with pytest.raises(BadToken):
        read(f"{deep}.{deep}.{deep}")
    with pytest.raises(BadToken, match="too long"):
        read("a" * 1_000_000)


def test_credentials_come_back_and_tell_nothing_in_errors(fleet: Fleet) -> None:
    pair = KeyPair.generate("user")
    token = fleet.host(key=pair)
    text = jwt.credentials(token, pair.seed)
    assert jwt.read_credentials(text)[0] == token
    assert jwt.read_credentials(text)[1].seed == pair.seed
    for wrong in (text.replace(pair.seed, KeyPair.generate("user").seed), text.replace(pair.seed, pair.seed[:-1])):
        with pytest.raises(BadToken) as told:
            jwt.read_credentials(wrong)
        assert pair.seed[:-2] not in str(told.value)


def test_the_templates_let_nobody_be_another() -> None:
    host, join = scopes(host="AH", join="AJ")
    assert isinstance(host, Scope)
    for subject in host.publish:
        if subject.startswith(("syn.", "$KV.")) and not subject.startswith("syn.claim."):
            assert "{{name()}}" in subject, subject
    assert not [one for one in host.publish if "CREATE" in one or "DELETE" in one or "PURGE" in one or "UPDATE" in one]
    assert all("{{name()}}" in one for one in (*host.subscribe, *join.subscribe, *join.publish))
    assert not set(host.subscribe) & set(join.subscribe)


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_jump_lets_messages_wait_and_forgets_no_host(fleet: Fleet, jump: float) -> None:
    clock = FakeClock(wall=NOW)
    key = KeyPair.generate("user")
    table = SimpleNamespace(keep_peer=AsyncMock())
    peers = Peers(cast("Any", table), fleet.trust(), clock)
    jwt_of_box = fleet.host(key=key, issued=NOW - 3600, expires=NOW + 10 * DAY)
    assert await peers.learn("box", jwt_of_box)
    clock.jump(jump)
    if jump != DAY:
        with pytest.raises(NotMet, match="clock of this host"):
            peers._key("box")
    else:
        assert peers._key("box") == key.public
    assert peers.revoking()() == {}, "nobody is taken for removed"
    assert await peers.learn("box", jwt_of_box)
    clock.jump(-jump)
    assert peers._key("box") == key.public
    clock.sleep(10 * DAY)
    with pytest.raises(NotMet, match="expired"):
        peers._key("box")


@pytest.mark.parametrize("jump", JUMPS)
def test_credentials_are_renewed_early_or_late_and_again(jump: float) -> None:
    clock = FakeClock(wall=NOW)
    mine = cast("Any", SimpleNamespace(issued=NOW, expires=NOW + 30 * DAY))
    clock.jump(jump)
    assert is_due(mine, now=clock.wall()) == (jump >= 20 * DAY)
    clock.jump(-jump)
    assert not is_due(mine, now=clock.wall())
    clock.sleep(20 * DAY)
    assert is_due(mine, now=clock.wall()), "time that is slept through counts"
