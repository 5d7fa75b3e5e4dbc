"""What nobody can read on a screen, and dialogs that take no key: who waits is told, and how a person goes on."""

import json

import pytest

from tests.support.daemon import eventually
from tests.tui.conftest import Tui

RIDDLE = "The gate is closed."


def alerts(tui: Tui) -> list[str]:
    found = tui.daemon.agent(tui.name)["alerts"]
    return [alert for alert in found if "not understood" in alert]


@pytest.mark.night
def test_a_start_that_cannot_be_read_is_told_to_who_waits(tui: Tui) -> None:
    tui.start(unknown="start")
    waited = tui.daemon.ctl("send", tui.name, "--wait", "--", "a message")
    assert waited.code == 7, waited
    assert RIDDLE in waited.err
    assert f"synapsectl attach {tui.name}; or synapsectl keys {tui.name}" in waited.err
    state = tui.state
    assert (state["activity"], state["held"], state["prompt"]["type"]) == ("unknown", "unknown screen", "screen")
    assert len(alerts(tui)) == 1
    refused = tui.daemon.ctl("approve", tui.name)
    assert (refused.code, "not understood" in refused.err, "keys" in refused.err) == (6, True, True), refused
    assert tui.daemon.ctl("keys", tui.name, "x").code == 0
    eventually(lambda: tui.submitted == ["a message"], "the message that waited is delivered")
    tui.becomes(activity="ready", held=None)
    assert alerts(tui) == []


@pytest.mark.night
def test_a_dialog_before_the_delivery_is_told_the_same_way(tui: Tui) -> None:
    tui.start(dialog="start").becomes(activity="waiting")
    waited = tui.daemon.ctl("send", tui.name, "--wait", "--", "a message")
    assert (waited.code, "Allow it?" in waited.err, "synapsectl input" in waited.err) == (7, True, True), waited


def test_a_turn_that_comes_to_what_cannot_be_read_waits_for_a_person(tui: Tui) -> None:
    tui.start(unknown="work").ready()
    waited = tui.daemon.ctl("send", tui.name, "--wait", "--", "a message")
    assert (waited.code, RIDDLE in waited.err) == (7, True), waited
    assert f"synapsectl keys {tui.name}" in waited.err
    listed = {agent["name"]: agent for agent in tui.daemon.ctl("list", "--json").json}
    task = listed[tui.name]["task"]
    assert tui.daemon.task(task)["prompt"]["type"] == "screen"
    assert RIDDLE in tui.daemon.task(task)["prompt"]["prompt"]
    refused = tui.daemon.request("POST", f"/agents/{tui.name}/tasks/{task}/input", {"input": "left"})
    assert (refused.status, refused.json["error"]["code"]) == (400, "INVALID_CHOICE"), refused
    assert tui.daemon.ctl("keys", tui.name, "--", "x").code == 0
    assert tui.answer(tui.ended(task)) == "You said: a message"
    with tui.daemon.sse(f"/agents/{tui.name}/tasks/{task}/subscribe") as events:
        states = [event["data"]["state"] for event in events if event["event"] == "status"]
    assert states == ["submitted", "working", "input_required", "working", "completed"]


@pytest.mark.night
def test_an_answer_that_is_not_taken_is_told_and_not_typed_again(tui: Tui) -> None:
    tui.start(dialog="start", stubborn=1).becomes(activity="waiting")
    refused = tui.daemon.ctl("approve", tui.name)
    assert (refused.code, "asks the same" in refused.err) == (6, True), refused
    assert f"synapsectl keys {tui.name}" in refused.err
    assert tui.logged("key") == ["1"]
    assert tui.daemon.ctl("approve", tui.name).code == 0
    assert tui.logged("key") == ["1", "1"]
    assert tui.ask("a message") == "You said: a message"


@pytest.mark.night
def test_keys_are_a_person_s_hands(tui: Tui) -> None:
    tui.start().ready()
    assert tui.daemon.ctl("keys", tui.name, "a draft", "Space", "M-x").code == 0
    held = tui.becomes(activity="ready", held="typing")
    assert held["queue"] == 0
    wrong = tui.daemon.ctl("keys", tui.name, "C-Foo", "--json")
    assert (wrong.code, json.loads(wrong.out)["error"]["code"]) == (2, "INVALID_REQUEST"), wrong
    assert tui.daemon.ctl("keys", tui.name, "C-u").code == 0
    assert tui.ask("a message") == "You said: a message"
