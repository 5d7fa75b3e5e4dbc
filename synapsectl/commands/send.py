"""`synapsectl send AGENT[,AGENT…] MESSAGE`."""

import argparse
import json
import sys
import time
from typing import Any

from synapsectl.client import agent_path
from synapsectl.context import Context
from synapsectl.errors import DONE, NOT_FOUND, ApiError, CtlError, UsageError
from synapsectl.interrupts import interrupt
from synapsectl.messages import build_parts, read_text
from synapsectl.outcomes import outcome
from synapsectl.output import short_id
from synapsectl.sse import SseEvent
from synapsectl.waiting import Waiter, answer_of

__all__ = ["TAKES_REST", "configure", "run"]

TAKES_REST = True
INTERRUPT_PRIORITY = 5
ANSWER = "answer"
BLOCKS = f"{ANSWER}."
"""Ids of the artifacts that the answer, which is printed whole, is made of."""
NEVER_SENT_TO = frozenset({"stopped", "stopping", "exited", "failed"})
"""States of agents that `--all` and `--type` leave out."""


class NoAgents(CtlError):
    exit_code = NOT_FOUND
    code = "UNKNOWN_AGENT"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} (AGENT[,AGENT…] | --all | --type TYPE) [options] [--] [MESSAGE | -]"
    parser.add_argument("words", nargs="*", metavar="AGENT MESSAGE", help="to whom, and what; - reads it from stdin")
    parser.add_argument("--all", action="store_true", help="to every agent that runs")
    parser.add_argument("--type", metavar="TYPE", help="to every agent of this profile that runs")
    parser.add_argument(
        "--priority",
        type=int,
        choices=range(1, 6),
        default=1,
        help="4 is delivered before 1; 5 interrupts what runs first, and without a message does only that",
    )
    parser.add_argument("--wait", action="store_true", help="wait for the end, and print the answer's text only")
    parser.add_argument("--follow", action="store_true", help="wait, and print what the agent says as it says it")
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        help="seconds after which the waiting ends (exit code 5); the task goes on",
    )
    parser.add_argument("--from", dest="sender", metavar="AGENT", help="say that this agent is the sender")
    parser.add_argument("--context", metavar="ID", help="a label of the task, such as other messages have")
    parser.add_argument(
        "--new-conversation",
        action="store_true",
        help="start the agent anew for it, without its conversation",
    )
    parser.add_argument("--file", action="append", default=[], metavar="FILE", help="a file to go with it; repeatable")
    parser.add_argument("--command", action="store_true", help="let a leading / or ! be a command of the program")
    parser.add_argument("--json", action="store_true", help="print the task as a JSON document")
    parser.add_argument("--no-spawn-daemon", action="store_true", help="fail where no daemon runs")


def run(args: argparse.Namespace, ctx: Context) -> int:
    words = [*args.words, *(args.rest or [])]
    addresses = _addresses(args, words)
    if args.follow and args.json:
        raise UsageError("--follow prints text as it comes, --json one document at the end: choose one")
    if not words and not args.file:
        if args.priority != INTERRUPT_PRIORITY:
            raise UsageError("there is no message (and only --priority 5 has a use without one)")
        body = None
    else:
        body = _body(args, ctx, " ".join(words))
    ctx.ensure_daemon(spawn=not args.no_spawn_daemon)
    agents = addresses if addresses is not None else _running(args, ctx)
    if body is None:
        return max(interrupt(ctx, agent, as_json=args.json) for agent in agents)
    deadline = None if args.timeout is None else time.monotonic() + args.timeout
    return _Sending(args, ctx, deadline).run(agents, body)


def _addresses(args: argparse.Namespace, words: list[str]) -> list[str] | None:
    """The addresses, taken from `words`; None with `--all` or `--type`."""
    if args.all and args.type:
        raise UsageError("--all and --type: choose one")
    if args.all or args.type:
        return None
    addresses = [address for address in words.pop(0).split(",") if address] if words else []
    if not addresses:
        raise UsageError("name the agent to send to, or use --all or --type")
    return list(dict.fromkeys(addresses))


def _running(args: argparse.Namespace, ctx: Context) -> list[str]:
    own = ctx.environ.get("SYNAPSE_AGENT_ID") if ctx.inside_agent else None
    names = [
        agent["name"]
        for agent in ctx.client.get("/agents")
        if agent["state"] not in NEVER_SENT_TO and agent["id"] != own and args.type in (None, agent["type"])
    ]
    if not names:
        raise NoAgents(f"no agent of type {args.type!r} runs" if args.type else "no other agent runs")
    return names


