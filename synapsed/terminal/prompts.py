"""Prompts: a program's questions to a person, read off the screen, and the keys of an answer.

Dialogs are a profile's data. Questions that no profile knows are read if they show that they wait for keys: menus with
a mark (`menus`), and requests for Enter or a letter. The generic questions of line-oriented programs (S4) are searched
for only if a profile says so, and only on the cursor's line, where a program that reads its terminal has left the
cursor.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from synapsed.errors import InvalidChoice
from synapsed.model.task import Prompt, PromptOption
from synapsed.profiles.screen_spec import Dialog, ListedOption, Prompts
from synapsed.shared.regex import regex
from synapsed.terminal.composer import cursor_line
from synapsed.terminal.delivery import PASTE_BEGIN, PASTE_END, clean
from synapsed.terminal.menu_keys import Menu
from synapsed.terminal.menu_page import SIDE, Page, continued, joined, room
from synapsed.terminal.menu_rows import SIGNED
from synapsed.terminal.menus import COUNT, filtered_rows, find_menu, find_pause
from synapsed.terminal.snapshot import Cell, ScreenSnapshot

_RULE = regex(r"(?=.*?[─━═▔▁▀▄_]{8})[\s╭╮╰╯┌┐└┘├┤─━═┏┓┗┛▔▁▀▄_-]*+$")
"""A horizontal rule or a box's edge, where a dialog begins."""
_LEADERS = regex(r"[╌┄┈╍┅┉·.\s-]+")
"""A dotted line within a dialog."""
_FRAME = regex(r"^[\s│┃|▌▎]+|[\s│┃|▌▎]+$")
_MARKER = regex(r"^(?:[❯›>●•▶→*]\s+|\(\*\)\s+)")
"""The mark of the selected option: when it moves, the question is still the same."""
BODY_ROWS_MAX = 24
"""Rows above a question in which its dialog may begin if the profile does not describe its beginning."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt on the screen."""

    prompt: Prompt
    dialog: Dialog | None
    """The profile's dialog that it was read by; None for a generic question."""
    for_words: tuple[str, ...] = ()
    """Keys of the dialog's rows for free text."""
    doubtful: bool = False
    """True if it has only the sign of a prompt, which output may end in for a moment."""
    menu: Menu | None = None
    """The menu as which the question was read; it is answered by moving the menu's mark."""

    @property
    def drawn(self) -> bool:
        """True if it is drawn on the screen, which may happen again while it waits; else it was printed once."""
        return self.dialog is not None or self.menu is not None


type Cells = Callable[[int], Sequence[Cell]]
"""Returns the cells of a row."""


def find_prompt(
    spec: Prompts, screen: ScreenSnapshot, cells: Cells | None = None, *, in_turn: bool = False
) -> Asked | None:
    """Returns the prompt that `screen` shows, or None. `cells`, those of the screen: with them, menus that the profile
    does not know are found too. `in_turn`: a turn runs, and the text at the cursor is not the prompt that the program
    had before it."""
    if not spec.enabled:
        return None
    text, over = "\n".join(screen.lines), False
    for dialog in spec.dialogs:
        if all(p.search(text) for p in dialog.when):
            if not any(p.search(text) for p in dialog.unless):
                return _read_dialog(dialog, text, Page(screen, cells or (lambda _: ())))
            over = True  # the dialog is on the screen and asks nothing: it must not be read as an unknown menu either
    if over:
        return None
    if (asked := find_unknown(spec, screen, cells)) is not None:
        return asked
    return _generic(screen, in_turn=in_turn) if spec.generic else None


def find_unknown(spec: Prompts, screen: ScreenSnapshot, cells: Cells | None) -> Asked | None:
    """Returns a question that is in no dialog of the profile: a menu, or words that any program may use."""
    if not (spec.enabled and spec.menus) or cells is None:
        return None
    if (menu := find_menu(screen, cells)) is not None:
        return _of_menu(menu)
    if (words := find_pause(screen, cells)) is not None:
        return replace(_asked("confirmation", words, _PAUSED, _PAUSED[0].key), dialog=PAUSE)
    _, line = cursor_line(screen)
    return _lettered(line.rstrip()[-LINE_MAX:]) if screen.cursor_visible else None


