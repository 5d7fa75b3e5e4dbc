"""Text read while it is being said: off the output, off recorded and made screens."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from synapsed.model.agent import Activity
from synapsed.model.facts import AssistantSaying
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import AnswerSpec, StreamSpec
from synapsed.pty.streaming import Piece, TurnStream
from synapsed.terminal import growing_answer
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.growing_answer import LineText, ScreenText
from synapsed.terminal.look import Look
from synapsed.terminal.observer import TerminalObserver
from tests.real.script import plan_for
from tests.support.gated import chosen

pytestmark = pytest.mark.recorded

MESSAGE = "Say it."
STREAM = StreamSpec(end=r"^✻ ", skip=r"\n +⎿")
ANSWER = AnswerSpec(mode="blocks", start="^● ", end="^❯", strip="^  ")


# --- line-oriented programs ------------------------------------------------------------------------------------------

PRINTED = (
    "\r\n\x1b[1mHello\x1b[0m 日本\r\n  indented \r\n10%\r55%\r100%\r\n\x1b]0;title\x07\x1b]8;;x\x1b\\link\x07\r\n> "
).encode()
SHOWN = "Hello 日本\n  indented\n100%\nlink\n"


@given(st.lists(st.integers(0, len(PRINTED)), max_size=12), st.randoms(use_true_random=False))
def test_lines_are_the_same_however_they_come(cuts: list[int], order: object) -> None:
    """In chunks of any size, the first of them after the others, as when a restarted daemon reads it again."""
    ends = sorted({*cuts, 0, len(PRINTED)})
    chunks = [(100 + a, PRINTED[a:b]) for a, b in pairwise(ends)]
    text = LineText(100)
    for chunk in [*chunks[1:], chunks[0]]:
        text.feed(*chunk)
    assert text.text == SHOWN


def test_output_from_before_the_submission_is_none() -> None:
    text = LineText(103)
    text.feed(96, b"> hi\n\r\r\nyes\r\n")
    assert text.text == "yes\n"
    text.feed(109, b"more\n")
    assert text.text == "yes\nmore\n"


def test_the_prompt_that_follows_is_none() -> None:
    text = LineText(0)
    text.feed(0, b"\r\nyes\r\ndummy> ")
    assert text.text == "yes\n"


def test_what_a_line_editor_draws_of_the_message_is_none() -> None:
    text = LineText(0)
    drawn = b"\x1b[A\x08select 1;\r\n\rselect 2;\r\n\x1b[?20"
    text.feed(0, drawn)
    assert text.text == "select 2;\n"
    text.feed(len(drawn), b"04l\r1\r\n2\r\n\x1b[?2004hsqlite> \r\n")
    assert text.text == "1\n2\nsqlite>\n"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"a\tb", "a       b"),
        (b"long text\rabc", None),
        (b"long text\r\x1b[Kabc", "abc"),
        (b"up\x1b[A", None),
        (b"ab\x08c", None),
        ("日\tb".encode(), None),
        (b"\xff", None),
    ],
)
def test_what_only_a_terminal_can_tell_ends_the_text(line: bytes, shown: str | None) -> None:
    """The answer is what a terminal shows; text that goes another way would have to be taken back."""
    text = LineText(0)
    text.feed(0, b"\r\nyes\r\n" + line + b"\r\nmore\r\n")
    assert text.text == ("yes\n" if shown is None else f"yes\n{shown}\nmore\n")
    screen = Screen(80, 24)
    screen.feed(b"yes\r\n" + line + b"\r\nmore\r\n")
    assert shown is None or screen.text(scrollback=False) == f"yes\n{shown}\nmore"


PIECES = [*"a 日\t\r\x07\x1b", "\x1b[1m", "\x1b[K", "\x1b]0;t", "\x1b\\", "\x1b[A", "\x1b[?2004l"]


@given(st.lists(st.sampled_from([*PIECES, "\n", "\r\n", "a\n", "b\r\n"]), max_size=30))
@example(["\n", "a\tb\r\n", " 日 \r\n", "\x1b]0;t", "\n", "a", "\r\r\n", "a\n"])
def test_lines_that_are_read_at_once_are_what_each_of_them_is(pieces: list[str]) -> None:
    output = "".join(pieces).encode()
    at_once, one_by_one = LineText(0), LineText(0)
    at_once.feed(0, output)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing_answer, "_all_shown", lambda _lines: None)
        one_by_one.feed(0, output)
    assert at_once.text == one_by_one.text


@given(st.lists(st.binary(max_size=40), max_size=10))
@example([b"\n\x1b", b"\n"])
def test_any_bytes(chunks: list[bytes]) -> None:
    text, at = LineText(0), 0
    for chunk in chunks:
        text.feed(at, chunk)
        assert all(c in "\n\t" or c >= " " for c in text.text)
        at += len(chunk)


@pytest.mark.timeout(60)
def test_a_line_of_strings_that_do_not_end_costs_what_any_other_does() -> None:
    """No deadline is asserted: quadratic behaviour would exceed the test's time-out."""
    text = LineText(0)
    text.feed(0, b"\n" + b"\x1b]" * 100_000 + b"\nafter\n")
    assert text.text == "\nafter\n"


