"""Dialogs of programs that no profile knows: `screens/menus` as those programs drew them, `screens/moved` the same with
the mark moved on by one, `screens/none` what only reads like a menu. The files are named by program and version."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapsed.errors import InvalidChoice
from synapsed.profiles.screen_spec import Prompts
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.menu_keys import DONE, Menu, route
from synapsed.terminal.menus import find_menu, find_pause
from synapsed.terminal.prompts import Asked, find_prompt, keys_for

SCREENS = Path(__file__).with_name("screens")
DOWN, UP, LEFT, RIGHT, ENTER = b"\x1b[B", b"\x1b[A", b"\x1b[D", b"\x1b[C", b"\r"

SEEN: dict[str, tuple[str, str, list[str], str]] = {
    "aider-0.86.2-repository": (
        "confirmation",
        "No git repo found, create one to track aider's changes (recommended)? (Y)es/(N)o [Yes]:",
        ["Yes", "No"],
        "y",
    ),
    "auggie-0.36.0-login": ("confirmation", "Press return to open your browser", ["Continue"], "enter"),
    "clack-1.9.0-confirm": ("confirmation", "◆  Install the dependencies?", ["Yes", "No"], "1"),
    "clack-1.9.0-multi": (
        "selection",
        "◆  Pick your tools",
        ["[ ] Linter", "[x] Tests", "[ ] Formatter", "Go on with what is ticked"],
        "done",
    ),
    "clack-1.9.0-select": ("selection", "◆  Which template do you want?", ["Basic", "Blog", "Empty"], "1"),
    "claude-2.1.197-trust": ("trust", "Security guide", ["Yes, I trust this folder", "No, exit"], "1"),
    "cline-3.0.65-provider": (
        "selection",
        "Popular",
        [
            "Cline Usage-Billing (OAuth)",
            "ClinePass (OAuth)",
            "OpenAI ChatGPT Subscription (OAuth)",
            "DeepSeek",
            "Anthropic",
            "OpenRouter",
            "Ollama",
            "AWS Bedrock",
        ],
        "1",
    ),
    "codex-0.169.0-hooks": (
        "trust",
        "Hooks can run outside the sandbox after you trust them.",
        ["Review hooks", "Trust all and continue", "Continue without trusting (hooks won't run)"],
        "1",
    ),
    "continue-1.5.47-permission": (
        "permission",
        "Note: Dangerous commands will be blocked regardless of your preference.",
        ["Continue", "Continue + don't ask again", "No, and tell Continue what to do differently"],
        "1",
    ),
    "copilot-1.0.102-permission": (
        "permission",
        "Do you want to run this command?",
        [
            "Yes",
            "Yes, and don't ask again for `touch` in this directory (/home/person/project/copilotx/project)",
            "No, and tell Copilot what to do differently (Esc to stop)",
        ],
        "1",
    ),
    "copilot-1.0.102-trust": (
        "trust",
        "Do you trust the files in this folder?",
        ["Yes", "Yes, and remember this folder for future sessions", "No (Esc)"],
        "1",
    ),
    "enquirer-2.4.1-select": ("selection", "? Pick a flavor …", ["apple", "grape", "cherry"], "1"),
    "enquirer-2.4.1-toggle": ("selection", "? Want to answer?", ["Nope", "Yep"], "1"),
    "gptme-0.35.1-conversation": (
        "selection",
        "New conversation or load previous?",
        ["New conversation", "Load more"],
        "1",
    ),
    "inquirer-8.7.5-checkbox": (
        "selection",
        "? Select the features",
        ["[ ] Auth", "[ ] Storage", "[ ] Mail", "Go on with what is ticked"],
        "done",
    ),
    "inquirer-8.7.5-select": ("permission", "? Allow the tool to run?", ["Yes", "Yes, and don't ask again", "No"], "1"),
    "inquirerpy-0.3.4-select": ("selection", "? Select an action:", ["Upload", "Download", "Exit"], "1"),
    "pi-0.74.2-login": ("login", "Select authentication method:", ["Use a subscription", "Use an API key"], "1"),
    "pi-0.74.2-settings": (
        "selection",
        "A menu",
        [
            "Auto-compact  true",
            "Auto-resize images  true",
            "Block images  false",
            "Skill commands  true",
            "Show hardware cursor  false",
            "Editor padding  0",
            "Autocomplete max items  5",
            "Clear on shrink  false",
            "Terminal progress  false",
            "Steering mode  one-at-a-time",
        ],
        "1",
    ),
    "prompt-toolkit-3.0.53-buttons": ("confirmation", "Do you want to delete it?", ["Yes", "No"], "1"),
    "prompts-2.4.2-multi": (
        "selection",
        "enter/return: Complete answer",
        ["[ ] Red", "[ ] Green", "Go on with what is ticked"],
        "done",
    ),
    "prompts-2.4.2-select": (
        "selection",
        "? Pick a colour › - Use arrow-keys. Return to submit.",
        ["Red", "Green", "Blue"],
        "1",
    ),
    "prompts-2.4.2-toggle": ("confirmation", "? Can you confirm?", ["no", "yes"], "2"),
    "python-enter": ("confirmation", "Press Enter to continue...", ["Continue"], "enter"),
    "questionary-2.1.1-checkbox": (
        "selection",
        "? Select toppings (Use arrow keys to move, <space> to select, <a> to toggle, <i> to invert)",
        ["[ ] cheese", "[ ] tomato", "[ ] ham", "Go on with what is ticked"],
        "done",
    ),
    "questionary-2.1.1-select": (
        "selection",
        "? What do you want to do? (Use arrow keys)",
        ["Order a pizza", "Make a reservation", "Ask for hours"],
        "1",
    ),
    "qwen-0.15.10-auth": (
        "login",
        "Select Authentication Method",
        ["Alibaba ModelStudio", "Third-party Providers", "OAuth", "Custom Provider"],
        "1",
    ),
    "qwen-0.15.10-permission": (
        "permission",
        "Allow execution of: 'touch'?",
        [
            "Yes, allow once",
            "Always allow run 'touch *' commands in this project",
            "Always allow run 'touch *' commands for this user",
            "No, suggest changes (esc)",
        ],
        "1",
    ),
    "qwen-0.15.10-theme": (
        "selection",
        "> Select Theme                               Preview",
        [
            "Auto Auto",
            "Qwen Light Light",
            "Qwen Dark Dark",
            "ANSI Dark",
            "Atom One Dark",
            "Ayu Dark",
            "Default Dark",
            "Dracula Dark",
            "GitHub Dark",
            "Shades Of Purple Dark",
            "ANSI Light Light",
            "Ayu Light Light",
        ],
        "1",
    ),
    "simple-term-menu-1.6.6-select": (
        "permission",
        "The tool wants to run. Allow it?",
        ["Allow", "Always allow", "Deny"],
        "1",
    ),
}
"""Type, last line of the question, labels, default."""


def screen_of(data: bytes) -> Screen:
    screen = Screen(120, 40)
    screen.feed(data)
    return screen


def asked_on(data: bytes) -> Asked | None:
    screen = screen_of(data)
    return find_prompt(Prompts(), screen.snapshot(), screen.row_cells)


def menu_on(data: bytes) -> Menu | None:
    screen = screen_of(data)
    return find_menu(screen.snapshot(), screen.row_cells)


def drawn(text: str, *, cursor: bool = False) -> bytes:
    """A screen with `text`, the cursor behind it; `«…»` is in another colour."""
    coloured = text.replace("«", "\x1b[36m").replace("»", "\x1b[m")
    return (coloured.replace("\n", "\r\n") + ("" if cursor else "\x1b[?25l")).encode()


def fixtures(folder: str) -> list[Path]:
    return sorted((SCREENS / folder).glob("*.ansi"))


@pytest.mark.parametrize("path", fixtures("menus"), ids=lambda path: path.stem)
def test_what_is_asked(path: Path) -> None:
    asked = asked_on(path.read_bytes())
    assert asked is not None
    prompt = asked.prompt
    labels = [option.label for option in prompt.options]
    assert (prompt.type, prompt.prompt.splitlines()[-1], labels, prompt.default) == SEEN[path.stem]


@pytest.mark.parametrize("path", fixtures("moved"), ids=lambda path: path.stem)
def test_the_mark_is_no_part_of_what_is_asked(path: Path) -> None:
    before, after = asked_on((SCREENS / "menus" / path.name).read_bytes()), asked_on(path.read_bytes())
    assert before is not None
    assert after is not None
    assert before.menu is not None
    assert after.menu is not None
    assert after.prompt.prompt_id == before.prompt.prompt_id
    assert after.menu.marked == before.menu.marked + 1


@pytest.mark.parametrize("path", fixtures("none"), ids=lambda path: path.stem)
def test_what_only_reads_like_a_menu(path: Path) -> None:
    """A composer stands: under an answer that quotes one or holds lists, beside a pop-up that completes a command."""
    assert asked_on(path.read_bytes()) is None


@pytest.mark.parametrize("path", fixtures("menus"), ids=lambda path: path.stem)
def test_only_where_the_profile_says_so(path: Path) -> None:
    screen = screen_of(path.read_bytes())
    assert find_prompt(Prompts(menus=False), screen.snapshot(), screen.row_cells) is None


PROSE = {
    "numbered list": "There are two ways:\n\n1. Yes, take it\n2. No, leave it\n\nWhich do you want?",
    "bulleted list": "● I looked at it:\n  - one\n  - two\n● Which one?\n  It is up to you",
    "quoted mark": "It asks:\n\n    ❯ 1. Yes\n      2. No\n\nChoose what you like.",
    "quoted dialog": "It says:\n\n  Do you want it?\n  ❯ 1. Yes\n    2. No\n\n  Enter to confirm · Esc to cancel\n",
    "quoted with arrows": "> Do you trust it?\n> Yes\n  No\n\nUse arrow keys.\n",
    "shell history": "❯ make\n  CC main.o\n  LD main\n❯ ls\n  main.c\n  main.o\n",
    "coloured shell": "«❯» make\n  CC main.o\n  LD main\n",
    "diff": "@@ -1,3 +1,3 @@\n-  1. old\n«+» 1. new\n   2. same\n> a\n  b\n",
    "todo list": "Todos:\n  ● «Read the file»\n  ○ Write the test\n  ○ Run it\n",
    "todo boxes": "Update Todos\n  ☑ Read the file\n  ☐ «Write the test»\n  ☐ Run it\n",
    "message": "«› do the following»\n  first this\n  then that\n\n• Working (1s • esc to interrupt)\n",
    "tool tree": "● «Shell»\n  └ ls\n    main.c\n● Read\n  └ 20 lines\n",
    "old menu": "? Allow the tool to run?\n«❯» Yes\n  No\n"
    + "".join(f"line {n} of what came of it\n" for n in range(12)),
    "quoted question of a library": "It asks:\n? What do you want? (Use arrow keys)\n » Yes\n   No\n",
    "options in a usage text": "usage: x [ yes | no ]\n  [--a]  [--b]\n",
    "no buttons, though they look so": "Write [ x ]  [ y ] into it\n",
    "a word for Enter": "Then press Enter to continue.\nIt goes on by itself.\nThat is all.\nThree more\nand four.\n",
}


@pytest.mark.parametrize("cursor", [False, True])
@pytest.mark.parametrize("words", PROSE)
def test_prose(words: str, cursor: bool) -> None:
    assert asked_on(drawn(PROSE[words], cursor=cursor)) is None


MENU = "Do you want to go on?\n\n«❯ 1. Yes»\n  2. No\n\nEnter to confirm\n"


def test_a_menu_above_a_composer_is_none() -> None:
    assert menu_on(drawn(MENU)) is not None
    rule = "─" * 60
    for composer in (f"{rule}\n❯ \n{rule}\n", f"{rule}\n\n{rule}\n", f"╭{rule}╮\n│ > a draft{' ' * 50}│\n╰{rule}╯\n"):
        assert menu_on(drawn(MENU + composer)) is None


def test_a_message_above_a_menu_is_no_composer() -> None:
    """Some programs draw what was sent as they draw what is being typed."""
    message = f"╻{'▄' * 60}\n  ❯ do it\n╹{'▀' * 60}\n"
    menu = menu_on(drawn(f"{message}\n● Shell\n\n{MENU}"))
    assert menu is not None
    assert menu.asked[-1] == "Do you want to go on?"


@pytest.mark.parametrize("gap", ["", "> quoted"], ids=["blank", "a message"])
@pytest.mark.parametrize("corners", ["╭╮╰╯", "┌┐└┘", "┏┓┗┛", "╔╗╚╝"])
def test_what_stands_between_two_boxes_is_no_composer(corners: str, gap: str) -> None:
    """The box of a tool that ran before, and the one that asks."""

    def box(*rows: str) -> str:
        rule = ("═" if corners[0] == "╔" else "━" if corners[0] == "┏" else "─") * 60
        sides = "".join(f"  │ {row}{' ' * (58 - len(row.strip('«»')))} │\n" for row in rows)
        return f"  {corners[0]}{rule}{corners[1]}\n{sides}  {corners[2]}{rule}{corners[3]}\n"

    asks = box("Allow execution of: 'touch'?", "", "«› 1. Yes»", "  2. No (esc)", "")
    menu = menu_on(drawn(f"{box('✓  Shell echo quick')}  {gap}\n{asks}\n  Waiting for user confirmation...\n"))
    assert menu is not None
    assert [option.label for option in menu.options] == ["Yes", "No (esc)"]


def test_what_completes_a_composers_text_is_no_menu() -> None:
    composer = f"╭{'─' * 60}╮\n│ /{' ' * 58}│\n╰{'─' * 60}╯\n"
    assert menu_on(drawn(composer + "«❯ 1. /clear»\n  2. /compact\n\n↑/↓ to navigate, Enter to select\n")) is None


def test_a_menu_above_the_cursors_prompt_is_none() -> None:
    assert menu_on(drawn(MENU + "$ ls", cursor=True)) is None


def test_without_a_mark_there_is_no_menu() -> None:
    assert menu_on(drawn(MENU.replace("❯", " "))) is None


def test_a_label_that_is_wrapped_is_one() -> None:
    long = "word " * 30
    menu = menu_on(
        drawn(f"Which?\n«❯» 1. {long[:115].rstrip()}\n     {long[115:].strip()} end\n  2. No\nEnter to confirm\n")
    )
    assert menu is not None
    assert [option.label for option in menu.options] == [f"{long.strip()} end", "No"]


def test_a_list_that_is_scrolled_is_numbered_from_where_it_stands() -> None:
    menu = menu_on(drawn("Which?\n▲\n  4. four\n«❯ 5. five»\n  6. six\n▼\n↑/↓ to move, enter to select\n"))
    assert menu is not None
    assert [option.key for option in menu.options] == ["4", "5", "6"]
    assert menu_on(drawn("Which?\n  4. four\n«❯ 5. five»\n  6. six\n↑/↓ to move, enter to select\n")) is None


# --- answers ---------------------------------------------------------------------------------------------------------


def menu_of(name: str) -> tuple[Asked, Menu]:
    asked = asked_on((SCREENS / "menus" / f"{name}.ansi").read_bytes())
    assert asked is not None
    assert asked.menu is not None
    return asked, asked.menu


@pytest.mark.parametrize(
    ("name", "said", "moves"),
    [
        ("claude-2.1.197-trust", "yes", [(ENTER, None)]),
        ("claude-2.1.197-trust", "2", [(DOWN, "No, exit"), (ENTER, None)]),
        ("gptme-0.35.1-conversation", "load", [(DOWN, "Load more"), (ENTER, None)]),
        ("clack-1.9.0-confirm", "no", [(RIGHT, "No"), (ENTER, None)]),
        ("prompts-2.4.2-toggle", "no", [(LEFT, "no"), (ENTER, None)]),
        (
            "codex-0.169.0-hooks",
            "3",
            [
                (DOWN, "Trust all and continue"),
                (DOWN, "Continue without trusting (hooks won't run)"),
                (ENTER, None),
            ],
        ),
        ("inquirer-8.7.5-checkbox", "Mail", [(DOWN, "[ ] Storage"), (DOWN, "[ ] Mail"), (b" ", None)]),
        ("inquirer-8.7.5-checkbox", DONE, [(ENTER, None)]),
    ],
)
def test_the_way_to_an_option(name: str, said: str, moves: list[tuple[bytes, str | None]]) -> None:
    asked, menu = menu_of(name)
    steps, key = keys_for(asked, said)
    assert steps == []
    assert key is not None
    assert route(menu, key, application=False) == moves


def test_the_way_back_and_in_the_other_mode_of_the_cursor_keys() -> None:
    menu = menu_on((SCREENS / "moved" / "copilot-1.0.102-trust.ansi").read_bytes())
    assert menu is not None
    assert route(menu, "1", application=False)[0] == (UP, "Yes")
    assert route(menu, "3", application=True)[0].keys == b"\x1bOB"


def test_an_answer_that_is_no_option() -> None:
    asked, _ = menu_of("copilot-1.0.102-trust")
    with pytest.raises(InvalidChoice, match="not among the options: 1 \\(Yes\\)"):
        keys_for(asked, "perhaps")


@pytest.mark.parametrize(("said", "typed"), [("yes", b"y"), ("No", b"n"), ("d", b"d"), ("", b"y")])
def test_options_named_by_a_letter(said: str, typed: bytes) -> None:
    asked = asked_on(drawn("Add it to the chat? (Y)es/(N)o/(D)on't ask again [Yes]: ", cursor=True))
    assert asked is not None
    assert [option.label for option in asked.prompt.options] == ["Yes", "No", "Don't ask again"]
    assert keys_for(asked, said)[0] == [typed, b"\r"]


def test_what_waits_for_enter() -> None:
    asked = asked_on((SCREENS / "menus" / "python-enter.ansi").read_bytes())
    assert asked is not None
    assert keys_for(asked, "continue") == ([b"\r"], "enter")


# --- any screen ------------------------------------------------------------------------------------------------------

SIGNS = st.sampled_from(
    [*"❯›>●○◉◯◆*→│╭╰╮╯─┌└┐┘?[]()<>12.:/ \n\n\n", "Yes", "No", "  ", "   ", "Enter to select", "\x1b[7m", "\x1b[m"]
)


@settings(max_examples=150, deadline=None)
@given(pieces=st.lists(SIGNS | st.text(max_size=20), max_size=300), cursor=st.booleans())
def test_any_screen_is_read(pieces: list[str], cursor: bool) -> None:
    screen = screen_of(drawn("".join(pieces), cursor=cursor))
    snapshot = screen.snapshot()
    menu = find_menu(snapshot, screen.row_cells)
    find_pause(snapshot, screen.row_cells)
    if menu is not None:
        assert 0 <= menu.marked < len(menu.options)
        assert all(option.row in menu.rows for option in menu.options)
        assert all(route(menu, option.key, application=False) for option in menu.options)
