"""Answers yes or no to questions of several agents at once; and sends the reason for a no as the agent's next
message."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from synapsectl.client import Client, agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, REFUSED, ApiError, CtlError
from synapsectl.inbox.everywhere import look, missing
from synapsectl.inbox.items import Item
from synapsectl.output import one_line, short_id
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


class PromptDecision(NamedTuple):
    """A yes or a no; `because` is the agent's next message. With `prompt_id` it is for that very prompt; with
    `confirms` a person is asked at the terminal, where each question is shown first."""

    accept: bool
    because: str | None = None
    prompt_id: str | None = None
    confirms: bool = False


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


def decide_all(ctx: CommandContext, targets: Sequence[str], decision: PromptDecision, *, as_json: bool) -> int:
    """Answers yes or no to the question of each of `targets`. A refused answer does not stop the others; the highest
    exit code counts. Raises NoDaemon, NotOurs."""
    code, told = DONE, []
    names = list(dict.fromkeys(targets))
    for name in names:
        try:
            told.append({"target": name} | decide(ctx, name, decision))
        except (ApiError, NoSuchChoice, NoReason, NotSaid) as error:
            ctx.out.note(f"{name}: {error}" if len(names) > 1 else str(error))
            told.append({"target": name} | error.document())
            code = max(code, error.exit_code)
    if as_json:
        ctx.out.document(told)
    return code


class NotSaid(CtlError):
    """The person was shown the question, and did not say yes to it."""

    exit_code = REFUSED
    code = "NOT_SAID"


class NoReason(CtlError):
    """The agent's program would take the reason for a command."""

    exit_code = 6
    code = "NO_REASON"


def decide(ctx: CommandContext, target: str, decision: PromptDecision) -> dict[str, Any]:
    """Shows the question of `target` and answers yes or no to it, and to nothing else: a prompt that changed meanwhile
    is not answered. Returns the asker, the question and the answer.

    Raises ApiError, NoSuchChoice; NoReason and NotSaid before anything is answered."""
    ctx, there, host = asks_at(ctx, target)
    who = asked(ctx.client, there)
    if who.prompt is None:
        raise ApiError("NOT_WAITING", f"{who.name} asks nothing")
    agent = who_answers(ctx.client, who.agent)
    name = f"{_called(who.name, agent)}{host}"
    if decision.because is not None:
        check_reads(ctx.client, agent)
    ctx.out.note(f"{name} asks:")
    show_prompt(ctx.out, who.prompt)
    asked_id = str(who.prompt["prompt_id"])
    if decision.prompt_id not in (None, asked_id):
        raise ApiError("PROMPT_CHANGED", f"{name} asks something else than {decision.prompt_id}: nothing was answered")
    try:
        key = choose(who.prompt, accept=decision.accept)
    except NoSuchChoice:
        if who.prompt.get("type") == SCREEN:
            tell_hands(ctx, who, host)
        raise
    label = next((o["label"] for o in who.prompt.get("options") or [] if o["key"] == key), key)
    if decision.confirms and not ctx.asks(f"answer {one_line(label)!r}?"):
        raise NotSaid(f"{name} was not answered")
    try:
        answer(ctx.client, who, key, asked_id)
    except ApiError as error:
        if error.code == NOT_TAKEN:
            tell_hands(ctx, who, host)
        raise
    ctx.out.note(f"{name} was answered: {label}")
    told = {"agent": who.agent + host, "task": who.task, "key": key, "label": label, "prompt_id": asked_id}
    told |= {"question": who.prompt.get("prompt"), **{part: who.prompt.get(part) for part in ("command", "diff")}}
    if decision.because is None:
        return told
    task = tell_why(ctx.client, agent, decision.because)
    ctx.out.note(f"{agent['name']} gets the reason as its next message: task {short_id(task)}")
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
