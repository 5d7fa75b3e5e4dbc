"""Finds the slash commands of an agent's program, which an editor offers: those that its profile names, those of a
person's own files, and those that a program which speaks ACP has sent itself.

`commands_of` may block.
"""

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from synapsectl.client import Client, agent_path
from synapsectl.errors import CtlError
from synapsed.shared.visible import visible

COMMANDS_MAX: Final = 200
WORDS_MAX: Final = 300
"""Most characters of a command's description."""

LOOKED_AT: Final = 1024 * 1024
"""Bytes at the beginning and at the end of a program's output in which its own list is searched: it sends the list
after it has opened a session, and again after a change."""

TRIES: Final = 4
PAUSE: Final = 1.0
"""Seconds between two looks for a program's own list."""

_NAME = re.compile(r"[A-Za-z][\w:.-]{0,99}", re.ASCII)
_TOLD: Final = b'"available_commands_update"'


class ProgramCommand(NamedTuple):
    """A slash command. `hint` says which words may follow its name; empty if none may."""

    name: str
    description: str
    hint: str = ""


def update(commands: Iterable[ProgramCommand]) -> dict[str, Any]:
    """Returns the update that lists them for an editor."""
    told = [
        {"name": each.name, "description": each.description} | ({"input": {"hint": each.hint}} if each.hint else {})
        for each in commands
    ]
    return {"sessionUpdate": "available_commands_update", "availableCommands": told}


def commands_of(client: Client, agent: Mapping[str, Any], *, here: bool) -> list[ProgramCommand]:
    """Returns the commands of the agent's program. `here`: its folder and the person's files are on this machine.
    Raises CtlError."""
    rows = client.get("/control/profiles")
    profile: Mapping[str, Any] = next((row for row in rows if row["name"] == agent["type"]), {})
    found = [*_named(profile.get("commands", ()), str(agent["cwd"]), here=here)]
    if profile.get("transport") == "pipes":
        found += _told_by(client, agent)
    return bounded(found)


def bounded(commands: Iterable[ProgramCommand]) -> list[ProgramCommand]:
    """Returns the commands with a name that a message can begin with, each name once, up to the limit."""
    found = {each.name: each for each in commands if _NAME.fullmatch(each.name)}
    return [
        ProgramCommand(name, _cut(each.description) or name, _cut(each.hint))
        for name, each in list(found.items())[:COMMANDS_MAX]
    ]


def told_in(output: bytes) -> list[ProgramCommand] | None:
    """Returns the newest list in the output of a program; None if it has no list."""
    for line in reversed(output.split(b"\n")):
        if _TOLD in line and (listed := _list_in(line)) is not None:
            return [_command(each) for each in listed if isinstance(each, dict)]
    return None


def _list_in(line: bytes) -> list[Any] | None:
    try:
        given = json.loads(line)["params"]["update"]
        listed = given["availableCommands"] if given["sessionUpdate"] == "available_commands_update" else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return listed if isinstance(listed, list) else None


def _command(told: Mapping[str, Any]) -> ProgramCommand:
    given = told.get("input")
    hint = given.get("hint") if isinstance(given, dict) else None
    return ProgramCommand(
        *(each if isinstance(each, str) else "" for each in (told.get("name"), told.get("description"), hint))
    )


def _cut(words: str) -> str:
    one = visible(" ".join(words.split()))
    return one if len(one) <= WORDS_MAX else f"{one[: WORDS_MAX - 1]}…"


def _named(entries: Iterable[Mapping[str, Any]], cwd: str, *, here: bool) -> Iterator[ProgramCommand]:
    """Yields the commands of a profile; one with `files` stands for each file, named by the text of its `*`."""
    for entry in entries:
        name, description, hint = entry["name"], entry["description"], entry.get("hint", "")
        if not entry.get("files"):
            yield ProgramCommand(name, description, hint)
        elif here:
            for own in _files(entry["files"], cwd):
                yield ProgramCommand(name.replace("*", own), description, hint)


def _files(pattern: str, cwd: str) -> list[str]:
    """Returns the text of `*` in each path that matches, sorted, without hidden files."""
    from glob import escape, iglob  # only where a profile has some
    from itertools import islice
    from os.path import expanduser

    before, _, behind = pattern.partition("*")
    before = expanduser(before.replace("{cwd}", cwd))  # noqa: PTH111 - without pathlib
    paths = islice(iglob(f"{escape(before)}*{escape(behind)}"), COMMANDS_MAX)  # noqa: PTH207 - without pathlib
    return sorted(path[len(before) : len(path) - len(behind)] for path in paths)


def _told_by(client: Client, agent: Mapping[str, Any]) -> list[ProgramCommand]:
    """Returns the commands that the program has sent. A program that has just opened its session may send them soon, so
    this looks several times."""
    path = agent_path(str(agent["id"]), "history", control=True)
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE)
        for where in ({"bytes": LOOKED_AT}, {"bytes": LOOKED_AT, "after": 0}):
            try:
                output = client.get_bytes(path, where)
            except CtlError:
                return []
            if (found := told_in(output)) is not None:
                return found
    return []
