"""Finding the composer and what stands in it."""

import pytest

from synapsed.profiles.screen_spec import Composer, DeliverySpec
from synapsed.terminal.composer import ComposerState, cursor_line, ends_at_cursor, holds_back, read_composer, shows_line
from synapsed.terminal.emulated_screen import Screen

LINES = Composer(line=r"^\$ (?P<text>.*)$", at_cursor=True)
TUI = Composer(line=r"^> (?P<text>.*)$", placeholder="^Type your message")


def read(spec: Composer, data: bytes, *, cols: int = 20, rows: int = 5) -> ComposerState:
    screen = Screen(cols, rows)
    screen.feed(data)

    def bright(row: int) -> str:
        return "".join(" " * len(cell.text) if cell.dim else cell.text for cell in screen.row_cells(row))

    return read_composer(spec, screen.snapshot(), bright)


def test_a_prompt_at_the_cursor_is_an_empty_composer() -> None:
    assert read(LINES, b"hello\r\n$ ") == ComposerState("empty", "", 1, prompt="$ ")


def test_a_prompt_that_leaves_its_group_out_is_empty() -> None:
    pattern = Composer(line=r"^(?:\$ (?P<text>.*)|more> )$", at_cursor=True)
    assert read(pattern, b"more> ") == ComposerState("empty", "", 0, prompt="more> ")


def test_the_end_of_a_message_at_the_cursor() -> None:
    screen = Screen(20, 5)
    screen.feed(b"$ for i in 1 2\r\ndo echo\r\ndone")
    snapshot = screen.snapshot()
    assert read_composer(LINES, snapshot).state == "absent"
    assert ends_at_cursor(snapshot, "for i in 1 2\ndo echo\ndone")
    assert not ends_at_cursor(snapshot, "for i in 1 2\ndo echo")
    assert not ends_at_cursor(snapshot, "done\n")
    screen.feed(250 * b"x")
    assert ends_at_cursor(screen.snapshot(), "echo " + 250 * "x")


@pytest.mark.parametrize(
    ("behind", "ends"),
    [
        (b" \r", True),  # bash, lua and all else with readline
        (b" \r\x1b[K", True),  # zsh
        (b"\x1b[1G\x1b[0J$ echo xxxxxxxxxxxxx \x1b[1G", True),  # node
        (b" \b", True),  # tcsh, php
        (b" \r\r\n", False),  # Enter, and it runs
        (b"\r\n", False),
        (b"\r\nout", False),
    ],
)
def test_a_message_that_fills_the_row_ends_where_the_cursor_is_in_the_row_below(behind: bytes, ends: bool) -> None:
    screen = Screen(20, 5)
    screen.feed(b"$ echo xxxxxxxxxxxxx" + behind)
    snapshot = screen.snapshot()
    assert ends_at_cursor(snapshot, "echo xxxxxxxxxxxxx") is ends
    assert (read_composer(LINES, snapshot).state == "draft") is ends


@pytest.mark.parametrize(
    ("shown", "ends"),
    [
        (b"$ echo xxxxxxxxxxxxx\r\r\n", True),
        (b"$ echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\r\n", True),  # two rows
        ("$ echo xxxxxxxxxxx日\r\r\n".encode(), True),
        (b"$ echo xxxxxxxxxxxx\r\n", False),  # no full row
        (b"$ echo xxxxxxxxxxxxx\r\n\r\n", False),
        (b"$ echo xxxxxxxxxxxxx\r\nout", False),
    ],
)
def test_fish_ends_a_row_that_a_message_fills(shown: bytes, ends: bool) -> None:
    screen = Screen(20, 5)
    screen.feed(shown)
    text = shown.decode().removeprefix("$ ").partition("\r")[0]
    assert ends_at_cursor(screen.snapshot(), text, edited=True) is ends
    assert not ends_at_cursor(screen.snapshot(), text)


def test_a_prompt_that_is_not_the_cursors_is_none() -> None:
    assert read(LINES, b"$ run\r\nworking").state == "absent"


def test_a_prompt_in_the_output_is_none_while_the_cursor_is_elsewhere() -> None:
    assert read(LINES, b"quote:\r\n$ \r\nmore").state == "absent"


def test_a_draft_that_wraps_is_read_whole() -> None:
    state = read(LINES, b"$ " + b"abcdefghij" * 3)
    assert (state.state, state.text, state.row) == ("draft", "abcdefghij" * 3, 0)


