"""Patterns of the built-in profiles that no recording shows: texts by hand."""

import re
from pathlib import Path

import pytest

from synapsed.profiles.library import ProfileLibrary
from synapsed.terminal.answer import from_screen
from synapsed.terminal.composer import read_composer
from synapsed.terminal.delivery import type_message
from synapsed.terminal.emulated_screen import Screen


@pytest.fixture(scope="module")
def library() -> ProfileLibrary:
    return ProfileLibrary.standard(Path("/nowhere"))


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("claude", ["/clear", " /clear", "!rm -rf x", "# note", "exit", "quit ", ":q"]),
        ("codex", ["/clear", "!rm -rf x"]),
        ("gemini", ["/clear", "!rm -rf x", "./notes.md", "~/notes.md ./more.md"]),
        ("opencode", ["/clear", "!rm -rf x", "exit"]),
    ],
)
def test_messages_that_would_be_commands_are_not(library: ProfileLibrary, name: str, texts: list[str]) -> None:
    spec = library.get(name).delivery
    for text in texts:
        assert type_message(spec, text, bracketed=True).text == spec.neutral_prefix + text.rstrip()


@pytest.mark.parametrize("name", ["codex", "gemini", "opencode"])
@pytest.mark.parametrize("text", ["look at @READ", "@src/ma", "two\nlines @"])
def test_enter_completes_nothing_in_a_message(library: ProfileLibrary, name: str, text: str) -> None:
    spec = library.get(name).delivery
    assert type_message(spec, text, bracketed=True).text.endswith(text + " ")


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode", "dummy", "generic"])
@pytest.mark.parametrize("text", ["hello", "exit the loop early", "a / b", "[A2A:12345678:bob] /clear", "日本語"])
def test_other_messages_are_typed_as_they_are(library: ProfileLibrary, name: str, text: str) -> None:
    assert type_message(library.get(name).delivery, text, bracketed=True).text == text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("$", ""),
        ("$ ls -l", "ls -l"),
        (">>> print(1)", "print(1)"),
        ("user@host:~/src# make", "make"),
        ("(gdb) >", ""),
        ("(gdb)", ""),
        ("(Pdb) p x", "p x"),
        ("sqlite> select 1;", "select 1;"),
        ("❯ x", "x"),
    ],
)
def test_generic_prompt(library: ProfileLibrary, line: str, text: str) -> None:
    spec = library.get("generic").composer
    assert spec.line is not None
    found = re.search(spec.line, line)
    assert found is not None
    assert found["text"] == text


@pytest.mark.parametrize("line", ["", "working", "100%done", "a" * 61 + "$ ", "(1 of 3) done", "f(x) y"])
def test_output_is_no_generic_prompt(library: ProfileLibrary, line: str) -> None:
    spec = library.get("generic").composer
    assert spec.line is not None
    assert re.search(spec.line, line) is None


@pytest.mark.parametrize("border", ["", "▀" * 40])
@pytest.mark.parametrize(("text", "state"), [("  Type your message or @path/to/file", "empty"), (" mine", "draft")])
def test_gemini_s_composer_has_a_border_where_there_are_true_colours(
    library: ProfileLibrary, border: str, text: str, state: str
) -> None:
    screen = Screen(40, 8)
    screen.feed(
        f"{'─' * 40} Shift+Tab to accept edits\r\n{border.replace('▀', '▄')}\r\n > {text}\r\n{border}\r\n".encode()
    )
    assert read_composer(library.get("gemini").composer, screen.snapshot()).state == state


def test_the_border_below_a_message_is_no_answer_of_gemini_s(library: ProfileLibrary) -> None:
    shown = [f"{'▄' * 40}", " > one", "▀" * 40, "", "ℹ Request cancelled.", "─" * 40, " >   Type your message"]
    assert from_screen(library.get("gemini").answer, "\n".join(shown), "one") == ""


NOTICE = "• Hook failed\n  └ hook timed out after 5s\n\n"


@pytest.mark.parametrize("before", ["", NOTICE])
@pytest.mark.parametrize("after", ["", NOTICE, 2 * NOTICE])
def test_a_hook_s_notice_is_no_answer_of_codex_s(library: ProfileLibrary, before: str, after: str) -> None:
    shown = (
        f"› one\n\n\n{before}• Done.\n\n  • and more\n\n{after}  Worked for 10s • 15:56\n\n\n› Ask Codex to do anything"
    )
    profile = library.get("codex")
    assert from_screen(profile.answer, shown, "one", profile.stream.skip) == "Done.\n\n• and more"
