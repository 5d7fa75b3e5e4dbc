"""`synapsectl doctor [--repair]`: checks the installation, or repairs the database."""

import argparse
import json
from collections.abc import Iterator
from itertools import chain

from synapsectl.checkup.finding import OK, WRONG, Finding
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, CtlError
from synapsed.shared.counts import counted

EXAMPLES = (
    ("synapsectl doctor", "what is wrong, and how to repair it"),
    ("synapsectl doctor --repair", "save what a damaged database still has"),
)

SOMETHING_WRONG = 1


class RepairError(CtlError):
    """The repair was refused, or failed: the database is as it was."""

    exit_code = SOMETHING_WRONG


WORDS = {"ok": "OK", "note": "note", "wrong": "WRONG"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    parser.add_argument(
        "--repair", action="store_true", help="save what can be read of a damaged database; the damaged file is kept"
    )


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if args.repair:
        return _repair(args, ctx)
    findings = _one_by_one(ctx, _findings(ctx))
    if args.json:
        found = list(findings)
        ok = not any(finding.status == WRONG for finding in found)
        ctx.out.document({"ok": ok, "checks": [finding.document() for finding in found]})
        return DONE if ok else SOMETHING_WRONG
    wrong = 0
    for finding in findings:
        wrong += finding.status == WRONG
        ctx.out.sentence(f"{WORDS[finding.status]:<6}{finding.what}: {finding.detail}")
        if finding.status != OK and finding.mend:
            ctx.out.sentence(f"      → {finding.mend}")
        ctx.out.stdout.flush()
    return SOMETHING_WRONG if wrong else DONE


def _repair(args: argparse.Namespace, ctx: CommandContext) -> int:
    import subprocess

    from synapsed import own_python

    command = own_python.command("synapsed.cli", "repair")
    with ctx.busy("reading the database, and saving what it has"):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(ctx.environ))
    if done.returncode != 0:
        wordless = f"'synapsed repair' ended with {done.returncode} and said nothing: run it in a terminal"
        raise RepairError((done.stderr.strip().splitlines() or [wordless])[-1])
    told = json.loads(done.stdout)
    if args.json:
        ctx.out.document(told)
    elif told["sound"]:
        ctx.out.line(f"{told['database']} is sound: nothing was changed")
    else:
        ctx.out.line(f"{told['database']} is a new one; the damaged one is {told['damaged']}")
        ctx.out.line(f"read from it: {_counted(told['rows'])}; {counted(told['lost'], 'place')} could not be read")
        if any(told["filled"].values()):
            ctx.out.line(f"from the copies in {ctx.paths.backups}: {_counted(told['filled'])}")
    return DONE


def _counted(rows: dict[str, int]) -> str:
    return ", ".join(f"{count} {table}" for table, count in rows.items() if count) or "nothing"


def _one_by_one(ctx: CommandContext, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yields each finding as soon as it is there: some programs take long to report their version."""
    while True:
        with ctx.busy("looking"):
            finding = next(findings, None)
        if finding is None:
            return
        yield finding


def _findings(ctx: CommandContext) -> Iterator[Finding]:
    from synapsectl.checkup.home import look_inside
    from synapsectl.checkup.surroundings import look_around

    return chain(look_around(ctx), look_inside(ctx))
