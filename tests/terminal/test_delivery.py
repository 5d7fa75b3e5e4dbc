"""What is typed for a message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.errors import TooLarge
from synapsed.profiles.screen_spec import DeliverySpec
from synapsed.terminal.delivery import clean, type_message

TUI = DeliverySpec(neutralise=r"\A\s*[/!]")


def test_a_paste_is_bracketed_where_the_program_switched_it_on() -> None:
    assert type_message(TUI, "a\nb", bracketed=True).paste == b"\x1b[200~a\nb\x1b[201~"
    assert type_message(TUI, "a\nb", bracketed=False).paste == b"a\nb"


def test_a_body_cannot_leave_the_paste_or_press_keys() -> None:
    typed = type_message(TUI, "x\x1b[201~\x03rm -rf /\r\x9b31m\x7f", bracketed=True)
    assert typed.paste == b"\x1b[200~x[201~rm -rf /\n31m\x1b[201~"


@pytest.mark.parametrize("text", ["/clear", "  /clear", "!ls", "\n!ls", "\ufeff/clear", " \ufeff !ls"])
def test_a_command_by_accident_is_neutralised(text: str) -> None:
    assert type_message(TUI, text, bracketed=True).text[0] == " "
    assert type_message(TUI, text, bracketed=True).text.strip() == text.replace("\ufeff", "").strip()


def test_a_command_on_purpose_is_typed_as_it_is_and_as_keys() -> None:
    assert type_message(TUI, "/clear", bracketed=True, command=True).paste == b"/clear"


def test_a_message_over_the_limit_is_refused_with_the_limit() -> None:
    with pytest.raises(TooLarge) as caught:
        type_message(DeliverySpec(max_bytes=10), "x" * 11, bracketed=True)
    assert caught.value.details == {"limit": 10}


@given(st.text())
def test_no_control_character_but_tab_and_newline_is_ever_typed(text: str) -> None:
    body = clean(text)
    assert all(char in "\t\n" or (ord(char) >= 0x20 and not 0x7F <= ord(char) <= 0x9F) for char in body)
    assert clean(body) == body


def test_an_end_that_would_make_a_line_break_of_enter_is_neutralised() -> None:
    spec = DeliverySpec(neutralise_end=r"\\$")
    assert type_message(spec, "ends so \\\n", bracketed=True).text == "ends so \\ "
    assert type_message(spec, "so \\ not", bracketed=True).text == "so \\ not"
    assert type_message(spec, "ends so \\", bracketed=True, command=True).text == "ends so \\"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cafe\u0301 \u2160", "caf\u00e9 I"),
        ("zero\u200bwidth \u202eabc\u202c", "zerowidth abc"),
        ("a tag \U0001f3f4\U000e0067\U000e007f", "a tag \U0001f3f4"),
        ("\uff1f", "?"),
    ],
)
def test_a_message_is_known_again_in_the_forms_that_programs_give_it(text: str, told: str) -> None:
    typed = type_message(DeliverySpec(), text, bracketed=True)
    assert typed.may_be(f"[A2A:12345678:bob] {told}")
    assert not typed.may_be("another one")
