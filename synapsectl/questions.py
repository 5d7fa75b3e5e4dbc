"""What an agent asks, asked on the terminal of whoever waits for it.

The answer is for the prompt that was shown, by its id. A question that is answered elsewhere meanwhile is said to be,
and the terminal is not waited for any longer.
"""

import select
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from synapsectl.context import CommandContext
from synapsectl.errors import ApiError, TimedOut
from synapsectl.output import short_id
from synapsectl.prompts import SCREEN, WhoAsks, answer, asked, show_prompt
from synapsed.shared.choices import choice

LOOK = 1.0
"""Seconds after which it is looked whether it is still asked."""
ELSEWHERE = frozenset({"PROMPT_CHANGED", "NOT_WAITING"})
"""What an answer is refused with that somebody else has given."""
BY_HAND = frozenset({SCREEN, "login"})
"""Types of prompts that are answered at the agent's own terminal."""


class TypedAnswer(NamedTuple):
    """What a line that was typed means: `answer` is given to the program; without one, `note` says what to type."""

    answer: str | None
    note: str = ""


def can_ask(ctx: CommandContext) -> bool:
    """Whether there is a person to ask: one who types, and reads what is printed; and it is no agent's shell."""
    return sys.stdin.isatty() and ctx.out.on_terminal and ctx.out.stderr.isatty() and ctx.own_agent is None


def hint(prompt: Mapping[str, Any]) -> str:
    """What can be typed: `[y/N]`, the numbers of options, words."""
    options = [str(option["key"]) for option in prompt.get("options") or []]
    sure = _sure(prompt)
    if len(sure) == 2 and len(options) in (0, 2):
        return "[y/N]"
    told = ["/".join(options)] if options else []
    told += ["y" if accept else "n" for accept in (True, False) if accept in sure and options]
    if prompt.get("own_words") or not options:
        told.append("words")
    return f"[{', '.join(told)}]"


def meant(prompt: Mapping[str, Any], line: str) -> TypedAnswer:
    """What the line means: an option's key, or y or n where an option says that for sure, or words."""
    text = line.strip()
    options = {str(option["key"]).lower(): str(option["key"]) for option in prompt.get("options") or []}
    sure = _sure(prompt)
    two = len(sure) == 2 and len(options) in (0, 2)
    if not text and two:
        return TypedAnswer(sure[False])
    if text.lower() in options:
        return TypedAnswer(options[text.lower()])
    decided = {"y": True, "yes": True, "n": False, "no": False}.get(text.lower())
    if decided is not None and decided in sure:
        return TypedAnswer(sure[decided])
    if text and (prompt.get("own_words") or not (options or two)):
        return TypedAnswer(line)
    return TypedAnswer(None, f"type {hint(prompt)}; Ctrl-D leaves it as it is")


def ask(ctx: CommandContext, agent: str, task: Mapping[str, Any]) -> bool:
    """Ask what `agent` asks, within the task or before it, and give it the answer. False where it is not answered from
    here: it is to be done at its terminal, or the person does not want to (Ctrl-D). Raises ApiError, NoDaemon,
    TimedOut."""
    while True:
        who = _who(ctx, task)
        if who.prompt is None:
            return True
        if who.prompt.get("type") in BY_HAND and not who.prompt.get("own_words"):
            return False
        ctx.out.note(f"{agent} asks:")
        show_prompt(ctx.out, who.prompt)
        given = _read(ctx, agent, task, who)
        if given is None:
            return False
        if given == "":
            continue
        try:
            answer(ctx.client, who, given, who.prompt["prompt_id"])
        except ApiError as error:
            ctx.out.note("it was answered elsewhere" if error.code in ELSEWHERE else str(error))
            if error.code not in ELSEWHERE and error.code not in ("INVALID_CHOICE", "NOT_TAKEN"):
                raise
            continue
        return True


def _who(ctx: CommandContext, task: Mapping[str, Any]) -> WhoAsks:
    """Who asks now: the task, or its agent before the task has begun."""
    who = asked(ctx.client, task["id"])
    return who if who.prompt is not None else asked(ctx.client, task["agent_id"])


def _read(ctx: CommandContext, agent: str, task: Mapping[str, Any], who: WhoAsks) -> str | None:
    """The answer; None for none, empty where it is not asked any more."""
    assert who.prompt is not None
    if who.prompt.get("type") == "password":
        from getpass import getpass

        try:
            return getpass(f"{agent}: ") or None
        except EOFError:
            return None
    while True:
        ctx.out.stderr.write(f"{hint(who.prompt)} ")
        ctx.out.stderr.flush()
        while not select.select([sys.stdin], [], [], LOOK)[0]:
            _check(ctx, task)
            now = _who(ctx, task).prompt
            if now is None or now["prompt_id"] != who.prompt["prompt_id"]:
                ctx.out.remark()
                ctx.out.note("it was answered elsewhere")
                return ""
        line = sys.stdin.readline()
        if not line:
            ctx.out.remark()
            return None
        typed = meant(who.prompt, line.removesuffix("\n"))
        if typed.answer is not None:
            return typed.answer
        ctx.out.note(typed.note)


def _check(ctx: CommandContext, task: Mapping[str, Any]) -> None:
    """Raises TimedOut where the person's own time limit is over."""
    if ctx.client.deadline is not None and time.monotonic() >= ctx.client.deadline:
        ctx.out.remark()
        raise TimedOut(f"the question was not answered: see 'synapsectl task {short_id(str(task['id']))}'")


def _sure(prompt: Mapping[str, Any]) -> dict[bool, str]:
    """The keys that say yes and no for sure."""
    found = {}
    for accept in (True, False):
        try:
            found[accept] = choice(prompt, accept=accept)
        except ValueError:
            continue
    return found
