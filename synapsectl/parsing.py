"""What stands behind the verb: argparse, with errors as this tool tells them."""

import argparse
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from synapsectl.output import PROGRAM

__all__ = ["parse", "seconds"]

USAGE = 2


def parse(
    name: str,
    about: str,
    configure: Callable[[argparse.ArgumentParser], None],
    arguments: list[str],
    *,
    columns: int | None,
    takes_rest: bool,
) -> argparse.Namespace:
    """`rest` is what stands after the first `--`: None without one. Nothing in there is taken for an option."""
    parser = _Parser(
        prog=f"{PROGRAM} {name}",
        description=f"{about[0].upper()}{about[1:]}.",
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
