"""Answers yes or no to questions of several agents at once; and sends the reason for a no as the agent's next
message."""

import os
from collections.abc import Sequence
from typing import Any

from synapsectl.client import Client, agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, ApiError, CtlError
from synapsectl.inbox.everywhere import look, missing
from synapsectl.inbox.items import Item
from synapsectl.output import short_id
from synapsectl.prompts import (
    NOT_TAKEN,
    SCREEN,
    NoSuchChoice,
    answer,
    asked,
    choose,
    show_prompt,
    tell_hands,
    who_answers,
)
from synapsectl.reach import asks_at

DECIDED = frozenset({"permission", "question", "plan"})
"""Kinds of items that a yes or a no can answer."""
NEXT = 4
"""Priority of a reason: it goes before the messages that wait."""


def everyone(ctx: CommandContext) -> list[str]:
    """Returns the addresses of all who ask a question that can be answered yes or no, the oldest question first."""
    items, hosts = look(ctx.client)
    for line in missing(hosts):
        ctx.out.note(line)
    return [_address(item) for item in items if item["prompt_id"] and item["kind"] in DECIDED]


def _address(item: Item) -> str:
    """Returns the task that asks, or the agent; on another host as `TASK@HOST` or `AGENT@HOST`."""
    if not item["task"]:
        return str(item["agent"])
    return f"{item['task']}@{item['host']}" if item["host"] else str(item["task"])


def decide_all(
    ctx: CommandContext, targets: Sequence[str], *, accept: bool, as_json: bool, because: str | None = None
) -> int:
    """Answers yes or no to the question of each of `targets`. A refused answer does not stop the others; the highest
    exit code counts. Raises NoDaemon, NotOurs."""
    code, told = DONE, []
    names = list(dict.fromkeys(targets))
    for name in names:
        try:
            told.append({"target": name} | decide(ctx, name, accept=accept, because=because))
        except (ApiError, NoSuchChoice, NoReason) as error:
            ctx.out.note(f"{name}: {error}" if len(names) > 1 else str(error))
            told.append({"target": name} | error.document())
            code = max(code, error.exit_code)
    if as_json:
        ctx.out.document(told)
    return code


class NoReason(CtlError):
    """The agent's program would take the reason for a command."""

    exit_code = 6
    code = "NO_REASON"


def decide(ctx: CommandContext, target: str, *, accept: bool, because: str | None = None) -> dict[str, Any]:
    """Answers yes or no to the question of `target`, and to nothing else: a prompt that changed meanwhile is not
    answered. `because` is then the agent's next message. Returns the asker and the answer.

    Raises ApiError, NoSuchChoice; NoReason before anything is answered."""
    ctx, there, host = asks_at(ctx, target)
    who = asked(ctx.client, there)
    if who.prompt is None:
        raise ApiError("NOT_WAITING", f"{who.name} asks nothing")
    agent = who_answers(ctx.client, who.agent)
    if because is not None:
        check_reads(ctx.client, agent)
    try:
        key = choose(who.prompt, accept=accept)
    except NoSuchChoice:
        show_prompt(ctx.out, who.prompt)
        if who.prompt.get("type") == SCREEN:
            tell_hands(ctx, who, host)
        raise
    try:
        answer(ctx.client, who, key, who.prompt["prompt_id"])
    except ApiError as error:
        if error.code == NOT_TAKEN:
            tell_hands(ctx, who, host)
        raise
    label = next((o["label"] for o in who.prompt.get("options") or [] if o["key"] == key), key)
    ctx.out.note(f"{_called(who.name, agent)}{host} was answered: {label}")
    told = {"agent": who.agent + host, "task": who.task, "key": key, "label": label}
    if because is None:
        return told
    task = tell_why(ctx.client, agent, because)
    ctx.out.note(f"{agent['name']} is told why, as its next message: task {short_id(task)}")
    return told | {"because": task}


def _called(name: str, agent: dict[str, Any]) -> str:
    return name if name == agent["name"] else f"{agent['name']} ({name})"


def check_reads(client: Client, agent: dict[str, Any]) -> None:
    """Raises NoReason if no model reads the typed text, since a shell would run the reason as a command. A text for an
    agent elsewhere is always a message of A2A."""
    if agent.get("elsewhere"):
        return
    profiles = {one["name"]: one for one in client.get("/control/profiles")}
    if not profiles.get(agent["type"], {}).get("model"):
        raise NoReason(
            f"{agent['name']} would run the reason as a command: nothing was answered; "
            "leave --because out, or say it with 'synapsectl input'"
        )


def tell_why(client: Client, agent: dict[str, Any], because: str) -> str:
    """Returns the id of the task that has the reason. Raises ApiError."""
    body = {
        "message": {"role": "user", "parts": [{"type": "text", "text": because}]},
        "metadata": {},
        "priority": NEXT,
    }
    path = agent_path(agent["id"], "tasks/send")
    return str(client.post(path, body, key=os.urandom(16).hex())["task"]["id"])
