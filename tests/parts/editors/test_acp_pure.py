"""`synapsectl acp`, what decides: lines, blocks of content, tool calls, turns, and the session. No daemon."""

import base64
import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsectl.errors import NoDaemon
from synapsed.parts.editors.ctl import asking, opening, program_commands, wire
from synapsed.parts.editors.ctl import session as core
from synapsed.parts.editors.ctl.content import CHUNK_MAX, chunks, message_of
from synapsed.parts.editors.ctl.limits import UsageLimit, until
from synapsed.parts.editors.ctl.order import HELD_MAX
from synapsed.parts.editors.ctl.program_commands import ProgramCommand
from synapsed.parts.editors.ctl.references import refer
from synapsed.parts.editors.ctl.session import EditorSession
from synapsed.parts.editors.ctl.shapes import RequestRefused
from synapsed.parts.editors.ctl.tools import EditorCalls
from synapsed.parts.editors.ctl.turn import Turn
from synapsed.tasks.prompt_text import safe_name


def one(line: bytes) -> Any:
    return wire.read(line)


# --- lines ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=20), st.data())
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    text = b"".join(line + b"\n" for line in lines)
    cutter, found = wire.LineCutter(line_max=30), []
    while text:
        size = data.draw(st.integers(1, len(text)))
        found += cutter.feed(text[:size])
        text = text[size:]
    assert found == [None if len(line) > 30 else line for line in lines if line.strip() or len(line) > 30]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_told_to_be_none(line: bytes) -> None:
    message = one(line)
    assert isinstance(message, wire.RpcRequest | wire.RpcNotification | wire.RpcResponse | wire.Wrong)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", wire.PARSE_ERROR),
        (b"\xff\xfe", wire.PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"x"}', wire.PARSE_ERROR),
        (b"[" * 100_000, wire.PARSE_ERROR),
        (b"[]", wire.INVALID_REQUEST),
        (b"1", wire.INVALID_REQUEST),
        (b'{"id":1,"method":"x"}', wire.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', wire.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":{},"method":"x"}', wire.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":3}', wire.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1}', wire.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}', wire.INVALID_PARAMS),
    ],
)
def test_what_is_no_message_is_answered_with_its_code(line: bytes, code: int) -> None:
    message = one(line)
    assert isinstance(message, wire.Wrong)
    assert message.reply["error"]["code"] == code
    json.loads(wire.encode(message.reply))


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}',
        b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"?"}}',
        b'{"jsonrpc":"2.0","result":1}',
        b'{"id":7,"error":{"code":-32600,"message":"?"}}',
        b'{"jsonrpc":"1.0","id":7,"result":1}',
        b'{"jsonrpc":"2.0","id":true,"result":1}',
        b'{"jsonrpc":"2.0","id":[],"error":"?"}',
    ],
)
def test_an_answer_that_is_wrong_gets_none(line: bytes) -> None:
    """Some leave an id out that is null, and answer each error with one of their own."""
    assert isinstance(one(line), wire.RpcResponse)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', wire.RpcRequest(None, "x", {})),
        (b'{"jsonrpc":"2.0","id":"","method":"x","params":null}', wire.RpcRequest("", "x", {})),
        (b'{"jsonrpc":"2.0","id":1e2,"method":"x"}', wire.RpcRequest(100.0, "x", {})),
        (b'{"jsonrpc":"2.0","id":%d,"method":"x"}' % 10**40, wire.RpcRequest(10**40, "x", {})),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}', wire.RpcRequest(2, "x", {})),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","result":1}', wire.RpcRequest(1, "x", {})),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"x"}\r', wire.RpcNotification("x", {})),
        (b'{"jsonrpc":"2.0","method":"x","params":[1]}', wire.RpcNotification("x", {})),
    ],
)
def test_what_is_odd_and_within_json_rpc_is_taken(line: bytes, message: wire.Message) -> None:
    assert one(line) == message


def test_half_of_a_surrogate_pair_goes_through() -> None:
    assert json.loads(wire.encode(wire.notice("x", {"text": "\ud800é"})))["params"]["text"] == "\ud800é"


# --- messages ---------------------------------------------------------------------------------------------------------


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def link(uri: str) -> dict[str, Any]:
    return {"type": "resource_link", "name": "x", "uri": uri}


