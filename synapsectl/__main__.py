"""`synapsectl VERB …`: finds the verb, imports its module only, turns errors into exit codes."""

import os
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Protocol, TextIO, cast

from synapsectl.context import CommandContext
from synapsectl.errors import CtlError
from synapsectl.output import PROGRAM, CommandOutput
from synapsectl.verbs import ALIASES, VERBS, Verb

USAGE = 2
INTERRUPTED = 130
"""128 + SIGINT, as a shell has it."""
PIPE_CLOSED = 141
"""128 + SIGPIPE: whoever read our output has enough."""


if TYPE_CHECKING:
    import argparse


class Command(Protocol):
    """A module under `commands`, or an object in one (`Verb.load`). With `TAKES_REST = True` it has a use for what
    stands after `--`. `QUICK` has for some command lines, what the parser would make of them: argparse is a tenth of a
    quick verb's time. `SUBVERBS` has those first words that have options of their own."""

    @staticmethod
    def configure(parser: "argparse.ArgumentParser") -> None: ...

    @staticmethod
    def run(args: "argparse.Namespace", ctx: CommandContext) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code (docs/synapsectl.md)."""
    out = CommandOutput(sys.stdout, sys.stderr, columns=_columns())
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _dispatch(arguments, out)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = PIPE_CLOSED
    for stream in (sys.stdout, sys.stderr):
        _drop_unsaid(stream)
    return code


def _drop_unsaid(stream: TextIO) -> None:
    """What is still buffered for a closed pipe, or a terminal that hung up, would be tried again at exit: then Python
    ends with a code of its own."""
    try:
        stream.flush()
    except OSError:
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, stream.fileno())
        os.close(nobody)


def _dispatch(arguments: list[str], out: CommandOutput) -> int:
    name = arguments[0] if arguments else ""
    if name in ("-h", "--help", "help"):
        _overview(out.stdout)
        return 0
    if name == "--version":
        name = "version"
    verb = VERBS.get(ALIASES.get(name, name))
    if verb is None:
        return _unknown(name, out)
    command = cast("Command", verb.load())
    args = _arguments(name, verb, command, arguments[1:])
    as_json = bool(getattr(args, "json", False))
    try:
        code = command.run(args, CommandContext(os.environ, out))
    except CtlError as error:
        if as_json:
            out.document(error.document())
        out.note(str(error))
        code = error.exit_code
    sys.stdout.flush()
    return code


def _arguments(name: str, verb: Verb, command: Command, arguments: list[str]) -> "argparse.Namespace":
    quick = getattr(command, "QUICK", {}).get(tuple(arguments))
    if quick is not None:
        return cast("argparse.Namespace", SimpleNamespace(**quick, rest=None))
    from synapsectl.parsing import parse

    takes_rest = bool(getattr(command, "TAKES_REST", False))
    subverbs = getattr(command, "SUBVERBS", None)
    return parse(
        name, verb.help, command.configure, arguments, columns=_columns(), takes_rest=takes_rest, subverbs=subverbs
    )


def _unknown(name: str, out: CommandOutput) -> int:
    if not name:
        _overview(out.stderr)
        return USAGE
    from difflib import get_close_matches

    near = get_close_matches(name, [*VERBS, *ALIASES], n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"see '{PROGRAM} -h'"
    out.note(f"no verb {name!r}: {hint}")
    return USAGE


def _overview(stream: object) -> None:
    lines = [f"usage: {PROGRAM} VERB …", "", "verbs:"]
    lines += [f"  {name:<12}{verb.help}" for name, verb in VERBS.items()]
    lines += [
        "",
        f"'{PROGRAM} VERB -h' tells more of one.",
        "Where no daemon runs, start, run, adopt, send and host add start one.",
    ]
    print("\n".join(lines), file=stream)  # type: ignore[call-overload]  # a text stream either way


def _columns() -> int | None:
    """Columns of the terminal on stdout, None if stdout is no terminal."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return None


if __name__ == "__main__":
    raise SystemExit(main())
