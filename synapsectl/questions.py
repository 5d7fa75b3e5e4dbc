"""Asks an agent's question on the terminal of the person who waits for the agent.

The answer is for the prompt that was shown, by its id. If a question is answered elsewhere meanwhile, that is reported,
and the wait for the terminal ends.
"""

import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from synapsectl.asking import QuestionOver, ask_hidden, ask_line
from synapsectl.context import CommandContext
from synapsectl.errors import ApiError, TimedOut
from synapsectl.output import short_id
from synapsectl.prompts import SCREEN, WhoAsks, answer, asked, show_prompt
from synapsed.shared.choices import choice

ELSEWHERE = frozenset({"PROMPT_CHANGED", "NOT_WAITING"})
"""Codes of the refusal of an answer after another one was given elsewhere."""
BY_HAND = frozenset({SCREEN, "login"})
"""Types of prompts that are answered at the agent's own terminal."""


class TypedAnswer(NamedTuple):
    """Meaning of a typed line: `answer` is given to the program; without one, `note` says what to type."""

    answer: str | None
    note: str = ""


def can_ask(ctx: CommandContext) -> bool:
    """Returns True if there is a person to ask, who types and reads the output; and it is no agent's shell."""
    return sys.stdin.isatty() and ctx.out.on_terminal and ctx.out.stderr.isatty() and ctx.own_agent is None


def hint(prompt: Mapping[str, Any]) -> str:
    """Returns the possible answers: `[y/N]`, the numbers of options, words."""
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
    """Returns the meaning of the line: an option's key, or y or n if an option says that for sure, or words."""
    text = line.strip()
    keys = [str(option["key"]) for option in prompt.get("options") or []]
    options = {key.lower(): key for key in keys} | {key: key for key in keys}
    sure = _sure(prompt)
    two = len(sure) == 2 and len(keys) in (0, 2)
    if not text and two:
        return TypedAnswer(sure[False])
    if (key := options.get(text) or options.get(text.lower())) is not None:
        return TypedAnswer(key)
    decided = {"y": True, "yes": True, "n": False, "no": False}.get(text.lower())
    if decided is not None and decided in sure:
        return TypedAnswer(sure[decided])
    if text and (prompt.get("own_words") or not (options or two)):
        return TypedAnswer(line)
    return TypedAnswer(None, f"type {hint(prompt)}; Ctrl-D leaves it as it is")


def ask(ctx: CommandContext, agent: str, task: Mapping[str, Any]) -> bool:
    """Asks the question of `agent`, of the task or from before the task has begun, and gives the agent the answer.
    Returns False if the question is not answered from here: it has to be answered at the agent's terminal, or the
    person does not want to (Ctrl-D). Raises ApiError, NoDaemon, TimedOut."""
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
            if error.code not in ELSEWHERE and error.code not in ("INVALID_CHOICE", "NOT_TAKEN"):
                raise
            ctx.out.note("it was answered elsewhere" if error.code in ELSEWHERE else str(error))
            continue
        return True


def _who(ctx: CommandContext, task: Mapping[str, Any]) -> WhoAsks:
    """Returns the present asker: the task, or its agent before the task has begun."""
    who = asked(ctx.client, task["id"])
    return who if who.prompt is not None else asked(ctx.client, task["agent_id"])


def _read(ctx: CommandContext, agent: str, task: Mapping[str, Any], who: WhoAsks) -> str | None:
    """Returns the answer; None without an answer, empty if the question is over."""
    assert who.prompt is not None
    if who.prompt.get("type") == "password":
        try:
            return ask_hidden(f"{agent}: ") or None
        except EOFError:
            return None
    prompt_id = who.prompt["prompt_id"]

    def is_over() -> bool:
        _check(ctx, task)
        now = _who(ctx, task).prompt
        return now is None or now["prompt_id"] != prompt_id

    while True:
        try:
            line = ask_line(ctx.out.stderr, f"{hint(who.prompt)} ", is_over)
        except QuestionOver:
            ctx.out.remark()
            ctx.out.note("it was answered elsewhere")
            return ""
        if not line:
            ctx.out.remark()
            return None
        typed = meant(who.prompt, line.removesuffix("\n"))
        if typed.answer is not None:
            return typed.answer
        ctx.out.note(typed.note)


def _check(ctx: CommandContext, task: Mapping[str, Any]) -> None:
    """Raises TimedOut if the person's own time limit is over."""
    if ctx.client.deadline is not None and time.monotonic() >= ctx.client.deadline:
        ctx.out.remark()
        raise TimedOut(f"the question was not answered: see 'synapsectl task {short_id(str(task['id']))}'")


def _sure(prompt: Mapping[str, Any]) -> dict[bool, str]:
    """Returns the keys that say yes and no for sure."""
    found = {}
    for accept in (True, False):
        try:
            found[accept] = choice(prompt, accept=accept)
        except ValueError:
            continue
    return found
