"""How a program on pipes comes to its session: what is added to that, what its model is told, and one that says
nothing. No daemon."""

from typing import Any

import pytest

from synapsed.model.agent import Activity
from synapsed.model.link import LinkAlert, LinkTold
from synapsed.pipes.acp_opening import NO_TOOLS, PATIENCE_S, PAUSES, REST_S, SessionOpening
from synapsed.pipes.commands import Saved, ShowLine, Write
from synapsed.pipes.kept_session import KeptSession
from synapsed.pty.keyboard import Emit
from tests.pipes.test_pure import Played, tool

SERVERS = [{"name": "synapsed", "command": "python", "args": [], "env": []}]


def given(played: Played, method: str) -> list[dict[str, Any]]:
    """The parameters of each request of that method."""
    written = [command.message for command in played.done if isinstance(command, Write)]
    return [message["params"] for message in written if message.get("method") == method]


def alerts(played: Played) -> list[str]:
    return [event.state for event in told_alerts(played)]


def told_alerts(played: Played) -> list[LinkAlert]:
    told = [command.event for command in played.done if isinstance(command, Emit)]
    return [event for event in told if isinstance(event, LinkAlert)]


def greeted(**options: Any) -> Played:
    played = Played(opening=SessionOpening({"mcpServers": SERVERS, "cwd": "/other"}, "Who you are."), **options)
    played.line(id="initialize", result={"agentCapabilities": {"loadSession": True}})
    return played


def prompt(played: Played, text: str, number: int) -> list[str]:
    """The blocks that the program is given, whose answer then ends the turn."""
    played.done += played.session.deliver(f"t.{number}", text, fresh=True)
    request = played.session.prompt(f"t.{number}")
    assert request is not None
    played.done += played.session.given(f"t.{number}", 1, at=played.at)
    played.line(id=f"t.{number}", result={"stopReason": "end_turn"})
    return [block["text"] for block in request["params"]["prompt"]]


@pytest.mark.parametrize(("conversation", "method"), [(None, "session/new"), ("old", "session/load")])
def test_a_session_has_what_the_profile_adds_and_the_agents_folder(conversation: str | None, method: str) -> None:
    (params,) = given(greeted(conversation=conversation), method)
    assert (params["mcpServers"], params["cwd"]) == (SERVERS, "/work")


def test_a_program_that_does_not_take_that_gets_a_plain_session() -> None:
    played = greeted()
    played.line(id="session", error={"code": -32602, "message": "no servers, please"})
    assert [params["mcpServers"] for params in given(played, "session/new")] == [SERVERS, []]
    assert any(isinstance(command, ShowLine) and "no servers, please" in command.text for command in played.done)
    played.line(id="session.plain", result={"sessionId": "s"})
    assert played.session.session == "s"
    assert played.session.observation().can_receive
    (told,) = told_alerts(played)
    assert (told.code, told.state) == (NO_TOOLS, "begins")
    assert "no servers, please" in told.message


def test_a_session_without_the_tools_is_told_by_the_next_daemon_too() -> None:
    """It reads the responses again, and asks for nothing."""
    played = Played(opening=SessionOpening({"mcpServers": SERVERS}), kept=KeptSession(session="s", at=900))
    played.line(id="initialize", result={"agentCapabilities": {}})
    played.line(id="session", error={"code": -32602, "message": "no servers, please"})
    assert alerts(played) == []
    played.line(id="session.plain", result={"sessionId": "s"})
    assert [(told.code, told.state) for told in told_alerts(played)] == [(NO_TOOLS, "begins")]
    assert given(played, "session/new") == []


def test_one_that_opens_no_plain_session_either_is_told_of() -> None:
    played = greeted()
    for id_ in ("session", "session.plain"):
        played.line(id=id_, error={"code": -32603, "message": "not today"})
    assert alerts(played) == ["begins"]
    assert played.session.observation().activity is Activity.UNKNOWN


def test_the_first_message_of_a_conversation_says_who_it_is() -> None:
    """Nothing stands in front of a command of the program: it would be a message then."""
    played = greeted()
    played.line(id="session", result={"sessionId": "s"})
    assert prompt(played, "/init", 1) == ["/init"]
    assert prompt(played, "one", 2) == ["Who you are.", "one"]
    assert prompt(played, "two", 3) == ["two"]


