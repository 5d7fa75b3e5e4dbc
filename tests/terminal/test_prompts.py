"""Reading prompts off the screen, and typing their answers."""

import re

import pytest
from pydantic import ValidationError

from synapsed.errors import InvalidChoice
from synapsed.parts.usage_limits.limit_notices import find_limit
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.screen_spec import Dialog, ListedOption, OwnWords, Prompts
from synapsed.terminal import prompts
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.prompts import Asked, find_prompt, keys_for

GENERIC = Prompts(generic=True)
NO_BREAK = "\u00a0"
"""A blank with which a row counts as full, so that it goes on in the next."""
PERMISSION = Dialog(
    type="permission",
    when=["Do you want to proceed\\?"],
    unless=["esc to interrupt"],
    option=r"^[\s❯]*(?P<key>\d)\. (?P<label>.+)$",
    aliases={"yes": "1", "no": "3"},
    keys={"3": "\x1b"},
    refusal=["3"],
)
DIALOG = (
    "prose about 1. nothing\r\n"
    "────────────────────\r\n"
    " Bash command\r\n"
    "   touch x\r\n"
    " Do you want to proceed?\r\n"
    " ❯ 1. Yes\r\n"
    "   2. Yes, and don't ask again\r\n"
    "   3. No\r\n"
)


def ask(spec: Prompts, text: str, *, cols: int = 60, rows: int = 12) -> Asked | None:
    screen = Screen(cols, rows)
    screen.feed(text.encode())
    return find_prompt(spec, screen.snapshot())


def asked(spec: Prompts, text: str, *, rows: int = 12) -> Asked:
    found = ask(spec, text, rows=rows)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "kind", "keys", "default"),
    [
        ("Continue? (y/n): ", "confirmation", ["y", "n"], None),
        ("Really [Y/n] ", "confirmation", ["Y", "n"], "Y"),
        ("Really [y/N]? ", "confirmation", ["y", "N"], "N"),
        ("Continue? yes/no: ", "confirmation", ["yes", "no"], None),
        ("続行しますか？", "confirmation", ["y", "n"], None),
        ("Continue?", "confirmation", ["y", "n"], None),
        ("続行しますか（y/n）？", "confirmation", ["y", "n"], None),
        ("よろしいですか？（はい/いいえ）：", "confirmation", ["はい", "いいえ"], None),
        ("Go on connecting (yes/no/[fingerprint])? ", "confirmation", ["yes", "no"], None),
        ("Overwrite (y/n/all)? ", "selection", ["y", "n", "all"], None),
        ("Pick one [1/2/3]: ", "selection", ["1", "2", "3"], None),
        ("Which one, (1) red or (2) dark blue? ", "selection", ["1", "2"], None),
        ("１．はい\r\n２．いいえ\r\n番号を入力：", "selection", ["1", "2"], None),
        ("名前を入力してください：", "text", [], None),
        ("名前: ", "text", [], None),
        ("Enter file in which to save the key (/root/.ssh/id_rsa): ", "text", [], None),
        ("Username for 'https://git.example.com': ", "text", [], None),
        ("Password: ", "password", [], None),
        ("パスワード: ", "password", [], None),
        ("API key: ", "password", [], None),
        ("Token: ", "password", [], None),
        ("Enter your name: ", "text", [], None),
        ("Input: ", "text", [], None),
        ("Value: ", "text", [], None),
        ("1) red\r\n2) blue\r\nYour choice: ", "selection", ["1", "2"], None),
        ("1) red\r\n2) blue\r\n#? ", "selection", ["1", "2"], None),  # bash's select
    ],
)
def test_generic_questions_at_the_cursor(text: str, kind: str, keys: list[str], default: str | None) -> None:
    prompt = asked(GENERIC, text).prompt
    assert (prompt.type, [option.key for option in prompt.options], prompt.default) == (kind, keys, default)


@pytest.mark.parametrize("text", ["Processing complete.", "", "Continue? (y/n): y\r\nworking", "> ", "a/b testing"])
def test_what_is_no_question(text: str) -> None:
    assert ask(GENERIC, text) is None


SPOOF = ["rm -rf ~", "  1. Fine", "  2. No", "  May it run?", "────────────", "  0. Fine", "echo ok"]