@pytest.mark.parametrize(
    ("blocks", "said", "command"),
    [
        ([text("hello")], "hello", False),
        ([text("/clear")], "/clear", True),
        ([text(" /clear\n")], " /clear\n", True),
        ([text("/clear now")], "/clear now", False),
        ([text("/etc/hosts")], "/etc/hosts", False),
        ([text("one"), text("two")], "one\ntwo", False),
        ([text("see"), link("file:///a/b%20c.py#L3"), text(", please")], "see /a/b c.py:3, please", False),
        ([text("see "), link("https://x.example/y"), text("and tell")], "see https://x.example/y and tell", False),
        ([text("("), link("file:///a"), text(")")], "(/a)", False),
    ],
)
def test_texts_and_links_are_the_message(blocks: list[dict[str, Any]], said: str, command: bool) -> None:
    assert message_of(blocks) == ([{"type": "text", "text": said}], command)


@pytest.mark.parametrize(
    ("said", "command"),
    [("/web", True), ("/web two words", True), ("/tidy now", False), ("/web a\nb", False), ("see /web a", False)],
)
def test_a_command_that_takes_words_is_one_with_words_behind_it(said: str, command: bool) -> None:
    assert message_of([text(said)], {"web"})[1] is command
    assert message_of([text(said), embedded("file:///x")], {"web"})[1] is False


def test_the_newest_list_in_what_a_program_has_written_counts() -> None:
    def line(*names: Any) -> bytes:
        update = {"sessionUpdate": "available_commands_update", "availableCommands": list(names)}
        return json.dumps({"method": "session/update", "params": {"update": update}}).encode() + b"\n"

    old = line({"name": "old", "description": "x"})
    new = line({"name": "web", "description": "Searches", "input": {"hint": "words"}}, {"name": 3}, "x", {})
    found = program_commands.told_in(b"half a line\n" + old + b"junk\n" + new + b'{"available_commands_update": [}\n')
    assert program_commands.bounded(found or []) == [("web", "Searches", "words")]
    assert program_commands.told_in(b"") is None
    assert program_commands.told_in(line()) == []


@given(st.binary(max_size=100))
def test_whatever_a_program_writes_is_a_list_or_none(junk: bytes) -> None:
    line = b'{"params":{"update":{"sessionUpdate":"available_commands_update","availableCommands":' + junk
    program_commands.bounded(program_commands.told_in(line + b"}}}\n" + junk) or [])


def test_commands_are_bounded_and_shown_as_they_are() -> None:
    many = [ProgramCommand(f"c{n}", "x" * 500, "") for n in range(500)]
    found = program_commands.bounded([ProgramCommand("a b", "no name"), ProgramCommand("x", "a\nb\x1b"), *many])
    assert len(found) == program_commands.COMMANDS_MAX
    assert found[0] == ("x", "a b\\x1b", "")
    assert len(found[1].description) == program_commands.WORDS_MAX


def test_a_program_that_tells_its_commands_late_is_looked_at_again(session: EditorSession) -> None:
    assert core.ReadCommands() in list(session.begin((), None, 1))
    assert list(session.commands([])) == [], "there is nothing to tell"
    looks = [list(session.event(happened("activity", None, activity="ready"))) for _ in range(5)]
    assert looks == [[core.ReadCommands()]] * core.LOOKS_MAX + [[], []]
    (told,) = session.commands([ProgramCommand("web", "Searches", "words"), ProgramCommand("tidy", "Tidies")])
    assert isinstance(told, core.Update)
    assert told.update["availableCommands"] == [
        {"name": "web", "description": "Searches", "input": {"hint": "words"}},
        {"name": "tidy", "description": "Tidies"},
    ]
    assert session.with_words == {"web"}
    assert list(session.commands([ProgramCommand("web", "Searches", "words"), ProgramCommand("tidy", "Tidies")])) == []
    assert list(session.opened_again()) == [core.ReadCommands()]
    assert list(session.commands([ProgramCommand("web", "Searches", "words")])) != [], "told again where it is opened"


@pytest.mark.parametrize("cursor", ["", "-1", "1", "x", "٣", "9" * 5000])
def test_a_cursor_that_no_list_had_is_refused(monkeypatch: pytest.MonkeyPatch, cursor: str) -> None:
    monkeypatch.setattr(opening, "ensure_daemon", lambda *_, **__: None)
    monkeypatch.setattr(opening, "check_person", lambda *_: None)
    nobody: Any = SimpleNamespace(client=SimpleNamespace(get=lambda *_: []))
    served = opening.ServedAgents(None, None, spawn=False)
    assert opening.listed(nobody, served, None, "0") == opening.listed(nobody, served, None, None) == {"sessions": []}
    with pytest.raises(RequestRefused) as refused:
        opening.listed(nobody, served, None, cursor)
    assert refused.value.data == {"path": "cursor"}