def find_filter(spec: Prompts, screen: ScreenSnapshot, cells: Cells) -> Asked | None:
    """Returns the list that the text at the cursor filters: its row looks like a composer."""
    row = screen.cursor[0]
    near = screen.lines[max(0, row - 1) : row + 2]
    if not (spec.enabled and spec.menus and any(COUNT.search(line) for line in near)):
        return None
    menu = filtered_rows(Page(screen, cells))
    return None if menu is None else _of_menu(menu)


def still_asks(spec: Prompts, screen: ScreenSnapshot, asked: Asked) -> bool:
    """Returns True if the same question is still shown while its answer is typed: its options may have changed by that,
    and the row for free text may look like a composer."""
    found = find_prompt(spec, screen)
    return found is not None and found.prompt.prompt == asked.prompt.prompt


def holds_answer(screen: ScreenSnapshot, asked: Asked) -> bool:
    """Returns True if the typed text stands after the question at the cursor: some programs take a letter at once, and
    Enter after it would answer the next question."""
    question = asked.prompt.prompt.rpartition("\n")[2].strip()
    line = cursor_line(screen)[1].strip()
    return line.startswith(question) and len(line) > len(question)


def _read_dialog(dialog: Dialog, text: str, page: Page) -> Asked:
    asked = dialog.question or dialog.when[0]
    found = list(asked.finditer(text))
    match = found[0 if dialog.below else -1] if found else None
    question = (match.groupdict().get("text") or match.group()).strip() if match else dialog.type
    at = text.count("\n", 0, match.start()) if match else 0
    lines = text.split("\n")
    end = _end(dialog, lines, at)
    begin = end if dialog.below else at
    asking = "\n".join(lines[begin:])
    options: list[PromptOption] = []
    if dialog.option is not None:
        for match in dialog.option.finditer(asking):
            label = _whole_label(dialog, match, page, begin)
            option = PromptOption(key=match["key"].strip(), label=label)
            if all(option.key != known.key for known in options):
                options.append(option)
    shown = bool(options)
    options += [PromptOption(key=option.key, label=option.label) for option in dialog.options]
    words = dialog.own_words.row.finditer(asking) if dialog.own_words is not None else ()
    for_words = tuple(match["key"] for match in words)
    above = [] if dialog.below else _above(dialog, lines, at)
    prompt = "\n".join([*_inner(dialog, above), question, *_inner(dialog, lines[at + 1 : end])])
    found_prompt = Prompt(
        prompt_id=_fingerprint(dialog.type, prompt, options, own_words=bool(for_words)),
        type=dialog.type,
        prompt=prompt,
        options=options,
        default=options[0].key if options and (shown or not for_words) else None,
        own_words=bool(for_words),
    )
    return Asked(found_prompt, dialog, for_words)


def _whole_label(dialog: Dialog, match: re.Match[str], page: Page, begin: int) -> str:
    """Returns the label of an option that was found in the rows from `begin` on, with its wrapped rows."""
    label = match["label"].strip(" │┃")
    text, start = match.string, match.start("label")
    row = begin + text.count("\n", 0, start)
    at = start - (text.rfind("\n", 0, start) + 1)
    below = continued(page, row, at, "enough" if dialog.type == "permission" else "needed")
    if not below or dialog.option is None:
        return label
    rows = [page.lines[row][at:], *(page.lines[each][at - 1 :] for each in below)]
    whole = joined([SIDE.sub("", each).strip() for each in rows], room(page, row, at))
    again = dialog.option.search(f"{match.group()[: start - match.start()]}{whole}")
    return again["label"].strip(" │┃") if again and again["key"] == match["key"] else label


def _above(dialog: Dialog, lines: list[str], at: int) -> list[str]:
    """Returns the dialog's own rows above its question. A dialog whose known beginning is not on the screen is higher
    than the screen."""
    begins = dialog.begins
    furthest = at - 1 - BODY_ROWS_MAX if begins is None else -1
    for start in range(at - 1, max(-1, furthest), -1):
        if begins is not None and begins.search(lines[start]):
            return lines[start:at]
        if begins is None and _RULE.match(lines[start]):
            return lines[start + 1 : at]
    return lines[:at] if begins is not None else []