# --- block-oriented programs -----------------------------------------------------------------------------------------


def screen(*lines: str) -> str:
    return "\n".join([*lines, "", "✻ Thinking…", "", "❯ ", "  footer"])


def reader(*, begun: bool = False) -> ScreenText:
    return ScreenText(STREAM, ANSWER, MESSAGE, begun=begun)


def test_the_block_below_the_message_up_to_its_last_whole_word() -> None:
    text = reader()
    assert text.read(screen("● an older answer")) == ""
    assert text.read(screen("● an older answer", "❯ Say it.")) == ""
    assert text.read(screen("● an older answer", "❯ Say it.", "", "● Here is")) == "Here"
    assert text.read(screen("❯ Say it.", "", "● Here is what", "  you as")) == "Here is what\nyou"


def test_a_tool_call_is_no_text_and_a_new_block_takes_its_place() -> None:
    text = reader()
    said = ["❯ Say it.", "", "● I will look now.", ""]
    assert text.read(screen(*said, "● Bash(ls)", "  ⎿  a b c")) == "I will look"
    assert text.read(screen(*said, "● Bash(ls)", "  ⎿  a b c", "", "● It is there.")) == "It is"


def test_what_has_scrolled_away_stays() -> None:
    lines = [f"  line {number:03} of it" for number in range(100)]
    lines[0] = "● line 000 of it"
    text = reader()
    assert text.read(screen("❯ Say it.", *lines[:10])).endswith("line 009 of")
    for number in range(11, 101):
        last = text.read(screen(*lines[max(0, number - 12) : number]))
    assert last.split("\n")[:-1] == [line[2:] for line in lines[:99]]


def test_what_has_nothing_in_common_with_it_is_not_joined() -> None:
    text = reader()
    text.read(screen("❯ Say it.", "● one two", "  three four"))
    assert text.read(screen("  nine nine", "  ten ten")) == "one two\nthree"


def test_an_older_block_is_none_while_the_message_is_out_of_sight() -> None:
    """A program clears its screen and draws all of the conversation again: a look finds it half drawn."""
    text = reader()
    assert text.read(screen("❯ Say it.", "● line 001", "  line 002 of")) == "line 001\nline 002"
    for _ in range(2):
        assert text.read(screen("● An answer of before.", "  and more of it")) == "line 001\nline 002"
    assert text.message == 0
    assert text.read(screen("❯ Say it.", "● line 001", "  line 002 of it", "  line")) == "line 001\nline 002 of it"


def test_the_beginning_of_a_line_alone_joins_nothing() -> None:
    """Where a screenful and more was missed, another line may begin as the last one did."""
    text = reader()
    assert text.read(screen("❯ Say it.", "● line 001", "", "  line", "")) == "line 001"
    assert text.read(screen("  line 080", "  line 081", "  line 082 of it")) == "line 001"


def test_after_a_restart_the_message_may_be_out_of_sight() -> None:
    assert reader().read(screen("● one two three")) == ""
    assert reader(begun=True).read(screen("● one two three")) == "one two"


SAID = "One two.\n\n```py\n  x = 1\n```\n\n"
DRAWN = ["❯ Say it.", "● One two.", "", "    x = 1", ""]


