"""Which events a rule is for, what it fills in, what is refused; signatures."""

import base64
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from synapsed.model.event_pattern import fits
from synapsed.outgoing.signing import headers, secret_of
from synapsed.parts.rules.rule import RATE_MAX, RATE_S, Rate, RuleConfig, depth_of, fill, is_for

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def rule(**changes) -> RuleConfig:
    given = {"name": "r", "on": {"event": "taskStatus"}, "do": {"notify": "x"}} | changes
    return RuleConfig.model_validate(given)


FAILED = {"state": "failed", "error": {"code": "AGENT_EXITED", "message": "exit 3"}, "prompt": None}


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ({"event": "taskStatus"}, True),
        ({"event": "activity"}, False),
        ({"event": "taskStatus", "agent": "cl*"}, True),
        ({"event": "taskStatus", "agent": "synapse-claude-????"}, True),
        ({"event": "taskStatus", "agent": "codex"}, False),
        ({"event": "taskStatus", "match": {"state": "FAILED"}}, True),
        ({"event": "taskStatus", "match": {"state": ["completed", "fail*"], "error.code": "AGENT_*"}}, True),
        ({"event": "taskStatus", "match": {"state": "failed", "error.code": "TIMEOUT"}}, False),
        ({"event": "taskStatus", "match": {"error": "*"}}, False),
        ({"event": "taskStatus", "match": {"prompt.type": "*"}}, False),
    ],
)
def test_what_it_is_for(on, expected) -> None:
    assert is_for(rule(on=on), "taskStatus", FAILED, ["claude", "synapse-claude-8100"]) is expected


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"on": {"event": "taskStatuss"}}, "did you mean 'taskStatus'"),
        ({"on": {"event": "ruleFired"}}, "not an event that a rule can be for"),
        ({"do": {}}, "must have one of"),
        ({"do": {"notify": "x", "deny": True}}, "must have one of"),
        ({"do": {"send": "claude"}}, "go together"),
        ({"do": {"approve": True}, "on": {"event": "usage"}}, "answers a question"),
        ({"name": "a b"}, "letters, digits"),
        ({"do": {"shell": "rm"}}, "Extra inputs"),
    ],
)
def test_what_is_refused(wrong, why) -> None:
    with pytest.raises(ValidationError, match=re.escape(why)):
        rule(**wrong)


def test_words_are_filled_in() -> None:
    text = "{agent}: {error.code} in {task} ({nothing.here}) {Not A Field}"
    filled = fill(text, "taskStatus", FAILED, agent="claude", task="t1")
    assert filled == ("claude: AGENT_EXITED in t1 () {Not A Field}", True)
    assert fill("{agent} {event}", "taskStatus", FAILED, agent="a", task=None) == ("a taskStatus", False)


@given(st.text(alphabet="ab*?", max_size=12), st.text(alphabet="ab", max_size=12))
def test_globs_are_what_they_are(pattern: str, text: str) -> None:
    plain = "".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in pattern)
    assert fits(pattern, text) is (re.fullmatch(plain, text) is not None)


def test_no_pattern_takes_long() -> None:
    """What a backtracking engine needs more steps for than there are seconds in a year."""
    assert not fits("*a" * 40 + "b", "a" * 60_000)


def test_rate_and_depth() -> None:
    rate = Rate()
    assert all(rate.allows(number) for number in range(RATE_MAX))
    assert not rate.allows(RATE_S - 0.1)
    assert (rate.tell(), rate.tell()) == (True, False)
    assert rate.allows(RATE_S)
    assert depth_of({"fired": {"depth": 2}}) == 2
    assert depth_of({"fired": {"depth": True}}) == depth_of({"fired": 3}) == depth_of({}) == 0


def test_the_official_library_verifies_it() -> None:
    at, body = int(datetime.now(UTC).timestamp()), '{"type": "taskStatus", "x": "é"}'.encode()
    signed = headers(secret_of(SECRET), webhook_id="r_1", at=at, body=body)
    assert Webhook(SECRET).verify(body, signed)["type"] == "taskStatus"
    for tampered in (signed | {"webhook-id": "r_2"}, signed | {"webhook-timestamp": str(at + 1)}):
        with pytest.raises(WebhookVerificationError):
            Webhook(SECRET).verify(body, tampered)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(body + b" ", signed)


@pytest.mark.parametrize("text", ["", "secret", "whsec_", "whsec_%%%", "whsec_YWJj", SECRET.removeprefix("whsec_")])
def test_secrets_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="whsec_") as refused:
        secret_of(text)
    assert not text or text == "whsec_" or text not in str(refused.value)


@pytest.mark.parametrize(
    ("match", "prompt", "expected"),
    [
        ({"prompt.command": "npm test"}, {"prompt": "npm test", "command": "npm test"}, True),
        ({"prompt.command": "npm test"}, {"prompt": "Edit f\n-npm test", "command": None, "diff": "-npm test"}, False),
        ({"prompt.prompt": "*npm test*"}, {"prompt": "Run it?\nnpm test"}, True),
        ({"prompt.prompt": "*npm test*"}, {"prompt": "Edit f\n-npm test", "diff": "-npm test"}, False),
        ({"prompt.prompt": "*", "prompt.diff": "*"}, {"prompt": "Edit f", "diff": "-npm test"}, True),
        ({"prompt.command": "echo*"}, {"prompt": "", "command": "echo" + " " * 70_000 + "; rm x"}, False),
    ],
)
def test_a_yes_is_to_what_the_rule_names(match, prompt, expected) -> None:
    given = rule(on={"event": "inputRequired", "match": match}, do={"approve": True})
    assert is_for(given, "inputRequired", {"prompt": prompt}, ["a"]) is expected
