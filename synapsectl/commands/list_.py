"""`synapsectl list`, `synapsectl ls`: lists the agents and what they do."""

import time
from typing import TYPE_CHECKING, Any

from synapsectl.agentrows import FOLDERS_FROM, HEADINGS, STYLES, asking, by_need, row, shorter, state_of
from synapsectl.ages import age
from synapsectl.colours import DIM
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, ApiError, NoDaemon, UsageError
from synapsectl.output import TableCell, clip, one_line, short_id

if TYPE_CHECKING:
    import argparse

EXAMPLES = (
    ("synapsectl list", "who there is, and what they do"),
    ("synapsectl list --watch", "the same as it changes"),
    ("synapsectl list --fleet", "the same, and which hosts of the fleet are away"),
    ("synapsectl list | cut -f1", "the names, for a script"),
)

QUICK = {
    (): {"json": False, "watch": False, "fleet": False},
    ("--json",): {"json": True, "watch": False, "fleet": False},
}
"""The parser's results for these command lines."""

REFRESH = 1.0
"""Seconds after which `--watch` draws again even without an event: ages grow."""
SIGNALED = 128
"""Added to a signal's number for the exit code, as shells do."""


def configure(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON array of the agents")
    parser.add_argument(
        "--fleet",
        action="store_true",
        help="also name the hosts of the fleet that are away; fails if this host is in no fleet",
    )
    parser.add_argument("--watch", action="store_true", help="go on showing them as they change, until q or Ctrl-C")


def run(args: "argparse.Namespace", ctx: CommandContext) -> int:
    try:
        return _run(args, ctx)
    except NoDaemon as error:
        from synapsectl.living_agents import without_daemon

        raise without_daemon(error, ctx) from None


def _run(args: "argparse.Namespace", ctx: CommandContext) -> int:
    if args.watch:
        if args.json or not ctx.out.on_terminal:
            raise UsageError("--watch is for a terminal: a script reads 'synapsectl events --json'")
        return _watch_dumb(ctx) if ctx.dumb else _watch(ctx)
    hosts = ctx.client.get("/fleet/hosts") if args.fleet else []
    if args.json:
        ctx.out.document(_agents(ctx))
    else:
        _show(_listed_agents(ctx) if ctx.out.on_terminal else _agents(ctx), ctx)
    for host in hosts:
        if host["state"] not in ("here", "up"):
            ctx.out.note(f"{host['host']} is {host['state']}: its agents are shown as it last reported them")
    return DONE


def _agents(ctx: CommandContext) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ctx.client.get("/agents", {"hosts": 1})
    return found


def _listed_agents(ctx: CommandContext) -> list[dict[str, Any]]:
    """Returns the agents for a person; for one that asks about a command, with the command in place of the words around
    it."""
    agents = _agents(ctx)
    if not any(agent.get("asks") for agent in agents):
        return agents
    try:
        return asking(agents, ctx.client.get("/inbox"))
    except ApiError:
        return agents  # an agent may not read the inbox


def _show(agents: list[dict[str, Any]], ctx: CommandContext) -> None:
    if not agents:
        ctx.out.note("there are no agents; start one with 'synapsectl start'")
        return
    if ctx.out.columns is None:
        ctx.out.table((), [_plain_row(agent) for agent in by_need(agents)])
    else:
        for line in _lines(agents, ctx, ctx.out.columns):
            ctx.out.styled_line(line)
    for agent in agents:
        for note in notes_on(agent):
            ctx.out.note(f"{agent['name']}: {note}")


def _plain_row(agent: dict[str, Any]) -> tuple[object, ...]:
    """Returns the row for a pipe; its columns stay the same, for scripts."""
    return (
        agent["name"],
        TableCell(state_of(agent), STYLES.get(state_of(agent), DIM)),
        age(agent["since"]),
        agent["held"] or "-",
        agent["queue"],
        short_id(agent["task"]) if agent["task"] else "-",
        agent["restarts"],
        agent["port"] or "-",
        agent["pid"] or "-",
        agent["cwd"],
    )


def _lines(agents: list[dict[str, Any]], ctx: CommandContext, columns: int) -> list[str]:
    """Returns the table for a terminal of that width."""
    from datetime import UTC, datetime

    now, home = datetime.now(UTC), ctx.environ.get("HOME", "")
    rows = [
        row(agent, now, age=age(agent["since"], now), folder=shorter(agent["cwd"], home), columns=columns)
        for agent in by_need(agents)
    ]
    shown = len(HEADINGS) if columns >= FOLDERS_FROM else len(HEADINGS) - 1
    return ctx.out.table_lines(HEADINGS[:shown], [cells[:shown] for cells in rows], grows="WHAT", columns=columns)


def notes_on(agent: dict[str, Any]) -> list[str]:
    """Returns remarks about the agent for a person: the reason why it does not run although it should, and that its
    version differs."""
    fallen = agent["state"] in ("backoff", "failed")
    drift = agent.get("drift")
    told = [agent["evidence"]] if fallen else []
    return told + ([drift] if drift and not any(drift in words for words in told) else [])


# --- watching ---


def _watch(ctx: CommandContext) -> int:
    import signal
    import sys

    from synapsectl.fullscreen import FullScreen
    from synapsectl.inbox.answer_keys import HOLD, KeyReader
    from synapsectl.live import Live
    from synapsectl.tty import TerminalGone

    reader = KeyReader()
    try:
        screen = FullScreen(sys.stdout.fileno(), encoding=sys.stdout.encoding)
        with screen, Live(ctx.client, lambda: _listed_agents(ctx), changed=screen.wake) as live:
            while screen.ended is None:
                columns, rows = screen.size()
                screen.draw(_watched(live.seen, ctx, columns, rows))
                held = reader.waits
                pressed = (key for some in screen.pressed(HOLD if held else REFRESH) for key in reader.feed(some))
                if any(key.name in ("q", "esc") for key in pressed) or (held and reader.waits):
                    return DONE
            return SIGNALED + screen.ended
    except TerminalGone:
        return SIGNALED + signal.SIGHUP


def _watched(seen: Any, ctx: CommandContext, columns: int, rows: int) -> list[str]:
    """Returns the lines for the data `seen`; the last line is always there, for a remark."""
    said = f"{seen.away}" if seen.away is not None else ""
    if seen.told is None:
        return [clip(one_line(said or "…"), columns)]
    lines = _lines(seen.told, ctx, columns) if seen.told else ["there are no agents"]
    room = rows - 1
    if len(lines) > room:
        said = said or f"and {len(lines) - room} more"
        lines = lines[:room]
    return [*lines, clip(one_line(said), columns)]


def _watch_dumb(ctx: CommandContext) -> int:
    """Watches on a terminal without escape sequences: prints below the former output, and only at events."""
    while True:
        try:
            _show(_listed_agents(ctx), ctx)
            ctx.out.stdout.flush()
            with ctx.client.stream("/events") as stream:
                for event in stream.events():
                    if event is not None:
                        ctx.out.line()
                        _show(_listed_agents(ctx), ctx)
                        ctx.out.stdout.flush()
        except NoDaemon as error:
            ctx.out.line()
            ctx.out.note(str(error))
        time.sleep(REFRESH)