def test_what_follows_a_known_text_is_certain_where_that_is_not() -> None:
    assert reader().read(screen(*DRAWN, "  Then more of")) == "One two."
    assert reader().read(screen(*DRAWN, "  Then more of"), said=SAID) == f"{SAID}Then more"
    assert reader().read(screen(*DRAWN, "  Then more of", "  it and"), said=SAID) == f"{SAID}Then more of\nit"


@pytest.mark.parametrize(
    ("drawn", "said"),
    [
        (DRAWN[:-1], SAID),
        ([*DRAWN, "  Then this.", "", "  Then more of"], SAID),
        ([*DRAWN[:3], "    x = 2", "", "  Then more of"], SAID),
        ([*DRAWN, "  ────────", "", "  Then more of"], SAID),
        ([*DRAWN, "  - an item"], SAID),
        ([*DRAWN, "  Then more of"], SAID.replace("\n```\n", "\n")),
        ([*DRAWN, "  Then more of"], SAID.rstrip() + "\n"),
        (["❯ Say it.", "● One two."], SAID),
        (["❯ Say it."], SAID),
    ],
    ids=["not yet", "more than known", "other code", "a rule", "an item", "in code", "no break", "late", "nothing"],
)
def test_nothing_follows_a_known_text_that_is_not_all_of_what_is_drawn_above(drawn: list[str], said: str) -> None:
    assert reader().read(screen(*drawn), said=said) in (said, "One two.")


def test_a_tool_call_whose_mark_is_not_drawn_just_now_is_no_text() -> None:
    said = ["❯ Say it.", "", "● I will look now.", ""]
    assert reader().read(screen(*said, "  Bash(ls)", "  ⎿  a b c")) == "I will look"
    assert reader().read(screen(*said, "  Bash(ls -l", "      and more)", "  ⎿  a b c")) == "I will look"
    assert reader().read(screen("❯ Say it.", "● Bash(ls -l", "      and more)", "  ⎿  a b c")) == ""


def test_where_indented_code_is_drawn_as_prose_is_a_paragraph_counts_once_it_is_wrapped() -> None:
    stream = STREAM.model_copy(update={"flat": True})

    def read(*rows: str) -> str:
        return ScreenText(stream, ANSWER, MESSAGE).read(screen("❯ Say it.", "● One two:", "", *rows), cols=30)

    assert read("  x = 1") == read("  x = 1", "  y = 2 + 1") == "One two:"
    assert read("  The words of it fill a row", "  and more") == "One two:\n\nThe words of it fill a row and"


@given(st.lists(st.text(alphabet="● ❯✻⎿\nSay it.x", max_size=60), max_size=8), st.booleans())
def test_any_screens(screens: list[str], begun: bool) -> None:
    text = reader(begun=begun)
    for seen in screens:
        assert text.read(seen) == text.read(seen)


@pytest.mark.parametrize("bad", ["", "\n", "❯ Say it.", "● "])
def test_screens_without_text(bad: str) -> None:
    assert reader().read(bad) == ""


# --- recordings ------------------------------------------------------------------------------------------------------

RECORDINGS = Path(__file__).parent.parent / "recordings"


ALL = sorted([*RECORDINGS.glob("*-[0-9]*/*.json"), *RECORDINGS.glob("streams/*.json")])


def name_of(recording: Path) -> str:
    return f"{recording.parent.name}/{recording.stem}"


def recorded(name: str) -> tuple[dict[str, Any], Profile]:
    """A recording's facts, and the profile of its program, which is read off its screen."""
    facts: dict[str, Any] = json.loads((RECORDINGS / f"{name}.json").read_text())
    profile = ProfileLibrary.standard(Path("/nonexistent")).get(facts["cli"]).at(facts["version"])
    return facts, profile.model_copy(update={"stream": profile.stream.model_copy(update={"source": "screen"})})


def messages_of(facts: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(request["user"] for request in facts["requests"] if request["side"] is None))


def looks(name: str, facts: dict[str, Any], profile: Profile) -> Iterator[tuple[float, int, Look, str]]:
    """The looks at a recording's screens while it works, each with its time, its offset, and the styles."""
    raw, done = (RECORDINGS / f"{name}.raw").read_bytes(), 0
    cols, rows = facts["size"]
    observer = TerminalObserver(profile, cols=cols, rows=rows, offset=0)
    for now, offset in facts["chunks"]:
        observer.feed(done, raw[done:offset], now)
        done = offset
        if not observer.mid_frame(now):
            look = observer.look(now)
            if look.verdict.activity is Activity.BUSY:
                yield now, offset, look, observer.screen.kinds()