def test_a_command_below_its_question_hides_nothing_of_itself() -> None:
    dialog = Dialog(
        type="permission",
        when=[r"^  May it run\?", r"^› 1\. Yes"],
        question=r"^  (?P<text>May it run\?)",
        below=True,
        ends=r"^(?:› |  )1\. ",
        option=r"^(?:› |  )(?P<key>\d)\. (?P<label>.+)$",
    )
    screen = "\r\n".join(["  May it run?", *SPOOF, "› 1. Yes", "  2. No"])
    prompt = asked(Prompts(dialogs=[dialog]), screen).prompt
    shown = [line.strip() for line in SPOOF if "──" not in line]
    assert prompt.prompt.split("\n") == ["May it run?", *shown]
    assert [(option.key, option.label) for option in prompt.options] == [("1", "Yes"), ("2", "No")]


@pytest.mark.parametrize("rows", [40, 20])
def test_a_dialog_that_is_higher_than_the_screen_is_told_as_far_as_it_is_shown(rows: int) -> None:
    dialog = PERMISSION.model_copy(update={"begins": re.compile("^─{20}")})
    command = [f" │ echo {n}" for n in range(30)]
    lines = ["above", "─" * 30, " Bash command", *command, " Do you want to proceed?", " ❯ 1. Yes", "   3. No"]
    told = asked(Prompts(dialogs=[dialog]), "\r\n".join(lines), rows=rows).prompt.prompt.split("\n")
    shown = [line for line in lines[-rows:] if line.startswith(" ") and "." not in line]
    assert told == [line.strip(" │") for line in shown]


@pytest.mark.parametrize(
    "line",
    [
        "(y/n)",
        "Continue?",
        "Pick one [1/2]:",
        "Password:",
        "Enter",
        "Username for '",
        "Which? (1) a (2) ",
        "Your choice:",
    ],
)
@pytest.mark.timeout(60)
def test_a_question_built_to_make_the_expressions_backtrack_costs_what_any_other_does(line: str) -> None:
    """No deadline is asserted: quadratic behaviour would exceed the test's time-out."""
    screen = Screen(1000, 200)
    screen.feed(f"{line}{NO_BREAK * 190_000}x".encode())
    assert find_prompt(GENERIC, screen.snapshot()) is None


@pytest.mark.parametrize("text", ["a", "a ", "? ", ": ", ">", "a: ", "(y)", "password ", "enter a ", "1. "])
@pytest.mark.timeout(60)
def test_a_line_at_the_cursor_costs_by_its_length(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """As above, with a line far longer than what is read of it."""
    monkeypatch.setattr(prompts, "LINE_MAX", 1_000_000)
    screen = Screen(1000, 200)
    screen.feed((text * 200_000)[:199_000].encode() + b"x")
    assert find_prompt(GENERIC, screen.snapshot(), screen.row_cells, in_turn=True) is None


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("Which one?", True),
        ("Which one：", False),
        ("Wie heißt du? ❯", True),
        ("Name: >>>", True),
        ("Name: >>>>", False),
        ("名前？", True),
        ("_?", False),
        ("a", False),
    ],
)
def test_a_question_in_words_that_no_pattern_knows(line: str, asks: bool) -> None:
    screen = Screen(80, 5)
    screen.feed(line.encode())
    assert (find_prompt(GENERIC, screen.snapshot(), in_turn=True) is not None) is asks


@pytest.mark.timeout(60)
def test_a_dialog_about_a_command_built_to_make_the_expressions_backtrack() -> None:
    rule = "─" * 998 + "x"
    text = "\r\n".join([*[rule] * 13, " Do you want to proceed?", *[rule] * 13, " ❯ 1. Yes", "   3. No"])
    prompt = ask(Prompts(dialogs=[PERMISSION]), text, cols=1000, rows=30)
    assert prompt is not None
    assert rule in prompt.prompt.prompt


@pytest.mark.parametrize(
    "text",
    [
        "[sudo] password for person: ",
        "person@host's password: ",
        "(current) UNIX password: ",
        "Password for 'https://person@github.com': ",
        "Enter passphrase for key '/home/person/.ssh/id_ed25519': ",
        "Enter passphrase (empty for no passphrase): ",
        "Enter PEM pass phrase:",
        "Enter PIN for 'token': ",
        "PIN:",
        "Enter verification code: ",
        "One-time code: ",
        "Enter OTP: ",
        "Passwort: ",
        "Mot de passe : ",
        "Contraseña: ",
        "Пароль: ",
        "密码：",
        "비밀번호: ",
        "パスフレーズ：",
        "Password (again): ",
    ],
)
def test_secrets_that_are_asked_for(text: str) -> None:
    assert asked(GENERIC, text).prompt.type == "password"


