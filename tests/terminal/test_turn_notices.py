"""What a program's own chrome says below a message."""

import pytest

from synapsed.profiles.library import ProfileLibrary
from synapsed.terminal.turn_signs import read_chrome, refused_below

GEMINI = ProfileLibrary.builtin().get("gemini")
CODEX = ProfileLibrary.builtin().get("codex")
BLOCKED = ["• Blocked by hook", "  └ Not before the tests", "    have passed.", ""]


def test_why_a_hook_refused_a_message_stands_in_the_place_of_its_answer() -> None:
    rows = ["› Earlier.", "", "• Done.", "", "› First one.", "", "", *BLOCKED, "  Worked for <1s • 11:21", "", "› "]
    assert refused_below(CODEX, rows, "First one.") == "Not before the tests\nhave passed."


@pytest.mark.parametrize(
    "rows",
    [
        ["› Earlier.", "", *BLOCKED, "› First one.", "", "• Done.", "", "› "],
        ["› First one.", "", "• It says:", "", "  • Blocked by hook", "    └ so.", "", "• Done.", "", "› "],
        ["› First one.", "", "• Done.", "", *BLOCKED, "› "],
        [*BLOCKED, "› "],
    ],
    ids=["of an earlier one", "an answer quotes it", "an answer stands before it", "the message is not to be seen"],
)
def test_the_same_words_elsewhere_refuse_nothing(rows: list[str]) -> None:
    assert refused_below(CODEX, rows, "First one.") is None


def test_a_key_that_is_not_valid_is_the_accounts_failure_also_where_the_service_calls_it_a_bad_request() -> None:
    words = "[API Error: API key not valid. Please pass a valid API key.]"
    said, _ = read_chrome(GEMINI, [" > First one.", "", f"✕ {words}", "", " > "], "First one.")
    assert said == ("AUTH_REQUIRED", f"✕ {words}")
    assert GEMINI.channels["hooks"].error_code(words) == "AUTH_REQUIRED"


@pytest.mark.parametrize("message", ["API Error", "key", "First one."])
def test_an_error_that_has_a_short_message_in_it_is_no_echo_of_that(message: str) -> None:
    words = "✕ [API Error: no key]"
    assert read_chrome(GEMINI, [f" > {message}", "", words, "", " > "], message)[0] is not None
    assert read_chrome(GEMINI, [words, f" > {message}", "", "✦ Fine.", "", " > "], message)[0] is None
