"""The subject of a tool call, read from its input: the command that it runs, or the edit that it makes. Pure.

The calls of all programs are read in the same way, because only a few names are used for their fields. A text is a
command only if the program itself names it so, and it is complete. For an edit a diff is made from what the call
contains.
"""

import difflib
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from synapsed.shared.counts import counted
from synapsed.shared.regex import regex

COMMAND_MAX: Final = 100_000
"""Characters of a command. A longer one is not shown at all, because a part of it would be another command."""

DIFF_MAX: Final = 100_000
"""Characters of a diff. A longer one is cut, and a line at its end says so."""

COMPARED_MAX: Final = 2_000
"""Lines of an edit, before and after together, that are compared; a larger edit is shown as all old lines removed."""

_COMMANDS: Final = ("command", "cmd")
_PATHS: Final = ("file_path", "filePath", "filepath", "absolute_path", "notebook_path", "path", "filename")
_PAIRS: Final = (
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
    ("old_text", "new_text"),
    ("oldText", "newText"),
)
_WHOLE: Final = ("content", "file_text", "new_source", "newText")
_PATCHES: Final = ("diff", "patch", "patchText", "fileDiff", "input", *_COMMANDS)
"""Fields that may have a patch; some programs give a patch to their shell."""

_PATCH = regex(r"\s*(?:\*\*\* Begin Patch\b|diff --git |Index: |--- |@@ )")


@dataclass(frozen=True, slots=True)
class About:
    """`command` as it was given; `diff` in the unified format, or in the program's own. None if it does not apply."""

    command: str | None = None
    diff: str | None = None

    def __bool__(self) -> bool:
        return self.command is not None or self.diff is not None


@dataclass(frozen=True, slots=True)
class _Edit:
    path: str
    new: str
    old: str | None = None
    """None if the call does not contain the old text."""


def about(given: Mapping[str, Any]) -> About:
    """Returns the subject of a call with this input."""
    if (diff := _diff(given)) is not None:
        return About(diff=diff)
    return About(command=next((text for name in _COMMANDS if (text := command_in(given.get(name)))), None))


def command_in(value: object) -> str | None:
    """Returns a command in one piece; a list of words is quoted, so that the words stay apart."""
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        value = shlex.join(value)
    return value if isinstance(value, str) and value.strip() and len(value) <= COMMAND_MAX else None


def edits_in_blocks(blocks: Iterable[Mapping[str, Any]]) -> About:
    """Returns the edit that blocks of the type `diff` show (`path`, `oldText`, `newText`)."""
    found = [
        _Edit(str(block.get("path")), _text(block.get("newText")), old if isinstance(old, str) else None)
        for block in blocks
        if block.get("type") == "diff"
        for old in (block.get("oldText"),)
    ]
    return About(diff=_cut("\n".join(map(_unified, found)))) if found else About()


def _diff(given: Mapping[str, Any]) -> str | None:
    """Returns the edit in a call's input; None if the call edits no file."""
    path = next(filter(None, (_text(given.get(name)) for name in _PATHS)), "")
    for name in _PATCHES:
        value = _text(given.get(name))
        if _PATCH.match(value):
            head = f"{path}\n" if path and "+++" not in value and "***" not in value else ""
            return _cut(f"{head}{value}")
    if changes := list(_changes(given.get("changes"))):
        return _cut("\n".join(changes))
    found = list(_edits(given, path))
    return _cut("\n".join(map(_unified, found))) if path and found else None


def _edits(given: Mapping[str, Any], path: str) -> Iterator[_Edit]:
    for old, new in _PAIRS:
        if isinstance(given.get(old), str) and isinstance(given.get(new), str):
            yield _Edit(path, given[new], given[old])
            return
    several = given.get("edits")
    if isinstance(several, list):
        for each in several:
            if isinstance(each, Mapping):
                yield from _edits(each, path)
        return
    whole = next((given[name] for name in _WHOLE if isinstance(given.get(name), str)), None)
    if whole is not None:
        yield _Edit(path, whole)


def _changes(value: Any) -> Iterator[str]:
    """Yields a patch for each file in a list of files with their changes (`path`, `kind`, `diff`)."""
    for change in value if isinstance(value, list) else ():
        if isinstance(change, Mapping) and isinstance(change.get("path"), str):
            kind, text = change.get("kind"), change.get("diff")
            done = kind.get("type") if isinstance(kind, Mapping) else kind
            moved = kind.get("move_path") if isinstance(kind, Mapping) else None
            to = f" → {moved}" if isinstance(moved, str) and moved else ""
            yield f"{done or 'change'} {change['path']}{to}\n{_signed(_text(text), done)}"


def _signed(text: str, done: object) -> str:
    """Adds the sign to each line of an added or deleted file; some programs give its lines alone."""
    sign = {"add": "+", "delete": "-"}.get(str(done))
    return text if sign is None or _PATCH.match(text) else "\n".join(f"{sign}{line}" for line in text.splitlines())


def _unified(edit: _Edit) -> str:
    new = edit.new.splitlines()
    if edit.old is None:
        return "\n".join([f"+++ {edit.path}", *(f"+{line}" for line in new)])
    old = edit.old.splitlines()
    head = [f"--- {edit.path}", f"+++ {edit.path}"]
    if len(old) + len(new) > COMPARED_MAX:
        return "\n".join([*head, *(f"-{line}" for line in old), *(f"+{line}" for line in new)])
    lines = list(difflib.unified_diff(old, new, lineterm=""))[2:]
    return "\n".join([*head, *(line for line in lines if not line.startswith("@@"))])


def _cut(text: str) -> str:
    if len(text) <= DIFF_MAX:
        return text
    kept = text[:DIFF_MAX].rpartition("\n")[0] or text[:DIFF_MAX]
    left = counted(len(text) - len(kept), "more character is", "more characters are")
    return f"{kept}\n… {left} not shown"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
