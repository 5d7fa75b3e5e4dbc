"""`synapsectl logs AGENT`: shows the output of its program, for reading; `--raw` for replaying, `--cast` for
players."""

import argparse
import os
import time
from pathlib import Path

from synapsectl.client import SLOW_TIMEOUT, agent_path, document_of
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, NoDaemon, TimedOut, UsageError
from synapsectl.given_paths import create_private, from_home
from synapsectl.output import as_json
from synapsectl.plain import PlainText

EXAMPLES = (
    ("synapsectl logs claude -f", "go on with what it prints"),
    ("synapsectl logs claude --cast claude.cast", "a recording for asciinema"),
)

DEFAULT_LINES = 100
BYTES_A_LINE = 2048
"""Bytes of raw output requested per line: screens are painted several times over."""
BYTES_MIN = 256 * 1024
BYTES_MAX = 64 * 1024 * 1024
"""Bytes that a spool keeps."""
PIECE = 1024 * 1024
"""Bytes requested at once while following."""
WAIT = 20
"""Seconds that the daemon waits for output before it reports that none came."""
RETRY = 0.2
"""Seconds between two attempts to reach the next daemon."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", help="a name, id, type-port or type")
    parser.add_argument(
        "-f", "--follow", action="store_true", help="go on with what it prints, over restarts of the daemon too"
    )
    parser.add_argument(
        "-n", "--lines", type=int, default=DEFAULT_LINES, help="how many of the last lines (default: %(default)s)"
    )
    parser.add_argument("--raw", action="store_true", help="the bytes as they are, escape sequences and all")
    parser.add_argument(
        "--cast",
        metavar="FILE",
        type=lambda path: Path(from_home(path)),
        help="write what is kept to FILE, as an asciicast (v3)",
    )

    parser.add_argument(
        "--json", action="store_true", help="print a JSON document; with -f, one a line for each line that comes"
    )


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if args.lines < 0:
        raise UsageError("-n: must be a number of lines, such as -n 100")
    if args.json and args.raw:
        raise UsageError("--raw and --json: bytes as they are, or a document: choose one")
    if args.raw and ctx.dumb:
        raise UsageError("--raw: TERM says that this terminal obeys no escape sequences; without it come lines")
    if args.cast is not None:
        return _record(args, ctx)
    plain = PlainText()
    history, offset = _history(args, ctx)
    _print(args, ctx, history, plain, offset)
    return _follow(args, ctx, plain, offset) if args.follow else DONE


def _record(args: argparse.Namespace, ctx: CommandContext) -> int:
    """Writes a recording, readable only by the user, since a program may have printed anything."""
    text = ctx.client.get_bytes(agent_path(args.agent, "recording", control=True), {"bytes": BYTES_MAX})
    try:
        fd = create_private(args.cast)
        with os.fdopen(fd, "wb") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{args.cast} cannot be written: {error.strerror}") from None
    pieces = text.count(b"\n") - 1
    if args.json:
        ctx.out.document({"file": str(args.cast), "pieces": pieces})
    ctx.out.note(f"{pieces} pieces of output in {args.cast}")
    return DONE


def _history(args: argparse.Namespace, ctx: CommandContext) -> tuple[bytes, int]:
    """Returns the last part of the output, and the offset of its end."""
    limit = min(max(args.lines * BYTES_A_LINE, BYTES_MIN), BYTES_MAX) if args.lines else 0
    data, offset, _ = _output(ctx, args.agent, {"bytes": limit})
    return data, offset + len(data)


def _output(ctx: CommandContext, agent: str, query: dict[str, int]) -> tuple[bytes, int, bool]:
    """Returns output, the offset of its beginning, and True if the program has ended and nothing is left."""
    reply = ctx.client.request("GET", agent_path(agent, "history", control=True), query, timeout=SLOW_TIMEOUT)
    if reply.status != 200:
        document_of(reply)
    return reply.body, int(reply.headers.get("synapsed-offset", 0)), reply.headers.get("synapsed-ended") == "1"


def _print(args: argparse.Namespace, ctx: CommandContext, history: bytes, plain: PlainText, offset: int) -> None:
    if args.raw:
        ctx.out.raw(b"".join(history.splitlines(keepends=True)[-args.lines :]) if args.lines else b"")
        return
    lines = plain.feed(history)
    if not args.follow:
        lines += plain.flush()
    lines = lines[-args.lines :] if args.lines else []
    if args.json and not args.follow:
        ctx.out.document({"lines": lines, "offset": offset})
        return
    _show(args, ctx, lines)


def _show(args: argparse.Namespace, ctx: CommandContext, lines: list[str]) -> None:
    for line in lines:
        if args.json:
            ctx.out.line(as_json({"line": line}))
        else:
            ctx.out.line(line)
    ctx.out.stdout.flush()


def _follow(args: argparse.Namespace, ctx: CommandContext, plain: PlainText, offset: int) -> int:
    """Follows by offset, so that nothing is left out or shown twice over restarts of the daemon; ends with the
    program."""
    told = False
    while True:
        try:
            data, start, ended = _output(ctx, args.agent, {"after": offset, "bytes": PIECE, "wait": WAIT})
        except (NoDaemon, TimedOut):
            if not told:
                ctx.out.note("the daemon is gone; waiting for the next one")
            told = True
            time.sleep(RETRY)
            continue
        told = False
        if ended:
            if not args.raw:
                _show(args, ctx, plain.flush())
            return DONE
        if start > offset:
            ctx.out.note(f"{start - offset} bytes of output are not kept any more")
        offset = start + len(data)
        if args.raw:
            ctx.out.raw(data)
            continue
        _show(args, ctx, plain.feed(data))
