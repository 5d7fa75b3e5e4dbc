"""`synapsectl keys AGENT KEY…`: keys pressed at an agent's terminal, without attaching."""

import argparse

from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, UsageError
from synapsectl.reach import reach

EXAMPLES = (
    ("synapsectl keys claude Esc Esc", "two keys"),
    ("synapsectl keys claude Down Enter", "choose what stands below"),
)

TAKES_REST = True

NAMES = (
    "Enter Esc Tab S-Tab BSpace Space Up Down Left Right Home End PgUp PgDn Insert Delete F1…F12, C-x and M-x; "
    "anything else is text"
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} AGENT [options] [--] KEY…"
    parser.add_argument("words", nargs="+", metavar="AGENT KEY", help=f"the agent, and what is pressed: {NAMES}")
    parser.add_argument("--json", action="store_true", help="print the daemon's answer as a JSON document")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    words: list[str] = [*args.words, *(args.rest or [])]
    agent, keys = words[0], words[1:]
    if not keys:
        raise UsageError(f"name the keys to press: synapsectl keys {agent} KEY… ({NAMES})")
    there, name = reach(ctx, agent)
    done = there.client.post(agent_path(name, "keys", control=True), {"keys": keys})
    note = f"pressed at {agent}; 'synapsectl screen {agent}' shows what came of it"
    ctx.out.either(done, as_json=args.json, note=note)
    return DONE
