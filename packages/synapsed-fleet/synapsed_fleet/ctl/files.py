"""`synapsectl fleet files …`: files and messages between hosts that are too large for one message."""

import argparse
import os
import re
from functools import partial

from synapsectl.context import CommandContext
from synapsectl.errors import DONE, CtlError, UsageError
from synapsectl.given_paths import from_home
from synapsectl.output import one_line
from synapsectl.parsing import SubVerb, of_all, of_one
from synapsed_fleet.ctl.asking import persons_only
from synapsed_fleet.ctl.showing import FILE_HEADINGS, file_row, size_of

_ID = re.compile(r"(?:syn-file:)?((?:[a-z0-9][a-z0-9-]{0,30}/)?[0-9a-f]{32})")
_AN_ID = "its id, see 'synapsectl fleet files'; also as a message names it (syn-file:…)"


def _list(args: argparse.Namespace, ctx: CommandContext) -> int:
    found = ctx.client.get("/fleet/files")
    none = "no files are under way, and none that came are kept"
    ctx.out.rows_of(found, FILE_HEADINGS, file_row, as_json=args.json, none=none, grows="FILE")
    return DONE


def _named(given: str) -> str:
    """Returns the id. Raises UsageError."""
    found = _ID.fullmatch(given)
    if found is None:
        raise UsageError(f"{given[:80]!r} is no file's id: 'synapsectl fleet files' lists them")
    return found[1]


def _configure_get(parser: argparse.ArgumentParser) -> None:
    of_one(parser, json="print a JSON document of it", name=_AN_ID, metavar="HOST/ID")
    parser.add_argument(
        "--output", type=from_home, metavar="FILE", help="where it goes (default: its id, in this folder)"
    )


def _get(args: argparse.Namespace, ctx: CommandContext) -> int:
    named = _named(args.name)
    if "/" not in named:
        raise UsageError("it was given here: one that came from another host is HOST/ID")
    path = args.output or named.rpartition("/")[2]
    try:
        file = open(path, "xb")  # noqa: SIM115 - it is closed below
    except FileExistsError:
        raise UsageError(f"{path} is there already: say another with --output") from None
    except OSError as error:
        raise CtlError(f"{path} cannot be written: {error.strerror}") from None
    try:
        with file, ctx.busy("copying it"):
            size = ctx.client.save(f"/fleet/files/{named}", file)
    except BaseException as error:
        os.unlink(path)  # noqa: PTH108 - the same
        if isinstance(error, OSError):
            raise CtlError(f"{path} cannot be written: {error.strerror or error}") from None
        raise
    told = {"id": named, "file": path, "size": size}
    ctx.out.either(told, as_json=args.json, line=f"{one_line(path)}: {size_of(size)}")
    return DONE


def _remove(args: argparse.Namespace, ctx: CommandContext) -> int:
    persons_only(ctx)
    told = ctx.client.delete(f"/fleet/files/{_named(args.name)}")
    ctx.out.either(told, as_json=args.json, line=f"{told['id']}: is removed")
    return DONE


SUBVERBS = {
    "list": SubVerb(
        "list what goes and comes, and what is kept",
        of_all,
        _list,
        (("synapsectl fleet files list", "those that are under way first"),),
    ),
    "get": SubVerb(
        "copy one that has come from another host",
        _configure_get,
        _get,
        (("synapsectl fleet files get box/0123456789abcdef0123456789abcdef --output film.mp4", "into this folder"),),
    ),
    "remove": SubVerb(
        "remove one that has come, or was given here and is not under way",
        partial(of_one, json="print a JSON document of it", name=_AN_ID, metavar="ID"),
        _remove,
        (("synapsectl fleet files remove box/0123456789abcdef0123456789abcdef", "it is kept for 7 days otherwise"),),
    ),
}