def test_images_and_resources_are_files() -> None:
    data = base64.b64encode(b"png").decode()
    blocks = [
        text("/look"),
        {"type": "image", "data": data, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a/n.py", "text": "é", "mimeType": "text/x-python"}},
        {"type": "resource", "resource": {"uri": "zed:///x/", "blob": data}},
    ]
    (said, *files), command = message_of(blocks)
    told = "/look (attached: image-1.png) /a/n.py (attached: n.py) zed:///x/ (attached: x)"
    assert (said["text"], command) == (told, False)
    assert [file["file"] for file in files] == [
        {"name": "image-1.png", "bytes": data, "mimeType": "image/png"},
        {"name": "n.py", "bytes": base64.b64encode("é".encode()).decode(), "mimeType": "text/x-python"},
        {"name": "x", "bytes": data},
    ]


def embedded(uri: str, words: str = "x") -> dict[str, Any]:
    """A mention as Zed writes it: no type, the file's content or the lines that are meant."""
    return {"type": "resource", "resource": {"uri": uri, "text": words}}


def test_what_is_embedded_is_named_where_it_stood_with_its_lines() -> None:
    blocks = [
        text("move f from "),
        embedded("file:///src/a/mod.rs?symbol=f#L3:9", "fn f() {}"),
        text(" to "),
        embedded("file:///src/b/mod.rs", "mod a;"),
        text(", please."),
    ]
    (said, *files), _ = message_of(blocks)
    assert said["text"] == (
        "move f from /src/a/mod.rs:3-9 (f) (attached: mod-L3-9.rs) to /src/b/mod.rs (attached: mod.rs), please."
    )
    assert [base64.b64decode(each["file"]["bytes"]) for each in files] == [b"fn f() {}", b"mod a;"]
    assert [each["file"]["name"] for each in files] == ["mod-L3-9.rs", "mod.rs"]


def test_files_of_one_name_are_told_apart() -> None:
    blocks = [embedded(f"file:///{folder}/mod.rs") for folder in "abc"]
    (said, *files), _ = message_of(blocks)
    assert said["text"] == (
        "/a/mod.rs (attached: mod.rs) /b/mod.rs (attached: 2-mod.rs) /c/mod.rs (attached: 3-mod.rs)"
    )
    assert [each["file"]["name"] for each in files] == ["mod.rs", "2-mod.rs", "3-mod.rs"]


@pytest.mark.parametrize(
    ("uri", "said", "name"),
    [
        ("file:///a/b%20c.py", "/a/b c.py", "b_c.py"),
        ("file:///a/%E3%83%A1%E3%83%A2.md#L1:2", "/a/メモ.md:1-2", "メモ-L1-2.md"),
        ("file:///a/lib/", "/a/lib/", "lib"),
        ("file:///c#/a 100%?.cs", "/c#/a 100%?.cs", "a_100_.cs"),  # as Toad writes it
        ("file:///a/x.py#L7", "/a/x.py:7", "x-L7.py"),
        ("file:///a/x.py#L7-L12", "/a/x.py:7-12", "x-L7-12.py"),
        ("file:///a/x.py#L7C2-L12C4", "/a/x.py:7-12", "x-L7-12.py"),
        ("file:///a/x.py?column=5#L7:7", "/a/x.py:7:5", "x-L7.py"),
        ("file:///a/x.md#usage", "/a/x.md#usage", "x.md"),
        ("file:///a/x%0a/clear", "/a/x /clear", "clear"),
        ("file:///a/Makefile#L2:3", "/a/Makefile:2-3", "Makefile-L2-3"),
        ("zed:///agent/selection?path=/a/x.py#L1:2", "/a/x.py:1-2", "x-L1-2.py"),
        ("zed:///agent/untitled-buffer#L1:2", "zed:///agent/untitled-buffer:1-2", "untitled-buffer-L1-2"),
        ("zed:///agent/thread/5f?name=Old+work", "zed:///agent/thread/5f?name=Old+work", "Old_work"),
        ("zed:///agent/diagnostics", "zed:///agent/diagnostics", "diagnostics"),
        ("https://x.example/a/b.html?q=1#top", "https://x.example/a/b.html?q=1#top", "b.html"),
        ("main.kt", "main.kt", "main.kt"),
        ("C:\\a\\b.cs", "C:\\a\\b.cs", "C_a_b.cs"),
    ],
)
def test_an_address_is_named_as_a_person_would(uri: str, said: str, name: str) -> None:
    assert refer(uri) == (said, name)


@given(st.text(max_size=200), st.lists(st.integers(0, 10**12), max_size=2))
def test_the_daemon_keeps_the_names_of_files(uri: str, lines: list[int]) -> None:
    """The text names the file by the end of its path in the inbox."""
    at = f"file:///{quote(uri, errors='replace')}#L{':'.join(map(str, lines))}"
    (said, file), _ = message_of([embedded(at)])
    name = file["file"]["name"]
    assert safe_name(name) == name
    assert said["text"].endswith(f"(attached: {name})")
    assert "\n" not in said["text"]


@pytest.mark.parametrize(
    ("block", "path"),
    [
        ({"type": "audio", "data": "", "mimeType": "a/b"}, "prompt[0].type"),
        ({"type": "text", "text": 3}, "prompt[0].text"),
        ({"type": "text", "text": " \n"}, "prompt"),
        ({"type": "resource_link", "name": "x"}, "prompt[0].uri"),
        ({"type": "image", "data": "§", "mimeType": "image/png"}, "prompt[0].data"),
        ({"type": "resource", "resource": {"uri": "a"}}, "prompt[0].resource.text"),
        ({"type": "resource", "resource": 1}, "prompt[0].resource"),
    ],
)
def test_a_wrong_block_is_told_with_its_place(block: dict[str, Any], path: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        message_of([block])
    assert (refused.value.code, refused.value.data) == (wire.INVALID_PARAMS, {"path": path})


@given(st.text(max_size=3 * CHUNK_MAX))
def test_chunks_are_the_text(words: str) -> None:
    told = list(chunks("agent_message_chunk", words, "m"))
    assert "".join(update["content"]["text"] for update in told) == words
    assert all(
        len(wire.encode(wire.notice("session/update", {"update": u}))) < 64 * 1024 for u in told if words.isascii()
    )


# --- what is said -----------------------------------------------------------------------------------------------------


def artifact(name: str, words: str) -> dict[str, Any]:
    return {"artifact_id": name, "parts": [{"type": "text", "text": words}]}


def piece(name: str, words: str, *, append: bool = True, last: bool = False) -> dict[str, Any]:
    return {"artifact": artifact(name, words), "append": append, "lastChunk": last}


def messages(updates: list[dict[str, Any]]) -> dict[str, str]:
    """Each message's text, by its id, in order."""
    found: dict[str, str] = {}
    for update in updates:
        assert update["sessionUpdate"] == "agent_message_chunk"
        found[update["messageId"]] = found.get(update["messageId"], "") + update["content"]["text"]
    return found


def test_an_answer_that_streams_is_one_message_under_the_tasks_id() -> None:
    turn = Turn("t")
    told = [
        *turn.piece(piece("answer", "Hello ")),
        *turn.piece(piece("answer", "wor")),
        *turn.piece(piece("answer", "ld ")),
    ]
    assert messages(told) == {"t": "Hello world"}  # a blank waits for what follows it
    told += turn.end({"artifacts": [artifact("answer", "Hello world"), artifact("answer.1", "Hello")]})
    assert messages(told) == {"t": "Hello world"}
    assert not list(turn.piece(piece("answer", "late")))


def test_an_answer_that_was_another_comes_whole_under_another_id() -> None:
    turn = Turn("t")
    told = list(turn.piece(piece("answer", "Hello there")))
    told += turn.end({"artifacts": [artifact("answer", "Goodbye")]})
    assert list(messages(told).values()) == ["Hello there", "Goodbye"]


def test_what_streamed_as_the_answer_and_was_an_earlier_message_is_said_once() -> None:
    turn = Turn("t")
    told = list(turn.piece(piece("answer", "Let me see")))
    told += turn.piece(piece("m1", "Let me see.", append=False, last=True))
    told += turn.piece(piece("answer", "It is", append=False))
    told += turn.end({"artifacts": [artifact("m1", "Let me see."), artifact("answer", "It is so.")]})
    assert list(messages(told).values()) == ["Let me see.", "It is so."]


@given(st.lists(st.text(max_size=8), max_size=8), st.text(max_size=20))
def test_the_last_message_is_exactly_the_answer(pieces: list[str], answer: str) -> None:
    turn, told = Turn("t"), []
    for words in pieces:
        told += turn.piece(piece("answer", words))
    told += turn.end({"artifacts": [artifact("answer", answer)]})
    found = list(messages(told).values())
    assert (found[-1] if found else "") == answer or (not answer and "".join(pieces).rstrip() == (found or [""])[-1])


# --- tools ------------------------------------------------------------------------------------------------------------


def tool(status: str, call: str | None = "c", **data: Any) -> dict[str, Any]:
    told = {"tool_name": "Bash", "status": status, "call_id": call, "input": None, "output": None, "error": None} | data
    return {"id": 7, "event": "toolExecution", "task": "t", "data": told}


def test_a_tool_call_begins_and_ends() -> None:
    calls = EditorCalls("/work")
    (begun,) = calls.updates(tool("started", input={"command": "ls -l\n"}))
    assert begun["sessionUpdate"] == "tool_call"
    assert (begun["title"], begun["kind"], begun["status"]) == ("Bash: ls -l", "execute", "in_progress")
    assert calls.only_open("t") == "c"
    (done,) = calls.updates(tool("failed", error="no such file"))
    assert (done["sessionUpdate"], done["toolCallId"], done["status"]) == ("tool_call_update", "c", "failed")
    assert done["content"][0]["content"]["text"] == "no such file"
    assert calls.only_open("t") is None


def test_an_edit_is_a_diff_with_an_absolute_path() -> None:
    given = {"file_path": "a.py", "old_string": "x", "new_string": ""}
    (begun,) = EditorCalls("/work").updates(tool("started", tool_name="Edit", input=given))
    assert begun["content"] == [{"type": "diff", "path": "/work/a.py", "oldText": "x", "newText": ""}]
    assert begun["locations"] == [{"path": "/work/a.py"}]


def test_a_todo_list_is_a_plan() -> None:
    steps = [{"content": "one", "status": "completed"}, {"content": "two", "status": "in_progress", "priority": "high"}]
    _, plan = EditorCalls("/").updates(tool("started", tool_name="TodoWrite", input={"todos": steps}))
    assert plan["entries"] == [
        {"content": "one", "status": "completed", "priority": "medium"},
        {"content": "two", "status": "in_progress", "priority": "high"},
    ]
    assert len(list(EditorCalls("/").updates(tool("started", input={"todos": ["odd", 3]})))) == 1


def test_plans_and_diffs_that_a_channel_tells() -> None:
    calls = EditorCalls("/")
    step = {"text": "one", "status": "pending"}
    (plan,) = calls.told({"event": "plan", "data": {"steps": [step]}})
    assert plan["entries"] == [{"content": "one", "status": "pending", "priority": "medium"}]
    told = {"event": "diff", "agent": "a", "task": "t", "data": {"diff": "+x", "turn_id": "1"}}
    kinds = [update["sessionUpdate"] for _ in range(2) for update in calls.told(told)]
    assert kinds == ["tool_call", "tool_call_update"]
    assert not list(calls.told({"event": "diff", "data": {"diff": {"truncated": True, "size": 1}}}))


# --- what is asked ----------------------------------------------------------------------------------------------------


def question(prompt_id: str = "p", **changes: Any) -> dict[str, Any]:
    options = [("1", "Yes"), ("2", "Yes, and don't ask again"), ("3", "No, and tell it what to do")]
    asked = {
        "prompt_id": prompt_id,
        "type": "permission",
        "prompt": "touch x\n\nDo you want to proceed?",
        "options": [{"key": key, "label": label} for key, label in options],
    }
    return asked | changes


def test_a_permission_has_its_options_by_what_they_mean() -> None:
    asked = asking.request(question(), "s", None)
    assert [option["kind"] for option in asked["options"]] == ["allow_once", "allow_always", "reject_once"]
    assert asked["toolCall"]["title"] == "Do you want to proceed?"
    assert asking.request(question(), "s", "call")["toolCall"]["toolCallId"] == "call"


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({"command": "rm x\nls"}, "\n\n$ rm x\nls"),
        ({"diff": "--- f\n+++ f\n-a"}, "\n\n--- f\n+++ f\n-a"),
        ({"command": None, "diff": None}, ""),
    ],
)
def test_a_request_shows_the_command_or_the_edit(more: dict[str, Any], shown: str) -> None:
    asked = question(**more)
    (block,) = asking.request(asked, "s", None)["toolCall"]["content"]
    assert block["content"]["text"] == asked["prompt"] + shown


