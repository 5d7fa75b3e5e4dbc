"""What decides of a program on pipes: lines, speech, outcomes, requests, the transcript and the session. No daemon."""

import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from synapsed.errors import InvalidChoice, NotWaiting, PromptChanged
from synapsed.model.agent import Activity
from synapsed.model.facts import PermissionAsked, TurnFailed, TurnInterrupted
from synapsed.model.link import LinkRefused, LinkTold, LinkTurnEnded, LinkTurnFailed, LinkTurnInterrupted
from synapsed.model.task import Prompt
from synapsed.pipes.acp_link import ON_PIPES
from synapsed.pipes.acp_opening import SessionOpening
from synapsed.pipes.acp_reports import CALLS_MAX, TOLD_MAX, ProgramCalls
from synapsed.pipes.acp_session import AcpSession
from synapsed.pipes.commands import NotRefused, OfTurn, PipesCommand, Saved, Write
from synapsed.pipes.kept_session import KeptSession
from synapsed.pipes.permission_request import open_request
from synapsed.pipes.rpc import LineReader, RpcLine, encode
from synapsed.pipes.speech import TurnSpeech, outcome
from synapsed.pipes.transcript import TranscriptView, harmless
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.pty.channel_turn import ChannelTurn, ChannelTurnState
from synapsed.pty.keyboard import Emit
from synapsed.pty.turn_types import Say
from tests.pty.playbook import delivery_of

PROFILE = ProfileLibrary.builtin().get("acp")


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b" ")), max_size=10), st.data())
def test_lines_are_the_same_however_the_output_is_cut(lines: list[bytes], data: st.DataObject) -> None:
    text, reader, found, at = b"".join(line + b"\n" for line in lines), LineReader(), [], 100
    whole = LineReader().feed(at, text)
    while text:
        size = data.draw(st.integers(1, len(text)))
        found += reader.feed(at, text[:size])
        text, at = text[size:], at + size
    assert found == whole
    assert len(found) == sum(bool(line.strip()) for line in lines)


def test_output_that_begins_in_a_line_or_is_missing_gives_no_half_lines() -> None:
    message = encode({"method": "x"})
    reader = LineReader(begins=True)
    assert [line.message for line in reader.feed(0, b'half"}\n' + message)] == [json.loads(message)]
    reader.feed(0, b'{"half')
    reader.skip()
    assert [line.message for line in reader.feed(0, b'rest"}\n' + message)] == [json.loads(message)]


# --- what is said -----------------------------------------------------------------------------------------------------


def chunk(text: str, message: str | None = None, **more: Any) -> dict[str, Any]:
    ids = {} if message is None else {"messageId": message}
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, **ids, **more}


def speech(*updates: dict[str, Any] | None, ids: bool = False) -> TurnSpeech:
    said = TurnSpeech(ids=ids)
    for place, update in enumerate(updates):
        said.interlude(place) if update is None else said.chunk(update, place)
    return said


INFORMATIONAL = {"_meta": {"some": {"kind": "informational"}}}


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (speech(chunk("a"), chunk("b")), "ab"),
        (speech(chunk("before"), None, chunk("after")), "after"),
        (speech(chunk("Warning: x"), chunk("an", "1"), chunk("swer", "1")), "answer"),
        (speech(chunk("one", "1"), chunk("two", "2")), "two"),
        (speech(chunk("answer", "1"), chunk("a notice", "1", **INFORMATIONAL)), "answer"),
        (speech(chunk("a warning"), ids=True), None),
        (speech(chunk("answer"), None), "answer"),
        (speech(), None),
    ],
)
def test_the_answer_is_the_last_message_and_no_notice(said: TurnSpeech, answer: str | None) -> None:
    assert said.answer == answer


def ended(stop: str = "end_turn", **more: Any) -> dict[str, Any]:
    return {"result": {"stopReason": stop, **more}}