def _body(args: argparse.Namespace, ctx: Context, given: str) -> dict[str, Any]:
    text = read_text(given, sys.stdin.buffer) if given else ""
    body: dict[str, Any] = {
        "message": {"role": "user", "parts": build_parts(text, args.file)},
        "metadata": {},
        "priority": args.priority,
    }
    if args.sender:
        body["metadata"]["sender"] = {"sender_id": args.sender}
    elif ctx.inside_agent and (own := ctx.environ.get("SYNAPSE_AGENT_ID")):
        body["metadata"]["sender"] = {
            "sender_id": own,
            "sender_type": ctx.environ.get("SYNAPSE_AGENT_TYPE", ""),
            "sender_endpoint": ctx.environ.get("SYNAPSE_ENDPOINT", ""),
        }
    if args.context:
        body["context_id"] = args.context
    if args.new_conversation:
        body["metadata"]["new_conversation"] = True
    if args.command:
        body["command"] = True
    return body


class _Sending:
    """One message to some agents, and what comes back."""

    def __init__(self, args: argparse.Namespace, ctx: Context, deadline: float | None) -> None:
        self._args = args
        self._ctx = ctx
        self._deadline = deadline
        self._told: dict[str, str] = {}
        """What the daemon has told of each artifact."""
        self._said: dict[str, str] = {}
        """What of it is printed."""

    def run(self, agents: list[str], body: dict[str, Any]) -> int:
        if len(agents) > 1 and not (self._args.all or self._args.type):
            # An address that is wrong stops everything before anything is sent.
            for agent in agents:
                self._ctx.client.get(agent_path(agent, "status"), {"detail": 1})
        code = DONE
        results: list[dict[str, Any]] = []
        sent: list[tuple[str, dict[str, Any]]] = []
        for agent in agents:
            try:
                sent.append((agent, self._ctx.client.post(agent_path(agent, "tasks/send"), body)["task"]))
            except ApiError as error:
                if len(agents) == 1:
                    raise
                self._ctx.out.note(f"{agent}: {error}")
                results.append({"agent": agent} | error.document())
                code = code or error.exit_code
        for agent, task in sent:
            outcome, settled = self._settle(agent, task, alone=len(agents) == 1)
            results.append({"agent": agent, "task": settled})
            code = code or outcome
        if self._args.json:
            self._ctx.out.document({"task": results[0]["task"]} if len(agents) == 1 else {"tasks": results})
        return code

    def _settle(self, agent: str, task: dict[str, Any], *, alone: bool) -> tuple[int, dict[str, Any]]:
        """Print what is to be printed of one task; returns its exit code and the task as it is then."""
        args, out = self._args, self._ctx.out
        if not (args.wait or args.follow):
            if not args.json:
                out.table((), [[task["id"]] if alone else [task["id"], agent]])
            return DONE, task
        if not alone:
            out.remark(f"--- {agent} ({short_id(task['id'])})")
        self._told.clear()
        self._said.clear()
        waiter = Waiter(self._ctx.client, deadline=self._deadline, note=out.note, on_event=self._on_event)
        try:
            task = waiter.wait(task)
        except KeyboardInterrupt:
            out.note(
                f"no longer waiting for task {task['id']}, which goes on; 'synapsectl cancel {short_id(task['id'])}'"
            )
            raise
        return self._outcome(agent, task), task

    def _outcome(self, agent: str, task: dict[str, Any]) -> int:
        streamed = self._args.follow and self._said
        if streamed:
            self._ctx.out.line()
        code = outcome(self._ctx, agent, task)
        if code == DONE and not streamed and not self._args.json:
            self._ctx.out.text(answer_of(task) or "")
        return code

    def _on_event(self, event: SseEvent) -> None:
        """With `--follow`: print what an artifact has beyond what was printed of it. Where that was not quite so (text
        off a screen), what takes its place is printed once it is known to be right."""
        if not self._args.follow or event.event != "artifact":
            return
        data = json.loads(event.data)
        artifact = data["artifact"]
        key = str(artifact.get("artifact_id") or artifact.get("artifactId") or artifact.get("name"))
        text = "".join(part.get("text", "") for part in artifact.get("parts") or [])
        if key.startswith(BLOCKS):
            return
        told, printed = self._told.get(key, ""), self._said.get(key)
        whole = self._told[key] = told + text if data.get("append") else text
        if printed is None and ANSWER in self._said and whole.startswith(self._said[ANSWER]):
            printed = self._said.pop(ANSWER)  # it was not the answer yet
        if printed is not None and whole.startswith(printed):
            piece = whole[len(printed) :]
        elif printed is None or data.get("lastChunk", True):
            piece = "\n" + whole if self._said else whole
        else:
            return
        self._said[key] = whole
        self._ctx.out.piece(piece)
