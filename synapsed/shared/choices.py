"""Chooses the option of a prompt that says yes, or no, to the present question, by the options' own words. It also
finds the most useful part of a prompt's text. It uses the standard library only, because the tool imports it too."""

from collections.abc import Mapping
from typing import Any, Literal

from synapsed.shared.regex import regex

YES = frozenset({"accept", "allow", "approve", "confirm", "continue", "ok", "proceed", "trust", "y", "yes"})
NO = frozenset(
    {"cancel", "decline", "deny", "disallow", "don't", "don’t", "do not", "esc", "exit", "n", "no", "quit", "reject"}
)
LASTING = frozenset(
    {
        *("always", "ask again", "all future", "automatically", "during this session", "for this session", "auto mode"),
        *("remember", "future sessions", "parent folder", "parent directory", "clear context"),
    }
)
"""Words of options that agree to more than the present question: such an option is never chosen for a person."""

SCREEN = "screen"
"""Type of a prompt that only a person can read: its text is the screen's last rows."""

LAST_ROWS = 3
"""Number of rows from the end of such a screen, where its question stands."""

_FIRST = regex(r"\W*(don['’]t|do not|\w+)")
_PLAIN = regex(r"\W*\w+(?:,? (?:once|one time|allow once|this once))?\W*(?:\([^()]*\))?\W*")
"""A plain yes or no, which is preferred if several options fit."""


def choice(prompt: Mapping[str, Any], *, accept: bool) -> str:
    """Returns the key of the option that says yes (or no) to the present question. Raises ValueError if there is no
    such option, or more than one."""
    if prompt.get("type") == SCREEN:
        raise ValueError("what stands on its screen is not understood, so nothing there is yes or no for sure")
    options = prompt.get("options") or []
    if prompt.get("type") == "confirmation" and not options:
        return "y" if accept else "n"
    meant = [option for option in options if _told(option) == ("yes" if accept else "no")]
    if len(meant) > 1:
        meant = [option for option in meant if _PLAIN.fullmatch(str(option.get("label", "")))]
    if len(meant) != 1:
        raise ValueError(f"none of the options says {'yes' if accept else 'no'} for sure")
    return str(meant[0]["key"])


def telling(prompt_type: str | None, text: str) -> str:
    """Returns the part of a prompt's text that a row begins with. A trust prompt names the folder below its question;
    every view has the folder beside it, so that part is left out."""
    if prompt_type == SCREEN:
        return "\n".join(text.rstrip().splitlines()[-LAST_ROWS:])
    head, question, rest = text.partition("?")
    return head.rpartition("\n")[2] + question + rest if prompt_type == "trust" and question else text


def whole(prompt: Mapping[str, Any]) -> str:
    """Returns the whole question, with the command or the edit that it is about, unless its text has it already."""
    words, command, diff = (str(prompt.get(name) or "") for name in ("prompt", "command", "diff"))
    more = [f"$ {command}"] if command and command not in words else []
    return "\n\n".join(filter(None, [words, *more, diff if diff not in words else ""]))


def meaning(option: Mapping[str, Any]) -> Literal["yes", "lasting", "no"]:
    """Returns the effect of choosing an option: yes to the present question, yes for later too, or no."""
    return _told(option) or "yes"


def _told(option: Mapping[str, Any]) -> Literal["yes", "lasting", "no"] | None:
    return effect(str(option.get("label", "")), str(option["key"]))


def effect(label: str, key: str = "") -> Literal["yes", "lasting", "no"] | None:
    """Returns the effect that the words of an option name; None if they name no effect."""
    label = label.lower()
    first = _FIRST.match(label)
    words = {key.lower(), first[1] if first else ""}
    if words & NO:
        return "no"
    return "lasting" if any(word in label for word in LASTING) else "yes" if words & YES else None