@pytest.mark.parametrize("text", ["Spinning: ", "opinion: ", "the code:", "Passenger: ", "Compass: "])
def test_words_that_only_sound_like_secrets(text: str) -> None:
    found = ask(GENERIC, text)
    assert found is None or found.prompt.type != "password"


def test_generic_questions_are_off_unless_the_profile_wants_them() -> None:
    assert ask(Prompts(), "Continue? (y/n): ") is None
    assert ask(Prompts(generic=True, enabled=False), "Continue? (y/n): ") is None


@pytest.mark.parametrize("text", ["\x03", "\x1b", "\x9b"])
def test_an_answer_of_keys_alone_is_refused_and_does_not_press_enter(text: str) -> None:
    with pytest.raises(InvalidChoice):
        keys_for(asked(GENERIC, "Enter your name: "), text)
    for empty in ("", "\r\n"):
        assert keys_for(asked(GENERIC, "Enter your name: "), empty) == ([b"\r"], None)


def test_a_dialog_has_its_body_its_question_and_its_options() -> None:
    prompt = asked(Prompts(dialogs=[PERMISSION]), DIALOG).prompt
    assert prompt.prompt == "Bash command\ntouch x\nDo you want to proceed?"
    assert [(option.key, option.label) for option in prompt.options] == [
        ("1", "Yes"),
        ("2", "Yes, and don't ask again"),
        ("3", "No"),
    ]


def test_the_prompts_id_is_the_questions_not_the_cursors() -> None:
    spec = Prompts(dialogs=[PERMISSION])
    moved = DIALOG.replace(" ❯ 1.", "   1.").replace("   2.", " ❯ 2.")
    other = DIALOG.replace("touch x", "touch y")
    first = asked(spec, DIALOG).prompt.prompt_id
    assert asked(spec, moved).prompt.prompt_id == first
    assert asked(spec, other).prompt.prompt_id != first


def test_a_dialog_that_is_only_quoted_while_the_program_works_is_none() -> None:
    assert ask(Prompts(dialogs=[PERMISSION]), DIALOG + "esc to interrupt") is None


@pytest.mark.parametrize(
    ("answer", "keys", "chosen"),
    [("1", b"1", "1"), ("yes", b"1", "1"), ("Yes, and", b"2", "2"), ("no", b"\x1b", "3"), ("3", b"\x1b", "3")],
)
def test_an_option_is_named_by_key_label_alias_or_beginning(answer: str, keys: bytes, chosen: str) -> None:
    assert keys_for(asked(Prompts(dialogs=[PERMISSION]), DIALOG), answer) == ([keys], chosen)


@pytest.mark.parametrize("kind", ["permission", "trust", "question"])
def test_an_empty_answer_is_the_default_but_gives_no_permission(kind: str) -> None:
    found = asked(Prompts(dialogs=[PERMISSION.model_copy(update={"type": kind})]), DIALOG)
    assert found.prompt.default == "1"
    if kind == "question":
        assert keys_for(found, " \n") == ([b"1"], "1")
        return
    with pytest.raises(InvalidChoice):
        keys_for(found, " \n")


@pytest.mark.parametrize("answer", ["4", "maybe", "\x1b", "1\r"])
def test_an_answer_that_is_not_offered_is_refused_with_the_options(answer: str) -> None:
    found = asked(Prompts(dialogs=[PERMISSION]), DIALOG)
    if answer == "1\r":  # white space around a key is nothing
        assert keys_for(found, answer) == ([b"1"], "1")
        return
    with pytest.raises(InvalidChoice) as caught:
        keys_for(found, answer)
    assert [option["key"] for option in caught.value.details["options"]] == ["1", "2", "3"]


def test_free_text_is_typed_without_control_characters() -> None:
    assert keys_for(asked(GENERIC, "Password: "), "se\x1bcr\x03et") == ([b"secret\r"], None)


@pytest.mark.parametrize("answer", ["the first\nthe second", "the first\r\n\r\nthe second\r\n"])
def test_an_answer_of_several_lines_to_what_takes_one_is_one_line(answer: str) -> None:
    assert keys_for(asked(GENERIC, "Enter your name: "), answer) == ([b"the first the second\r"], None)


