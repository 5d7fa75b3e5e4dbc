"""`synapsectl approve TASK|AGENT…` and `deny`: choose the option of each prompt that says yes, or no.

A yes is a yes to what was shown: the question is printed, and at a terminal the person then says yes to it, unless the
command line names that very prompt, or says `--yes`."""

import argparse
from typing import NamedTuple

from synapsectl.context import CommandContext
from synapsectl.decisions import PromptDecision, decide_all, everyone
from synapsectl.errors import DONE, UsageError


class Decide(NamedTuple):
    accept: bool

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("targets", nargs="*", metavar="TASK|AGENT", help="who asks")
        parser.add_argument("--all", action="store_true", help="all questions that can be answered yes or no")
        parser.add_argument("--prompt-id", metavar="ID", help="answer only if this very prompt is still asked")
        if self.accept:
            parser.add_argument(
                "--yes", action="store_true", help="do not ask at a terminal, where each is shown first"
            )
        else:
            parser.add_argument("--because", metavar="TEXT", help="why not: the agent's next message")
        parser.add_argument(
            "--json", action="store_true", help="print a JSON array: for each, what was answered, or why not"
        )

    def run(self, args: argparse.Namespace, ctx: CommandContext) -> int:
        if bool(args.targets) == args.all:
            verb = "approve" if self.accept else "deny"
            raise UsageError(f"name who asks, or everyone with --all: synapsectl {verb} TASK|AGENT… | --all")
        if args.prompt_id is not None and len(set(args.targets)) != 1:
            raise UsageError("--prompt-id is the prompt of one TASK or AGENT: name that one alone")
        because = None if self.accept else args.because
        if because is not None and not because.strip():
            raise UsageError("--because: must be a reason in words, such as --because 'use the staging database'")
        targets = everyone(ctx) if args.all else args.targets
        if not targets and not args.json:
            ctx.out.note("nobody asks anything")
            return DONE
        confirms = self.accept and not args.yes and args.prompt_id is None and ctx.own_agent is None
        decision = PromptDecision(self.accept, because, args.prompt_id, confirms=confirms and ctx.may_ask)
        return decide_all(ctx, targets, decision, as_json=args.json)


approve = Decide(accept=True)
deny = Decide(accept=False)

EXAMPLES = {
    "approve": (
        ("synapsectl approve claude", "yes to what it asks now, and to no more"),
        ("synapsectl approve claude codex", "several, one after the other"),
        ("synapsectl approve --all --yes", "everyone who asks, whatever it is"),
    ),
    "deny": (
        ("synapsectl deny claude", "no to what it asks now"),
        ("synapsectl deny claude --because 'use the staging database'", "no, and what to do instead"),
    ),
}
