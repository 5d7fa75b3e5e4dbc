"""`synapsectl doctor`."""

import argparse
from collections.abc import Iterator
from itertools import chain

from synapsectl.checkup.finding import OK, WRONG, Finding
from synapsectl.context import Context
from synapsectl.errors import DONE

__all__ = ["configure", "run"]

SOMETHING_WRONG = 1

WORDS = {"ok": "OK", "note": "note", "wrong": "WRONG"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def run(args: argparse.Namespace, ctx: Context) -> int:
    findings = _findings(ctx)
    if args.json:
        found = list(findings)
        ok = not any(finding.status == WRONG for finding in found)
        ctx.out.document({"ok": ok, "checks": [finding.document() for finding in found]})
        return DONE if ok else SOMETHING_WRONG
    wrong = 0
    for finding in findings:
        wrong += finding.status == WRONG
        ctx.out.line(f"{WORDS[finding.status]:<6}{finding.what}: {finding.detail}")
        if finding.status != OK and finding.mend:
            ctx.out.line(f"      → {finding.mend}")
        ctx.out.stdout.flush()
    return SOMETHING_WRONG if wrong else DONE


def _findings(ctx: Context) -> Iterator[Finding]:
    from synapsectl.checkup.home import look_inside
    from synapsectl.checkup.surroundings import look_around

    return chain(look_around(ctx), look_inside(ctx))
