"""`synapsectl list`, `synapsectl ls`."""

import time
from typing import TYPE_CHECKING, Any

from synapsectl.ages import age
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, NoDaemon, UsageError
from synapsectl.output import short_id

if TYPE_CHECKING:
    import argparse

EXAMPLES = (
    ("synapsectl list", "who there is, and what they do"),
    ("synapsectl list --watch", "the same as it changes"),
    ("synapsectl list | cut -f1", "the names, for a script"),
)

QUICK = {(): {"json": False, "watch": False}, ("--json",): {"json": True, "watch": False}}
"""What argparse makes of these."""

HEADINGS = ("NAME", "STATE", "FOR", "HELD", "QUEUE", "TASK", "RESTARTS", "PORT", "PID", "CWD")
REFRESH = 1.0
"""Seconds after which `--watch` looks again even where nothing happened: ages grow."""
CLEAR = "\x1b[H\x1b[2J"


def configure(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON array of the agents")
    parser.add_argument("--watch", action="store_true", help="go on showing them as they change, until interrupted")


def run(args: "argparse.Namespace", ctx: CommandContext) -> int:
    if args.watch:
        return _watch(args, ctx)
    agents = ctx.client.get("/agents", {"hosts": 1})
    if args.json:
        ctx.out.document(agents)
    else:
        _show(agents, ctx)
    return DONE


def state_of(agent: dict[str, Any]) -> str:
    """One word: what a running agent does, else what its process is."""
    return str(agent["activity"] if agent["state"] == "running" else agent["state"])


def _show(agents: list[dict[str, Any]], ctx: CommandContext) -> None:
    if not agents:
        ctx.out.note("there are no agents; start one with 'synapsectl start'")
        return
    home = ctx.environ.get("HOME", "")
    rows = [
        (
            agent["name"],
            state_of(agent),
            age(agent["since"]),
            agent["held"] or "-",
            agent["queue"],
            short_id(agent["task"]) if agent["task"] else "-",
            agent["restarts"],
            agent["port"] or "-",
            agent["pid"] or "-",
            _shorter(agent["cwd"], home) if ctx.out.on_terminal else agent["cwd"],
        )
        for agent in agents
    ]
    ctx.out.table(HEADINGS, rows, grows="CWD")
    for agent in agents:
        for note in notes_on(agent):
            ctx.out.note(f"{agent['name']}: {note}")


def notes_on(agent: dict[str, Any]) -> list[str]:
    """What a person should know of it: why it does not run although it is to, and that its version is another."""
    fallen = agent["state"] in ("backoff", "failed")
    drift = agent.get("drift")
    told = [agent["evidence"]] if fallen else []
    return told + ([drift] if drift and not any(drift in words for words in told) else [])


def _shorter(path: str, home: str) -> str:
    return "~" + path[len(home) :] if home and (path + "/").startswith(home + "/") else path


def _watch(args: "argparse.Namespace", ctx: CommandContext) -> int:
    if args.json or not ctx.out.on_terminal:
        raise UsageError("--watch is for a terminal: a script reads 'synapsectl events --json'")
    while True:
        try:
            _show_again(ctx)
            with ctx.client.stream("/events") as stream:
                for event in stream.events(lambda: REFRESH):
                    if event is not None or not ctx.dumb:  # what cannot be cleared is not repeated for an age
                        _show_again(ctx)
        except NoDaemon as error:
            _clear(ctx)
            ctx.out.note(str(error))
        time.sleep(REFRESH)


def _clear(ctx: CommandContext) -> None:
    """Room for the next look: where the screen cannot be cleared, below the last one."""
    if ctx.dumb:
        ctx.out.line()
    else:
        ctx.out.control(CLEAR)


def _show_again(ctx: CommandContext) -> None:
    agents = ctx.client.get("/agents", {"hosts": 1})
    _clear(ctx)
    _show(agents, ctx)
    ctx.out.stdout.flush()
