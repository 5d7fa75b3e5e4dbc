"""Who needs a person here and elsewhere, put together; and the hosts that do not say so."""

from typing import Any

from synapsectl.inbox.everywhere import Everywhere, Merged, missing
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon


def item(name: str, minute: int, host: str | None = None) -> dict[str, Any]:
    since = f"2026-01-02T11:{minute:02d}:00.000Z"
    return {"id": name, "kind": "permission", "prompt_id": name, "since": since, "host": host}


def said(name: str, error: str | None = None, left_out: int = 0) -> dict[str, Any]:
    return {"name": name, "state": "up", "items": 1, "left_out": left_out, "error": error}


def ids(merged: Merged) -> list[str]:
    return [one["id"] for one in merged.items or ()]


def test_nothing_is_known_before_this_daemon_told():
    merged = Merged()
    merged.there(Everywhere([item("a@box", 1, "box")], [said("box")]))
    assert merged.items is None
    merged.here([])
    assert ids(merged) == ["a@box"]


def test_the_rows_of_a_host_that_does_not_answer_stay_and_those_of_one_that_is_removed_go():
    merged = Merged()
    merged.here([item("x", 2)])
    merged.there(Everywhere([item("a@box", 1, "box"), item("b@lab", 3, "lab")], [said("box"), said("lab")]))
    assert ids(merged) == ["a@box", "x", "b@lab"]
    merged.there(Everywhere([], [said("box", "box did not answer within 3 s"), said("lab")]))
    assert ids(merged) == ["a@box", "x"]
    merged.here([])
    assert ids(merged) == ["a@box"]
    merged.there(Everywhere([], []))
    assert ids(merged) == []


def test_who_did_not_say_everything_is_named(daemon: FakeDaemon, ctl: Ctl) -> None:
    hosts = [said("box", "it is asleep"), said("lab", left_out=3), said("den")]
    assert missing(hosts) == ["box: it is asleep", "lab: 3 more are not shown"]
    daemon.hosts_said = hosts
    for verb in (("inbox",), ("inbox", "--json"), ("approve", "--all")):
        told = ctl(*verb)
        assert (told.code, "box: it is asleep" in told.err) == (0, True), verb
