"""`synapsectl inbox` shows what waits for a person; `synapsectl next` attaches to the agent that has waited longest."""

import sys
from typing import TYPE_CHECKING, Any, ClassVar

from synapsectl.client import task_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, WAITS, UsageError

if TYPE_CHECKING:
    import argparse

    from synapsectl.inbox.items import Item

SIGNALED = 128
"""Added to a signal's number for the exit code, as shells do."""
HOLD_S = 3.0
"""Seconds in which an answer can be taken back, by default."""
NOBODY = "nobody needs you"


class InboxVerb:
    """Shows the items that wait for a person, on the whole screen; in a pipe a line each."""

    QUICK: ClassVar = {(): {"hold": HOLD_S, "json": False}, ("--json",): {"hold": HOLD_S, "json": True}}
    """The parser's results for these command lines."""

    @staticmethod
    def configure(parser: "argparse.ArgumentParser") -> None:
        from synapsectl.parsing import seconds

        parser.add_argument(
            "--hold",
            type=seconds,
            default=HOLD_S,
            metavar="S",
            help="seconds in which an answer can be taken back, before it is typed (default: %(default)g)",
        )
        parser.add_argument("--json", action="store_true", help="print a JSON array of what waits for a person")

    @staticmethod
    def run(args: "argparse.Namespace", ctx: CommandContext) -> int:
        from synapsectl.inbox.everywhere import look, missing

        if ctx.out.on_terminal and sys.stdin.isatty() and not args.json and not ctx.dumb:
            return open_inbox(ctx, hold=args.hold)
        items, hosts = look(ctx.client)
        for line in missing(hosts):
            ctx.out.note(line)
        if args.json:
            ctx.out.document(items)
        elif items:
            _show(items, ctx)
        else:
            ctx.out.note(NOBODY)
        return DONE


class NextVerb:
    """Puts the terminal on the agent that has waited longest."""

    @staticmethod
    def configure(parser: "argparse.ArgumentParser") -> None:
        """Configures no options."""

    @staticmethod
    def run(args: "argparse.Namespace", ctx: CommandContext) -> int:
        from synapsectl.inbox.everywhere import look, missing
        from synapsectl.inbox.items import has_terminal

        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError("next needs a terminal on stdin and stdout; 'synapsectl inbox --json' does not")
        items, hosts = look(ctx.client)
        for line in missing(hosts):
            ctx.out.note(line)
        if not items:
            ctx.out.note(NOBODY)
            return DONE
        item = items[0]
        ctx.out.note(f"{item['agent']} ({item['kind'].replace('_', ' ')}); {len(items) - 1} more")
        return attach_to(ctx, item["agent"]) if has_terminal(item) else _ask(ctx, item)


def _ask(ctx: CommandContext, item: "Item") -> int:
    """Asks the question of an agent without a terminal on this terminal; returns the exit code."""
    from synapsectl.output import short_id
    from synapsectl.prompts import tell_waiting
    from synapsectl.questions import ask
    from synapsectl.reach import reach

    there, name = reach(ctx, item["agent"])
    task = there.client.get(task_path(item["task"]))["task"]
    if not ask(there, name, task):
        host = f"@{item['host']}" if item["host"] else ""
        tell_waiting(there, item["agent"], short_id(task["id"]) + host, task)
        return WAITS
    return DONE


def _show(items: list[dict[str, Any]], ctx: CommandContext) -> None:
    """Prints all items: for a script into a pipe, for people on a terminal without escape sequences."""
    from synapsectl.inbox.items import KINDS, table

    if not ctx.out.on_terminal:
        return ctx.out.table((), table(items))
    from datetime import UTC, datetime

    from synapsectl.agentrows import shorter
    from synapsectl.ages import age
    from synapsectl.inbox.view import gist

    now, home = datetime.now(UTC), ctx.environ.get("HOME", "")
    rows = [
        (one["agent"], KINDS[one["kind"]], age(one["since"], now), gist(one, now), shorter(one["cwd"], home))
        for one in items
    ]
    return ctx.out.table(("AGENT", "KIND", "FOR", "ASKS", "FOLDER"), rows, grows="ASKS")


def open_inbox(ctx: CommandContext, *, hold: float) -> int:
    """Puts the inbox on this terminal. Raises NoDaemon if no daemon runs to begin with."""
    import signal

    from synapsectl.inbox.program import InboxProgram
    from synapsectl.tty import TerminalGone

    ctx.client.get("/inbox")
    try:
        signum = InboxProgram(ctx, sys.stdin.fileno(), hold=hold, attach=lambda agent: _come_back(ctx, agent)).run()
    except TerminalGone:
        signum = signal.SIGHUP
    return DONE if signum is None else SIGNALED + signum


def attach_to(ctx: CommandContext, agent: str, *, held: bytes = b"") -> int:
    """Does the same as `synapsectl attach AGENT`; returns its exit code. `held`: the key that was pressed for this.

    Raises ApiError, NoDaemon, UsageError."""
    from synapsectl.parsing import parse

    args, run = parse(["attach", agent])
    args.held = held
    return run(args, ctx)


def _come_back(ctx: CommandContext, agent: str) -> None:
    attach_to(ctx, agent, held=b"\r")


inbox = InboxVerb()
next_ = NextVerb()

EXAMPLES: dict[str, Any] = {
    "inbox": (
        ("synapsectl inbox", "who needs you; y, n and digits answer, ? tells the keys"),
        ("synapsectl inbox --hold 10", "with more time to take an answer back"),
        ("synapsectl inbox --json", "the same, for a script"),
    ),
    "next_": (("synapsectl next", "attach to the agent that has waited longest"),),
}
