"""What a host says is read back as it was said, by members of its fleet only."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.errors import InvalidRequest
from synapsed_fleet import names
from synapsed_fleet.envelope import BODY_MAX, BadEnvelope, Envelope, encoded
from synapsed_fleet.names import BadName, MailKind, MailSubject, WorkSubject
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.signing import check, signed

FLEET = KeyPair.generate("account").public
HOST = KeyPair.generate("user")
SAID = Envelope(subject="syn.to.box.laptop.msg", id="5b0c2a52-7d0e-4d57-9d0b-6d6f9c1f3a11", body=b'{"a":1}')


def read(envelope: Envelope) -> Envelope:
    return Envelope.read(envelope.subject, envelope.headers(), envelope.body)


def test_what_is_said_is_read_as_it_was_said() -> None:
    sent = signed(replace(SAID, attempt=3), FLEET, HOST)
    came = read(sent)
    check(came, FLEET, HOST.public)
    assert (came, came.document(), came.headers()["Nats-Msg-Id"]) == (sent, {"a": 1}, f"{SAID.subject}/{SAID.id}#3")


@pytest.mark.parametrize(
    "changed",
    [
        {"subject": "syn.to.other.laptop.msg"},
        {"subject": "syn.to.box.other.msg"},
        {"subject": "syn.to.box.laptop.ctl"},
        {"id": "6b0c2a52-7d0e-4d57-9d0b-6d6f9c1f3a11"},
        {"body": b'{"a":2}'},
        {"version": "2"},
        {"signature": ""},
        {"signature": "AAAA"},
        {"signature": "!"},
    ],
)
def test_whatever_is_changed_is_noticed(changed: dict[str, object]) -> None:
    sent = signed(SAID, FLEET, HOST)
    with pytest.raises(BadEnvelope):
        check(read(replace(sent, **changed)), FLEET, HOST.public)


def test_another_fleet_or_another_host_has_not_said_it() -> None:
    sent = signed(SAID, FLEET, HOST)
    with pytest.raises(BadEnvelope):
        check(sent, KeyPair.generate("account").public, HOST.public)
    with pytest.raises(BadEnvelope):
        check(sent, FLEET, KeyPair.generate("user").public)
    with pytest.raises(BadEnvelope):
        check(sent, FLEET, "no key")


def test_how_often_it_was_sent_is_the_brokers_to_change() -> None:
    check(replace(signed(SAID, FLEET, HOST), attempt=9), FLEET, HOST.public)


def test_another_version_is_read_as_far_as_its_sender() -> None:
    sent = signed(replace(SAID, version="3"), FLEET, HOST)
    headers = {**sent.headers(), "Syn-Enc": "later"}
    came = Envelope.read(sent.subject, headers, sent.body)
    check(came, FLEET, HOST.public)
    assert not came.known_version


@given(st.dictionaries(st.sampled_from(["Syn-Id", "Syn-V", "Syn-Sig", "Syn-Attempt"]), st.text()), st.binary())
def test_hostile_bytes_are_read_or_refused(headers: dict[str, str], body: bytes) -> None:
    try:
        came = Envelope.read("syn.to.a.b.msg", headers, body)
        came.document()
    except BadEnvelope:
        return
    assert came.body == body


def test_a_body_has_a_limit() -> None:
    headers = {**SAID.headers(), "Syn-Sig": "AAAA"}
    Envelope.read(SAID.subject, headers, b" " * BODY_MAX)
    with pytest.raises(BadEnvelope):
        Envelope.read(SAID.subject, headers, b" " * (BODY_MAX + 1))


def test_deep_json_is_no_body() -> None:
    with pytest.raises(BadEnvelope):
        replace(SAID, body=b'{"a":' + b"[" * 200_000).document()


def test_what_cannot_be_written_is_replaced() -> None:
    assert encoded({"text": "a\ud800b"}) == b'{"text":"a?b"}'


@given(st.text(max_size=80))
def test_any_subject_is_the_fleets_or_none(subject: str) -> None:
    for kind in (MailSubject, WorkSubject):
        with suppress(BadName):
            assert str(kind.parse(subject)) == subject


def test_subjects() -> None:
    assert MailSubject.parse("syn.to.box.laptop.upd") == MailSubject("box", "laptop", MailKind.UPDATE)
    assert WorkSubject.parse("syn.work.codex.laptop") == WorkSubject("codex", "laptop")
    for bad in ("syn.to.box.laptop", "syn.to.box.laptop.xyz", "syn.to.*.laptop.msg", "syn.to.box.Laptop.msg", "", "."):
        with pytest.raises(BadName):
            MailSubject.parse(bad)
    assert names.parse_update("task-1234/7") == ("task-1234", 7)
    assert names.parse_update("task-1234") == ("task-1234", -1)


def test_what_is_urgent_has_a_class_of_its_own() -> None:
    assert [names.class_of("any:codex", n) for n in (1, 3, 4, 5)] == ["codex", "codex", "codex-hi", "codex-hi"]
    for bad in ("any:", "any:Codex", "any:a.b", "any:codex-hi", "any:*"):
        with pytest.raises(InvalidRequest):
            names.class_of(bad, 1)
