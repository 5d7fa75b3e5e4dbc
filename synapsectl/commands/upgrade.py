"""`synapsectl upgrade --check`: shows an offered version, the effects of an upgrade on living agents, and the commands
for it."""

import argparse
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.errors import DONE, CtlError, NoDaemon, UsageError
from synapsectl.given_paths import from_home
from synapsectl.upgrading import advice
from synapsectl.upgrading.advice import UpgradeFacts
from synapsectl.upgrading.installation import find_installation
from synapsectl.upgrading.offer import Offer, of_index, of_wheel, run_program
from synapsed import __version__
from synapsed.process.installed import commit, with_commit

EXAMPLES = (
    ("synapsectl upgrade --check", "what an upgrade does to living agents, and how it is done; nothing is fetched"),
    ("synapsectl upgrade --check --index", "the newest version of the index that pip or uv is configured with"),
)

VERSIONS_S = 20.0
"""Seconds for `synapsed version --json` to answer."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="say what is newer and what to do; change nothing")
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--index", action="store_true", help="ask the index of your installer for its newest version")
    asked.add_argument(
        "--wheel", type=from_home, metavar="FILE", help="compare with the version in this wheel, which is not run"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if not args.check:
        raise UsageError(
            "this verb replaces no files: 'synapsectl upgrade --check' says what is newer and what to type"
        )
    facts = _facts(ctx, args)
    if args.json:
        ctx.out.document(_document(facts))
    else:
        _show(ctx, facts)
    return DONE


def _facts(ctx: CommandContext, args: argparse.Namespace) -> UpgradeFacts:
    from synapsed.parts.outside import packages

    installed = find_installation()
    offer: Offer | None = None
    if args.wheel is not None:
        offer = of_wheel(args.wheel)
    elif args.index:
        with ctx.busy("asking the index"):
            offer = of_index(installed, run_program)
    running, agents = _daemon(ctx)
    return UpgradeFacts(
        installed=installed,
        version=__version__,
        commit=commit(),
        numbers=_own_numbers(ctx),
        running=running,
        agents=agents,
        service=_service(ctx),
        parts=tuple(packages()),
        offer=offer,
    )


def _daemon(ctx: CommandContext) -> tuple[tuple[str, str] | None, tuple[str, ...]]:
    """Returns version and commit of the daemon, and the names of the agents that live. An agent does not get the
    commit."""
    try:
        version = str(ctx.client.get("/healthz")["version"])
        agents = tuple(str(agent["name"]) for agent in ctx.client.get("/agents") if agent["pid"] is not None)
        status = {} if ctx.inside_agent else ctx.client.get("/control/status")
    except NoDaemon:
        return None, ()
    return (version, str(status.get("commit", ""))), agents


def _own_numbers(ctx: CommandContext) -> dict[str, Any]:
    from synapsectl.daemon_program import ask_daemon_program

    try:
        return ask_daemon_program(ctx, "version", "--json", timeout_s=VERSIONS_S)
    except CtlError:
        return {}


def _service(ctx: CommandContext) -> str:
    """Returns the name of the manager of this home's service; empty without a service."""
    from synapsectl.service.available import this_machines
    from synapsectl.service.manager import NoServiceManager

    try:
        manager = this_machines(ctx.environ)
    except NoServiceManager:
        return ""
    return manager.name if manager.is_ours() else ""


def _document(facts: UpgradeFacts) -> dict[str, Any]:
    installed, offer = facts.installed, facts.offer
    return {
        "installed": {
            "version": facts.version,
            "commit": facts.commit or None,
            "installer": str(installed.installer),
            "place": str(installed.place),
            "source": installed.source or None,
        },
        "running": facts.running and {"version": facts.running[0], "commit": facts.running[1] or None},
        "offer": offer
        and {
            "version": offer.version,
            "commit": offer.commit or None,
            "origin": offer.origin,
            "file": offer.file or None,
        },
        "newer": advice.newer(facts),
        "behind": advice.is_behind(facts),
        "agents": list(facts.agents),
        "effects": dict(advice.effects(facts)),
        "commands": [command for command, _ in advice.steps(facts)],
    }


def _show(ctx: CommandContext, facts: UpgradeFacts) -> None:
    out, offer = ctx.out, facts.offer
    out.sentence(f"installed  {with_commit(facts.version, facts.commit)}, {facts.installed.words}")
    if facts.running is None:
        out.sentence("running    no daemon")
    else:
        behind = ": not what is installed" if advice.is_behind(facts) else ""
        out.sentence(f"running    {with_commit(*facts.running)}{behind}")
    found = f"{with_commit(offer.version, offer.commit)} ({offer.file or 'the index'}), " if offer else ""
    out.sentence(f"offered    {found}{advice.verdict(facts)}")
    steps = advice.steps(facts)
    if not steps:
        out.sentence("there is nothing to do")
        return
    out.line()
    for what, text in advice.effects(facts):
        out.sentence(f"{what:<11}{text}")
    if offer is not None and offer.origin == "index" and facts.installed.source:
        came = f"this was installed from {facts.installed.source}, not from an index"
        out.sentence(f"source     {came}: be sure that both are of the same project")
    out.line()
    for command, purpose in steps:
        out.line(f"{command}  # {purpose}")