@pytest.mark.parametrize("answer", ["2", "２", "ｂｌｕｅ", "Blue"])
def test_the_width_of_letters_and_digits_makes_no_other_answer(answer: str) -> None:
    assert keys_for(asked(GENERIC, "Which one, (1) red, (2) blue: "), answer) == ([b"2", b"\r"], "2")


QUESTION = Dialog(
    type="question",
    when=["Which colour"],
    option=r"^[ >] (?P<key>\d)\. (?P<label>(?!Something else).+)$",
    aliases={"no": "none"},
    options=[
        ListedOption(key="next", label="Go on", keys=["1", "\x1b[A", "\r"]),
        ListedOption(key="none", label="Decline", keys="\x1b"),
    ],
    own_words=OwnWords(row=r"^[ >] (?P<key>\d)\. Something else", keys=["{key}", "{text}", "\r"]),
)
COLOURS = "Which colour?\r\n> 1. Red\r\n  2. Blue\r\n"


def test_own_words_are_taken_where_the_dialog_has_a_row_for_them() -> None:
    spec = Prompts(dialogs=[QUESTION])
    found = asked(spec, COLOURS + "  3. Something else\r\n")
    assert (found.prompt.own_words, asked(spec, COLOURS).prompt.own_words) == (True, False)
    typed = [b"3", "\x1b[200~2 shades\nof {key} grün\x1b[201~".encode(), b"\r"]
    assert keys_for(found, " 2 shades\r\nof {key} gr\x1bün\x03\n") == (typed, None)
    with pytest.raises(InvalidChoice):
        keys_for(asked(spec, COLOURS), "2 shades")


@pytest.mark.parametrize(("answer", "keys", "chosen"), [("2", "2", "2"), ("blue", "2", "2"), ("no", "\x1b", "none")])
def test_what_equals_an_option_is_that_option(answer: str, keys: str, chosen: str) -> None:
    found = asked(Prompts(dialogs=[QUESTION]), COLOURS + "  3. Something else\r\n")
    assert keys_for(found, answer) == ([keys.encode()], chosen)


def test_an_option_that_is_ticked_is_called_the_same() -> None:
    found = asked(Prompts(dialogs=[QUESTION]), COLOURS.replace("Blue", "[x] Blue") + "  3. Something else\r\n")
    assert keys_for(found, "blue") == ([b"2"], "2")


def test_what_an_option_takes_may_be_typed_one_after_the_other() -> None:
    found = asked(Prompts(dialogs=[QUESTION]), COLOURS)
    assert keys_for(found, "next") == ([b"1", b"\x1b[A", b"\r"], "next")
    submitted = Prompts(dialogs=[QUESTION.model_copy(update={"submit": "\t"})])
    assert keys_for(asked(submitted, COLOURS), "go on") == ([b"1", b"\x1b[A", b"\r\t"], "next")


def test_an_option_that_is_not_shown_has_a_key_and_a_label() -> None:
    for wrong in (
        {"key": "none"},
        {"key": "none", "label": "No", "kyes": "n"},
        {"key": "n", "label": "No", "keys": []},
    ):
        with pytest.raises(ValidationError):
            ListedOption.model_validate(wrong)


def test_the_beginning_of_an_option_may_be_a_word_of_ones_own() -> None:
    found = asked(Prompts(dialogs=[QUESTION]), COLOURS + "  3. Something else\r\n")
    assert keys_for(found, "re")[1] is None
    assert keys_for(asked(Prompts(dialogs=[QUESTION]), COLOURS), "re") == ([b"1"], "1")


@pytest.mark.parametrize("answer", ["3", "\x1b\x03"])
def test_the_row_for_own_words_is_no_answer_nor_are_no_words(answer: str) -> None:
    with pytest.raises(InvalidChoice):
        keys_for(asked(Prompts(dialogs=[QUESTION]), COLOURS + "  3. Something else\r\n"), answer)


def test_own_words_may_be_all_that_is_asked_for() -> None:
    words = OwnWords(row="^(?P<key>:) ", keys=["{line}", "\r"])
    dialog = Dialog(
        type="question", when=["Which name"], options=[ListedOption(key="none", label="No")], own_words=words
    )
    found = asked(Prompts(dialogs=[dialog]), "Which name?\r\n: a name\r\n")
    assert found.prompt.default is None
    assert keys_for(found, "the\n  name") == ([b"\x1b[200~the name\x1b[201~", b"\r"], None)
    with pytest.raises(InvalidChoice):
        keys_for(found, "")


