"""What stands behind the verb: argparse, with errors as this tool tells them."""

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, NoReturn

from synapsectl.output import PROGRAM

USAGE = 2


class SubVerb(NamedTuple):
    """One of what a verb can do, with a command line of its own."""

    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    takes_rest: bool = False


def parse(
    name: str,
    about: str,
    configure: Callable[[argparse.ArgumentParser], None],
    arguments: list[str],
    *,
    columns: int | None,
    takes_rest: bool,
    subverbs: Mapping[str, SubVerb] | None = None,
) -> argparse.Namespace:
    """`rest` is what stands after the first `--`: None without one. Nothing in there is taken for an option. A command
    line that begins with one of `subverbs` is parsed by that one's own options; `what` is its name."""
    if arguments and subverbs and (sub := subverbs.get(arguments[0])) is not None:
        given = arguments[1:]
        args = parse(
            f"{name} {arguments[0]}", sub.help, sub.configure, given, columns=columns, takes_rest=sub.takes_rest
        )
        args.what = arguments[0]
        return args
    parser = _Parser(
        prog=f"{PROGRAM} {name}",
        description=f"{about[0].upper()}{about[1:]}.",
        epilog=_list_of(name, subverbs),
        allow_abbrev=False,
        # Left to itself it asks shutil for the width with every option: 5 ms of imports.
        formatter_class=partial(argparse.HelpFormatter, width=(columns or 80) - 2),
    )
    parser.takes_rest = takes_rest
    configure(parser)
    rest = None
    if "--" in arguments:
        at = arguments.index("--")
        arguments, rest = arguments[:at], arguments[at + 1 :]
    args = parser.parse_intermixed_args(arguments)
    args.rest = rest
    if rest is not None and not takes_rest:
        parser.error(f"{name} takes nothing after --")
    return args


def _list_of(name: str, subverbs: Mapping[str, SubVerb] | None) -> str | None:
    if not subverbs:
        return None
    return f"'{PROGRAM} {name} WHAT -h' tells more of one: {', '.join(subverbs)}."


def seconds(text: str) -> float:
    """The type of an option that takes a length of time."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


class _Parser(argparse.ArgumentParser):
    takes_rest = False
    """Whether the verb has a use for what stands after `--`."""

    def error(self, message: str) -> NoReturn:
        hint = ""
        if self.takes_rest and message.startswith("unrecognized arguments: -"):
            hint = f"what is not for {PROGRAM} stands behind --: {self.prog} … -- {message.partition(': ')[2]}\n"
        self.exit(USAGE, f"{self.prog}: {message}\n{hint}{self.format_usage()}see '{self.prog} -h'\n")
