"""`synapsectl report AGENT`: a file for others about a state that is wrong, masked, and shown before it is written."""

import argparse
import json
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.daemon_program import ask_daemon_program
from synapsectl.errors import DONE, REFUSED, ApiError, CtlError, UsageError
from synapsectl.output import one_line
from synapsed.shared.counts import counted

EXAMPLES = (
    ("synapsectl report claude --should-be busy --says 'it was still compiling'", "look at it, then write it"),
    ("synapsectl report claude --stdout | less", "all that would be written"),
)

OUTPUT = 8 << 20
"""Bytes of output that are asked for: the screens of the last of it are in a report, the rest draws the first one."""
TIMEOUT_S = 900.0
STATES = ("starting", "ready", "busy", "waiting", "unknown")
SAYS_MAX = 5000
RUNNING = "running"


class NotLookedAt(CtlError):
    """Error for a report that no person has agreed to."""

    exit_code = REFUSED
    code = "NOT_LOOKED_AT"


class FileThere(CtlError):
    exit_code = REFUSED
    code = "FILE_EXISTS"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        f"{parser.prog} AGENT [--should-be STATE] [--says TEXT] [--mask TEXT]… [-o FILE | --stdout] [options]"
    )
    parser.add_argument("agent", metavar="AGENT", help="a name, id, type-port or type")
    parser.add_argument(
        "--should-be", metavar="STATE", choices=STATES, help=f"what would be right: {', '.join(STATES)}"
    )
    parser.add_argument("--says", metavar="TEXT", help=f"what you saw, in your words; at most {SAYS_MAX} letters")
    parser.add_argument("--mask", metavar="TEXT", action="append", default=[], help="mask this too, wherever it stands")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the new file for the report (mode 0600); none is overwritten"
    )
    parser.add_argument("--stdout", action="store_true", help="print the report; no file is written")
    parser.add_argument(
        "--all", action="store_true", help="show every row that was on its screens, not the last one only"
    )
    parser.add_argument("--yes", action="store_true", help="write it without a question")
    parser.add_argument("--json", action="store_true", help="print a JSON document of what was written")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if args.stdout and (args.output or args.json):
        raise UsageError("--stdout: no file is written: leave out --output and --json")
    if len(args.says or "") > SAYS_MAX:
        raise UsageError(f"--says: {len(args.says)} letters are too many: at most {SAYS_MAX}, none of them is cut")
    if any(not text.strip() for text in args.mask):
        raise UsageError("--mask: say what is to be masked")
    ctx.check_user()
    body = {"says": args.says, "should_be": args.should_be, "words": args.mask, **_told(args, ctx)}
    with ctx.busy("drawing its screens, and looking for secrets in them"):
        found = ask_daemon_program(ctx, "report", body=json.dumps(body), timeout_s=TIMEOUT_S)
    if args.stdout:
        ctx.out.text(found["report"])
        return DONE
    if not args.json:
        _show(found, args, ctx)
    file = Path(args.output or _name(found["name"])).expanduser().absolute()
    _confirm(file, args, ctx)
    _write(file, found["report"])
    if args.json:
        kept = ("bytes", "start", "drawn", "altered", "full", "masked", "reads")
        ctx.out.document({"file": str(file), **{key: found[key] for key in kept}})
    else:
        ctx.out.line(f"written: {file}; nothing has been sent")
    return DONE


def _told(args: argparse.Namespace, ctx: CommandContext) -> dict[str, Any]:
    """Returns what the daemon says of the agent, and its output."""
    status = ctx.client.get(agent_path(args.agent, "status"), {"detail": 1, "explain": 1})
    if status.get("host"):
        raise UsageError(f"{args.agent}: its output is on {status['host']}: make the report there")
    recording = agent_path(status["id"], "recording", control=True)
    cast = ctx.client.get_bytes(recording, {"bytes": OUTPUT}).decode("utf-8", "replace")
    told = {"status": status, "cast": cast, "limit": OUTPUT}
    with suppress(ApiError):  # it does not run
        shown = ctx.client.get(agent_path(status["id"], "screen"), {"format": "json"})
        told["size"] = (shown["cols"], shown["rows"])
    return told


def _show(found: dict[str, Any], args: argparse.Namespace, ctx: CommandContext) -> None:
    out = ctx.out
    rows = found["seen"] if args.all else found["lines"]
    out.line("every row that was on its screens:" if args.all else "its last screen, as it would be written:")
    for row in rows:
        out.line(f"  │ {one_line(row) if not row.isprintable() else row}")
    if not args.all:
        rows = counted(len(found["seen"]), "row was", "rows were")
        out.note(f"{rows} on its screens: --all shows them, --stdout the whole file")
    told, reads = found["told"], found["reads"]
    out.line(f"the daemon says: {_state(told)}")
    out.line(f"these screens alone are read as: {_state(reads)}")
    if told["state"] == RUNNING and told["activity"] != reads["activity"]:
        out.note("these differ: the daemon knows more than the screens show, such as a report of the program itself")
    if found["altered"]:
        out.note("what was masked changes how it is read: a test made of it may not show the fault")
    begins = "from its launch on" if found["start"] == "launch" else "its first screen may lack rows: more came before"
    out.line(f"{found['bytes']} bytes draw its screens, {begins}")
    if found["drawn"] is False:
        out.note("they do not end with the daemon's screen: the program has drawn since, or had another window before")
    counts = ", ".join(f"{one_line(kind)} ({count})" for kind, count in sorted(found["masked"].items()))
    out.line(f"masked: {counts or 'nothing'}")
    if told["state"] != RUNNING:
        out.note("its program does not run: values of variables and arguments that only it had are not masked")
    if found["full"]:
        out.note("there are more secrets than can be followed over its screens: look closely")
    out.note("no program finds every secret: read it before you send it; --mask TEXT masks more")


def _state(told: dict[str, Any]) -> str:
    return f"{one_line(told['activity'])} ({one_line(told.get('evidence') or 'no evidence')})"


def _confirm(file: Path, args: argparse.Namespace, ctx: CommandContext) -> None:
    """Asks whether it may be written. Raises NotLookedAt, FileThere."""
    if file.exists() or file.is_symlink():
        raise FileThere(f"{file} is there already, and no file is overwritten: name another one with --output")
    if args.yes:
        return
    if not ctx.may_ask:
        raise NotLookedAt(
            "nothing was written: show it with --stdout, then write it with --yes, or where a terminal asks you"
        )
    if not ctx.asks(f"write it to {file}?"):
        raise NotLookedAt("not written")


def _name(agent: str) -> str:
    return f"report-{re.sub(r'[^A-Za-z0-9_.-]', '_', agent)}-{time.strftime('%Y%m%d-%H%M%S')}.json"


def _write(file: Path, text: str) -> None:
    """Writes the whole file or none, and over no other. Raises FileThere, UsageError."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with os.fdopen(
            os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w", encoding="utf-8"
        ) as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.link(part, file, follow_symlinks=False)
    except FileExistsError:
        raise FileThere(f"{file} is there already, and no file is overwritten") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