@pytest.mark.parametrize(
    ("answer", "said", "code"),
    [
        (ended(), speech(chunk("x")), None),
        (ended(usage=None), speech(chunk("x", "1")), None),
        (ended(usage=None), speech(chunk("Error: unexpected status 400")), "MODEL_ERROR"),
        (ended(usage=None), speech(chunk("status 429 Too Many Requests")), "RATE_LIMITED"),
        (ended(usage=None), speech(chunk("401 Unauthorized"), ids=True), "AUTH_REQUIRED"),
        (ended("cancelled"), speech(), None),
        (ended("max_tokens"), speech(), "CONTEXT_FULL"),
        (ended("refusal"), speech(), "MODEL_ERROR"),
        ({"error": {"code": -32000, "message": "x"}}, speech(), "AUTH_REQUIRED"),
        ({"error": {"code": 429, "message": "x"}}, speech(), "RATE_LIMITED"),
        ({"error": {"code": -32603, "message": "x", "data": {"errorKind": "rate_limit"}}}, speech(), "RATE_LIMITED"),
        ({"error": {"code": -32603, "message": "x", "data": 3}}, speech(), "MODEL_ERROR"),
        ({"result": None}, speech(), "MODEL_ERROR"),
    ],
)
def test_how_a_turn_ended(answer: dict[str, Any], said: TurnSpeech, code: str | None) -> None:
    over = outcome(answer, said, [], turn="t.1", at_ns=1)
    assert (over.code if isinstance(over, TurnFailed) else None) == code
    assert isinstance(over, TurnInterrupted) is (answer == ended("cancelled"))


# --- what is asked ----------------------------------------------------------------------------------------------------


def asks(id_: Any = "p") -> dict[str, Any]:
    options = [("a", "Allow", "allow_once"), ("b", "Always", "allow_always"), ("c", "Reject", "reject_once")]
    return {
        "id": id_,
        "method": "session/request_permission",
        "params": {
            "toolCall": {"toolCallId": "c", "title": "touch it", "rawInput": {"command": "touch x"}},
            "options": [{"optionId": i, "name": n, "kind": k} for i, n, k in options],
        },
    }


@pytest.mark.parametrize(
    ("words", "option"), [("1", "a"), ("Always", "b"), ("c", "c"), ("yes", "a"), ("NO", "c"), ("ok", "a")]
)
def test_a_permission_is_answered_by_key_label_or_yes_and_no(words: str, option: str) -> None:
    request = open_request(asks(), asks()["params"]["toolCall"], 7)
    assert request is not None
    assert request.prompt.prompt == "touch it\ntouch x"
    assert request.options[request.chosen(words)] == option
    with pytest.raises(InvalidChoice):
        request.chosen("perhaps")


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (("Allow", "Yes, always", "No"), ["Allow", "Yes, always", "No"]),
        (("允许一次", "始终允许", "拒绝"), ["Allow once (允许一次)", "Allow always (始终允许)", "Reject once (拒绝)"]),
        (("a", "b", "c"), ["Allow once (a)", "Allow always (b)", "Reject once (c)"]),
        (("Run it", "Don't ask again", "Abort"), ["Allow once (Run it)", "Allow always (Don't ask again)", None]),
        (
            ("Yes, and don't ask again", "Yes", "No"),
            ["Allow once (Yes, and don't ask again)", "Allow always (Yes)", "No"],
        ),
    ],
)
def test_yes_and_no_are_what_the_program_means_by_an_option(names: Any, labels: list[str | None]) -> None:
    """Whatever language its name has. No yes is taken that lasts: the last row has none for this time alone."""
    message = asks()
    for option, name in zip(message["params"]["options"], names, strict=True):
        option["name"] = name
    request = open_request(message, {}, 7)
    assert request is not None
    assert [option.label for option in request.prompt.options] == [
        label or f"Reject once ({name})" for label, name in zip(labels, names, strict=True)
    ]
    assert request.options[request.chosen("no")] == request.options[request.chosen(names[2])] == "c"
    if "again" in names[0]:
        with pytest.raises(InvalidChoice):
            request.chosen("yes")
    else:
        assert request.options[request.chosen("yes")] == "a"


def test_an_option_that_is_named_by_its_id_is_named_in_words() -> None:
    message = asks()
    ids = ("allow_always", "allow_once", "reject_once", "reject_always")
    message["params"]["options"] = [{"optionId": each, "name": each, "kind": each} for each in ids]
    request = open_request(message, {}, 7)
    assert request is not None
    assert [option.label for option in request.prompt.options] == [each.replace("_", " ") for each in ids]
    assert [request.options[request.chosen(words)] for words in ("yes", "no")] == ["allow_once", "reject_once"]