def test_it_is_not_said_again_in_a_conversation_that_goes_on_or_to_the_next_daemon() -> None:
    played = greeted(conversation="old")
    played.line(id="session.load", result={})
    assert prompt(played, "one", 1) == ["one"]
    played = greeted()
    played.line(id="session", result={"sessionId": "s"})
    played.line(id="t.0", result={"stopReason": "end_turn"})  # an earlier daemon's
    assert prompt(played, "one", 1) == ["one"]


def going_on(capabilities: dict[str, Any] | None = None) -> Played:
    """A program that has answered that it goes on with a conversation."""
    played = Played(conversation="old")
    played.line(id="initialize", result={"agentCapabilities": capabilities or {"loadSession": True}})
    played.line(id="session.load", result={})
    return played


def test_what_a_conversation_of_before_is_told_by_is_no_answer_and_no_work() -> None:
    """Also where it comes behind the answer to `session/load`: it is all told when nothing came for a while."""
    played = going_on()
    for now in (10.0, 10.5, 11.4):
        tool(played)
        played.said("an answer of before")
        played.done += played.session.waited(now)
        assert played.session.observation().activity is Activity.STARTING
    assert not [command for command in played.done if isinstance(command, Saved)]
    for now in (11.9, 11.4 + PAUSES * 0.9 - 0.01):
        played.done += played.session.waited(now)
        assert not played.session.observation().can_receive, "it made long pauses before"
    played.done += played.session.waited(11.4 + PAUSES * 0.9)
    assert played.session.observation().can_receive
    assert not [c for c in played.done if isinstance(c, Emit) and isinstance(c.event, LinkTold)]
    played.deliver(fresh=True)
    played.said("so")
    played.line(id="t.1", result={"stopReason": "end_turn"})
    assert [event.answer for event in played.told] == ["so"]


def test_one_that_tells_nothing_of_before_is_not_waited_for() -> None:
    played = going_on({"sessionCapabilities": {"resume": {}}})
    assert given(played, "session/resume")
    assert played.session.observation().can_receive


def test_the_next_daemon_knows_where_what_was_before_ends() -> None:
    """That comes first again, and then the turn that runs."""
    played = going_on()
    played.said("an answer of before")
    for now in (1.0, 1.0 + REST_S):
        played.done += played.session.waited(now)
    (saved,) = [command for command in played.done if isinstance(command, Saved)]
    again = Played(conversation="old", kept=saved.kept)
    for id_, result in (("initialize", {"agentCapabilities": {"loadSession": True}}), ("session.load", {})):
        again.line(id=id_, result=result)
    again.said("an answer of before")
    again.said("so")
    again.deliver(fresh=False)
    again.line(id="t.1", result={"stopReason": "end_turn"})
    assert [event.answer for event in again.told] == ["so"]


@pytest.mark.parametrize("read", ["first", "last"])
def test_what_was_written_before_the_prompt_is_no_answer_whenever_it_is_read(read: str) -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    if read == "first":
        played.said("of before")
    at = played.at if read == "first" else played.at + 10
    played.done += played.session.given("t.1", 1, at=at)
    if read == "last":
        played.said("of before")
    played.said("so")
    played.line(id="t.1", result={"stopReason": "end_turn"})
    assert [event.answer for event in played.told] == ["so"]


@pytest.mark.parametrize("silent", ["initialize", "session"])
def test_a_program_that_does_not_answer_is_told_of_once_and_goes_on_when_it_does(silent: str) -> None:
    played = greeted() if silent == "session" else Played()
    for now in (5.0, 5.0 + PATIENCE_S - 0.1):
        played.done += played.session.waited(now)
    assert alerts(played) == []
    assert played.session.observation().activity is Activity.STARTING
    for now in (5.0 + PATIENCE_S, 500.0):
        played.done += played.session.waited(now)
    assert alerts(played) == ["begins"]
    seen = played.session.observation()
    assert (seen.activity, seen.can_receive) == (Activity.UNKNOWN, False)
    assert "is not answered" in seen.evidence
    if silent == "initialize":
        played.line(id="initialize", result={})
    played.line(id="session", result={"sessionId": "s"})
    assert alerts(played) == ["begins", "over"]
    assert played.session.observation().can_receive
    assert played.session.waited(9999.0) == []
