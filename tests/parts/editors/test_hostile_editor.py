"""`synapsectl acp` for an editor that is broken, or means harm: each wrong thing is answered, and the next prompt is as
ever. `test_acp` has lines that are no messages, and requests with wrong parameters."""

from pathlib import Path
from typing import Any

import pytest

from synapsed.parts.editors.ctl import wire
from synapsed.parts.editors.ctl.session import ASKED_MAX, PROMPTS_MAX
from tests.support.acp import Editor, Refused
from tests.support.daemon import Daemon, eventually

pytestmark = pytest.mark.timeout(120)


def goes_on(one: Editor) -> None:
    assert one.prompt("reverse abc")[1] == "cba"


def answers(one: Editor, id_: object) -> list[dict[str, Any]]:
    return [message for message in one.messages if message.get("id") == id_ and "method" not in message]


def ask(one: Editor, id_: object, text: str) -> None:
    prompt = [{"type": "text", "text": text}]
    one.write({"id": id_, "method": "session/prompt", "params": {"sessionId": one.session, "prompt": prompt}})


def cancel(one: Editor, session: object) -> None:
    one.write({"method": "session/cancel", "params": {"sessionId": session}})


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "x" * 11_000_000},
        {"type": "text", "text": "x\ud800y"},
        {"type": "video", "data": "AA=="},
        {"type": "image", "data": "no base64", "mimeType": "image/png"},
        {"type": "image", "data": "AA==", "mimeType": "image/" + "x" * 100_000},
        {"type": "resource", "resource": {"uri": "file:///x", "blob": "A" * 14_000_000}},
        {"type": "resource_link", "uri": "file:///" + "%00" * 1000},
    ],
    ids=["huge", "surrogate", "video", "base64", "type", "blob", "nul"],
)
def test_a_wrong_block_is_refused_with_a_code_or_taken(one: Editor, block: dict[str, Any]) -> None:
    """It never ends the server, and no error is one of synapsed's own."""
    refusals: list[Refused] = []
    try:
        one.prompt("reverse x", block)
    except Refused as refused:
        refusals.append(refused)
    assert all(each.code == wire.INVALID_PARAMS and len(each.message) < 1000 for each in refusals), refusals
    goes_on(one)


def test_an_empty_file_is_taken(one: Editor) -> None:
    """Editors embed one as any other."""
    _, text = one.prompt("see", {"type": "resource", "resource": {"uri": "file:///x/empty.py", "text": ""}})
    assert text.startswith("You said: see /x/empty.py (attached: empty.py)")


def test_controls_in_a_text_press_no_keys(one: Editor) -> None:
    """The end of a paste, an interrupt and an escape are characters of the text."""
    one.prompt("one \x1b[201~\x03\x1b two\r")
    goes_on(one)


def test_two_prompts_of_one_id_are_both_answered(one: Editor) -> None:
    for text in ("reverse abc", "reverse def"):
        ask(one, "twice", text)
    one.see(lambda _: len(answers(one, "twice")) == 2, "both answers")
    assert [answer["result"]["stopReason"] for answer in answers(one, "twice")] == ["end_turn"] * 2
    goes_on(one)


def test_cancels_before_a_prompts_answer_and_of_nothing_do_no_harm(one: Editor) -> None:
    for session in (None, 3, [], {"a": 1}, "nobody", one.session):
        cancel(one, session)
    one.write({"method": "$/cancel_request", "params": {"requestId": {"a": 1}}})
    one.write({"method": "session/cancel"})
    prompts = [one.prompting("busy 60") for _ in range(3)]
    for _ in range(3):
        cancel(one, one.session)
    assert {one.answer(prompt)["stopReason"] for prompt in prompts} == {"cancelled"}
    goes_on(one)


def test_more_prompts_than_a_session_takes_are_refused(one: Editor) -> None:
    prompts = [one.prompting("busy 60") for _ in range(PROMPTS_MAX)]
    with pytest.raises(Refused) as refused:
        one.prompt("reverse abc")
    assert refused.value.code == wire.INVALID_REQUEST
    cancel(one, one.session)
    assert {one.answer(prompt)["stopReason"] for prompt in prompts} == {"cancelled"}
    goes_on(one)


@pytest.mark.parametrize(
    "result",
    [
        {"outcome": {"outcome": "selected", "optionId": "99"}},
        {"outcome": {"outcome": "selected", "optionId": "y\r\ny"}},
        {"outcome": {"outcome": "whatever", "optionId": "y"}},
        {"outcome": 7},
        "y",
    ],
    ids=["no option", "two lines", "no outcome", "a number", "a text"],
)
def test_an_answer_that_is_none_answers_nothing(daemon: Daemon, one: Editor, result: Any) -> None:
    """It is asked again a few times where there was an answer, and others can still answer."""
    answered: list[str] = []

    def choose(request: dict[str, Any]) -> None:
        if request["id"] not in answered:
            answered.append(request["id"])
            for _ in range(2):
                one.write({"id": request["id"], "result": result})

    one.on_request = choose
    prompt = one.prompting("ask y/n")
    one.see(lambda _: one.requests(), "the editor is asked")
    eventually(lambda: daemon.agent("ann")["activity"] == "waiting", "it waits on")
    assert daemon.ctl("approve", "ann").code == 0
    assert one.answer(prompt)["stopReason"] == "end_turn"
    assert 1 <= len(one.requests()) <= ASKED_MAX
    assert "Answered: y" in "".join(update["content"]["text"] for update in one.updates("agent_message_chunk"))
    goes_on(one)


def test_an_error_for_an_answer_leaves_the_question_to_others(daemon: Daemon, one: Editor) -> None:
    prompt = one.prompting("ask y/n")
    asked = one.see(lambda _: one.requests(), "the editor is asked")[0]
    one.write({"id": asked["id"], "error": {"code": -32601, "message": "no such method"}})
    assert daemon.ctl("deny", "ann").code == 0
    assert one.answer(prompt)["stopReason"] == "end_turn"
    goes_on(one)


def test_an_id_that_json_cannot_have_is_refused(one: Editor) -> None:
    before = len(one.messages)
    one.raw(b'{"jsonrpc":"2.0","id":1e999,"method":"session/list"}\n')
    (answer,) = one.see(lambda messages: messages[before:], "an answer")
    assert (answer["id"], answer["error"]["code"]) == (None, wire.INVALID_REQUEST)
    assert wire.read(b'{"jsonrpc":"2.0","id":-1e999,"result":{}}') == wire.RpcResponse(None, {}, None)
    goes_on(one)


def test_a_session_that_is_closed_and_opened_in_the_middle_of_a_prompt(one: Editor, folder: Path) -> None:
    prompt = one.prompting("busy 60")
    one.new(folder)
    assert one.call("session/close", sessionId=one.session) == {}
    assert one.answer(prompt)["stopReason"] == "cancelled"
    one.new(folder)
    goes_on(one)