@pytest.mark.parametrize("kind", ["password", "login", "screen"])
def test_what_is_answered_at_the_terminal_alone_is_told(kind: str) -> None:
    assert not asking.can_be_asked(question(type=kind))
    assert "synapsectl attach ann" in str(asking.waits(question(type=kind), "ann"))


# --- the session ------------------------------------------------------------------------------------------------------


def task(
    name: str, status: str = "working", *, message: str = "m", answer: str | None = None, **more: Any
) -> dict[str, Any]:
    said = [] if answer is None else [artifact("answer", answer)]
    return {
        "id": name,
        "status": status,
        "artifacts": said,
        "metadata": {},
        "message": {"message_id": message, "parts": [{"type": "text", "text": f"ask {name}"}]},
    } | more


def happened(kind: str, of: str | None = None, *, at: int = 1, **data: Any) -> dict[str, Any]:
    return {"id": at, "event": kind, "agent": "a", "task": of, "data": data}


def said(session: EditorSession, of: str, at: int, words: str) -> list[core.Command]:
    """A piece of text, first as the agent's events tell of it, then as the task's own stream has it."""
    placed = list(session.event(happened("taskArtifact", of, at=at)))
    return placed + list(session.piece(of, at, piece("answer", words)))


@pytest.fixture
def session() -> EditorSession:
    return EditorSession("s", name="ann", cwd="/work")


