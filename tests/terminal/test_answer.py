"""Answers read off the screen."""

import re

import pytest

from synapsed.profiles.screen_spec import AnswerSpec, Composer
from synapsed.terminal import printed
from synapsed.terminal.answer import below_message, from_screen, is_cut, numbers_of
from tests.fakes.stage import all_lines, from_lines

BLOCKS = AnswerSpec(mode="blocks", start="^● ", end="^─{8,}")


def test_answer_that_quotes_the_message() -> None:
    text = "> say hello\n\n● You said: say hello\n──────────\n> "
    assert from_screen(BLOCKS, text, "say hello") == "You said: say hello"


def test_answer_that_is_the_message() -> None:
    assert from_screen(BLOCKS, "> say hello\n\n● say hello\n──────────", "say hello") == "say hello"


@pytest.mark.parametrize("answer", ["you said hello", "hello", "hello, hello"])
@pytest.mark.parametrize("more", ["", "\n  in two lines"])
def test_a_message_that_is_shown_with_the_sign_of_answers(answer: str, more: str) -> None:
    text = f"● before\n\n● hello{more}\n\n● {answer}\n──────────\n"
    assert from_screen(BLOCKS, text, f"hello{more.replace('  ', '')}") == answer


def test_the_same_message_twice_is_answered_by_what_stands_below_the_last() -> None:
    text = "> again\n● one\n> again\n● two, again\n──────────"
    assert from_screen(BLOCKS, text, "again") == "two, again"


UNSIGNED = AnswerSpec(mode="blocks", end="^─{8,}")
LEFT = "\n".join(f"line {n}" for n in range(7, 200))
"""An answer whose beginning, with its message, has left the screen."""


def test_a_row_has_the_same_number_when_it_is_kept_and_when_it_is_looked_up() -> None:
    rows = ["──────", "half \ud83d of it", "", "│ │", "words"]
    assert len(numbers_of(rows)) == 2, "rows of rules and frames do not count"
    assert not is_cut(UNSIGNED, f"{rows[1]}\n> hello\n Hi", "hello", numbers_of(rows), kept=True)
    assert is_cut(UNSIGNED, f"{rows[1]}\n> hello\n Hi", "hello", numbers_of(rows[2:]), kept=False)


def stood(text: str) -> list[int]:
    """The rows that stood above the composer when the message was submitted."""
    return numbers_of(text.splitlines())


@pytest.mark.parametrize(
    "answer",
    [LEFT, f"{LEFT}\nas you said: count, please", f"{LEFT}\ncount, please\nand that is all", f"{LEFT}\n● no sign here"],
)
def test_an_answer_without_its_beginning_is_never_taken_for_a_whole_one(answer: str) -> None:
    """A later line that has the message, too, is not where it was shown."""
    assert is_cut(UNSIGNED, f"{answer}\n──────────", "count, please", stood("before it"), kept=False)


@pytest.mark.parametrize("kept", [False, True])
def test_an_answer_that_may_begin_above_a_line_with_its_message_is_marked(kept: bool) -> None:
    text = "before it\n\n hello\n\n Well,\n hello\n to you, too\n──────────"
    assert is_cut(UNSIGNED, text, "hello", stood("before it"), kept=kept)
    assert not is_cut(UNSIGNED, text.replace("\n hello\n to", "\n Hi\n to"), "hello", stood("before it"), kept=kept)


@pytest.mark.parametrize("echo", ["again", "> again", "You: again"])
@pytest.mark.parametrize("kept", [False, True])
def test_a_message_below_what_stood_there_has_its_whole_answer(echo: str, kept: bool) -> None:
    """However it is shown, and also if it was sent before."""
    before = f"{echo}\n one"
    assert not is_cut(UNSIGNED, f"{before}\n{echo}\n two\n──────────", "again", stood(before), kept=kept)
    assert not is_cut(UNSIGNED, f"{echo}\n two\n──────────", "again", [], kept=kept)
    assert not is_cut(BLOCKS, f"● one\n{echo}\n● two\n──────────", "again", [], kept=kept)


def test_message_behind_a_mark_is_found_for_want_of_a_better_place() -> None:
    assert below_message("❯ [message] /clear\nbelow", "/clear", re.compile("^● ")) == "below"
    assert below_message("nothing of it\nbelow", "/clear") == "nothing of it\nbelow"


