"""Which option of a prompt says yes, or no, to what is asked now: by the options' own words; and what of its text tells
most where there is one line for it. Standard library only: the person's tool chooses by it too."""

import re
from collections.abc import Mapping
from typing import Any, Literal

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
"""Words of options that say yes to more than what is asked now: never chosen for a person."""

SCREEN = "screen"
"""Type of a prompt that nobody but a person can read: it is the screen's last rows."""

LAST_ROWS = 3
"""Of a screen that nobody can read: what it wants stands there."""

_FIRST = re.compile(r"\W*(don['’]t|do not|\w+)")
_PLAIN = re.compile(r"\W*\w+(?:,? (?:once|one time|allow once|this once))?\W*(?:\([^()]*\))?\W*")
"""A yes or a no and nothing more: of several, it is meant."""


def choice(prompt: Mapping[str, Any], *, accept: bool) -> str:
    """The key of the option that says yes (or no) to what is asked now. Raises ValueError if there is no such option,
    and if there are several."""
    if prompt.get("type") == SCREEN:
        raise ValueError("what stands on its screen is not understood, so nothing there is yes or no for sure")
    options = prompt.get("options") or []
    if prompt.get("type") == "confirmation" and not options:
        return "y" if accept else "n"
    meant = [option for option in options if _says(option, accept=accept)]
    if len(meant) > 1:
        meant = [option for option in meant if _PLAIN.fullmatch(str(option.get("label", "")))]
    if len(meant) != 1:
        raise ValueError(f"none of the options says {'yes' if accept else 'no'} for sure")
    return str(meant[0]["key"])


def telling(prompt_type: str | None, text: str) -> str:
    """The part of a prompt's text that a row begins with. Whether a folder is trusted is asked below which one it is;
    every view has that beside it."""
    if prompt_type == SCREEN:
        return "\n".join(text.rstrip().splitlines()[-LAST_ROWS:])
    head, question, rest = text.partition("?")
    return head.rpartition("\n")[2] + question + rest if prompt_type == "trust" and question else text


def whole(prompt: Mapping[str, Any]) -> str:
    """What is asked, with the command or the edit that it is about, where its own words do not have that already."""
    words, command, diff = (str(prompt.get(name) or "") for name in ("prompt", "command", "diff"))
    more = [f"$ {command}"] if command and command not in words else []
    return "\n\n".join(filter(None, [words, *more, diff if diff not in words else ""]))


def meaning(option: Mapping[str, Any]) -> Literal["yes", "lasting", "no"]:
    """What choosing an option comes to: yes to what is asked now, yes for later too, or no."""
    if _says(option, accept=False):
        return "no"
    label = str(option.get("label", "")).lower()
    return "lasting" if any(word in label for word in LASTING) else "yes"


def _says(option: Mapping[str, Any], *, accept: bool) -> bool:
    """Whether it says yes (or no), to this and no more."""
    label = str(option.get("label", "")).lower()
    if accept and any(word in label for word in LASTING):
        return False
    words = YES if accept else NO
    first = _FIRST.match(label)
    return str(option["key"]).lower() in words or (first is not None and first[1] in words)
