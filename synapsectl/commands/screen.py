"""`synapsectl screen AGENT`: shows an agent's screen as text, with colours, as a document, or as a picture in a
file."""

import argparse
import os
from pathlib import Path

from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, UsageError
from synapsectl.given_paths import create_private, from_home
from synapsectl.reach import reach

EXAMPLES = (
    ("synapsectl screen claude", "what it shows"),
    ("synapsectl screen claude --png claude.png", "as a picture"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", help="a name, id, type-port or type; NAME@HOST on another host")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--ansi", action="store_true", help="with its colours")
    form.add_argument("--json", action="store_true", help="lines, cursor and modes as a JSON document")
    form.add_argument(
        "--png", metavar="FILE", type=lambda path: Path(from_home(path)), help="draw it into FILE, as a PNG"
    )
    form.add_argument(
        "--svg", metavar="FILE", type=lambda path: Path(from_home(path)), help="draw it into FILE, as an SVG"
    )


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if args.ansi and ctx.dumb:
        raise UsageError("--ansi: TERM says that this terminal obeys no escape sequences; without it comes the text")
    ctx, agent = reach(ctx, args.agent)
    path = agent_path(agent, "screen")
    drawn = next(((form, file) for form, file in (("png", args.png), ("svg", args.svg)) if file is not None), None)
    if drawn is not None:
        _keep(drawn[1], ctx.client.get_bytes(path, {"format": drawn[0]}))
        ctx.out.note(f"the screen of {args.agent} is in {drawn[1]}")
    elif args.json:
        ctx.out.document(ctx.client.get(path, {"format": "json"}))
    elif args.ansi:
        ctx.out.raw(ctx.client.get_bytes(path, {"format": "ansi"}).rstrip(b"\n") + b"\x1b[0m\n")
    else:
        ctx.out.text(ctx.client.get_bytes(path, {"format": "text"}).decode("utf-8", "replace").rstrip("\n"))
    return DONE


def _keep(file: Path, picture: bytes) -> None:
    """Writes the file for its owner alone: a screen may show anything. Raises UsageError."""
    try:
        fd = create_private(file)
        with os.fdopen(fd, "wb") as out:
            out.write(picture)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None
