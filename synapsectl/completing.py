"""Finds the possible next words of a command line: verbs, options and their choices, and words from the daemon (agents,
tasks, the keys of an answer). The shells' scripts (`synapsectl completion SHELL`) only show the results.

The metavar of an argument says its kind: `AGENT`, `TASK`, `PROFILE`, …; in `AGENT KEY`, `AGENT` is the kind of the
first word, and `KEY` that of all others."""

from argparse import Action
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any, NamedTuple

from synapsectl.context import CommandContext
from synapsectl.errors import CtlError
from synapsectl.messages import part_text
from synapsectl.output import PROGRAM, one_line, short_id
from synapsectl.parsing import VerbParser, command_line
from synapsectl.prompts import asked
from synapsectl.verbs import ALIASES, all_verbs

ASKING_S = 2.0
"""Seconds for the daemon to answer, since a person has pressed a key and waits."""
TEXT_SHOWN = 60

FILES = "file"
FOLDERS = "folder"
"""Names that the shell completes itself."""


class Candidate(NamedTuple):
    """A possible word, and its description."""

    word: str
    about: str = ""


class Candidates(NamedTuple):
    """Words, or the kind that the shell is to complete itself: `FILES` or `FOLDERS`."""

    words: Sequence[Candidate] = ()
    also: str | None = None


type Source = "Callable[[CommandLine], Iterable[Candidate]]"
"""Function that asks the daemon for words."""


def candidates(words: Sequence[str], ctx: CommandContext) -> Candidates:
    """Returns the possible completions of the last of `words`, after the others. Never raises an error of the daemon or
    of its absence: then there are no words."""
    *before, current = words or [""]
    parser = command_line()
    while before and (part := parser.parts.get(ALIASES.get(before[0], before[0]))) is not None:
        parser, before = part, before[1:]
    if parser.verb.default is not None and current.startswith("-"):
        parser = parser.parts[parser.verb.default]
    if parser.parts and not before:
        return _beginning([Candidate(name, part.about) for name, part in parser.parts.items()], current)
    if parser.parts:
        return Candidates()
    try:
        return _of_verb(parser, before, current, ctx)
    except CtlError:
        return Candidates()


def _of_verb(parser: VerbParser, before: list[str], current: str, ctx: CommandContext) -> Candidates:
    options = {name: action for action in parser.own_actions for name in action.option_strings}
    given, used, waiting, behind = _read(before, options)
    about = CommandLine(ctx, parser.prog.removeprefix(f"{PROGRAM} "), given)
    if waiting is not None:
        return _values(waiting, str(waiting.metavar or waiting.dest), current, about)
    if not behind and (joined := _joined(options, current)):
        action, value = joined
        found = _values(action, str(action.metavar or action.dest), value, about)
        beginning = current.removesuffix(value)
        return found._replace(words=[Candidate(beginning + word, told) for word, told in found.words])
    if current.startswith("-") and not behind:
        told = [Candidate(name, str(action.help)) for name, action in options.items() if name not in used]
        return _beginning(told, current)
    at = len(given)
    for action in (action for action in parser.own_actions if not action.option_strings):
        words = str(action.metavar or action.dest).split()
        if action.nargs in ("*", "+"):
            return _values(action, words[min(at, len(words) - 1)], current, about)
        if at == 0:
            return _values(action, words[0], current, about)
        at -= 1
    return Candidates()


def _read(before: list[str], options: Mapping[str, Action]) -> tuple[list[str], set[str], Action | None, bool]:
    """Returns the words that are no options, the options that are used up, the option that waits for its value, and
    True if `--` stands before."""
    given: list[str] = []
    used: set[str] = set()
    waiting: Action | None = None
    behind = False
    for word in before:
        if waiting is not None:
            waiting = None
        elif word == "--":
            behind = True
        elif not behind and (joined := _joined(options, word)):
            used.update(() if _repeats(joined[0]) else joined[0].option_strings)
        elif not behind and word in options:
            action = options[word]
            used.update(() if _repeats(action) else action.option_strings)
            waiting = action if action.nargs != 0 else None
        else:
            given.append(word)
    return given, used, waiting, behind


class CommandLine(NamedTuple):
    """The command line so far: `given` are the words before that are no options."""

    ctx: CommandContext
    verb: str
    given: Sequence[str]


def _joined(options: Mapping[str, Action], word: str) -> tuple[Action, str] | None:
    """Returns the option and its value, if both are one word."""
    name, equals, value = word.partition("=")
    action = options.get(name) if equals else None
    return (action, value) if action is not None and action.nargs != 0 else None


def _repeats(action: Action) -> bool:
    return isinstance(action.default, list)


