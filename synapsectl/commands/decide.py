"""`synapsectl approve TASK|AGENT…` and `deny`: the option of each prompt that says yes, or no."""

import argparse
from typing import NamedTuple

from synapsectl.context import CommandContext
from synapsectl.prompts import decide_all


class Decide(NamedTuple):
    accept: bool

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("targets", nargs="+", metavar="TASK|AGENT", help="who asks")
        parser.add_argument(
            "--json", action="store_true", help="print a JSON array: for each, what was answered, or why not"
        )

    def run(self, args: argparse.Namespace, ctx: CommandContext) -> int:
        return decide_all(ctx, args.targets, accept=self.accept, as_json=args.json)


approve = Decide(accept=True)
deny = Decide(accept=False)

EXAMPLES = {
    "approve": (
        ("synapsectl approve claude", "yes to what it asks now, and to no more"),
        ("synapsectl approve claude codex", "several at once"),
    ),
    "deny": (("synapsectl deny claude", "no to what it asks now"),),
}
