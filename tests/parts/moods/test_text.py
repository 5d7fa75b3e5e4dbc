"""Which signals are found in what people write to programming agents."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.model.task import EXCERPT_END_MAX, DataPart, Message, Said, TextPart, ends
from synapsed.parts.moods import text as module
from synapsed.parts.moods.likeness import SKETCH, alike, sketch
from synapsed.parts.moods.signals import PATTERN, SIGNALS, TEXT, points
from synapsed.parts.moods.text import own_words, signs
from synapsed.shared.regex import LateRegex

CALM = [
    "Kill the process that is dead and find the fatal error: the build failed.",
    "SELECT a FROM b WHERE c IS NOT NULL AND d IN (SELECT e FROM f)",
    "Parse the HTTP JSON API README and the YAML TOML CSV files",
    "Explain garbage collection, the worst case, and why retries are exhausted",
    "Take nice -n 19 and give up after three retries",
    "> this is useless!!\nReview that comment, please",
    "```\nprint('you are stupid!!! wtf')\n```\nWhat does it print?",
    "Rename `wtf_useless` to something better",
    'Translate "this is terrible, I hate this" into German',
    "+ // damn, why??\n- // ugh\nReview this diff",
    "I'm not frustrated, and it is not annoying",
    "Don't give up the lock; it isn't stupid",
    "What is a:D and f(:)? x = a?b:c",
    "retired, undertired and so-tiredness are different words",
    "お疲れ様です。クイックソートを実装してください。最高速度でお願いします",
    "最悪の場合の計算量を教えて。いい感じにしてもらえると助かります",
    "完璧ではないが動く。自信がない",
    "www xxx aaa fff 0000 ffff",
    "ПОЧЕМУ ЭТО НЕ РАБОТАЕТ",
    "",
]

TOLD = [
    ("wtf, this is useless", {"angry_words": 2}),
    ("I already told you. That's wrong", {"angry_words": 1, "reproach": 1}),
    ("It still doesn’t work, same error", {"reproach": 2}),
    ("WHY IS THIS BROKEN", {"shouting": 1}),
    ("It says no. STOP DOING THAT NOW", {"shouting": 1}),
    ("What is that??", {"insisting": 1}),
    ("why?！", {"insisting": 1}),
    ("nooooo, whyyyy", {"drawn_out": 1}),
    ("no! no! no!", {"hammering": 1}),
    ("Thanks!! Perfect", {"thanks": 1, "glad_words": 1, "glad_marks": 1}),
    ("That was great :)", {"thanks": 1, "glad_face": 1}),
    ("I'm sure. Ship it 💪", {"sure_words": 2, "sure_face": 1}),
    ("Makes sense, looks good", {"assent": 2}),
    ("I'm so tired, let's call it a day 🥱", {"tired_words": 2, "tired_face": 1}),
    ("なんで動かない！？何度も言ったでしょ", {"angry_words": 2, "reproach": 1, "insisting": 1}),
    ("うざい。もういい", {"angry_words": 2}),
    ("ありがとう、完璧です！", {"thanks": 1, "glad_words": 1}),
    ("疲れた…今日はここまで", {"tired_words": 2}),
    ("なるほど、いい感じです", {"assent": 2}),
    ("damn damn damn damn", {"angry_words": 1}),
]


@pytest.mark.parametrize("text", CALM)
def test_what_is_calm(text: str) -> None:
    assert signs(own_words(text)) == {}


@pytest.mark.parametrize(("text", "found"), TOLD)
def test_what_is_not(text: str, found: dict[str, int]) -> None:
    assert signs(own_words(text)) == found


def test_every_signal_of_text_is_found_somewhere() -> None:
    found = {name for _, told in TOLD for name in told} | {"late_words", "angry_face"}
    assert found == {name for name, signal in SIGNALS.items() if signal.source == TEXT}
    assert signs(own_words("it's late 😡")) == {"late_words": 1, "angry_face": 1}


def test_one_message_has_a_limit() -> None:
    text = "wtf, useless, stupid, terrible, I told you, still wrong, not again!!! NO WHY STOP THAT 😡 nooo no no no"
    assert points(signs(own_words(text)), TEXT)["frustration"] == 2.0
    assert points(signs(own_words(text)), PATTERN) == {}


def test_only_the_ends_are_read() -> None:
    text = "calm " * 10_000 + "useless, stupid " + "calm " * 10_000
    assert len(ends([text])) == 2 * EXCERPT_END_MAX + 1
    assert signs(own_words(ends([text]))) == {}
    assert signs(own_words(ends([text + "useless, stupid"]))) == {"angry_words": 2}
    assert len(ends(["x" * 5000] * 1000)) == 2 * EXCERPT_END_MAX + 1
    message = Message(parts=[TextPart(text="one"), DataPart(data={"text": "damn"}), TextPart(text="two")])
    assert Said.of({"message": message.model_dump(mode="json")}).text == "one\ntwo"


def test_no_pattern_can_go_back_for_long() -> None:
    """What is repeated in a pattern is bounded, cannot be given back, or is followed by what it cannot be itself."""
    patterns = [value.pattern for value in vars(module).values() if isinstance(value, re.Pattern | LateRegex)]
    assert len(patterns) >= 6
    for pattern in patterns:
        assert ".*" not in pattern
        assert ".+" not in pattern
        assert re.search(r"\)[*+](?!\+)", pattern) is None, f"a repeated group in {pattern}"


@given(st.text())
def test_any_text(text: str) -> None:
    found = signs(own_words(ends([text])))
    assert found == signs(own_words(ends([text])))
    assert found.keys() <= SIGNALS.keys()
    assert all(count >= 1 for count in found.values())
    made = sketch(own_words(text).casefold())
    assert len(made) <= SKETCH
    assert alike(made, made) == bool(made)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("why does the login test fail", "why does the login test fail", True),
        ("Why does the login test fail?", "why does the  login test fail!!", True),
        ("why does the login test fail now", "why does the login test fail", True),
        ("why does the login test fail", "why does the logout page hang", False),
        ("go on", "go on", False),
        ("ログインのテストはなぜ失敗するのですか", "ログインのテストはなぜ失敗するのですか？", True),
        ("ログインのテストはなぜ失敗するのですか", "検索画面の色を変えてください", False),
        ("続けて", "続けて", False),
    ],
)
def test_the_same_question(one: str, other: str, same: bool) -> None:
    assert alike(sketch(one.casefold()), sketch(other.casefold())) is same
    assert alike(sketch(other.casefold()), sketch(one.casefold())) is same
