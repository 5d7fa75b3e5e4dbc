"""`synapsectl logs AGENT`: what its program printed, for reading; `--raw` for replaying."""

import argparse

from synapsectl.client import agent_path
from synapsectl.context import Context
from synapsectl.errors import DONE, NoDaemon, UsageError
from synapsectl.launching import DEFAULT_SIZE
from synapsectl.plain import PlainText

__all__ = ["configure", "run"]

DEFAULT_LINES = 100
BYTES_A_LINE = 2048
"""Bytes of raw output asked for per line: screens are painted several times over."""
BYTES_MIN = 256 * 1024
BYTES_MAX = 64 * 1024 * 1024
"""What a spool keeps."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", help="a name, id, type-port or type")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what it prints, until interrupted")
    parser.add_argument(
        "-n", "--lines", type=int, default=DEFAULT_LINES, help="how many of the last lines (default: %(default)s)"
    )
    parser.add_argument("--raw", action="store_true", help="the bytes as they are, escape sequences and all")


def run(args: argparse.Namespace, ctx: Context) -> int:
    if args.lines < 0:
        raise UsageError("-n is a number of lines")
    if args.follow:
        agent = ctx.client.get(agent_path(args.agent, "status"), {"detail": 1})
        return _follow(args, ctx, agent["id"])
    _print(args, ctx, _history(args, ctx), PlainText())
    return DONE


def _history(args: argparse.Namespace, ctx: Context) -> bytes:
    if not args.lines:
        return b""
    limit = min(max(args.lines * BYTES_A_LINE, BYTES_MIN), BYTES_MAX)
    return ctx.client.get_bytes(agent_path(args.agent, "history", control=True), {"bytes": limit})


def _print(args: argparse.Namespace, ctx: Context, history: bytes, plain: PlainText) -> None:
    if args.raw:
        ctx.out.raw(b"".join(history.splitlines(keepends=True)[-args.lines :]) if args.lines else b"")
        return
    lines = plain.feed(history)
    if not args.follow:
        lines += plain.flush()
    for line in lines[-args.lines :] if args.lines else ():
        ctx.out.line(line)


def _follow(args: argparse.Namespace, ctx: Context, agent: str) -> int:
    from synapsectl.attach import open_terminal
    from synapsectl.websocket import BINARY

    cols, rows = DEFAULT_SIZE
    plain = PlainText()
    # Connected first: what is printed while the history is read is shown twice rather than not at all.
    socket = open_terminal(ctx.client, agent, cols=cols, rows=rows, read_only=True)
    try:
        messages = socket.messages()
        next(messages)  # the redraw of the screen, which the history tells as well
        _print(args, ctx, _history(args, ctx), plain)
        for message in messages:
            if message.opcode != BINARY:
                return DONE
            if args.raw:
                ctx.out.raw(message.data)
            else:
                for line in plain.feed(message.data):
                    ctx.out.line(line)
                ctx.out.stdout.flush()
    finally:
        socket.close(0)
    raise NoDaemon("the daemon ended the stream")