def told(name: str) -> list[list[Piece]]:
    """The pieces told in each turn of a recording. Each screen is taken for one that stood for a while: what may be
    drawn for a moment may stay so long on a busy machine."""
    facts, profile = recorded(name)
    messages = messages_of(facts)
    marks = [offset for _, offset, label in facts["marks"] if label in ("submitted", "pasted", "second submitted")]
    turns: list[list[Piece]] = []
    stream = None
    for now, offset, look, kinds in looks(name, facts, profile):
        if (number := sum(offset > begin for begin in marks[: len(messages)])) > len(turns):
            turns += [[] for _ in range(number - len(turns))]
            stream = TurnStream(profile, messages[number - 1], begun=False)
        if stream is None:
            continue
        for _ in range(2):
            stream.seen(look.screen.text(), kinds, cols=look.screen.cols)
        if (piece := stream.take(now)) is not None:
            turns[-1].append(piece)
    return turns


@pytest.mark.parametrize("cli", ["claude-2.1.330", "codex-0.169.0"])
def test_of_a_real_program_s_screens_words_are_told_as_they_come(cli: str) -> None:
    pieces, more = told(f"{cli}/slow")
    assert all(piece.append for piece in [*pieces, *more])
    assert "".join(piece.text for piece in pieces) == "Here is the **function** you asked for:"
    assert len(more) >= 1


@pytest.mark.parametrize("name", chosen([name_of(recording) for recording in ALL], str))
def test_what_is_told_of_a_real_program_s_screens_is_how_it_said_it(name: str) -> None:
    """In all recordings: also of failures, tool calls, dialogs and interruptions nothing else is told as text."""
    facts, _ = recorded(name)
    plans = [plan_for(message) for message in messages_of(facts) if not message.startswith("System: ")]
    said = [text for plan in plans for text in (plan.before, plan.text)]
    for pieces in told(name):
        message = ""
        for piece in pieces:
            message = message + piece.text if piece.append else piece.text
            assert any(text.startswith(message) for text in said), message


def test_below_code_text_is_told_as_a_real_program_draws_it() -> None:
    """Its hook has told the lines above, and tells of the last paragraph when that is whole."""
    name = "streams/claude-steps"
    facts, profile = recorded(name)
    (message,) = messages_of(facts)
    *above, last = plan_for(message).text.splitlines(keepends=True)
    told = dict.fromkeys(("channel", "screen"), "")
    for source in told:
        stream = TurnStream(
            profile.model_copy(update={"stream": profile.stream.model_copy(update={"source": source})}),
            message,
            begun=False,
        )
        for now, _, look, kinds in looks(name, facts, profile):
            if f"  {last[:40]}" in (text := look.screen.text()):
                stream.told(AssistantSaying(channel="hooks", at_ns=1, message_id="m", piece="".join(above)))
                above = []
            for _ in range(2):
                stream.seen(text, kinds, cols=look.screen.cols)
            if (piece := stream.take(now)) is not None:
                assert piece.append
                told[source] += piece.text
    assert told["screen"] == "Here is a script for it, which does what you "
    assert told["channel"] == plan_for(message).text.removesuffix(" was.")


def test_a_list_is_told_as_a_real_program_draws_it() -> None:
    """Its items are wrapped, within others, numbered, with another mark, with words in bold; prose is below them."""
    name = "streams/gemini-listed"
    facts, _ = recorded(name)
    (message,) = messages_of(facts)
    (pieces,) = told(name)
    assert len(pieces) > 10
    assert all(piece.append for piece in pieces)
    assert "".join(piece.text for piece in pieces) == plan_for(message).text.removesuffix(" was.")


def test_what_a_program_says_of_its_servers_is_no_text() -> None:
    profile = ProfileLibrary.standard(Path("/nonexistent")).get("codex")
    text = ScreenText(profile.stream, profile.answer, "Say it.")
    starting = "• Starting MCP servers (1/2): synapsed (0s • esc to interrupt)"
    assert text.read(screen("› Say it.", "", starting, "", "› Ask Codex to do anything")) == ""
    assert text.read(screen("› Say it.", "", "• It is said now.", "", starting, "", "› ")) == "It is said"
