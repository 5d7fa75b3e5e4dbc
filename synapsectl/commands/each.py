"""Verbs that do one thing to each of several agents: `stop`, `restart`, `park`, `kill`."""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

from synapsectl.background import goes_by, may_end, note_waiting, with_background
from synapsectl.client import SLOW_TIMEOUT, agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, ApiError, CtlError, UsageError
from synapsectl.shell import bring, bring_all, note_activated

AT_ONCE = 16
"""Agents asked to stop at the same time."""


class EachAgent(NamedTuple):
    """One of these verbs."""

    verb: str
    done: str
    among: Callable[[dict[str, Any]], bool]
    """Returns True for the agents that `--all` means."""
    option: str | None = None
    """Option that is sent in the body of the request."""
    help: str = ""
    done_with: str = ""
    """`done` if the option is given."""
    among_with: Callable[[dict[str, Any]], bool] = lambda _: True
    """`among` if the option is given."""
    starts: bool = False
    """True if it starts the agents: then they get variables of this shell (`shell.bring`)."""
    ends_background: bool = False
    """True if it ends the background tasks of their programs, too."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("agents", nargs="*", metavar="agent", help="names, ids, type-ports or types")
        parser.add_argument("--all", action="store_true", help="every agent")
        parser.add_argument(
            "--json", action="store_true", help="print a JSON array of the agents as they are afterwards"
        )
        if self.option is not None:
            parser.add_argument(f"--{self.option.replace('_', '-')}", action="store_true", help=self.help)
        if self.starts:
            parser.add_argument(
                "--env-from-here",
                action="store_true",
                help="give it the whole environment of this shell from now on; without this it gets only your login's "
                "variables (SSH_AUTH_SOCK, DISPLAY, …) from a person's shell",
            )
            parser.add_argument(
                "--without-approval",
                action="store_true",
                help="also if settings of its program keep the deny rules of its approval from being enforced",
            )

    def run(self, args: argparse.Namespace, ctx: CommandContext) -> int:
        """Sends the verb for the requested agents. A refused one does not stop the others; the first refusal's exit
        code counts."""
        if bool(args.agents) == args.all:
            raise UsageError(f"name agents, or all of them with --all: synapsectl {self.verb} AGENT… | --all")
        chosen = self.option is not None and bool(getattr(args, self.option))
        names, spared = self._names(args, ctx, chosen=chosen)
        if spared and not names:
            return DONE  # the person has said no
        body = {self.option: chosen} if self.option is not None else None
        body = {**(body or {}), "without_approval": True} if self._unapproved(args) else body
        code, after = DONE, []
        with ctx.busy(f"{self.verb} {', '.join(names)}"):
            if self.starts:
                self._bring(names, ctx, whole=args.env_from_here)
            results = self._results(ctx, names, body)
        for name, result in zip(names, results, strict=True):
            if isinstance(result, CtlError):
                ctx.out.note(f"{name}: {result}" if len(names) > 1 else str(result))
                code = code or result.exit_code
                continue
            after.append(result)
            if not args.json:
                ctx.out.line(f"{result['name']} {self.done_with if chosen else self.done}")
                if self.starts and not chosen:
                    _note_loss(ctx, result["name"])
        if args.json:
            ctx.out.document(after)
        elif not names:
            ctx.out.note("no agent is known: there is nothing to do")
        return code

    def _results(
        self, ctx: CommandContext, names: list[str], body: dict[str, Any] | None
    ) -> list[dict[str, Any] | CtlError]:
        """Returns the agents as they are afterwards, or the errors. Raises the first one if no daemon has answered."""
        try:
            results = _at_once(ctx, names, self.verb, body)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"{self.verb} may go on: 'synapsectl list' shows what came of it") from None
        unanswered = [error for error in results if isinstance(error, CtlError) and not isinstance(error, ApiError)]
        if unanswered and len(unanswered) == len(results):
            raise unanswered[0]
        return results

    def _names(self, args: argparse.Namespace, ctx: CommandContext, *, chosen: bool) -> tuple[list[str], bool]:
        """Returns the agents that are meant, and True if a person has spared some: for each that has background tasks,
        which would end with its program, the person is asked."""
        among = self.among_with if chosen else self.among
        names = list(dict.fromkeys(args.agents))
        if args.all:
            names = [agent["name"] for agent in ctx.client.get("/agents") if among(agent)]
        beside = with_background(ctx, names) if self.ends_background else []
        if self.starts and chosen:
            for agent in beside:
                note_waiting(ctx, agent)
            return names, False
        spared = [agent for agent in beside if not may_end(ctx, agent, f"{self.verb} it?")]
        return [name for name in names if not any(goes_by(agent, [name]) for agent in spared)], bool(spared)

    def _unapproved(self, args: argparse.Namespace) -> bool:
        return self.starts and bool(args.without_approval)

    def _bring(self, names: list[str], ctx: CommandContext, *, whole: bool) -> None:
        if not whole:
            bring(ctx, names)
            return
        activated = {name for agent in names for name in bring_all(ctx, agent)}
        note_activated(ctx, sorted(activated))


def _note_loss(ctx: CommandContext, name: str) -> None:
    """Reports that a conversation does not go on."""
    try:
        conversation = ctx.client.get(agent_path(name, "status"), {"detail": 1}).get("conversation") or {}
    except CtlError:
        return  # the verb has succeeded: only this remark is left out
    note = str(conversation.get("note") or "")
    if note.startswith("new: ") and not conversation.get("resumed") and not conversation.get("said"):
        ctx.out.note(f"{name}: its conversation is {note}")


def _at_once(
    ctx: CommandContext, names: list[str], verb: str, body: dict[str, Any] | None
) -> list[dict[str, Any] | CtlError]:
    """Returns the results in the order of `names`; agents that take their time to stop do so side by side. Ctrl-C does
    not wait for the threads, which end with the process."""

    def ask(name: str) -> dict[str, Any] | CtlError:
        try:
            agent: dict[str, Any] = ctx.client.post(agent_path(name, verb, control=True), body, timeout=SLOW_TIMEOUT)
        except CtlError as error:
            return error
        return agent

    if len(names) < 2:
        return [ask(name) for name in names]
    import threading
    from queue import SimpleQueue

    left = iter(enumerate(names))
    results: dict[int, dict[str, Any] | CtlError] = {}
    done: SimpleQueue[None] = SimpleQueue()

    def work() -> None:
        try:
            for number, name in left:
                results[number] = ask(name)
        finally:
            done.put(None)

    threads = min(AT_ONCE, len(names))
    for _ in range(threads):
        threading.Thread(target=work, daemon=True).start()
    for _ in range(threads):
        done.get()
    return [results[number] for number in range(len(names))]


stop = EachAgent(
    "stop",
    "stopped",
    lambda agent: bool(agent["state"] != "stopped"),
    option="remove",
    help="forget them too: name, port, conversation, and what 'start --save' wrote",
    done_with="stopped and removed",
    ends_background=True,
)
restart = EachAgent(
    "restart",
    "restarted",
    lambda _: True,
    option="when_idle",
    help="not now: when no turn runs and nobody types",
    done_with="is restarted when it is idle",
    starts=True,
    ends_background=True,
)
park = EachAgent("park", "parked", lambda agent: bool(agent["state"] == "running"))
kill = EachAgent("kill", "killed", lambda agent: agent["pid"] is not None, ends_background=True)

EXAMPLES = {
    "stop": (
        ("synapsectl stop claude", "its program ends; name, port and conversation stay"),
        ("synapsectl stop --all", "every agent"),
        ("synapsectl stop claude --remove", "forget it too"),
    ),
    "restart": (
        ("synapsectl restart claude", "in its conversation"),
        ("synapsectl restart --all --when-idle", "each when no turn runs"),
        ("synapsectl restart claude --env-from-here", "with what this shell has: PATH, an activated venv, all"),
    ),
    "park": (("synapsectl park claude", "no memory is used until the next message"),),
    "kill": (("synapsectl kill claude", "its restart policy starts it again"),),
}