@pytest.mark.parametrize("params", [None, [], {}, {"options": []}, {"options": [1]}, {"options": [{"name": "x"}]}])
def test_a_request_that_cannot_be_understood_is_none(params: Any) -> None:
    assert open_request({"id": 1, "method": "session/request_permission", "params": params}, {}, 7) is None


# --- what is shown ----------------------------------------------------------------------------------------------------


@given(st.text())
def test_nothing_that_a_program_says_is_obeyed_by_a_terminal(text: str) -> None:
    assert not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in harmless(text))


def test_a_person_writes_a_line_while_text_comes() -> None:
    view = TranscriptView()
    assert view.keys(b"hel\x7flo")[1] == []
    assert view.draft == "helo"
    assert b"helo" not in view.said("text of the program")
    assert b"helo" in view.rest()
    assert view.keys(b"\r")[1] == ["helo"]
    assert (view.draft, view.keys(b"\x03")[1], view.keys("é\r".encode())[1]) == ("", ["\x03"], ["é"])


# --- the session ------------------------------------------------------------------------------------------------------


class Played:
    """A session, and what it wanted."""

    def __init__(self, profile: Profile = PROFILE, **options: Any) -> None:
        self.session = AcpSession(profile, **{"cwd": "/work", "conversation": None, **options})
        self.done: list[PipesCommand] = self.session.begin()
        self.at = 0
        self.kept: dict[str, Any] = {}
        self.given: dict[str, Any] | None = None
        """The request that was made of the message."""

    def line(self, **message: Any) -> None:
        self.at += 10
        self.done += self.session.read(RpcLine(self.at - 10, self.at, {"jsonrpc": "2.0", **message}), 1)

    def said(self, text: str, message: str | None = None) -> None:
        self.line(method="session/update", params={"update": chunk(text, message)})

    def opened(self, *, back: bool = False) -> "Played":
        """`back`: what follows was written before this daemon came, too."""
        self.line(id="initialize", result={"agentCapabilities": {"loadSession": True}})
        self.line(id="session", result={"sessionId": "s"})
        self.done += [] if back else self.session.take_up()
        return self

    @property
    def written(self) -> list[str | None]:
        return [command.input_id for command in self.done if isinstance(command, Write)]

    @property
    def told(self) -> list[Any]:
        """What the machine of the turn tells of its end."""
        state = ChannelTurnState(channel="acp", key="t.1", minted_at=0, **self.kept)
        machine = ChannelTurn(delivery_of("text"), state, rules=ON_PIPES)
        commands = machine.begin(fresh=True)
        for command in self.done:
            match command:
                case OfTurn(fact):
                    commands += machine.told(fact, 0)
                case Emit(LinkRefused()):
                    commands += machine.refuse("a note", 0)
                case Write({"method": "session/cancel"}):
                    commands += machine.interrupt()
                case NotRefused():
                    commands += machine.overrule()
        kinds = LinkTurnEnded | LinkTurnFailed | LinkTurnInterrupted
        return [c.event for c in commands if isinstance(c, Say) and isinstance(c.event, kinds)]

    def deliver(self, text: str = "text", *, fresh: bool, at: int | None = 0, whole: bool = False, **kept: Any) -> None:
        """`kept`: what is on record of the turn; `at`: what the program had written by then."""
        self.kept = kept
        self.done += self.session.deliver("t.1", text, fresh=fresh, stopped=bool(kept))
        self.given = self.session.prompt("t.1")
        self.done += self.session.given("t.1", 1, at=at, whole=whole)


def test_a_session_is_opened_and_a_message_answered() -> None:
    played = Played().opened()
    assert played.written == ["initialize", "session"]
    played.deliver(fresh=True)
    played.said("so", "1")
    assert played.session.observation().activity is Activity.BUSY
    played.line(id="t.1", result={"stopReason": "end_turn"})
    assert [(event.answer, event.exact) for event in played.told] == [("so", True)]
    assert played.session.observation().can_receive