def test_the_last_matching_row_is_the_composer() -> None:
    assert read(TUI, b"> old message\r\nanswer\r\n> new\r\nfooter") == ComposerState("draft", "new", 2)


def test_a_placeholder_is_no_draft() -> None:
    assert read(TUI, b"> Type your message or @file").state == "empty"


def test_faint_text_is_no_draft_and_typed_text_before_it_is() -> None:
    assert read(TUI, b"> \x1b[2mTry something\x1b[m").state == "empty"
    assert read(TUI, b"> a\x1b[2mbc\x1b[m").state == "draft"


def test_wide_characters_before_a_faint_text_do_not_shift_it() -> None:
    spec = Composer(line=r"^日本> (?P<text>.*)$")
    assert read(spec, "日本> \x1b[2mヒント\x1b[m".encode()).state == "empty"
    assert read(spec, "日本> 続き".encode()).text == "続き"


def test_no_composer_without_a_pattern() -> None:
    assert read(Composer(), b"anything").state == "absent"


def test_the_cursors_line_counts_blanks_up_to_the_cursor() -> None:
    screen = Screen(20, 3)
    screen.feed(b"$ ")
    assert cursor_line(screen.snapshot()) == (0, "$ ")


AROUND = Composer(line=r"^> ?(?P<text>.*)$", around=r"\n─{8,}[^\n]*\n>", empty=r"\n>[^\n]*\n─{8,}")
RULE = "─" * 10


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        (["> an earlier message", "", RULE, "> ", RULE], "empty"),
        (["> an earlier message", "", "Allow it?", "(1) Yes"], "absent"),
        ([RULE, "> ", "  below an empty line", RULE], "draft"),
        ([RULE, "> text", RULE], "draft"),
    ],
)
def test_what_only_looks_like_a_composer(rows: list[str], state: str) -> None:
    screen = Screen(40, 8)
    screen.feed("\r\n".join(rows).encode())
    assert read_composer(AROUND, screen.snapshot()).state == state


def test_composer_of_a_program_that_hides_its_cursor_elsewhere() -> None:
    spec = Composer(line=r"^> ?(?P<text>.*)$", shows_cursor=True)
    screen = Screen(40, 8)
    screen.feed(b"\x1b[?25l> 1. Yes\r\n  2. No")
    assert read_composer(spec, screen.snapshot()).state == "absent"
    screen.feed(b"\x1b[?25h")
    assert read_composer(spec, screen.snapshot()).state == "draft"


@pytest.mark.parametrize(
    ("drawn", "shown"),
    [
        ("> @codex hi there\r\n-----", True),
        ("> @codex hi\r\n  there\r\n-----", True),
        ("> @codex hi there", True),
        ("> @codex hi\r\n-----", False),
        ("> @codex hi there you", False),
        ("> @codex hi\r\n  there you", False),
        ("> hi there", False),
        ("> ", False),
        ("nothing", False),
    ],
)
def test_a_line_is_the_draft_or_not(drawn: str, shown: bool) -> None:
    screen = Screen(30, 5)
    screen.feed(drawn.encode())
    snapshot = screen.snapshot()
    assert shows_line(read_composer(TUI, snapshot), snapshot, "@codex hi there") is shown


def test_a_line_in_a_box() -> None:
    screen = Screen(30, 6)
    screen.feed("│ > @codex hi │\r\n│   there     │\r\n│ Build       │".encode())
    snapshot = screen.snapshot()
    boxed = Composer(line=r"^│ > (?P<text>.*?)\s*│?$")
    assert shows_line(read_composer(boxed, snapshot), snapshot, "@codex hi there")


@pytest.mark.parametrize(
    ("shown", "held"),
    [
        (b"> say\r\n\r\n  Waiting for startup", True),
        (b"  Waiting for startup\r\n> say\r\n", False),
        (b"> \r\n\r\n  Waiting for startup", False),
        (b"  Waiting for startup", False),
    ],
    ids=["below", "in an answer", "empty", "no composer"],
)
def test_a_message_is_held_back_by_what_stands_below_it(shown: bytes, held: bool) -> None:
    screen = Screen(40, 5)
    screen.feed(shown)
    snapshot = screen.snapshot()
    composer = read_composer(TUI, snapshot)
    assert holds_back(DeliverySpec(starting="^  Waiting for startup"), snapshot, composer) is held
    assert not holds_back(DeliverySpec(), snapshot, composer)
