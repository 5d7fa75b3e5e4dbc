"""`synapsectl approve TASK|AGENT…` and `deny`: choose the option of each prompt that says yes, or no."""

import argparse
from typing import NamedTuple

from synapsectl.context import CommandContext
from synapsectl.decisions import decide_all, everyone
from synapsectl.errors import DONE, UsageError


class Decide(NamedTuple):
    accept: bool

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("targets", nargs="*", metavar="TASK|AGENT", help="who asks")
        parser.add_argument("--all", action="store_true", help="all questions that can be answered yes or no")
        if not self.accept:
            parser.add_argument("--because", metavar="TEXT", help="why not: the agent's next message")
        parser.add_argument(
            "--json", action="store_true", help="print a JSON array: for each, what was answered, or why not"
        )

    def run(self, args: argparse.Namespace, ctx: CommandContext) -> int:
        if bool(args.targets) == args.all:
            verb = "approve" if self.accept else "deny"
            raise UsageError(f"name who asks, or everyone with --all: synapsectl {verb} TASK|AGENT… | --all")
        because = None if self.accept else args.because
        if because is not None and not because.strip():
            raise UsageError("--because: must be a reason in words, such as --because 'use the staging database'")
        targets = everyone(ctx) if args.all else args.targets
        if not targets and not args.json:
            ctx.out.note("nobody asks anything")
            return DONE
        return decide_all(ctx, targets, accept=self.accept, as_json=args.json, because=because)


approve = Decide(accept=True)
deny = Decide(accept=False)

EXAMPLES = {
    "approve": (
        ("synapsectl approve claude", "yes to what it asks now, and to no more"),
        ("synapsectl approve claude codex", "several at once"),
        ("synapsectl approve --all", "everyone who asks"),
    ),
    "deny": (
        ("synapsectl deny claude", "no to what it asks now"),
        ("synapsectl deny claude --because 'use the staging database'", "no, and what to do instead"),
    ),
}
