"""What nobody sees in a text is made visible, and nothing else is touched."""

import unicodedata

import pytest

from synapsectl.inbox.view import wrapped
from synapsectl.output import one_line
from synapsed.parts.attention.notification_policy import visible as of_notices
from synapsed.parts.editors.ctl import asking
from synapsed.shared.visible import visible

HIDES = [
    *range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F),
    *range(0x2066, 0x206A), 0xFEFF, *range(0xFE00, 0xFE10), *range(0xE0000, 0xE0080), *range(0xE0100, 0xE01F0), 0x3164,
]  # fmt: skip


@pytest.mark.parametrize("show", [visible, of_notices])
def test_each_of_them_is_shown_in_a_command(show: object) -> None:
    assert callable(show)
    for code in HIDES:
        shown = show(f"rm a{chr(code)}b")
        assert shown.isascii(), hex(code)
        assert shown.isprintable(), hex(code)
        assert f"{code:02x}" in shown


def test_every_format_character_is_shown_behind_a_letter() -> None:
    for code in range(0x110000):
        character = chr(code)
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\n\t":
            if character in "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd":
                continue  # seen: they stand around the digits behind them
            if 0x13430 <= code <= 0x1345F or 0x1BCA0 <= code <= 0x1BCA3:
                continue  # of scripts that nobody writes commands in
            assert visible(f"a{character}b") != f"a{character}b", hex(code)


@pytest.mark.parametrize(
    "text",
    ["plain\n\ttext", "שלום é 日本 ⏸ ⎿ 한국", "❤️ ⚠️ 1️⃣ ©️", "👩‍👩‍👧 🏳️‍🌈", "می‌خواهم", "क्‍ष", "─│█"],
)
def test_what_is_seen_stays(text: str) -> None:
    assert visible(text) == text


def test_a_joiner_or_selector_that_joins_nothing_is_shown() -> None:
    assert visible("r\u200dm") == r"r\u200dm"
    assert visible("❤\ufe0f\ufe0f") == "❤\ufe0f\\ufe0f"
    assert visible("1\ufe0f") == r"1\ufe0f"
    assert visible("\U0001f3f4\U000e0067") == "\U0001f3f4\\U000e0067"
    assert visible("caf\udce9") == r"caf\xe9"


def test_wherever_it_is_approved() -> None:
    hidden = "rm \u202e-rf\u200b ~"
    prompt = {"prompt": f"Run {hidden}?", "prompt_id": "p", "options": [{"key": "1", "label": f"Yes\u2066{hidden}"}]}
    told = asking.request(prompt, "s", None)
    assert not any(character in str(told) + str(asking.waits(prompt, "a")) for character in "\u202e\u200b\u2066")
    for shown in (one_line(hidden), " ".join(wrapped(hidden, 80))):
        assert shown == r"rm \u202e-rf\u200b ~"
