"""The manual, synapsectl(1), as groff's man macros want it: made from the verbs' own help, so that both agree.

`make dist` puts it into the wheel as share/man/man1/synapsectl.1, where man finds it beside the program."""

import argparse
import re
from collections.abc import Iterator, Mapping

from synapsectl.output import PROGRAM
from synapsectl.parsing import VerbParser, command_line, parsers
from synapsectl.verbs import ALIASES, PURPOSE, Verb
from synapsed import __version__

WIDTH = 100
"""Columns of a usage, which man breaks where it must."""

EXIT_CODES = (
    ("0", "Done."),
    ("1", "The task failed, was canceled or rejected."),
    ("2", "The command line is wrong, the profile or program unknown, the message too large, the address ambiguous."),
    ("3", "No daemon answers, or another user listens in its place."),
    ("4", "There is no such agent or task."),
    ("5", "The time is over; what was waited for goes on."),
    ("6", "It was refused."),
    ("7", "It waits for a person; the question is on standard error."),
    ("8", "The connection broke while a message was sent, which may have been accepted."),
)
ENVIRONMENT = (
    ("SYNAPSED_HOME", "The folder with configuration, state and socket, in place of the XDG directories."),
    ("XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_RUNTIME_DIR", "Where these are otherwise."),
    ("SYNAPSE_CONTROL_SOCKET, SYNAPSE_AGENT_TOKEN", "In an agent's shell: its daemon, and its rights."),
    ("NO_COLOR", "If it is set, nothing is coloured."),
)


def page(known: Mapping[str, Verb] | None = None) -> str:
    """Returns the whole manual, with the `known` verbs: all, if they are not given."""
    return "\n".join(_lines(known)) + "\n"


def _lines(known: Mapping[str, Verb] | None) -> Iterator[str]:
    tool = command_line(WIDTH, known)
    yield f'.TH {PROGRAM.upper()} 1 "" "synapsed {__version__}" "User Commands"'
    yield ".SH NAME"
    yield f"{PROGRAM} \\- {_text(PURPOSE)}"
    yield ".SH SYNOPSIS"
    yield f".B {PROGRAM}\n.I VERB\n[\\fIoptions\\fR] [\\fIarguments\\fR]"
    yield ".SH VERBS"
    for parser in parsers(tool):
        yield from _verb(parser)
    yield ".SH EXIT STATUS"
    yield from _terms(EXIT_CODES)
    yield ".SH ENVIRONMENT"
    yield from _terms(ENVIRONMENT)


def _verb(parser: VerbParser) -> Iterator[str]:
    name = parser.prog.removeprefix(f"{PROGRAM} ")
    also = [alias for alias, verb in ALIASES.items() if verb == name]
    yield f".SS {_quoted(', '.join([name, *also]))}"
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    yield _text(parser.description or "")
    yield f".PP\n.B {_quoted(usage)}"
    yield from _terms((_names(each), _help_text(each)) for each in parser.own_actions if each.dest != "help")
    yield ".PP\nExamples:"
    for line, about in parser.verb.examples:
        yield f".PP\n.RS 4\n.nf\n{_text(line)}\n.fi\n.RS 4\n{_text(about)}\n.RE\n.RE"


def _terms(pairs: "Iterator[tuple[str, str]] | tuple[tuple[str, str], ...]") -> Iterator[str]:
    for term, told in pairs:
        yield f".TP\n.B {_quoted(term)}\n{_text(told)}"


def _names(action: argparse.Action) -> str:
    """Returns the option with its value, or the argument."""
    value = str(action.metavar or action.dest)
    if action.choices is not None and action.metavar is None:
        value = "|".join(map(str, action.choices))
    if not action.option_strings:
        return value
    takes = "" if action.nargs == 0 else f" {value if action.metavar or action.choices else value.upper()}"
    return ", ".join(f"{option}{takes}" for option in action.option_strings)


def _help_text(action: argparse.Action) -> str:
    return (action.help or "") % vars(action)


def _text(text: str) -> str:
    """Returns `text` without anything that roff would obey."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def _quoted(text: str) -> str:
    """Returns `text` as one argument of a macro."""
    return '"' + _text(text).replace('"', "\\(dq") + '"'