def test_own_words_have_to_be_typed() -> None:
    with pytest.raises(ValidationError, match="must have"):
        OwnWords(row="(?P<key>.)", keys=["{key}", "\r"])


def in_turn(text: str) -> Asked | None:
    screen = Screen(60, 12)
    screen.feed(text.encode())
    return find_prompt(GENERIC, screen.snapshot(), in_turn=True)


@pytest.mark.parametrize(
    ("text", "kind", "prompt", "keys"),
    [
        ("> ", "text", ">", []),
        (">>> ", "text", ">>>", []),
        ("? ", "text", "?", []),
        ("$ ./ask\r\nWhich colour?\r\n\r\n> ", "text", "Which colour?\n>", []),
        ("1) red\r\n2) blue\r\n> ", "selection", ">", ["1", "2"]),
        ("Colours\r\n 1. red\r\n 2. blue\r\n\r\nYours?\r\n> ", "selection", "Yours?\n>", ["1", "2"]),
        ("1) red\r\n2) blue\r\nI am done\r\nThat was it\r\n> ", "text", "That was it\n>", []),
        ("Really (y/n)\r\n> ", "confirmation", "Really (y/n)", ["y", "n"]),
        ("Password:\r\n> ", "password", "Password:", []),
        ("Where to? ", "text", "Where to?", []),
        ("Where to: > ", "text", "Where to: >", []),
    ],
)
def test_a_sign_alone_is_a_question_while_a_turn_runs(text: str, kind: str, prompt: str, keys: list[str]) -> None:
    found = in_turn(text)
    assert found is not None
    assert found.doubtful
    assert (found.prompt.type, found.prompt.prompt) == (kind, prompt)
    assert [option.key for option in found.prompt.options] == keys
    assert ask(GENERIC, text) is None or kind in ("confirmation", "password")


@pytest.mark.parametrize("text", ["working", "50% ", "x > y > z", "> quoted", "Reading: ", "$ ", "??? ", "done?\r\n"])
def test_what_ends_in_no_sign_of_a_question_is_none(text: str) -> None:
    assert in_turn(text) is None


def test_a_menu_above_a_sign_is_answered_by_key_label_or_words() -> None:
    found = in_turn("1) red\r\n2) blue\r\n> ")
    assert found is not None
    assert keys_for(found, "blue") == ([b"2", b"\r"], "2")
    assert keys_for(found, "1") == ([b"1", b"\r"], "1")
    assert keys_for(found, "something\nelse") == ([b"something else\r"], None)


MODEL_GONE = ["It seems like you don't have access to gemini-3.8-flash.", "Your admin might have disabled the access."]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (MODEL_GONE, ["Keep trying", "Stop"]),
        (['Model "gemini-x" was not found or is invalid.', "/model to switch models."], ["Switch to gemini-y", "Stop"]),
        (
            ["Usage limit reached for all Pro models.", "/stats model for usage details", "/model to switch models."],
            ["Switch to gemini-y", "Upgrade for higher limits", "Stop"],
        ),
    ],
    ids=["no access", "no such model", "limit"],
)
def test_gemini_asks_what_to_do_without_its_model(words: list[str], options: list[str]) -> None:
    mark = ["●", *[" "] * len(options)]
    rows = ["", *words, "", "", *(f"{mark[n]} {n + 1}. {label}" for n, label in enumerate(options)), "", ""]
    box = ["╭" + "─" * 78 + "╮", *(f"│ {row:<77}│" for row in rows), "╰" + "─" * 78 + "╯"]
    screen = Screen(80, 40)
    screen.feed("\r\n".join(box).encode())
    asked = find_prompt(ProfileLibrary.builtin().get("gemini").prompts, screen.snapshot())
    assert asked is not None
    assert asked.prompt.prompt.split("\n")[0] == words[0]
    assert [option.label for option in asked.prompt.options] == options
    for word in ("Stop", "no"):
        assert keys_for(asked, word)[1] == str(len(options))
    limit = find_limit(ProfileLibrary.builtin().get("gemini").limit, asked.prompt.prompt, 0.0)
    assert limit is not None
    assert limit.answer == "Stop"
    assert limit.code == ("" if words[0].startswith("Usage") else "MODEL_ERROR")
