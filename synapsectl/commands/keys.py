"""`synapsectl keys AGENT KEY…`: keys pressed at an agent's terminal, without attaching."""

import argparse
import re

from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, UsageError
from synapsectl.parsing import nearest
from synapsectl.reach import reach

EXAMPLES = (
    ("synapsectl keys claude Esc Esc", "two keys"),
    ("synapsectl keys claude Down Enter", "choose the next option"),
)

TAKES_REST = True

NAMES = (
    "Enter Esc Tab S-Tab BSpace Space Up Down Left Right Home End PgUp PgDn Insert Delete F1…F12, C-x and M-x; "
    "anything else is text"
)
KEYS = (
    *("Enter", "Esc", "Tab", "S-Tab", "BSpace", "Space", "Up", "Down", "Left", "Right", "Home", "End", "PgUp", "PgDn"),
    *("Insert", "Delete", "Return", "Escape", "Backspace", "BTab", "PageUp", "PageDown", "Del"),
    *(f"F{number}" for number in range(1, 13)),
)
"""The names that the daemon knows, its other names for some of them too."""
NEAR = 0.8
"""Least likeness (difflib's ratio) of a text to a name that it is taken for: `Entr` has it, `some` has not."""
_CTRL = re.compile(r"(?:\^|(?:ctrl|control)[-+]|c\+)(?P<key>[a-z@\[\\\]^_]|space)", re.IGNORECASE)
_ALT = re.compile(r"(?:(?:alt|meta)[-+]|m\+)(?P<key>\S+)", re.IGNORECASE)
_SHIFT_TAB = re.compile(r"(?:shift|s)[-+]?tab", re.IGNORECASE)
_FUNCTION = re.compile(r"f\d\d?", re.IGNORECASE)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} AGENT [options] [--] KEY…"
    parser.add_argument("words", nargs="+", metavar="AGENT KEY", help=f"the agent, and what is pressed: {NAMES}")
    parser.add_argument("--json", action="store_true", help="print the daemon's answer as a JSON document")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    words: list[str] = [*args.words, *(args.rest or [])]
    agent, keys = words[0], words[1:]
    if not keys:
        raise UsageError(f"name the keys to press: synapsectl keys {agent} KEY… ({NAMES})")
    for key in keys:
        _check(key)
    there, name = reach(ctx, agent)
    done = there.client.post(agent_path(name, "keys", control=True), {"keys": keys})
    note = f"pressed at {agent}; 'synapsectl screen {agent}' shows what came of it"
    ctx.out.either(done, as_json=args.json, note=note)
    return DONE


def _check(key: str) -> None:
    """Raises UsageError for a text that is meant as a key: typed, it would be a draft, and messages would wait for its
    end."""
    if key not in KEYS and (meant := meant_key(key)) is not None:
        raise UsageError(
            f"{key!r} is no key, did you mean {meant}? As text it is given in two pieces: {key[:1]} {key[1:]}"
        )


def meant_key(text: str) -> str | None:
    """Returns the key that `text`, which is no key's name, nearly is, or is in another notation; None for other
    text."""
    bare = text.strip("<>{}[]") or text
    by_case = {name.casefold(): name for name in KEYS}
    if (control := _CTRL.fullmatch(text) or _CTRL.fullmatch(bare)) is not None:
        key = control["key"]
        return "C-Space" if len(key) > 1 else f"C-{key.lower()}"
    if (alt := _ALT.fullmatch(bare)) is not None:
        return f"M-{by_case.get(alt['key'].casefold(), alt['key'])}"
    if _SHIFT_TAB.fullmatch(bare):
        return "S-Tab"
    if (named := by_case.get(bare.casefold())) is not None:
        return named
    if _FUNCTION.fullmatch(bare):
        return "one of F1 to F12"
    near = nearest(bare.casefold(), by_case, cutoff=NEAR) if bare.isalpha() else []
    return by_case[near[0]] if near else None