def test_a_message_that_the_keeper_refuses_leaves_the_instructions_to_the_next() -> None:
    played = Played(opening=SessionOpening(brief="Be brief.")).opened()
    for text in ("first", "second"):
        played.session.deliver(text, text, fresh=True)
        given = played.session.prompt(text)
        assert given is not None
        assert [part["text"] for part in given["params"]["prompt"]] == ["Be brief.", text]
        played.session.unwritten(text)
        assert played.session.observation().can_receive


@pytest.mark.parametrize("whole", [True, False])
def test_an_answer_from_before_the_daemon_is_cut_only_where_output_of_its_turn_is_gone(whole: bool) -> None:
    played = Played().opened()
    played.session.missed()
    played.said("so", "1")
    played.line(id="t.1", result={"stopReason": "end_turn"})
    played.deliver(fresh=False, whole=whole)
    assert [(event.answer, event.truncated) for event in played.told] == [("so", not whole)]


def test_a_conversation_is_gone_on_with_or_begun_where_it_is_lost() -> None:
    played = Played(conversation="old")
    played.line(id="initialize", result={"agentCapabilities": {"loadSession": True}})
    played.said("an answer of before", "0")
    played.line(id="session.load", error={"code": -32603, "message": "no such session"})
    played.line(id="session", result={"sessionId": "s"})
    assert played.written == ["initialize", "session.load", "session"]
    assert played.session.session == "s"


def tool(played: Played, update: str = "tool_call", /, call: str = "c", **told: Any) -> None:
    played.line(method="session/update", params={"update": {"sessionUpdate": update, "toolCallId": call, **told}})


def only_named(call: str = "c", id_: Any = "p") -> dict[str, Any]:
    """A request that names a call, and no more."""
    request = asks(id_)
    request["params"]["toolCall"] = {"toolCallId": call}
    return request


def prompt_of(played: Played) -> Prompt:
    prompt = played.session.observation().prompt
    assert prompt is not None
    return prompt


def facts(played: Played) -> list[PermissionAsked]:
    told = [c.event.fact for c in played.done if isinstance(c, Emit) and isinstance(c.event, LinkTold)]
    return [fact for fact in told if isinstance(fact, PermissionAsked)]


def test_a_request_that_only_names_its_call_has_what_was_told_of_that() -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    tool(played, title="bash: touch made.txt", kind="execute", rawInput={"command": "touch made.txt"})
    tool(played, call="another", title="ls", rawInput={"command": "ls"})
    played.line(**only_named())
    prompt = prompt_of(played)
    assert (prompt.prompt, prompt.command) == ("bash: touch made.txt\ntouch made.txt", "touch made.txt")
    (asked,) = facts(played)
    assert asked.told == {"kind": "execute", "command": "touch made.txt", "paths": []}


def shown(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}


def test_a_command_that_is_told_as_text_and_cut_in_the_request_is_known_whole() -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    for text in ('{"comm', '{"command": "touch made.txt", "description": "x"}'):
        tool(played, title="Bash", kind="execute", status="pending", content=[shown(text)])
    request = only_named()
    request["params"]["toolCall"] |= {"title": "Bash", "content": [shown("Running: touch m…")]}
    played.line(**request)
    prompt = prompt_of(played)
    assert (prompt.prompt, prompt.command) == ("Bash\ntouch made.txt\nRunning: touch m…", "touch made.txt")


def test_an_input_that_is_told_as_text_can_be_passed_on() -> None:
    """It is JSON within JSON, so its halves of characters are not those of the line."""
    for text, known in (('{"command": "\\ud83d"}', {"command": "\ufffd"}), ('{"command":' * 16_000, None)):
        calls = ProgramCalls()
        list(calls.told({"toolCallId": "c", "status": "pending", "content": [shown(text)]}, 0))
        assert calls.whole({"toolCallId": "c"}).get("rawInput") == known


def test_what_a_call_printed_is_no_input_of_it() -> None:
    calls = ProgramCalls()
    list(calls.told({"toolCallId": "c", "status": "in_progress", "content": [shown('{"command": "x"}')]}, 0))
    assert "rawInput" not in calls.whole({"toolCallId": "c"})