# What programs with readline write from Enter on: the pasted message without its highlighting, then the line's end.
READLINE = {
    "one line": b"\x1b[27m\r" + 8 * b"\x1b[C" + b"select 6*7;\r\n\x1b[?2004l\r42\r\n\x1b[?2004hsqlite> ",
    "lines": b"\x1b[A\x08select 6*7;\r\n\rselect 1\r\n\r;\r\n\x1b[?2004l\r42\r\n\x1b[?2004hsqlite> ",
    "nothing drawn": b"\r\n\x1b[?2004l\r42\r\n\x1b[?2004hsqlite> ",
    "no bracketed paste": b"\r\n42\r\nsqlite> ",
    "a line that does not end": b"\r\n\x1b[?2004l\r42\x1b[?2004hsqlite> ",
    "a line that does not end, and no bracketed paste": b"\r\n42sqlite> ",
    "a prompt before its bracketed paste": b"\x1b[?2004l\r\r\n42\r\n\r \r\r\x1b[Jsqlite> \x1b[K\x1b[?2004h",
    "the message drawn once more": b"\x1b[1G\x1b[1Gsqlite> \x1b[34mselect 6*7;\x1b[m\x1b[1B\x1b[1G42\r\nsqlite> ",
}
SQLITE = Composer(at_cursor=True, line=r"^sqlite> ?(?P<text>.*)$")


@pytest.mark.parametrize("output", READLINE.values(), ids=READLINE)
def test_what_a_line_editor_draws_is_no_answer(output: bytes) -> None:
    typed = {"prompt": "sqlite> ", "message": "select 6*7;"}
    assert from_lines(AnswerSpec(), SQLITE, output, cols=120, rows=40, **typed) == "42"


def test_a_prompt_whose_blank_the_pattern_wants() -> None:
    pattern = Composer(at_cursor=True, line=r"^sqlite> (?P<text>.*)$")
    assert from_lines(AnswerSpec(), pattern, b"\r\n42\r\nsqlite> ", cols=120, rows=40) == "42"


def test_a_pattern_without_an_anchor_takes_only_the_prompt() -> None:
    pattern = Composer(at_cursor=True, line=r"(?:>>>|\.\.\.) (?P<text>.*)$")
    assert from_lines(AnswerSpec(), pattern, b"\r\nno end... ", cols=120, rows=40, prompt=">>> ") == "no end"


SHELL = Composer(at_cursor=True, line=r"^(?:\$|>) ?(?P<text>.*)$")
ONE_BY_ONE = {
    "the terminal's echo": (b"echo 1\r\necho 2\r\necho 31\r\n$ 2\r\n$ \r\n3\r\n$ ", False),
    "a prompt for more": (b"echo 1\r\necho 2\r\necho 3> > 1\r\n2\r\n$ \r\n3\r\n$ ", False),
    "a line editor": (b"echo 1\r\n1\r\n$ echo 2\r\n2\r\n$ echo 3\r\n3\r\n$ ", True),
    "both": (b"echo 1\r\necho 2\r\n1\r\n$ echo 2\r\n2\r\n$ echo 3\r\n3\r\n$ ", True),
    "an editor that moves": (b"ec\r\x1b[4C\r\x1b[2Cecho 1\r\n\r1\r\n$ echo 2\r\n2\r\n$ echo 3\r\n3\r\n$ ", True),
}


@pytest.mark.parametrize(("output", "edits"), ONE_BY_ONE.values(), ids=ONE_BY_ONE)
def test_what_several_lines_that_are_taken_one_by_one_are_answered(output: bytes, edits: bool) -> None:
    typed = {"prompt": "$ ", "message": "echo 1\necho 2\necho 3"}
    assert from_lines(AnswerSpec(), SHELL, output, cols=80, rows=9, one_by_one=True, edits=edits, **typed) == "1\n2\n3"


def test_what_looks_like_a_prompt_in_the_answer_of_an_editor_stays() -> None:
    output = b"quote\r\n> x\r\n$ 5\r\n5\r\n$ "
    typed = {"prompt": "$ ", "message": "quote\n5"}
    assert from_lines(AnswerSpec(), SHELL, output, cols=80, rows=9, one_by_one=True, edits=True, **typed) == "> x\n5"


def test_a_prompt_that_a_full_line_goes_on_into() -> None:
    """zsh fills the line that was not ended, so that its prompt begins a new one."""
    output = b"\x1b[?2004l\r\r\n42%" + 79 * b" " + b"\r \r\r\x1b[Jsqlite> \x1b[K\x1b[?2004h"
    assert from_lines(AnswerSpec(), SQLITE, output, cols=80, rows=9, prompt="sqlite> ") == "42%"


def test_a_command_that_uses_bracketed_paste_itself() -> None:
    """The program leaves the mode on; an editor that it has run switched it on and off."""
    output = b"\r\nbefore\r\n\x1b[?2004h? \x1b[?2004l\r\nafter\r\nsqlite> "
    assert from_lines(AnswerSpec(), SQLITE, output, cols=120, rows=40) == "before\n?\nafter"


