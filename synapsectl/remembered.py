"""What `external` and `host` have in common: whom a person has the daemon remember is added, listed and removed."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.errors import DONE


def configure_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON array of them")


def configure_remove(parser: argparse.ArgumentParser, *, metavar: str) -> None:
    parser.add_argument("name", metavar=metavar, help="its name here")
    parser.add_argument("--json", action="store_true", help="print a JSON document of what it was")


def show_added(args: argparse.Namespace, ctx: CommandContext, added: Any, words: str) -> int:
    if args.json:
        ctx.out.document(added)
    else:
        ctx.out.line(words)
    return DONE


def show_list(
    args: argparse.Namespace,
    ctx: CommandContext,
    path: str,
    row: Callable[[Any], Sequence[Any]],
    *,
    headings: tuple[str, ...],
    grows: str,
    none: str,
) -> int:
    """What the daemon has at `path`; `none` says how to add one."""
    found = ctx.client.get(path)
    if args.json:
        ctx.out.document(found)
    elif not found:
        ctx.out.note(f"nothing is remembered; {none}")
    else:
        ctx.out.table(headings, [row(one) for one in found], grows=grows)
    return DONE


def forget(args: argparse.Namespace, ctx: CommandContext, path: str, key: str) -> int:
    """`key` is the member of the answer that holds its name."""
    removed = ctx.client.delete(path)
    if args.json:
        ctx.out.document(removed)
    else:
        ctx.out.line(f"{removed[key]} is forgotten")
    return DONE