def started(session: EditorSession, id_: int = 1, message: str = "m", of: str = "t") -> list[core.Command]:
    """A prompt that the daemon has made a task of."""
    assert list(session.prompt(id_, message, {})) == [core.Send(message, {})]
    commands = list(session.accepted(message, task(of, "submitted", message=message)))
    session.cannot_tell()
    return commands


def told(commands: list[core.Command]) -> list[str]:
    """What the editor is told: texts with who said them, and answers to prompts."""
    found = []
    for command in commands:
        if (
            isinstance(command, core.Update)
            and "content" in command.update
            and isinstance(command.update["content"], dict)
        ):
            found.append(f"{command.update['sessionUpdate'].split('_')[0]}: {command.update['content']['text']}")
        elif isinstance(command, core.Reply):
            found.append(f"{command.id}: {command.result['stopReason']}")
        elif isinstance(command, core.Fail):
            found.append(f"{command.id}: {command.code} {command.data['code']}")
    return found


def test_a_prompt_ends_with_its_task(session: EditorSession) -> None:
    assert core.FollowTask("t") in started(session)
    commands = [*said(session, "t", 2, "so")]
    assert next(session.event(happened("taskStatus", "t", state="completed"))) == core.ReadTask("t")
    commands += session.read(task("t", "completed", answer="so it is"))
    assert told(commands) == ["agent: so", "agent:  it is", "1: end_turn"]
    assert core.LeaveTask("t") in commands


