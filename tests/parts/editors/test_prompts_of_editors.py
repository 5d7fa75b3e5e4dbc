"""Prompts in the form in which editors' own sources build them, and the message that each comes to. No daemon.

Each case is one prompt of one editor: its blocks, the words of the message, and the names of the files beside it.
"""

import base64
from typing import Any, NamedTuple

import pytest

from synapsed.parts.editors.ctl import asking, shapes
from synapsed.parts.editors.ctl.content import message_of
from synapsed.parts.editors.ctl.shapes import RequestRefused

PNG = base64.b64encode(b"\x89PNG").decode()


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def link(uri: str, **more: Any) -> dict[str, Any]:
    return {"type": "resource_link", "name": uri.rpartition("/")[2], "uri": uri, **more}


def embedded(uri: str, words: str = "x", **more: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "text": words, **more}}


def image(uri: str | None = None, data: str = PNG, mime: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": mime} | ({"uri": uri} if uri else {})


class Built(NamedTuple):
    blocks: list[dict[str, Any]]
    said: str
    files: tuple[str, ...] = ()
    command: bool = False


CASES = {
    # Zed: a mention where it stood, without a type; blanks of the text as typed; addresses of its own for the rest.
    "zed, a mention at the end": Built(
        [text("what does "), embedded("file:///src/a%20b.rs")],
        "what does /src/a b.rs (attached: a_b.rs)",
        ("a_b.rs",),
    ),
    "zed, a folder and a page": Built(
        [text("compare "), link("file:///src/lib/"), text(" with "), embedded("https://x.example/a?q=1")],
        "compare /src/lib/ with https://x.example/a?q=1 (attached: a)",
        ("a",),
    ),
    "zed, a pasted image": Built(
        [image("zed:///agent/pasted-image?name=Image"), text("why is it red?")],
        "(attached: Image.png) why is it red?",
        ("Image.png",),
    ),
    "zed, two pasted images": Built(
        [*[image("zed:///agent/pasted-image?name=Image")] * 2],
        "(attached: Image.png) (attached: 2-Image.png)",
        ("Image.png", "2-Image.png"),
    ),
    "zed, an image of the project": Built(
        [text("see "), image("file:///src/logo.png")], "see /src/logo.png (attached: logo.png)", ("logo.png",)
    ),
    "zed, what stands in a terminal": Built(
        [embedded("zed:///agent/terminal-selection?lines=5"), text("explain")],
        "zed:///agent/terminal-selection?lines=5 (attached: terminal-selection) explain",
        ("terminal-selection",),
    ),
    "zed, a branch's changes": Built(
        [text("review "), embedded("zed:///agent/git-diff?base=main")],
        "review zed:///agent/git-diff?base=main (attached: git-diff)",
        ("git-diff",),
    ),
    "zed, a skill": Built(
        [embedded("zed:///agent/skill?name=tidy&source=global&path=%2Fhome%2Fu%2Ftidy%2FSKILL.md"), text("this")],
        "/home/u/tidy/SKILL.md (attached: SKILL.md) this",
        ("SKILL.md",),
    ),
    "zed, a command": Built([text("/web two words")], "/web two words", (), command=True),
    "zed, a command with a mention": Built(
        [text("/web "), embedded("file:///a.rs")], "/web /a.rs (attached: a.rs)", ("a.rs",)
    ),
    # JetBrains' Koog: what is attached is known by its name, a link by its address.
    "koog": Built(
        [text("see"), embedded("notes.txt"), text("and"), link("file:///a.kt#L7")],
        "see notes.txt (attached: notes.txt) and /a.kt:7",
        ("notes.txt",),
    ),
    # Toad: the text as typed, what is behind `@` after it; addresses are not quoted, and a packed file is a blob.
    "toad": Built(
        [text('see @a.py and @"b c.py"'), embedded("file:///p/a.py"), embedded("file:///p/b c.py", mimeType="text/x")],
        'see @a.py and @"b c.py" /p/a.py (attached: a.py) /p/b c.py (attached: b_c.py)',
        ("a.py", "b_c.py"),
    ),
    "toad, a packed file": Built(
        [text("@a.gz"), {"type": "resource", "resource": {"uri": "file:///p/a.gz", "blob": PNG, "mimeType": "x/y"}}],
        "@a.gz /p/a.gz (attached: a.gz)",
        ("a.gz",),
    ),
    # Emacs' agent-shell: texts without blanks at their ends, with the file between them; larger files are links.
    "agent-shell": Built(
        [
            text("Compare"),
            embedded("file:///p/a.txt"),
            text("to"),
            link("file:///p/b.txt", size=900_000),
            text(", now"),
        ],
        "Compare /p/a.txt (attached: a.txt) to /p/b.txt, now",
        ("a.txt",),
    ),
    "agent-shell, an image": Built(
        [text("Look at"), image("file:///p/a.png")], "Look at /p/a.png (attached: a.png)", ("a.png",)
    ),
    "base64 in lines": Built([image(data="iVBO\r\nRw==\n")], "(attached: image-1.png)", ("image-1.png",)),
    # Avante: links before the text, the selected code as a text of its own.
    "avante": Built(
        [link("file:///p/a b.lua"), text("<selected_code>x</selected_code>"), text("tidy it")],
        "/p/a b.lua <selected_code>x</selected_code>\ntidy it",
    ),
    "avante, a command behind a link": Built([link("file:///p/a.lua"), text("/compact")], "/p/a.lua /compact"),
    "quotes around a mention": Built([text('the "'), link("file:///a.py"), text('" of it')], 'the "/a.py" of it'),
    "a quote behind a mention": Built([text("as"), link("file:///a.py"), text('"x" says')], 'as /a.py "x" says'),
    "a list behind a mention": Built([link("file:///a.py"), text("- tidy\n- test")], "/a.py - tidy\n- test"),
    # agentic.nvim: the message first, then the selected code and the files.
    "agentic.nvim": Built(
        [text("tidy it"), text("<selected_code>x</selected_code>"), link("file:///p/a.lua")],
        "tidy it\n<selected_code>x</selected_code> /p/a.lua",
    ),
    # CodeCompanion: files are told by their path, in texts before the message's own; images have no address.
    "codecompanion": Built(
        [text("Sharing the following file as context: /p/a.lua"), image(mime="image/svg+xml"), text("tidy it")],
        "Sharing the following file as context: /p/a.lua (attached: image-1.svg) tidy it",
        ("image-1.svg",),
    ),
    # Obsidian: the open note with marks for who may read it, and a text that says which lines were chosen.
    "obsidian": Built(
        [
            {**embedded("file:///v/My%20note.md", "# x"), "annotations": {"audience": ["assistant"], "priority": 0.8}},
            text("The user has chosen lines 3-9."),
            text("shorten it"),
        ],
        "/v/My note.md (attached: My_note.md) The user has chosen lines 3-9.\nshorten it",
        ("My_note.md",),
    ),
    "an empty file": Built([text("fill"), embedded("file:///p/a.py", "")], "fill /p/a.py (attached: a.py)", ("a.py",)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_prompt_comes_to_the_message_that_its_person_meant(name: str) -> None:
    built = CASES[name]
    parts, command = message_of(shapes.blocks({"prompt": built.blocks}), {"web"})
    words = [part["text"] for part in parts if part["type"] == "text"]
    files = tuple(part["file"]["name"] for part in parts if part["type"] == "file")
    assert (words, files, command) == ([built.said], built.files, built.command)
    for part in parts:
        if part["type"] == "file":
            base64.b64decode(part["file"]["bytes"], validate=True)


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ({"outcome": {"outcome": "selected", "optionId": "1"}}, "1"),
        ({"outcome": {"outcome": "selected", "optionId": "1", "_meta": {}}, "_meta": {}}, "1"),
        ({"outcome": {"outcome": "cancelled"}}, None),
        ({"outcome": {"outcome": "canceled"}}, None),  # as some write it
        ({"outcome": {"outcome": "selected"}}, None),
        ({"outcome": {"outcome": "selected", "optionId": 1}}, None),
        ({"outcome": {"outcome": "postponed", "optionId": "1"}}, None),
        ({"outcome": "selected", "optionId": "1"}, None),
        ({"outcome": []}, None),
        ([], None),
        (None, None),
    ],
)
def test_only_what_was_chosen_is_a_choice(answer: Any, chosen: str | None) -> None:
    assert shapes.outcome(answer) == chosen


def test_a_refusal_has_the_kind_of_one_however_the_program_calls_it() -> None:
    """An editor's keys for yes and no go by the kinds."""
    labels = ["Allow once (允许一次)", "Always allow (始终允许)", "Reject (拒绝)", "Reject always (始终拒绝)"]
    options = [{"key": str(number), "label": label} for number, label in enumerate(labels)]
    asked = {"prompt_id": "p", "type": "permission", "prompt": "touch x", "options": options}
    kinds = [option["kind"] for option in asking.request(asked, "s", None)["options"]]
    assert kinds == ["allow_once", "allow_always", "reject_once", "reject_once"]


@pytest.mark.parametrize(
    ("blocks", "path"),
    [
        ([text("a")] * (shapes.BLOCKS_MAX + 1), "prompt"),
        ([text("a"), link("zed:///x?" + "n=b&" * 100_000)], "prompt[1].uri"),
        ([embedded("file:///" + "%41" * 100_000)], "prompt[0].resource.uri"),
        ([image("x" * 100_000)], "prompt[0].uri"),
        ([{"type": "image", "data": PNG, "mimeType": "image/png", "uri": 5}], "prompt[0].uri"),
        ([text("a"), {"type": "video", "data": PNG}], "prompt[1].type"),
        ([text("a"), {"type": ["text"], "text": "x"}], "prompt[1].type"),
        ([text("a"), {}], "prompt[1].type"),
        ([text("a"), None], "prompt[1]"),
        (["a"], "prompt[0]"),
        ({"type": "text", "text": "a"}, "prompt"),
        ([embedded("file:///a")] * 65, "prompt"),
    ],
)
def test_what_no_editor_should_send_is_refused_with_its_place(blocks: Any, path: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        message_of(shapes.blocks({"prompt": blocks}))
    assert refused.value.data == {"path": path}
    assert len(str(refused.value)) < 400


def test_a_type_cannot_make_a_name_that_the_daemon_changes() -> None:
    (_, file), _ = message_of([image("n" * 200, mime="a/" + "x" * 5000)])
    assert len(file["file"]["name"]) <= 100
