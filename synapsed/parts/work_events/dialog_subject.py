"""Recognises the subject of a dialog, the command or the edit of a tool call, by the rows on the screen. Pure."""

import re
from collections.abc import Sequence
from typing import Final

from synapsed.model.about import About


def shown_by(dialog: str, told: About) -> bool:
    """Returns True if the rows of a dialog show this subject: whole rows are the command, or the beginning of a long
    one; or the dialog names the edited file and shows a line of the edit."""
    rows = [row for row in map(dense, dialog.split("\n")) if row]
    if told.command is not None:
        return _has_rows([row.removeprefix("$") for row in rows], dense(told.command))
    if told.diff is None:
        return False
    shown = dense(dialog)
    names, lines = _names(told.diff), _changed_lines(told.diff)
    return any(name in shown for name in names) and (not lines or any(line in shown for line in lines))


def dense(text: str) -> str:
    """Returns the text without blanks and invisible characters, since a dialog wraps it."""
    return "".join(character for character in text if character.isprintable() and not character.isspace())


SHOWN: Final = 80
"""Characters of a command, without white space, that a dialog has to show, since programs cut long commands."""


def _has_rows(rows: Sequence[str], wanted: str) -> bool:
    for first in range(len(rows) if wanted else 0):
        seen = ""
        for row in rows[first:]:
            seen += row
            if seen == wanted:
                return True
            if not wanted.startswith(seen):
                break
        if len(wanted) > SHOWN and seen.startswith(wanted[:SHOWN]):
            return True
    return False


def _names(diff: str) -> list[str]:
    """Returns the files that a diff names: the last parts of their paths."""
    found = re.findall(r"^(?:\+\+\+|---|\*\*\* \w+ File:|Index:|add|delete|update|change) (.+)$", diff, re.MULTILINE)
    first = diff.partition("\n")[0]
    names = [*found, *([] if found else [first])]
    return [name for each in names if (name := dense(each.split("\t")[0].rpartition("/")[2]))]


def _changed_lines(diff: str) -> list[str]:
    lines = (line for line in diff.split("\n") if line[:1] in "+-" and line[:3] not in ("+++", "---"))
    return [text for line in lines if len(text := dense(line[1:])) > 2]