@pytest.mark.parametrize(
    ("status", "error", "canceled", "end"),
    [
        ("canceled", None, False, "1: cancelled"),
        ("failed", {"code": "RATE_LIMITED", "message": "x"}, False, "1: -32603 RATE_LIMITED"),
        ("failed", {"code": "AUTH_REQUIRED", "message": "x"}, False, "1: -32000 AUTH_REQUIRED"),
        ("failed", {"code": "INTERRUPTED", "message": "x"}, True, "1: cancelled"),
        ("rejected", None, False, "1: -32603 REJECTED"),
        ("completed", None, True, "1: end_turn"),
    ],
)
def test_how_a_prompt_ends(session: EditorSession, status: str, error: Any, canceled: bool, end: str) -> None:
    started(session)
    if canceled:
        assert list(session.cancel()) == [core.Cancel("t")]
    assert told(list(session.read(task("t", status, error=error)))) == [end]


def test_a_prompt_that_is_canceled_before_it_is_a_task_is_canceled_then(session: EditorSession) -> None:
    list(session.prompt(1, "m", {}))
    assert list(session.cancel()) == []
    assert core.Cancel("t") in list(session.accepted("m", task("t", "submitted")))


def test_prompts_are_sent_one_after_the_other(session: EditorSession) -> None:
    assert list(session.prompt(1, "m1", {})) == [core.Send("m1", {})]
    assert list(session.prompt(2, "m2", {})) == []
    assert list(session.prompt(3, "m3", {})) == []
    assert told(list(session.cancel(2))) == ["2: cancelled"]
    assert list(session.accepted("m1", task("t1", "submitted")))[-1] == core.Send("m3", {})
    assert told(list(session.refused("m3", NoDaemon("gone")))) == ["3: -32603 NO_DAEMON"]


def test_one_of_two_prompts_can_be_canceled(session: EditorSession) -> None:
    started(session, 1, "m1", "t1")
    started(session, 2, "m2", "t2")
    assert list(session.cancel(2)) == [core.Cancel("t2")]


def test_turns_of_others_wait_for_the_end_of_a_prompt(session: EditorSession) -> None:
    started(session)
    assert core.ReadTask("o") in list(session.event(happened("taskStatus", "o", state="working")))
    commands = list(session.read(task("o", message="other")))
    commands += said(session, "o", 2, "other's")
    commands += session.event(happened("turnSeen", text="typed", answer="shown"))
    assert told(commands) == []
    assert told(list(session.read(task("t", "completed", answer="mine")))) == [
        "agent: mine",
        "1: end_turn",
        "user: ask o",
        "agent: other's",
        "user: typed",
        "agent: shown",
    ]
    assert told(list(session.read(task("o", "completed", message="other", answer="other's too")))) == ["agent:  too"]