def test_what_is_told_after_the_request_and_in_pieces_makes_another_question() -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    played.line(**only_named())
    first = prompt_of(played)
    assert (first.prompt, first.command) == ("The program asks for permission.", None)
    tool(played, title="bash", kind="execute")
    tool(played, "tool_call_update", call="another", rawInput={"command": "ls"})
    second = prompt_of(played)
    assert (second.prompt, second.command) == ("bash", None)
    tool(played, "tool_call_update", rawInput={"command": ["touch", "a b"]}, title=None, content=[])
    third = prompt_of(played)
    assert (third.prompt, third.command) == ("bash\ntouch 'a b'", "touch 'a b'")
    for before in (first, second):
        with pytest.raises(PromptChanged):
            played.session.answer("yes", before.prompt_id)
    tool(played, "tool_call_update", status="in_progress")
    assert prompt_of(played) == third
    played.done += played.session.answer("yes", third.prompt_id)
    assert played.session.observation().prompt is None


def test_two_writes_to_one_file_say_what_differs() -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    for call, line in (("c", "one"), ("d", "two")):
        block = {"type": "diff", "path": "/x/f.txt", "oldText": "old\n", "newText": f"{line}\n"}
        tool(played, call=call, title="Edit f.txt", kind="edit", content=[block], rawInput={"command": "str_replace"})
        played.line(**only_named(call, call))
    one, two = (request.prompt for request in played.session._requests.all_waiting)
    assert (one.command, one.diff) == (None, "--- /x/f.txt\n+++ /x/f.txt\n-old\n+one")
    assert (two.command, two.diff) == (None, "--- /x/f.txt\n+++ /x/f.txt\n-old\n+two")
    assert one.prompt == two.prompt == "Edit f.txt\n/x/f.txt"
    assert one.prompt_id != two.prompt_id
    assert [fact.told["paths"] for fact in facts(played)] == [["/x/f.txt"]] * 2


def test_a_rule_answers_by_the_one_option_of_its_kind() -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    played.line(**asks())
    (asked,) = facts(played)
    assert asked.request is not None
    assert played.session.decide(asked.request, "reject_always") is None
    assert played.session.decide("another", "allow_once") is None
    done = played.session.decide(asked.request, "allow_once")
    assert done is not None
    assert [c.message["result"]["outcome"] for c in done if isinstance(c, Write)] == [
        {"outcome": "selected", "optionId": "a"}
    ]
    assert played.session.decide(asked.request, "allow_once") is None


