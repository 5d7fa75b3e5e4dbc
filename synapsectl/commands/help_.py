"""`synapsectl help [VERB [WHAT]]`: shows the overview, or the same as `VERB -h`."""

import argparse

from synapsectl.context import CommandContext
from synapsectl.errors import DONE
from synapsectl.parsing import command_line

EXAMPLES = (
    ("synapsectl help send", "the options of send, with examples"),
    ("synapsectl help host add", "the same for a part of a verb"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="VERB", help="the verb, or a part of it")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    parser = command_line(ctx.out.columns)
    for word in args.words:
        if word not in parser.parts:
            parser.no_such_part(word)
        parser = parser.parts[word]
    ctx.out.piece(parser.format_help())
    return DONE