def test_turns_of_others_that_are_too_much_are_left_out_and_that_is_said(session: EditorSession) -> None:
    started(session)
    for _ in range(core.LATER_MAX // 100_000 + 3):
        list(session.event(happened("turnSeen", text="x" * 100_000)))
    said = told(list(session.read(task("t", "completed", answer="mine"))))
    assert sum(len(line) for line in said) < core.LATER_MAX + 200_000
    assert "left out" in said[-1]


def test_what_an_agent_is_told_at_its_start_and_its_own_requests_are_no_turns(session: EditorSession) -> None:
    for name, metadata in (("o", {"sender": {"sender_id": "synapse-system"}}), ("p", {"direction": "outgoing"})):
        list(session.event(happened("taskStatus", name, state="working")))
        assert list(session.read(task(name, "completed", message="x", metadata=metadata))) == []


def test_the_turn_that_is_being_read_is_shown_however_many_were_none(session: EditorSession) -> None:
    for number in range(core.TURNS_MAX + 1000):
        list(session.event(happened("taskStatus", f"none-{number}", state="working")))
        list(session.read(task(f"none-{number}", message="x", metadata={"direction": "outgoing"})))
        assert list(session.event(happened("taskStatus", f"o-{number}", state="working"))) == [
            core.ReadTask(f"o-{number}")
        ]
        over = task(f"o-{number}", "completed", message="other", answer="other's")
        assert told(list(session.read(over))) == [f"user: ask o-{number}", "agent: other's"]


def test_a_permission_is_withdrawn_when_it_was_answered_elsewhere(session: EditorSession) -> None:
    started(session)
    assert core.AskWhat() in list(session.event(happened("inputRequired", "t", prompt=question())))
    (request,) = session.asks(question())
    assert isinstance(request, core.AskEditor)
    assert list(session.asks(question())) == []
    list(session.event(happened("inputAnswered", "t", prompt_id="p")))
    assert list(session.asks(question())) == [core.Withdraw("p")]  # it stands there a moment longer
    assert list(session.chosen("p", "1")) == []


def test_an_answer_is_given_once_and_asked_again_only_where_it_was_not_taken(session: EditorSession) -> None:
    started(session)
    assert isinstance(next(session.asks(question())), core.AskEditor)
    assert list(session.chosen("p", "1")) == [core.GiveAnswer("p", "1")]
    assert list(session.asks(question())) == []
    assert list(session.answered()) == [core.AskWhat()]
    for _ in range(core.ASKED_MAX - 1):
        (request,) = session.asks(question())
        assert isinstance(request, core.AskEditor)
        list(session.chosen("p", "1"))
        list(session.answered())
    assert list(session.asks(question())) == []


def test_nothing_is_asked_of_an_editor_that_waits_for_nothing(session: EditorSession) -> None:
    assert list(session.event(happened("inputRequired", "o", prompt=question()))) == []
    assert list(session.asks(question())) == []


def test_a_choice_of_nothing_leaves_it_to_others(session: EditorSession) -> None:
    started(session)
    list(session.asks(question()))
    assert list(session.chosen("p", None)) == []
    assert list(session.asks(question())) == []


def test_a_daemon_that_stays_away_ends_prompts_with_an_error(session: EditorSession) -> None:
    started(session)
    assert told(list(session.away(NoDaemon("gone")))) == ["1: -32603 NO_DAEMON"]
    assert told(list(session.read(task("t", "completed", answer="later")))) == ["agent: later"]
    assert told(list(session.read(task("t", "completed", answer="later")))) == []


def called(at: int) -> dict[str, Any]:
    """A tool call of the task `t`."""
    return happened("toolExecution", "t", at=at, status="started", tool_name=f"tool-{at}", call_id=f"call-{at}")


def shown(commands: list[core.Command]) -> list[str]:
    """Texts, tool calls and the end, in order."""
    found = []
    for command in commands:
        if isinstance(command, core.Update):
            update = command.update
            found.append(update["title"] if update["sessionUpdate"] == "tool_call" else update["content"]["text"])
        elif isinstance(command, core.Reply):
            found.append(command.result["stopReason"])
    return found


@given(st.data())
def test_texts_and_tool_calls_come_in_their_order_however_the_streams_are_read(data: st.DataObject) -> None:
    """One log, read by two streams: the agent's, and the task's, which alone has the words."""
    session = EditorSession("s", name="ann", cwd="/work")
    list(session.begin((), None, 1))
    started(session)
    kinds = data.draw(st.lists(st.sampled_from(["text", "call", "other"]), max_size=12))
    log = [*enumerate(kinds, 2), (len(kinds) + 2, "end")]
    document = task("t", "completed", answer="".join(f"<{at}>" for at, kind in log if kind == "text"))
    of_agent, of_task, commands = log[:], [each for each in log if each[1] in ("text", "end")], []
    while of_agent or of_task:
        if of_agent and (not of_task or data.draw(st.booleans())):
            at, kind = of_agent.pop(0)
            if kind == "call":
                commands += session.event(called(at))
            elif kind != "end":
                commands += session.event(happened("taskArtifact" if kind == "text" else "activity", "t", at=at))
            else:
                commands += session.event(happened("taskStatus", "t", at=at, state="completed"))
                commands += session.read(document)
        else:
            at, kind = of_task.pop(0)
            commands += session.piece("t", at, piece("answer", f"<{at}>") if kind == "text" else None)
    ends = {"text": "<{}>", "call": "tool-{}", "end": "end_turn"}
    assert shown(commands) == [ends[kind].format(at) for at, kind in log if kind != "other"]


def test_a_call_does_not_wait_for_a_stream_that_does_not_come(session: EditorSession) -> None:
    started(session)
    list(session.event(happened("taskArtifact", "t", at=2)))
    assert shown(list(session.event(called(3)))) == []
    assert shown(list(session.unwatched("t"))) == ["tool-3"]
    assert shown(list(session.event(called(4)))) == ["tool-4"]
    assert shown(list(session.read(task("t", "completed", answer="so")))) == ["so", "end_turn"]


def test_what_was_said_before_a_turn_was_known_is_told_at_once(session: EditorSession) -> None:
    list(session.begin((), "o", 9))
    list(session.read(task("o", message="other")))
    assert told(list(session.piece("o", 7, piece("answer", "before")))) == ["agent: before"]
    assert told(list(session.piece("o", 12, piece("answer", " and after")))) == []
    assert told(list(session.event(happened("taskArtifact", "o", at=12)))) == ["agent:  and after"]


def test_a_question_comes_behind_what_was_said_before_it(session: EditorSession) -> None:
    started(session)
    list(session.event(happened("taskArtifact", "t", at=2)))
    list(session.event(called(3)))
    assert core.AskWhat() in list(session.event(happened("inputRequired", "t", at=4, prompt=question())))
    assert list(session.asks(question())) == []
    commands = list(session.piece("t", 2, piece("answer", "I would like to")))
    assert shown(commands) == ["I would like to", "tool-3"]
    assert commands[-1] == core.AskWhat()
    assert isinstance(next(session.asks(question())), core.AskEditor)


def test_more_than_can_be_held_comes_as_it_comes(session: EditorSession) -> None:
    started(session)
    list(session.event(happened("taskArtifact", "t", at=2)))
    commands = [command for at in range(3, HELD_MAX + 9) for command in session.event(called(at))]
    assert len(shown(commands)) == HELD_MAX + 6


def test_a_task_that_is_read_twice_is_told_once(session: EditorSession) -> None:
    """Once because it ended, and once because the daemon had been away."""
    started(session)
    assert told(list(session.read(task("t", "completed", answer="so")))) == ["agent: so", "1: end_turn"]
    assert list(session.read(task("t", "completed", answer="so"))) == []


def test_what_was_missed_is_read_again(session: EditorSession) -> None:
    started(session)
    assert list(session.resume()) == [core.ReadTask("t"), core.AskWhat()]


def test_a_prompt_at_a_usage_limit_is_told_until_when(session: EditorSession) -> None:
    limit = UsageLimit("limit reached", "2026-11-29T18:00:00Z")
    assert list(session.asks(None, limit)) == [], "nobody waits"
    started(session)
    (begun,) = session.asks(None, limit)
    assert isinstance(begun, core.Update)
    assert until("2026-11-29T18:00:00Z") in begun.update["title"]
    assert list(session.asks(None, limit)) == [], "once"
    (over, *_) = session.asks(question(), None)
    assert over == core.Update(
        {"sessionUpdate": "tool_call_update", "toolCallId": begun.update["toolCallId"], "status": "completed"}
    )


def test_a_limit_that_a_prompt_did_not_live_to_see_the_end_of_is_told_over(session: EditorSession) -> None:
    started(session)
    list(session.asks(None, UsageLimit("limit reached", None)))
    commands = list(session.read(task("t", "canceled")))
    assert [each.update["status"] for each in commands if isinstance(each, core.Update)] == ["completed"]


def test_a_failure_by_a_usage_limit_says_until_when(session: EditorSession) -> None:
    started(session)
    error = {"code": "RATE_LIMITED", "message": "limit reached", "details": {"until": "2026-11-29T18:00:00Z"}}
    (failed,) = [each for each in session.read({**task("t", "failed"), "error": error}) if isinstance(each, core.Fail)]
    assert failed.message == f"RATE_LIMITED: limit reached ({until('2026-11-29T18:00:00Z')})"
    assert failed.data["until"] == "2026-11-29T18:00:00Z"


def test_a_session_that_is_closed_cancels_what_it_has_asked_for(session: EditorSession) -> None:
    started(session)
    list(session.asks(question()))
    commands = list(session.closed())
    assert core.Cancel("t") in commands
    assert core.Withdraw("p") in commands
    assert told(commands) == ["1: cancelled"]