def test_what_calls_tell_is_bounded() -> None:
    calls = ProgramCalls()
    for number in range(CALLS_MAX + 10):
        list(calls.told({"toolCallId": f"c{number}", "rawInput": {"command": "x"}}, 0))
    assert not calls.knows("c9")
    assert calls.knows("c10")
    for number in range(20):
        list(calls.told({"toolCallId": f"big{number}", "content": [{"text": "x" * (TOLD_MAX // 8)}]}, 0))
    assert [calls.knows(f"big{number}") for number in range(20)] == [False] * 13 + [True] * 7
    for number in range(20):
        list(calls.told({"toolCallId": f"big{number}", "status": "completed"}, 0))
    assert calls._size == 0
    assert not calls._told


def asking(played: Played) -> None:
    options = [{"optionId": "no", "name": "Reject", "kind": "reject_once"}]
    played.line(id=7, method="session/request_permission", params={"toolCall": {"title": "rm"}, "options": options})
    played.done += played.session.answer("no", None)


@pytest.mark.parametrize(("said", "ends"), [("", ["refused"]), ("Then not.", [])])
def test_a_turn_that_ends_without_a_word_since_a_permission_was_refused_was_stopped_by_that(
    said: str, ends: list[str]
) -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    asking(played)
    if said:
        played.said(said, "1")
    played.line(id="t.1", result={"stopReason": "end_turn"})
    (over,) = played.told
    assert [over.reason] == ends if ends else over.answer == said


COPILOT = ProfileLibrary.builtin().get("copilot")


@pytest.mark.parametrize("words", ["Info: Operation cancelled by user", "I look.\nInfo: Operation cancelled by user\n"])
@pytest.mark.parametrize("denied", [True, False])
def test_copilots_notice_of_a_stop_is_no_answer(words: str, *, denied: bool) -> None:
    """Its turns end `end_turn` with it, when a tool was denied and when they were canceled."""
    played = Played(COPILOT).opened()
    played.deliver(fresh=True)
    if denied:
        asking(played)
    else:
        played.done += played.session.interrupt(0.0)
    played.said(words, None)
    played.line(id="t.1", result={"stopReason": "end_turn"})
    (over,) = played.told
    assert over.reason == ("refused" if denied else "interrupted")


def test_an_answer_of_copilots_that_quotes_it_is_one() -> None:
    played = Played(COPILOT).opened()
    played.deliver(fresh=True)
    played.said("Info: Operation cancelled by user\nis what it says.", None)
    played.line(id="t.1", result={"stopReason": "end_turn"})
    (over,) = played.told
    assert over.answer.endswith("is what it says.")


RETRY = "Please retry if you think this is a transient or recoverable error."


@pytest.mark.parametrize(
    ("words", "failed"),
    [
        (f"Ran into this error: Request failed: Bad request (400): no\nsuch model.\n\n{RETRY}", True),
        ("Network error: Stream decode error: x\n\nPlease resend your message to try again.", True),
        (f"Ran into this error: what?\n\n{RETRY} It says so.", False),
    ],
)
def test_gooses_words_for_a_failure_are_no_answer(words: str, *, failed: bool) -> None:
    played = Played(ProfileLibrary.builtin().get("goose")).opened()
    played.deliver(fresh=True)
    played.said(words, "msg_1")
    played.line(id="t.1", result={"stopReason": "end_turn"})
    (over,) = played.told
    assert isinstance(over, LinkTurnFailed) is failed
    assert not failed or over.code == "MODEL_ERROR"


def test_opencodes_report_that_a_call_runs_leaves_its_question() -> None:
    """It may tell that a call runs, under the tool's name, before its question about the call is answered."""
    played = Played().opened()
    played.deliver(fresh=True)
    tool(played, title="write", kind="edit", status="pending")
    asked = asks()
    asked["params"]["toolCall"] |= {"title": "external_directory", "kind": "other"}
    played.line(**asked)
    before = prompt_of(played)
    assert before.prompt.startswith("external_directory")
    tool(played, "tool_call_update", title="write", kind="edit", status="in_progress")
    assert prompt_of(played) == before
    played.done += played.session.answer("yes", before.prompt_id)


@pytest.mark.parametrize("said", ["", "All of it."])
def test_a_turn_that_was_told_to_stop_and_ends_without_a_word_was_stopped(said: str) -> None:
    """So ends opencode's that waits to ask its model again. What says its answer had said it by then."""
    played = Played().opened()
    played.deliver(fresh=True)
    played.done += played.session.interrupt(0.0)
    if said:
        played.said(said, "1")
    usage = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
    played.line(id="t.1", result={"stopReason": "end_turn", "usage": usage})
    (over,) = played.told
    assert over.answer == said if said else over.reason == "interrupted"


@pytest.mark.parametrize("words", ["/compact", "hello"])
@pytest.mark.parametrize("thought", [True, False])
def test_only_a_command_ends_without_a_word(words: str, *, thought: bool) -> None:
    """opencode does not ask its model while the clock is behind the date of its last message."""
    played = Played().opened()
    played.deliver(words, fresh=True)
    if thought:
        played.line(method="session/update", params={"update": {"sessionUpdate": "agent_thought_chunk"}})
    played.line(id="t.1", result={"stopReason": "end_turn"})
    (over,) = played.told
    assert isinstance(over, LinkTurnEnded if thought or words == "/compact" else LinkTurnFailed)


def saved(played: Played) -> KeptSession:
    return [command.kept for command in played.done if isinstance(command, Saved)][-1]


def test_a_long_answer_in_small_pieces_is_read_in_time() -> None:
    """Each piece costs the same, however much was said before it."""

    def cost(pieces: int) -> float:
        said = TurnSpeech()
        update = chunk("0123456789abcdef", "1")
        began = time.process_time()
        for place in range(pieces):
            said.chunk(update, place)
        said.cut(0)
        assert said.answer is not None
        assert len(said.answer) == 16 * pieces
        return time.process_time() - began

    few = min(cost(20_000) for _ in range(3))
    assert cost(200_000) < 40 * few


def test_a_permission_waits_is_answered_once_and_is_gone_with_its_turn() -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    played.line(**asks())
    prompt = played.session.observation().prompt
    assert prompt is not None
    with pytest.raises(PromptChanged):
        played.session.answer("1", "another")
    played.done += played.session.answer("yes", prompt.prompt_id)
    with pytest.raises(NotWaiting):
        played.session.answer("yes", prompt.prompt_id)
    played.line(**asks("q"))
    played.line(id="t.1", result={"stopReason": "end_turn"})
    assert played.session.waiting is None


def test_a_cancel_answers_what_is_asked_with_nothing() -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    played.line(**asks())
    commands = played.session.interrupt(0.0)
    played.done += commands
    written = [command.message for command in commands if isinstance(command, Write)]
    assert [m.get("method") or m["result"]["outcome"]["outcome"] for m in written] == ["session/cancel", "cancelled"]
    played.line(id="t.1", result={"stopReason": "cancelled"})
    assert [event.reason for event in played.told] == ["interrupted"]


@pytest.mark.parametrize("stopped", [False, True])
def test_a_program_that_goes_on_by_itself_is_busy_until_it_is_quiet(*, stopped: bool) -> None:
    """What it says then is no answer to the next message. One that was stopped is stopped once more."""
    played = Played().opened()
    played.said("what it tells of itself")
    assert played.session.observation().can_receive, "no turn has ended: it may be the rest of one"
    played.deliver(fresh=True)
    if stopped:
        played.done += played.session.interrupt(0.0)
    played.line(id="t.1", result={"stopReason": "cancelled" if stopped else "end_turn"})
    played.done.clear()
    for now in (100.0, 101.0, 104.5):
        played.said("and on", "9")
        played.done += played.session.waited(now)
        assert (played.session.observation().activity, played.session.observation().can_receive) == (
            Activity.BUSY,
            False,
        )
    methods = [one.message["method"] for one in played.done if isinstance(one, Write)]
    assert methods == ["session/cancel"] * stopped
    played.done += played.session.interrupt(0.0)
    assert played.done[-1] == Write({"method": "session/cancel", "params": {"sessionId": "s"}})
    played.session.waited(106.0)
    assert not played.session.observation().can_receive
    played.session.waited(107.5)
    assert played.session.observation().can_receive


def test_what_is_not_offered_is_refused_and_odd_messages_change_nothing() -> None:
    played = Played().opened()
    played.line(id=5, method="fs/read_text_file", params={})
    refusal = played.done[-1]
    assert isinstance(refusal, Write)
    assert refusal.message["error"]["code"] == -32601
    for message in ({"id": "t.9", "result": {}}, {"method": "session/update", "params": []}, {"id": None, "result": 1}):
        played.line(**message)
    assert played.session.observation().can_receive


@given(st.dictionaries(st.sampled_from(["id", "method", "result", "error", "params"]), st.from_type(object)))
def test_no_message_ends_a_session(message: dict[str, Any]) -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    played.line(**json.loads(json.dumps(message, default=str)))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
UPDATES = {
    "sessionUpdate": st.sampled_from(["agent_message_chunk", "tool_call", "tool_call_update", "plan"]),
    "status": st.sampled_from(["completed", "failed"]) | ANYTHING,
    "content": st.lists(st.fixed_dictionaries({"content": ANYTHING, "type": st.just("diff")})) | ANYTHING,
    **dict.fromkeys(("entries", "rawInput", "rawOutput", "toolCallId", "title", "messageId", "_meta"), ANYTHING),
}


@given(st.fixed_dictionaries({}, optional=UPDATES), ANYTHING, ANYTHING, ANYTHING)
@example({"sessionUpdate": "plan", "entries": 5}, None, None, None)
@example({"sessionUpdate": "tool_call", "status": "completed", "content": 5}, None, None, None)
@example({}, {"content": 5}, None, 5)
def test_no_field_of_another_type_ends_a_session(update: Any, call: Any, usage: Any, modes: Any) -> None:
    """Each place where the protocol has a list, an object, or a number of tokens."""
    played = Played()
    played.line(id="initialize", result={"agentCapabilities": usage})
    played.line(id="session", result={"sessionId": "s", "modes": {"availableModes": modes, "currentModeId": usage}})
    played.line(id="session.mode", error=usage)
    played.deliver(fresh=True)
    options = [{"optionId": "a", "kind": call, "name": usage}, call]
    for message in (
        {"method": "session/update", "params": {"update": update}},
        {"id": 1, "method": "session/request_permission", "params": {"toolCall": update, "options": options}},
        {"id": 2, "method": "session/request_permission", "params": {"toolCall": call, "options": usage}},
        {"id": "t.1", "result": {"stopReason": call, "usage": {"inputTokens": usage, "outputTokens": call}}},
    ):
        played.line(**message)
    assert played.session.observation().can_receive


@pytest.mark.parametrize(
    "usage", [{"inputTokens": 10**30}, {"inputTokens": True}, {"inputTokens": -1}, {"inputTokens": "1"}, 5, None]
)
def test_a_count_that_is_none_is_not_told(usage: Any) -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    played.line(id="t.1", result={"stopReason": "end_turn", "usage": usage})
    assert not [c for c in played.done if isinstance(c, Emit) and "TurnUsed" in repr(c)]


@pytest.mark.parametrize("half", [rb"\ud800", rb"\uDC00", b"\xed\xa0\x80"])
def test_half_a_character_is_replaced_and_whole_ones_are_kept(half: bytes) -> None:
    line = b'{"jsonrpc":"2.0","method":"x","params":["a' + half + rb'b\ud83d\ude00","' + "\ud55c".encode() + b'"]}\n'
    message = LineReader().feed(0, line)[0].message
    assert message is not None
    assert message["params"][0].startswith("a\ufffd")
    assert message["params"][0].endswith("b\U0001f600")
    assert message["params"][1] == "\ud55c"
    json.dumps(message, ensure_ascii=False).encode()


@pytest.mark.parametrize("depth", [65, 500, 5_000, 20_000])
@pytest.mark.parametrize("shape", [(b"[", b"]"), (b'{"a":', b"}")])
def test_a_line_that_is_nested_too_deep_is_no_message(depth: int, shape: tuple[bytes, bytes]) -> None:
    begin, end = shape
    deep = b'{"jsonrpc":"2.0","method":"x","params":' + begin * depth + b"1" + end * depth + b"}\n"
    flat = b'{"jsonrpc":"2.0","method":"x","params":[' + b",".join([begin + b"1" + end] * depth) + b"]}\n"
    found = LineReader().feed(0, deep + flat)
    assert [line.message is None for line in found] == [True, False]


@pytest.mark.parametrize("id_", [b"[1]", b'{"a":1}'])
def test_an_id_that_is_none_is_no_message(id_: bytes) -> None:
    assert LineReader().feed(0, b'{"jsonrpc":"2.0","method":"x","id":' + id_ + b"}\n")[0].message is None


def test_a_line_that_is_too_long_is_passed_over_and_the_next_is_read() -> None:
    reader, next_ = LineReader(), encode({"method": "x"})
    piece = b"a" * (1 << 20)
    for at in range(100):
        assert reader.feed(at << 20, piece) == []
    assert [line.message for line in reader.feed(100 << 20, b"\n" + next_)] == [json.loads(next_)]


@pytest.mark.parametrize("filler", [b"[],", b'{"a":1},', b"1,", b'"",'])
def test_a_line_of_nothing_but_structure_is_no_message_and_its_beginning_is_shown(
    filler: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reading would hold everybody up, and so would the drawing of all of it."""
    read: list[int] = []
    loads = json.loads
    monkeypatch.setattr("synapsed.pipes.rpc.json.loads", lambda line: read.append(len(line)) or loads(line))
    begin, size = b'{"jsonrpc":"2.0","method":"x","params":[', 2 << 20
    (line,) = LineReader().feed(0, begin + filler * (size // len(filler)) + b"1]}\n")
    assert (line.message, read) == (None, [])
    assert 0 < len(line.text) <= 4096
    (line,) = LineReader().feed(0, begin + b'"' + b"a, [b] " * 7000 + b'"]}\n')
    assert line.message is not None
