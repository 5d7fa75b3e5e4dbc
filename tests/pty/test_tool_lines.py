"""Which tool calls a screen shows, by a profile's patterns."""

import pytest
from pydantic import ValidationError

from synapsed.model.facts import ShownCall
from synapsed.profiles.channel_spec import ShownTools
from synapsed.pty.tool_screen import CALLS_MAX, shown_calls

IN_PLACE = ShownTools(
    started=[r"^[◌?] (?P<tool>\w+) (?P<command>.+)$"],
    completed=[r"^✓ (?P<tool>\w+) (?P<command>.+)$(?:\n  (?P<output>.+)$)?"],
    failed=[r"^✗ (?P<tool>\w+) (?P<command>.+)$(?:\n  (?P<error>.+)$)?"],
    denied=r"^  not allowed",
)
BELOW = ShownTools(
    tool="shell",
    started=[r"^\$ (?P<command>.+)$"],
    completed=[r"^exit 0$"],
    failed=[r"^exit (?P<error>[1-9]\d*)$"],
)


def call(status: str, command: str, **more: object) -> ShownCall:
    return ShownCall(status=status, tool="Shell", input={"command": command}, **more)  # type: ignore[arg-type]


def test_lines_that_change_in_place() -> None:
    text = "✓ Shell ls\n  a b\nwords\n✗ Shell rm x\n  not allowed here\n◌ Shell make\n? Shell touch y"
    assert shown_calls(IN_PLACE, text) == (
        call("completed", "ls", output="a b"),
        call("failed", "rm x", error="not allowed here", denied=True),
        call("started", "make"),
        call("started", "touch y"),
    )


def test_a_line_below_tells_the_end_of_the_nearest_one_above_that_runs() -> None:
    text = "$ one\nout\nexit 0\n$ two\nexit 3\n$ three"
    assert [(c.tool, c.input["command"], c.status, c.error) for c in shown_calls(BELOW, text)] == [
        ("shell", "one", "completed", None),
        ("shell", "two", "failed", "3"),
        ("shell", "three", "started", None),
    ]


def test_an_end_that_names_its_call_is_that_one_s_of_several_that_run() -> None:
    spec = ShownTools(
        started=[r"^Running (?P<tool>\w+) (?P<path>\S+)$"], completed=[r"^Done (?P<tool>\w+) (?P<path>\S+)$"]
    )
    told = shown_calls(spec, "Running Read a\nRunning Read b\nDone Read a")
    assert [(c.input["path"], c.status) for c in told] == [("a", "completed"), ("b", "started")]
    assert shown_calls(spec, "Done Read a") == (ShownCall(status="completed", tool="Read", input={"path": "a"}),)


def test_an_end_whose_call_has_scrolled_away_has_no_name() -> None:
    assert shown_calls(BELOW, "out\nexit 0\n$ next") == (
        ShownCall(status="completed"),
        ShownCall(status="started", tool="shell", input={"command": "next"}),
    )


def test_a_text_over_several_rows_is_one_and_the_pattern_that_ends_it_goes_before_the_one_that_starts() -> None:
    spec = ShownTools(
        tool="shell",
        started=[r"^● \w+\n  \$ (?P<command>.+(?:\n    .+)*)"],
        completed=[r"^● \w+\n  \$ (?P<command>.+(?:\n    .+)*)\n  └ (?P<output>.*)"],
    )
    text = "● Look\n  $ find . |\n    sort\n  └ 2 lines\n● Look\n  $ ls"
    assert [(c.input["command"], c.status, c.output) for c in shown_calls(spec, text)] == [
        ("find . | sort", "completed", "2 lines"),
        ("ls", "started", None),
    ]


def test_a_screen_full_of_calls_is_bounded() -> None:
    told = shown_calls(IN_PLACE, "\n".join(f"✓ Shell {n}" for n in range(CALLS_MAX + 7)))
    assert (len(told), told[-1].input["command"]) == (CALLS_MAX, str(CALLS_MAX + 6))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"started": ["^x (?P<tool>.)"]}, "'started' needs 'completed' too"),
        ({"completed": ["^x (?P<command>.)"]}, r"'\^x \(\?P<command>\.\)' in 'completed' does not say which tool"),
        ({"started": ["^x (?P<cmd>.)"], "completed": ["^y"]}, "in 'started' does not say which tool"),
        ({"completed": ["^done"]}, r"'\^done' in 'completed' does not say of which call"),
        ({"failed": ["^no (?P<error>.)"]}, "in 'failed' does not say of which call"),
        ({"completed": ["("]}, "not a regular expression"),
        ({"completed": ["(?P<tool>.)"] * 21}, "at most 20"),
    ],
)
def test_what_a_profile_cannot_say(given: dict[str, list[str]], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        ShownTools.model_validate(given)
