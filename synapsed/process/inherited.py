"""The table of variables that never go from a shell's environment to processes that outlive it: agents, a daemon that a
verb starts.

A program that runs another sets variables for this one child: git for a hook, npm for a script, an editor for its
terminal. An agent that is started in such a child outlives it, and so would the variables: the agent would commit to
the repository of the hook. `inherited` takes them out. Variables that a person sets on purpose stay, and `activated`
names those that decide which code runs. `[environment] keep` and `drop` overrule the table.

The table is data, `leftovers.json`; docs/environment.md shows it. The functions read nothing but their arguments, and
links in the paths of virtual environments.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from synapsed.shared.regex import regex


class Leftover(NamedTuple):
    """Environment variables that a program sets for its own child processes, and that an agent must not inherit."""

    by: str
    """The program that sets them."""
    patterns: tuple[str, ...]
    """Patterns of their names."""
    why: str
    """Reason for people."""
    values: tuple[str, ...] = ("*",)
    """Patterns of their values: variables with other values are passed on."""
    beside: str = ""
    """Pattern of another variable: they are removed only if it is set."""


IDENTITY = Leftover(
    "synapsed", ("SYNAPSE_*",), "who another agent is, and its token; `keep` does not bring them either"
)

OWN_VENV = ("VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT")
"""Variables that are not passed on if they name the environment that synapsed is installed in, and neither is its
folder on PATH: it was activated (`uv run`, an activation) only to run synapsed."""


class Prefixed(NamedTuple):
    """Folders that a program puts on PATH."""

    by: str
    """The program."""
    pattern: str
    """Pattern of the folders."""
    beside: str
    """Pattern of a variable: the folders count only if it is set."""


def _table() -> tuple[tuple[Leftover, ...], tuple[Prefixed, ...], tuple[str, ...], tuple[str, ...]]:
    """Returns leftovers, folders that are taken from PATH with them, `ACTIVATED` and `CONNECTION`, from the table."""
    told = json.loads(Path(__file__).with_name("leftovers.json").read_bytes())
    for row in told["leftovers"]:
        row.update({key: tuple(row[key]) for key in ("patterns", "values") if key in row})
    rows, folders = (Leftover(**row) for row in told["leftovers"]), (Prefixed(**row) for row in told["on_path"])
    return (IDENTITY, *rows), tuple(folders), tuple(told["activated"]), tuple(told["connection"])


LEFTOVERS, ON_PATH, ACTIVATED, CONNECTION = _table()
"""`LEFTOVERS` are in the order in which they are shown. `ACTIVATED` are set on purpose, and are named at the start, as
they decide which code runs. `CONNECTION` lead to a login: another login has others, which `restart` and `attach` bring
(tmux's `update-environment`, and those that desktops have added since). PATH is not among them: it belongs to the
activations in the shell of the start, which stay, and no person has chosen a mixture of both."""

_OPTION = regex(r'(?:[^\s"]|"(?:\\.|[^"\\])*")+')
"""A word of NODE_OPTIONS; quoted parts may have blanks."""
_DEBUGS = ("--inspect", "--debug-port")
_TAKES_VALUE = ("--inspect-port", "--debug-port", "--inspect-publish-uid")


def inherited(
    environ: Mapping[str, str], *, own: str = "", keep: Iterable[str] = (), drop: Iterable[str] = ()
) -> dict[str, str]:
    """Returns `environ` without the leftovers. Variables that match `keep` always stay (except IDENTITY); those that
    match `drop` are left out. `own` is the folder of the environment that synapsed is installed in (`sys.prefix`)."""
    kept, dropped = _names(tuple(keep)), _names(tuple(drop))
    left = _removed_names(environ, own)
    found = {
        name: value
        for name, value in environ.items()
        if (kept(name) and not _matches(IDENTITY.patterns, name)) or not (dropped(name) or name in left)
    }
    if "NODE_OPTIONS" in found and not kept("NODE_OPTIONS"):
        if options := _without_debugger(found["NODE_OPTIONS"]):
            found["NODE_OPTIONS"] = options
        else:
            del found["NODE_OPTIONS"]
    if "PATH" in found and not kept("PATH"):
        venv = environ["VIRTUAL_ENV"] if "VIRTUAL_ENV" in left and "VIRTUAL_ENV" not in found else ""
        found["PATH"] = _without_prefixes(environ, found["PATH"], venv)
    return found


def activated(environ: Mapping[str, str]) -> list[str]:
    """Returns the names of variables in `environ` that decide which code runs, sorted."""
    plain = environ.get("CONDA_DEFAULT_ENV") == "base"  # it is set so in every shell
    return sorted(name for name in environ if _matches(ACTIVATED, name) and not (plain and name == "CONDA_DEFAULT_ENV"))


def select(environ: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    matches = _names(tuple(patterns))
    return {name: value for name, value in environ.items() if matches(name)}


def without(environ: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    matches = _names(tuple(patterns))
    return {name: value for name, value in environ.items() if not matches(name)}


def _removed_names(environ: Mapping[str, str], own: str) -> set[str]:
    """Returns the names that the table takes out."""
    found: set[str] = set()
    for row in LEFTOVERS:
        matches, values = _names(row.patterns), _names(row.values)
        if not row.beside or any(map(_names((row.beside,)), environ)):
            found.update(name for name, value in environ.items() if matches(name) and values(value))
    venv = environ.get("VIRTUAL_ENV")
    if own and venv and os.path.realpath(venv) == os.path.realpath(own):
        found.update(OWN_VENV)
    return found


def _without_debugger(options: str) -> str:
    kept = []
    words = iter(_OPTION.findall(options))
    for word in words:
        if not word.startswith(_DEBUGS):
            kept.append(word)
        elif word in _TAKES_VALUE:
            next(words, None)
    return " ".join(kept)


def _without_prefixes(environ: Mapping[str, str], path: str, venv: str) -> str:
    patterns = tuple(row.pattern for row in ON_PATH if any(map(_names((row.beside,)), environ)))
    matches, own = _names(patterns), f"{venv}/bin" if venv else None
    return os.pathsep.join(place for place in path.split(os.pathsep) if place != own and not matches(place))


def _matches(patterns: tuple[str, ...], name: str) -> bool:
    return _names(patterns)(name)


@lru_cache(maxsize=256)
def _names(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Returns a function that tests if a text matches one of the shell patterns, with regard to case."""
    found = re.compile("|".join(map(translate, patterns)) or r"(?!)").match
    return lambda text: found(text) is not None
