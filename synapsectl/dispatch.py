"""One call of the tool: finds the verb, imports its module only, turns errors into exit codes."""

import errno
import io
import os
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, TextIO, cast

from synapsectl.ahead import INTERRUPTED, BegunAttach
from synapsectl.colours import wanted
from synapsectl.context import CommandContext
from synapsectl.errors import CtlError, NotInstalled
from synapsectl.output import CommandOutput
from synapsectl.verbs import ALIASES, NEEDS, OPTIONS, QUICK_VERBS, VERBS, is_installed

USAGE = 2
PIPE_CLOSED = 141
"""Exit code 128 + SIGPIPE: the reader of our output has closed it."""
NOT_WRITTEN = 74
"""EX_IOERR of <sysexits.h>: the output could not be written, and all else was done."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


if TYPE_CHECKING:
    import argparse

    from synapsectl.parsing import Run


def run_verb(arguments: Sequence[str], begun: BegunAttach | None) -> int:
    """Runs the verb that `arguments` begin with; returns the exit code (docs/synapsectl.md). `begun`: a connection that
    has begun already."""
    columns = _columns()
    _take_any_text(sys.stdout, on_terminal=columns is not None)
    coloured = wanted(os.environ, on_terminal=columns is not None)
    out = CommandOutput(sys.stdout, sys.stderr, columns=columns, coloured=coloured)
    try:
        code = _dispatch(list(arguments), out, begun)
    except KeyboardInterrupt as interrupt:
        if interrupt.args:
            out.note(str(interrupt))  # what may go on
        code = INTERRUPTED
    except BrokenPipeError:
        code = PIPE_CLOSED
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _drop_unsaid(sys.stdout)
        out.note(f"the output cannot be written: {error.strerror}")
        code = NOT_WRITTEN
    for stream in (sys.stdout, sys.stderr):
        _drop_unsaid(stream)
    return code


def _take_any_text(stream: TextIO, *, on_terminal: bool) -> None:
    """Sets the encoding. A locale may lack characters that agents write: a terminal shows `?` there, a pipe gets
    UTF-8."""
    if not isinstance(stream, io.TextIOWrapper):
        return
    if (stream.encoding or "").lower().replace("-", "") == "utf8":
        if not on_terminal:
            stream.reconfigure(errors="surrogateescape")  # the name of a file may be any bytes
    elif on_terminal:
        stream.reconfigure(errors="replace")
    else:
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def _drop_unsaid(stream: TextIO) -> None:
    """Drops output that is still buffered for a closed pipe, or a terminal that hung up: else Python would try it again
    at exit, and end with a code of its own."""
    try:
        stream.flush()
    except OSError:
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, stream.fileno())
        os.close(nobody)


def _dispatch(arguments: list[str], out: CommandOutput, begun: BegunAttach | None) -> int:
    if not arguments and not _has_inbox(out):
        from synapsectl.verbs import overview

        out.stderr.write(overview(out.columns))
        return USAGE
    arguments = arguments or ["inbox" if is_installed(NEEDS["inbox"]) else "list"]
    if arguments[0] == "--version":
        arguments[0] = "version"
    name = ALIASES.get(arguments[0], arguments[0])
    try:
        args, run = _quick(name, arguments[1:]) or _parsed([name, *arguments[1:]])
    except SystemExit:
        sys.stdout.flush()  # the help: its output may have no room, or no reader
        raise
    as_json = bool(getattr(args, "json", False))
    try:
        _check_parts(name, args)
        code = run(args, CommandContext(os.environ, out, as_json=as_json, begun=begun))
    except CtlError as error:
        _name_installer(error)
        if as_json:
            out.document(error.document())
        out.note(str(error))
        code = error.exit_code
    except FileNotFoundError as error:
        if error.filename is not None or _has_folder():
            raise
        out.note("the current folder is gone: somebody has removed it; go to another one ('cd')")
        code = USAGE
    sys.stdout.flush()
    return code


def _name_installer(error: CtlError) -> None:
    """Replaces pip's command for an extra in the message by that of the program that has installed synapsed."""
    if "pip install" in str(error):
        from synapsectl.upgrading.extras import for_this_installer

        error.args = (for_this_installer(str(error)), *error.args[1:])


def _check_parts(name: str, args: "argparse.Namespace") -> None:
    """Raises NotInstalled for a verb, or an option, that needs a part which is missing."""
    needs = [(name, NEEDS[name])] if name in NEEDS else []
    needs += [(f"--{option}", part) for option, part in OPTIONS.items() if getattr(args, option, None)]
    for what, part in needs:
        if not is_installed(part):
            from synapsed.parts.outside import missing

            raise NotInstalled(f"{what!r} needs the part {part}, which {missing(part)}")


def _has_folder() -> bool:
    """Returns True if the current folder exists."""
    try:
        os.getcwd()  # noqa: PTH109 - without pathlib
    except FileNotFoundError:
        return False
    return True


def _has_inbox(out: CommandOutput) -> bool:
    """Returns True if there is a terminal for the inbox, and a daemon accepts connections."""
    context = CommandContext(os.environ, out)
    if not out.on_terminal or context.dumb or not sys.stdin.isatty():
        return False
    try:
        context.client.connect().close()
    except CtlError:
        return False
    return True


def _quick(name: str, arguments: list[str]) -> "tuple[argparse.Namespace, Run] | None":
    """Returns the parser's result for a quick verb's plainest command lines; None for all others. Importing argparse
    would take a tenth of such a verb's time."""
    if name not in QUICK_VERBS:
        return None
    command = VERBS[name].load()
    quick = command.QUICK.get(tuple(arguments))
    if quick is None:
        return None
    return cast("argparse.Namespace", SimpleNamespace(**quick, rest=None)), command.run


def _parsed(arguments: list[str]) -> "tuple[argparse.Namespace, Run]":
    from synapsectl.parsing import parse

    return parse(arguments, columns=_columns())


def _columns() -> int | None:
    """Returns the columns of the terminal on stdout, None if stdout is no terminal."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return None