@pytest.mark.parametrize(
    ("strip", "shown", "answer"),
    [
        ("^│ |│$", "│ one     │\n│   two   │\n│         │\n│ ┃ │ end │", "one\n  two\n\n┃ │ end"),
        ("[│┃ ]+", "│┃ one │\n┃ two ┃", "one\ntwo"),
        ("^  ", "  one  \n    two\nthree  four", "one\n  two\nthree  four"),
        ("│", "a │ b\n│ c", "a │ b\n c"),
    ],
)
def test_a_frame_is_stripped_off_both_ends(strip: str, shown: str, answer: str) -> None:
    assert from_screen(AnswerSpec(mode="blocks", strip=strip), shown, "nowhere") == answer


NODE = Composer(at_cursor=True, line=r"^(?:[^>\n]{0,60}>)(?!\S)\s?(?P<text>.*)$", continuation=r"^(?:\.{3}|\|)(?: |$)")


@pytest.mark.parametrize("mark", ["...", "|"])
def test_further_lines_of_a_message_are_no_part_of_its_answer(mark: str) -> None:
    typed = f"> [1].map(x => {{\r\n{mark}   return x\r\n{mark} }})\r\n"
    output = f"{typed}| 1 | 2 |\r\n... and so on\r\n> ".encode()
    given = {"prompt": "> ", "message": "[1].map(x => {\n  return x\n})", "one_by_one": True, "edits": True}
    assert from_lines(AnswerSpec(), NODE, output, cols=80, rows=24, **given) == "| 1 | 2 |\n... and so on"


@pytest.mark.parametrize("mark", [b"%", b"#"])
def test_the_mark_of_a_line_that_was_not_ended_is_no_output(mark: bytes) -> None:
    filled = b"\x1b[1m\x1b[7m" + mark + b"\x1b[27m\x1b[1m\x1b[0m" + 79 * b" " + b"\r \r\r"
    output = b"\x1b[?2004l\r\r\n100%\r\nabc" + filled + b"\x1b[0m\x1b[Jvm# \x1b[K\x1b[?2004h"
    shell = Composer(at_cursor=True, line="^vm# (?P<text>.*)$")
    assert from_lines(AnswerSpec(), shell, output, cols=80, rows=24, prompt="vm# ") == "100%\nabc"


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        (b"echo so\r\nso\r\n$ ", "so"),
        (b"\r\necho so\r\n$ ", "echo so"),
        (b"echo so\r\n$ ", "echo so"),
    ],
    ids=["a late echo", "an answer that says the same", "a program without an echo"],
)
def test_an_echo_that_comes_late_is_no_part_of_the_answer(output: bytes, answer: str) -> None:
    shell = Composer(at_cursor=True, line=r"^\$ ?(?P<text>.*)$")
    given = {"cols": 80, "rows": 24, "prompt": "$ ", "message": "echo so"}
    assert from_lines(AnswerSpec(), shell, output, **given) == answer


# --- answers that are longer than what an emulator keeps -------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with a hundredth of the lines."""
    monkeypatch.setattr(printed, "TAKEN_EVERY", 50)
    monkeypatch.setattr(printed, "SCROLLBACK_LINES", 500)


def lines(count: int, width: int) -> list[str]:
    return [f"{number:06} {'x' * width}" for number in range(count)]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("count", "width"), [(450, 200), (498, 3), (499, 3), (600, 3), (600, 333)])
def test_lines_that_are_missing_are_counted(count: int, width: int) -> None:
    said = lines(count, width)
    output = b"".join(b"\x1b[1;38;2;9;200;9;4m" + line.encode() + b"\r\n" for line in said) + b"sqlite> "
    read = all_lines(AnswerSpec(), SQLITE, b"\r\n" + output, cols=80, rows=24, prompt="sqlite> ")
    missing = max(0, count - 499)
    """The prompt's line is among those that are kept."""
    assert (read.text.split("\n"), read.missing) == (said[missing:], missing)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("ending", [b"\r\n", b"\n\r", b"\r\n\x1b[m"])
def test_lines_are_whole_wherever_they_are_taken_off_the_screen(ending: bytes) -> None:
    said = [f"{number:06} {'y' * (1 + number % 300)}" for number in range(400)]
    output = b"".join(line.encode() + ending for line in said) + b"sqlite> "
    read = all_lines(AnswerSpec(), SQLITE, b"\r\n" + output, cols=80, rows=9, prompt="sqlite> ")
    assert (read.text.split("\n"), read.missing) == (said, 0)


@pytest.mark.usefixtures("small")
def test_what_a_program_has_erased_is_not_missing() -> None:
    old, new = (b"".join(line.encode() + b"\r\n" for line in lines(count, 3)) for count in (700, 20))
    read = all_lines(AnswerSpec(), SQLITE, b"\r\n" + old + b"\x1b[H\x1b[2J\x1b[3J" + new, cols=80, rows=24)
    assert (read.text.split("\n"), read.missing) == (lines(20, 3), 0)
