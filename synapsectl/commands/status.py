"""`synapsectl status [AGENT]`: shows one agent closely, or the daemon."""

import argparse
from datetime import UTC, datetime
from typing import Any

from synapsectl.agentrows import STYLES, state_of
from synapsectl.ages import age, clock_time
from synapsectl.client import agent_path
from synapsectl.colours import BOLD, DIM, YELLOW
from synapsectl.context import CommandContext
from synapsectl.errors import DONE
from synapsectl.output import clip
from synapsectl.prompts import SCREEN, behind, example, hands
from synapsectl.reach import reach
from synapsectl.shell import brings
from synapsed.shared.choices import whole

EXAMPLES = (
    ("synapsectl status claude", "what it does, asks and shows"),
    ("synapsectl status claude --explain", "the evidence for that"),
    ("synapsectl status", "the daemon itself"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="?", help="an agent's name, id, type-port or type; the daemon otherwise")
    parser.add_argument(
        "--explain", action="store_true", help="show what every channel of evidence says, strongest first"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if args.agent is None:
        status = ctx.client.get("/control/status")
    else:
        ctx, agent = reach(ctx, args.agent)
        status = ctx.client.get(agent_path(agent, "status"), {"detail": 1, "explain": int(args.explain)})
    if args.json:
        ctx.out.document(status)
    elif args.agent is None:
        _show_daemon(status, ctx)
    elif args.explain:
        _show_chain(status, ctx)
    else:
        _show_agent(status, ctx)
    return DONE


def _show_daemon(status: dict[str, Any], ctx: CommandContext) -> None:
    agents = status["agents"]
    count = len(agents) if isinstance(agents, list) else agents
    from synapsed.process.installed import with_commit  # it imports pathlib, which an agent's status does without

    version = with_commit(status["version"], status.get("commit", ""))
    ctx.out.line(f"synapsed {version}, pid {status['pid']}, up {_duration(status['uptime'])}, agents: {count}")
    ctx.out.line(f"  {'listen':<16}{', '.join(status['listen']) or '- (the control socket alone)'}")
    if secure := status.get("secure"):
        ctx.out.line(f"  {'page over TLS':<16}{', '.join(secure)}")
    for alert in status.get("alerts", []):
        ctx.out.sentence(f"  {'alert':<16}{_for_this_installer(alert)}")
    for name, path in status["paths"].items():
        ctx.out.line(f"  {name:<16}{path}")


def _for_this_installer(alert: str) -> str:
    """Returns the alert with the command of this program's installer in place of pip's."""
    if "pip install" not in alert:
        return alert
    from synapsectl.upgrading.extras import for_this_installer  # it reads files, for such an alert only

    return for_this_installer(alert)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s"


def _show_chain(agent: dict[str, Any], ctx: CommandContext) -> None:
    """Prints the evidence of every channel, strongest first; the channel that decided is marked."""
    out = ctx.out
    out.styled_line(f"{_title(agent, ctx)}: {out.styled(agent['evidence'], '')}")
    rows = [
        (
            "=>" if row["decides"] else "",
            row["channel"],
            age(row["since"]) if row["since"] is not None else "",
            " ".join(row["says"].split()),
        )
        for row in agent["explain"]
    ]
    out.table(("", "CHANNEL", "SINCE", "SAYS"), rows)


def _conversation(known: dict[str, Any] | None) -> str | None:
    """Returns id and origin of the conversation; None if nothing is known of it."""
    if known is None:
        return None
    name, note = known["id"] or "", known["note"] or ""
    return note if name in note and note else " · ".join(part for part in (name, note) if part) or None


def _gone(agent: dict[str, Any]) -> str | None:
    """Returns names of variables that lead to missing files."""
    if not (names := agent.get("gone")):
        return None
    return f"{', '.join(names)} of its environment: {brings(agent['name'])}"


def _queue(agent: dict[str, Any]) -> str | None:
    """Returns the number of waiting messages, and the reason."""
    if not agent["queue"]:
        return None
    if not agent["task"] and not agent.get("prompt"):
        return str(agent["queue"])
    return f"{agent['queue']}: {behind(agent['name'], agent['task'], agent.get('prompt'))}"


def _title(agent: dict[str, Any], ctx: CommandContext) -> str:
    state = state_of(agent)
    name, shown = ctx.out.styled(agent["name"], BOLD), ctx.out.styled(state, STYLES.get(state, DIM))
    return f"{name} ({agent['id']})  {shown} for {age(agent['since'])}"


def _task(agent: dict[str, Any]) -> str | None:
    """Returns the id of the agent's task, and the beginning of its message."""
    doing = agent.get("doing")
    return f"{agent['task']} ({doing})" if agent["task"] and doing else agent["task"]


def _show_question(agent: dict[str, Any], prompt: dict[str, Any], ctx: CommandContext) -> None:
    """Prints the agent's question, line by line, and the way to answer."""
    out, name = ctx.out, agent["name"]
    heading = "  asks          "
    for line in whole(prompt).splitlines():
        out.styled_line(f"{heading}{out.styled(line, YELLOW)}")
        heading = " " * len(heading)
    for option in prompt.get("options") or []:
        out.line(f"{heading}{option['key']}  {option['label']}")
    if prompt.get("own_words"):
        out.line(f"{heading}or words of your own")
    out.remark(
        hands(name) if prompt.get("type") == SCREEN else f"answer with: synapsectl input {name} {example(prompt)}"
    )


def _show_agent(agent: dict[str, Any], ctx: CommandContext) -> None:
    out = ctx.out
    out.styled_line(_title(agent, ctx))
    prompt = agent.get("prompt")
    facts = {
        "evidence": agent["evidence"],
        "version": agent.get("version"),
        "drift": agent.get("drift"),
        "settings": "; ".join(agent.get("settings") or []) or None,
        "error": agent.get("error"),
        "alert": "; ".join(agent.get("alerts") or []) or None,
        "gone": _gone(agent),
        "held": None if prompt else agent["held"],
        "background": "; ".join(agent.get("background_tasks") or []) or None,
        "until": clock_time(agent["until"], datetime.now(UTC)) if agent.get("until") else None,
        "conversation": _conversation(agent.get("conversation")),
        "task": _task(agent),
        "queue": _queue(agent),
        "restarts": agent["restarts"] or None,
        "pid": agent["pid"],
        "endpoint": agent["endpoint"],
        "cwd": agent["cwd"],
        "process": agent.get("attributes"),
        "withheld": agent.get("withheld"),
    }
    for name, value in facts.items():
        if value is not None:
            out.line(f"  {name:<14}{value}")
    screen = [line.rstrip() for line in (agent.get("screen") or "").splitlines()]
    while screen and not screen[-1]:
        screen.pop()
    for line in screen:
        shown = f"  | {line}"
        out.line(shown if out.columns is None else clip(shown, out.columns))
    if prompt:
        # Last, so that it stands on the terminal whatever the screen above it has.
        _show_question(agent, prompt, ctx)