def _end(dialog: Dialog, lines: list[str], at: int) -> int:
    """Returns the row below the question's dialog, and below its question in row `at`."""
    ends = dialog.ends or dialog.option
    rows = [n for n in range(at + 1, len(lines)) if ends is not None and ends.search(lines[n])]
    if not rows:
        return at + 1
    return rows[-1] if dialog.below else min(rows[0], at + 1 + BODY_ROWS_MAX)


def _inner(dialog: Dialog, rows: list[str]) -> list[str]:
    """Returns the text of `rows`, without frames, rules and the parts that the profile ignores."""
    ignored = dialog.ignore
    told = (_FRAME.sub("", row).strip() for row in rows)
    return [
        row
        for row in told
        if row
        and not (_LEADERS.fullmatch(row) or _RULE.match(row))
        and (ignored is None or ignored.search(row) is None)
    ]


def _fingerprint(kind: str, prompt: str, options: list[PromptOption], *, own_words: bool = False) -> str:
    lines = [_MARKER.sub("", line.strip()) for line in prompt.split("\n")]
    parts = [
        kind,
        *lines,
        *(f"{option.key}={option.label}" for option in options),
        *(["own words"] if own_words else []),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


# --- questions that no profile knows ---------------------------------------------------------------------------------

_PAUSED = [PromptOption(key="enter", label="Continue")]
PAUSE = Dialog(type="confirmation", when=[], options=[ListedOption(key="enter", label="Continue", keys="\r")])
"""Output that stops for a key."""
_LETTERS = regex(
    r"\[?+(?P<choices>\(\w\)[\w' ]{0,30}+(?:(?:/|,\s?)\(\w\)[\w' ]{0,30}+)++)\]?+"
    r"(?:\[(?P<default>[^\[\]]{1,30})\])?+\s*+[:?]?+\s*+$"
)
"""`(Y)es/(N)o/(D)on't ask again [Yes]:`, `[(y)es, (n)o]:`"""
_EXPANDED = regex(r"\((?P<keys>[A-Za-z]{1,9}[hH])\)\s*+$")
"""Letters alone, the last of which explains the others: `? Overwrite it? (yAdh)`"""
_OFFERED = regex(r"\s[‣›]\s+\S")
"""Default answer after a question: `? What is your name? ‣ ann`"""
_SECRET = regex(r"\b(?:password|passphrase|secret|token)\b", re.IGNORECASE)
HINT_ROWS = 2
"""Rows below a question in words that may mention keys."""
_LISTED = regex(
    r"(?:\((?P<round>\w[\w-]{0,15}(?:, \w[\w-]{0,15})+)\)\s\[(?P<default>\w[\w-]{0,15})\]"
    r"|\[(?P<square>\w{1,16}(?:, \w{1,16})+)\])\s*+:\s*+$"
)
"""`(auth, mail) [auth]:`, `[1, 2, 3, 0]:`"""
_LETTER = regex(r"\((?P<key>\w)\)(?P<rest>[\w' ]*)")
_BEFORE_WORK = (
    ("trust", regex(r"\btrust", re.IGNORECASE)),
    ("login", regex(r"\b(?:log|sign)[ -]?in\b|\bauthenticat|\bAPI key\b", re.IGNORECASE)),
)
"""Subject of a question, by the words of its sentence; the first counts."""
_PERMISSION = regex(r"\b(?:allow|permi(?:t|ssion)|approve|grant|run|execut\w+)\b", re.IGNORECASE)
"""Words of a permission, anywhere in the question."""
_YES_NO = (regex(r"\W*(?:yes|continue|ok)\b", re.IGNORECASE), regex(r"\W*(?:no|cancel)\b", re.IGNORECASE))


def _of_menu(menu: Menu) -> Asked:
    options = [PromptOption(key=option.key, label=option.label) for option in menu.choices]
    window = menu.window
    words = window is not None and window.field
    kind = (
        "password"
        if window is not None and words and window.hides
        else "text"
        if words
        else _kind("\n".join(menu.asked), options)
    )
    asked = _asked(kind, "\n".join(menu.asked) or "A menu", options, menu.default, own_words=words)
    return replace(asked, menu=menu)


def _kind(question: str, options: Sequence[PromptOption]) -> str:
    """Returns the type of prompt that fits the words."""
    lines = question.split("\n")
    sentence = "\n".join([line for line in lines if "?" in line] or lines)
    for kind, pattern in _BEFORE_WORK:
        if pattern.search(sentence):
            return kind
    if _PERMISSION.search(question):
        return "permission"
    both = all(any(word.match(option.label) for option in options) for word in _YES_NO) or len(options) == 1
    return "confirmation" if both else "selection"


def _lettered(line: str) -> Asked | None:
    """Returns a question at the cursor whose answers are named by a letter in parentheses."""
    if "(" not in line or (match := _LETTERS.search(line)) is None:
        return None
    options = [
        PromptOption(key=letter["key"].lower(), label=f"{letter['key']}{letter['rest']}".strip())
        for letter in _LETTER.finditer(match["choices"])
    ]
    default = (match["default"] or "").casefold()
    first = next((option.key for option in options if default in (option.key, option.label.casefold())), None)
    return _asked(_kind(line, options), line, options, first)


# --- generic questions -----------------------------------------------------------------------------------------------

_CONFIRM = (
    (
        regex(
            r"[\(\[（［](?P<yes>y(?:es)?)\s*[/／]\s*(?P<no>n(?:o)?)(?:/\[\w{1,20}\])?[\)\]）］]\s*+[:?：？]?\s*+$",
            re.IGNORECASE,
        ),
        None,
    ),
    (regex(r"^\s*\[(?P<yes>y)/(?P<no>n)\]\s.*\[[yn]\]\s*+$", re.IGNORECASE), None),
    (regex(r"\((?P<yes>y)/(?P<no>n)\)\s+[‣›]\s+(?:true|false)$", re.IGNORECASE), None),
    (regex(r"\b(?P<yes>yes)\s*/\s*(?P<no>no)\b\s*+[:?：？]?\s*+$", re.IGNORECASE), None),
    (regex(r"(?P<yes>はい)\s*+[/／・]\s*+(?P<no>いいえ)\s*+[\)\]）］]?\s*+[:?：？]?\s*+$"), None),
    (regex(r"(?:続行しますか|よろしいですか)\s*+[?？]?\s*+[:：]?\s*+$"), ("y", "n")),
    (regex(r"\b(?:continue|proceed)\s*+[?？]\s*+$", re.IGNORECASE), ("y", "n")),
    (regex(r"[?？]\s*+\((?:yes|no)\)\s*+$", re.IGNORECASE), ("yes", "no")),
)
"""`(yes/no/[fingerprint])` allows free text besides."""
_SELECT = regex(
    r"(?:\[(?P<choices>\w{1,16}(?:/\w{1,16})+)\]|\((?P<more>y(?:es)?/no?(?:/\w{1,16})+)\))"
    r"(?:\s*+\((?P<default>\w{1,16})\))?+\s*+[:?：？]?\s*+$",
    re.IGNORECASE,
)
_PASSWORD = regex(
    r"(?:pass[ -]?(?:word|wd|phrase|code)|\b(?:secret|token|api[ _-]?key|(?:pin|otp)\b)"
    r"|\b(?:verification|one-time|security) code|パスワード|パスフレーズ|暗証番号"
    r"|passwort|mot de passe|contraseña|senha|wachtwoord|пароль|密[码碼]|비밀번호)"
    r"(?:[^:：]|[:：](?=\S)){0,80}[:：]\s*$",
    re.IGNORECASE,
)
_TEXT = regex(
    r"(?:\benter\s[\w\s'-]{1,60}|\b(?:input|(?:user)?name|login|value)(?: for '[^']{1,200}')?|入力[^:：]{0,20}|名前)"
    r"(?:\([^()]{0,200}\)\s*+)?[:：]\s*+$",
    re.IGNORECASE,
)
_ENDS = frozenset(")]）］:：?？>oOeえか")
"""Last characters of all texts that these expressions find."""
_MENU = regex(r"^\s*[\(\[（［]?(?P<key>\d{1,2})(?:[\)\].:]\s+|[）］．：、]\s*+)(?P<label>\S.*)$")
_MENU_ASK = regex(r"(?:choice|choose|select|option|number|answer|選|番号|^#)[^\n]{0,40}[:：?？>]\s*$", re.IGNORECASE)
_INLINE = regex(r"[\(（](?P<key>\d{1,2})[\)）]\s*+(?P<label>[^()（）]{1,80})")
_DEFAULT = regex(r"\s\[(?P<key>\d{1,2})\]\s*[:：?？>]?\s*$")
_INLINE_ASK = regex(r"[:：?？>]\s*$")
MENU_ROWS_MAX = 20
LINE_MAX = 1000
"""Characters of a question, at the end of the cursor's line, which may be a whole screen long."""


_BARE = regex(r"[>›❯»]{1,3}|[?？]")
"""A prompt's sign alone; the question stands above it."""
_WORD = regex(r"[^\W_]")
_OPEN_END = regex(r"[?？]$|[:：?？]\s*+[>›❯»]{1,3}$")
"""End of a question that the other patterns do not know; words stand before it."""


def asks_in_words(screen: ScreenSnapshot) -> bool:
    """Returns True if the cursor's line begins with the sign of a library for questions."""
    return SIGNED.match(cursor_line(screen)[1]) is not None


def _generic(screen: ScreenSnapshot, *, in_turn: bool) -> Asked | None:
    row, line = cursor_line(screen)
    line = line.rstrip()[-LINE_MAX:]
    if not line:
        return None
    if (asked := _known(screen, row, line) or _signed(screen, row, line)) is not None or not in_turn:
        return asked
    if _BARE.fullmatch(line.strip()):
        return replace(_bare(screen, row, line.strip()), doubtful=True)
    end = None if screen.alternate else _OPEN_END.search(line)
    if end is None or _WORD.search(line, 0, end.start()) is None:
        return None
    return replace(_asked("text", line, [], None), doubtful=True)


def _known(screen: ScreenSnapshot, row: int, line: str) -> Asked | None:
    """Returns the question in `line`, in `row`, by its words."""
    if line.rstrip()[-1:] not in _ENDS:
        return None
    for pattern, words in _CONFIRM:
        if (match := pattern.search(line)) is not None:
            yes, no = words or (match["yes"], match["no"])
            default = next((word for word in (yes, no) if word[0].isupper() and not (yes[0] + no[0]).isupper()), None)
            options = [PromptOption(key=yes, label="yes"), PromptOption(key=no, label="no")]
            return _asked("confirmation", line, options, default)
    if (match := _SELECT.search(line)) is not None and _differ(choices := (match[1] or match[2]).split("/")):
        default = match["default"] if match["default"] in choices else None
        return _asked("selection", line, [PromptOption(key=choice, label=choice) for choice in choices], default)
    if (match := _LISTED.search(line)) is not None:
        choices = (match["round"] or match["square"]).split(", ")
        named = {option.key: option.label for option in _menu(screen, row)}
        options = [PromptOption(key=choice, label=named.get(choice, choice)) for choice in choices]
        return _asked("selection", line, options, match["default"])
    if SIGNED.match(line) and (match := _EXPANDED.search(line)) is not None and _distinct(match["keys"]):
        options = [PromptOption(key=key.lower(), label=key.lower()) for key in match["keys"]]
        return _asked("selection", line, options, next(key for key in match["keys"] if key.isupper()).lower())
    if _PASSWORD.search(line):
        return _asked("password", line, [], None)
    if _MENU_ASK.search(line) and len(menu := _menu(screen, row)) > 1:
        return _asked("selection", line, menu, None)
    if _INLINE_ASK.search(line) and len(menu := _inline(line)) > 1:
        default = _DEFAULT.search(line)
        return _asked("selection", line, menu, default["key"] if default is not None else None)
    return _asked("text", line, [], None) if _TEXT.search(line) else None


def _differ(choices: list[str]) -> bool:
    """Returns True if the `choices` differ and do not count something, as `1/1` and `2/14` do."""
    numbers = [int(one) for one in choices if one.isdecimal()]
    counts = len(numbers) == len(choices) and numbers != list(range(numbers[0], numbers[0] + len(numbers)))
    return len({one.casefold() for one in choices}) == len(choices) and not counts


def _distinct(keys: str) -> bool:
    """Returns True if `keys` are letters for options, one of which is the default."""
    return len(set(keys.lower())) == len(keys) and sum(key.isupper() for key in keys) == 1


def _signed(screen: ScreenSnapshot, row: int, line: str) -> Asked | None:
    """Returns the common libraries' question with its sign: words at the cursor, or the number of a line below."""
    at_end = screen.cursor_visible and not screen.lines[screen.cursor[0]][screen.cursor[1] :].strip()
    if SIGNED.match(line) is None or not (at_end or _OFFERED.search(line)):
        return None
    below = [each for each in screen.lines[row + 1 :] if each.strip()]
    listed = [match for each in below if (match := _MENU.match(each)) is not None]
    if len(listed) > 1 and [match["key"] for match in listed] == [str(n) for n in range(1, len(listed) + 1)]:
        options = [PromptOption(key=match["key"], label=match["label"].strip()) for match in listed]
        return _asked("selection", line, options, None)
    if len(below) > HINT_ROWS:
        return None
    return _asked("password" if _SECRET.search(line) else "text", line, [], None)


def _bare(screen: ScreenSnapshot, row: int, sign: str) -> Asked:
    """Returns the question above a `sign` alone: a menu, with at most a line of words below, or a question in words."""
    above = [n for n in range(max(0, row - MENU_ROWS_MAX), row) if screen.lines[n].strip()]
    question = above[-1] if above else row
    words = screen.lines[question].strip() if above else ""
    for end in above[-2:]:
        if _MENU.match(screen.lines[end]) and len(menu := _menu(screen, end + 1)) > 1:
            told = f"{words}\n{sign}" if question != end else sign
            return _asked("selection", told, menu, None, own_words=True)
    if (asked := _known(screen, question, words)) is not None:
        return asked
    return _asked("text", f"{words}\n{sign}" if words else sign, [], None)


def _menu(screen: ScreenSnapshot, row: int) -> list[PromptOption]:
    """Returns the numbered lines directly above `row`."""
    options: list[PromptOption] = []
    for line in reversed(screen.lines[max(0, row - MENU_ROWS_MAX) : row]):
        if (match := _MENU.match(line)) is not None:
            options.insert(0, PromptOption(key=_plain(match["key"]), label=match["label"].strip()))
        elif options and line.strip():
            break
    return options


def _inline(line: str) -> list[PromptOption]:
    """Returns the choices of `(1) red (2) blue: `: numbered from 1 on, or they are no choice."""
    found = [(_plain(match["key"]), match["label"]) for match in _INLINE.finditer(line)]
    if [key for key, _ in found] != [str(number) for number in range(1, len(found) + 1)]:
        return []
    return [PromptOption(key=key, label=_DEFAULT.sub("", label).strip(" \t,;:?>、。：？")) for key, label in found]


def _plain(text: str) -> str:
    """Returns the text with Japanese wide letters and digits as plain ones."""
    return unicodedata.normalize("NFKC", text)


def _asked(kind: str, line: str, options: list[PromptOption], default: str | None, *, own_words: bool = False) -> Asked:
    prompt = Prompt.model_validate(
        {
            "prompt_id": _fingerprint(kind, line, options, own_words=own_words),
            "type": kind,
            "prompt": line.strip(),
            "options": options,
            "default": default,
            "own_words": own_words,
        }
    )
    return Asked(prompt, None)


# --- answers ---------------------------------------------------------------------------------------------------------

_BOX = regex(r"^(?:\[.\]|\(.\)) ")
"""A tick, or an empty box: no part of the option's name."""
_WORDS = regex(r"\{(?:key|text|line)\}")
_CONTROL = regex(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
EXPLICIT = frozenset({"permission", "trust", "login"})
"""Types that need a word as an answer: an empty answer may come from a script without one."""
_BREAKS = regex(r"(?:\r\n?|\n)+")
"""Line breaks: an answer to a question on one line has one line, or the rest would answer the next question."""


def keys_for(asked: Asked, text: str) -> tuple[list[bytes], str | None]:
    """Returns the pieces to type as an answer to `asked` with `text`, each after the program has shown the effect of
    the one before, and the chosen option's key (None for free text). Nothing is typed for an option of a menu: its mark
    is moved (`menu_keys.route`). An option is named by its key, its label or an alias of the profile; if only options
    are taken, also by an unambiguous beginning of its label. Raises InvalidChoice with the options."""
    prompt, dialog = asked.prompt, asked.dialog
    submit = dialog.submit if dialog else "\r"
    if prompt.type == "screen" and not prompt.own_words:
        raise _refused(
            asked, "its screen is not understood: answer in an attached terminal, or with 'synapsectl keys AGENT KEY…'"
        )
    if not prompt.options and (dialog is None or not prompt.own_words):
        typed = _CONTROL.sub("", _BREAKS.sub(" ", text.strip("\r\n")))
        if text.strip() and not typed:
            raise _refused(asked, "the answer cannot be typed: it has control characters only")
        return [(typed + (submit or "\r")).encode()], None
    key = _choose(asked, text.strip())
    if asked.menu is not None and key is None and asked.menu.window is not None and asked.menu.window.field:
        return [_BREAKS.sub(" ", clean(text).strip("\r\n")).encode()], None
    if key is None and (words := clean(text).strip()) and prompt.own_words:
        return [f"{_BREAKS.sub(' ', words)}\r".encode()] if dialog is None else _words_keys(asked, words), None
    if key is None:
        offered = ", ".join(f"{option.key} ({option.label})" for option in prompt.options)
        raise _refused(asked, f"{text[:80]!r} is not among the options: {offered}")
    if asked.menu is not None:
        return [], key
    if not asked.drawn:
        return [key.encode(), submit.encode()], key
    *first, last = _typed(dialog, key) if dialog else [key]
    return [keys.encode() for keys in (*first, last + submit)], key


def _typed(dialog: Dialog, key: str) -> list[str]:
    listed = next((option.keys for option in dialog.options if option.key == key), None)
    typed = listed or dialog.keys.get(key) or key
    return [typed] if isinstance(typed, str) else typed


def _words_keys(asked: Asked, words: str) -> list[bytes]:
    if words in asked.for_words:
        raise _refused(asked, f"{words!r} is a row for words of your own: answer with these")
    assert asked.dialog is not None
    assert asked.dialog.own_words is not None
    known = {
        "{key}": asked.for_words[0],
        "{text}": f"{PASTE_BEGIN}{words}{PASTE_END}",
        "{line}": f"{PASTE_BEGIN}{' '.join(words.split())}{PASTE_END}",
    }
    return [_WORDS.sub(lambda found: known[found[0]], keys).encode() for keys in asked.dialog.own_words.keys]


def _refused(asked: Asked, why: str) -> InvalidChoice:
    prompt = asked.prompt
    return InvalidChoice(why, options=[option.model_dump() for option in prompt.options], prompt_id=prompt.prompt_id)


def _choose(asked: Asked, text: str) -> str | None:
    wanted = _plain(text).casefold()
    options = asked.prompt.options
    if not wanted:
        return asked.prompt.default if asked.prompt.type not in EXPLICIT else None
    labels = {option.key: _plain(_BOX.sub("", option.label)).casefold() for option in options}
    for key, label in labels.items():
        if wanted in (_plain(key).casefold(), label):
            return key
    alias = asked.dialog.aliases.get(wanted) if asked.dialog else None
    if alias is not None and any(option.key == alias for option in options):
        return alias
    if asked.prompt.own_words:
        return None  # the beginning of a label may be a free text
    starting = [key for key, label in labels.items() if label.startswith(wanted)]
    return starting[0] if len(starting) == 1 else None
