"""What is read of another host's record, whatever it tells of itself."""

import json

import pytest

from synapsed_fleet.host_record import (
    AGENTS_MAX,
    RECORD_MAX,
    TWIN_S,
    AgentRecordOf,
    HostRecord,
    Liveness,
    Twin,
    read,
    written,
)

RECORD = HostRecord(v=1, host="box", jwt="x", boot="1", n=1, agents=[AgentRecordOf(name="codex", type="codex")])


def test_a_record_is_read_as_it_was_written() -> None:
    assert read(written(RECORD)) == RECORD


@pytest.mark.parametrize("name", ["codex@laptop", "any:codex", "\x1b[2Jcodex", "a b", "", "../x", "a\nb"])
def test_what_is_no_name_of_an_agent_is_passed_over(name: str) -> None:
    document = json.loads(written(RECORD))
    document["agents"].append({"name": name, "type": "codex"})
    told = read(json.dumps(document).encode())
    assert told is not None
    assert [agent.name for agent in told.agents] == ["codex"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"nothing",
        b"\xff\xfe",
        b"{" * 100_000,
        b" " * (RECORD_MAX + 1),
        json.dumps({**RECORD.model_dump(), "n": -1}).encode(),
        json.dumps({**RECORD.model_dump(), "host": "x" * 32}).encode(),
        json.dumps({**RECORD.model_dump(), "state": "x" * 21}).encode(),
        json.dumps({**RECORD.model_dump(), "agents": [{"name": "a", "type": "b"}] * (AGENTS_MAX + 1)}).encode(),
        json.dumps({**RECORD.model_dump(), "agents": [{"name": "a", "type": "b", "queue": "many"}]}).encode(),
    ],
)
def test_what_is_no_record_is_none(body: bytes) -> None:
    assert read(body) is None


def test_words_of_a_host_that_are_shown_in_a_row_are_those_that_there_are() -> None:
    document = RECORD.model_dump()
    document |= {"state": "\x1b[2J"}
    document["agents"] = [{"name": "codex", "type": "\x1b]0;x\x07", "since": "0001-01-01T00:00:00Z", "state": "\x9b2J"}]
    told = read(json.dumps(document).encode())
    assert told is not None
    assert told.state == "away"
    assert (told.agents[0].type, told.agents[0].since) == ("unknown", "")


def test_a_host_is_there_while_its_record_changes_by_the_readers_clock() -> None:
    seen = Liveness()
    seen.note(RECORD, 100.0)
    assert seen.state(RECORD, 134.0) == "up"
    seen.note(RECORD, 134.0)
    assert seen.state(RECORD, 135.0) == "away", "the same again is no sign of life"
    seen.note(RECORD.model_copy(update={"boot": "2"}), 136.0)
    assert seen.state(RECORD, 136.0) == "up", "another life of its daemon, whatever it counts"


def test_another_machine_with_this_hosts_key_is_told_from_the_daemon_before() -> None:
    twin = Twin("mine")
    own, before = RECORD.model_copy(update={"boot": "mine"}), RECORD.model_copy(update={"boot": "before", "n": 70})
    assert not twin.note(own, 0.0)
    assert not twin.note(before, 1.0), "its last word"
    assert not twin.note(before, 2.0)
    assert not twin.note(before.model_copy(update={"n": 71, "state": "sleeping"}), 3.0), "its goodbye"
    assert not twin.is_there(3.0)
    assert twin.note(before.model_copy(update={"n": 72}), 4.0)
    assert not twin.note(before.model_copy(update={"n": 73}), 5.0), "it was said"
    assert twin.is_there(5.0 + TWIN_S - 1)
    assert not twin.is_there(5.0 + TWIN_S)
    assert twin.note(before.model_copy(update={"n": 74}), 5.0 + TWIN_S)