def _values(action: Action, kind: str, current: str, about: CommandLine) -> Candidates:
    if action.choices is not None:
        return _beginning([Candidate(str(choice)) for choice in action.choices], current)
    kind = kind.upper()
    if kind in FILE_KINDS:
        return Candidates(also=FILE_KINDS[kind])
    verb, _, sub = about.verb.partition(" ")
    own = all_verbs()[verb].source(f"{sub} {kind}")
    if own is None:
        source = SOURCES.get(f"{about.verb} {kind}") or SOURCES.get(kind)
    else:
        source = _named(*own) if isinstance(own, tuple) else _found(own)
    if source is None:
        return Candidates()
    listed, comma, current = current.rpartition(",") if kind in LISTS else ("", "", current)
    found = _beginning(source(about), current)
    return Candidates([Candidate(listed + comma + word, told) for word, told in found.words])


def split(line: str) -> list[str]:
    """Returns the words of a shell's line as far as it is typed, without their quotes; the last is the one that is
    being typed, and may be empty."""
    words, quote, escaped, begun = [""], "", False, False
    for character in line:
        if escaped:
            words[-1] += character if quote != '"' or character in '"\\$`' else f"\\{character}"
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = begun = True
        elif character in ("'", '"') and quote in ("", character):
            quote, begun = ("" if quote else character), True
        elif character.isspace() and not quote:
            words += [""] if begun else []
            begun = False
        else:
            words[-1] += character
            begun = True
    return words


def _beginning(offered: Iterable[Candidate], current: str) -> Candidates:
    return Candidates([one for one in offered if one.word.startswith(current)])


def _get(about: CommandLine, path: str, query: Mapping[str, object] | None = None) -> Any:
    return about.ctx.client.get(path, query, timeout=ASKING_S)


def _agents(about: CommandLine) -> Iterator[Candidate]:
    for agent in _get(about, "/agents", {"hosts": 1}):
        if agent["name"] not in about.given:
            state = agent["activity"] if agent["state"] == "running" else agent["state"]
            yield Candidate(agent["name"], f"{agent['type']}, {state}")


def _tasks(about: CommandLine) -> Iterator[Candidate]:
    for task in _get(about, "/control/tasks"):
        said = one_line(" ".join(part_text(part) for part in task["message"]["parts"])[:TEXT_SHOWN])
        yield Candidate(short_id(task["id"]), f"{task['status']}: {said}")


def _tasks_and_agents(about: CommandLine) -> Iterator[Candidate]:
    yield from _agents(about)
    for one in _tasks(about):
        if one.about.partition(":")[0] in UNDER_WAY:
            yield one


def _answers(about: CommandLine) -> Iterator[Candidate]:
    """Yields the keys of the options of the present question."""
    prompt = asked(about.ctx.client, about.given[0]).prompt or {}
    for option in prompt.get("options") or []:
        yield Candidate(str(option["key"]), str(option["label"]))


def _named(path: str, key: str, told: str) -> Source:
    def ask(about: CommandLine) -> Iterator[Candidate]:
        for one in _get(about, path):
            yield Candidate(str(one[key]), str(one[told] or ""))

    return ask


def _found(names: "Callable[[], Iterable[tuple[str, str]]]") -> Source:
    """Returns a source that asks a function of a part."""
    return lambda _: starmap(Candidate, names())


def _verbs(about: CommandLine) -> Iterator[Candidate]:
    parser = command_line()
    for word in about.given:
        if word not in parser.parts:
            return
        parser = parser.parts[word]
    for name, part in parser.parts.items():
        yield Candidate(name, part.about)


def _keys(_: CommandLine) -> Iterator[Candidate]:
    yield from (Candidate(name) for name in KEY_NAMES)


UNDER_WAY = frozenset({"submitted", "working", "input_required", "auth_required"})
KEY_NAMES = (
    *("Enter", "Esc", "Tab", "S-Tab", "BSpace", "Space", "Up", "Down", "Left", "Right", "Home", "End", "PgUp", "PgDn"),
    *("Insert", "Delete", "C-c", "C-d", "C-u"),
)
LISTS = frozenset({"AGENT", "A,B"})
"""Kinds of arguments with several words, separated by commas."""
FILE_KINDS = {"FILE": FILES, "PATH": FILES, "CWD": FOLDERS, "DIR": FOLDERS}
SOURCES: Mapping[str, Source] = {
    "AGENT": _agents,
    "A,B": _agents,
    "TASK": _tasks,
    "TASK|AGENT": _tasks_and_agents,
    "PROFILE": _named("/control/profiles", "name", "description"),
    "TYPE": _named("/control/profiles", "name", "description"),
    "VERB": _verbs,
    "keys KEY": _keys,
    "input TEXT": _answers,
    "profiles show NAME": _named("/control/profiles", "name", "description"),
    "adopt ID": _named("/control/conversations", "id", "prompt"),
}
