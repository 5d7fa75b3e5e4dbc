"""Handles questions of agents to a person: finds the question of a task or an agent, shows it with a way to answer, and
finds the option that says yes or no."""

import re
from typing import Any, NamedTuple

from synapsectl.client import Client, agent_path, task_path
from synapsectl.context import CommandContext
from synapsectl.errors import REFUSED, ApiError, CtlError
from synapsectl.output import CommandOutput, short_id
from synapsed.shared.choices import LASTING, NO, choice, whole

_TASK_ID = re.compile(r"[0-9a-f]{8}[0-9a-f-]{0,28}")

_ENDING = re.compile(
    r"\b(?:abort|bye|clos(?:e|ing)|exit(?:ing)?|kill|leav(?:e|ing)|log(?:ging)? ?out|quit(?:ting)?|shut ?down|sign ?out"
    r"|terminat(?:e|ing)|end (?:the |this )?(?:session|program|conversation))\b",
    re.IGNORECASE,
)
"""Words of a question or an option whose answer may end the program."""
_FIRST = re.compile(r"\W*(don['’]t|do not|\w+)")

ALIASED = "external:"
"""Beginning of the ids of agents elsewhere that were given an alias: they have no terminal here."""
ASKING_MAX = 20
"""Most tasks that are named if an agent asks in several."""
QUESTION_MAX = 160
"""Characters of a question in a line about something else."""
NOT_TAKEN = "NOT_TAKEN"
SCREEN = "screen"
"""Type of a prompt that only a person can read: it is the screen's last rows."""


LEARNED = (
    "where that is the prompt of a program without a profile: a line that you type there teaches it, "
    "or start it with --prompt 'TEXT'"
)
"""Ways in which a prompt without a usual sign becomes known."""


class NoSuchChoice(CtlError):
    """The prompt's options do not say which of them is yes or no."""

    exit_code = REFUSED
    code = "INVALID_CHOICE"


class WhoAsks(NamedTuple):
    """The agent that asks, and its question."""

    name: str
    agent: str
    """An address of the agent."""
    task: str | None
    """Id of the task; None outside any task."""
    prompt: dict[str, Any] | None
    """None without a question."""
    here: bool = True
    """True if it is one of the daemon's own, and has a terminal."""


def looks_like_task(target: str) -> bool:
    """Returns True for a task's id or a prefix of at least eight characters of one."""
    return _TASK_ID.fullmatch(target) is not None


def asked(client: Client, target: str) -> WhoAsks:
    """Returns the question of the task or agent `target`. Raises ApiError."""
    if looks_like_task(target):
        try:
            task = client.get(task_path(target))["task"]
        except ApiError as error:
            if error.code != "TASK_NOT_FOUND":
                raise
            return _asked_by_agent(client, target, error)
        here = not is_elsewhere(task["agent_id"])
        return WhoAsks(short_id(task["id"]), task["agent_id"], task["id"], task.get("prompt"), here)
    return _asked_by_agent(client, target, None)


def _asked_by_agent(client: Client, target: str, no_task: ApiError | None) -> WhoAsks:
    try:
        agent = client.get(agent_path(target, "status"), {"detail": 1})
    except ApiError as error:
        if (alias := error.details.get("alias")) is not None:
            return _asked_elsewhere(client, str(alias))
        # Neither is known: what looks like a task's id was meant as one.
        raise (no_task if no_task and error.code == "UNKNOWN_AGENT" else error) from None
    prompt = agent.get("prompt")
    task = agent.get("task") if prompt else None
    if task:
        running = client.get(task_path(task))["task"]
        if running["status"] not in ("input_required", "auth_required"):
            task = None
    return WhoAsks(agent["name"], agent["name"], task, prompt)


def _asked_elsewhere(client: Client, address: str) -> WhoAsks:
    """Returns the question of an agent elsewhere in one of the tasks that were sent to it from this host. Raises
    ApiError if it asks in several."""
    asking = client.get(agent_path(address, "tasks"), {"status": "input_required,auth_required", "limit": ASKING_MAX})
    if len(asking) > 1:
        ids = ", ".join(short_id(task["id"]) for task in asking)
        raise ApiError("AMBIGUOUS", f"{address} asks something in several tasks: name one of {ids}")
    if not asking:
        return WhoAsks(address, address, None, None, here=False)
    return WhoAsks(address, address, asking[0]["id"], asking[0].get("prompt"), here=False)


def is_elsewhere(agent_id: str) -> bool:
    """Returns True for the id of an agent elsewhere that only messages reach."""
    return agent_id.startswith(ALIASED)


def who_answers(client: Client, address: str) -> dict[str, Any]:
    """Returns the state of the agent that asks. Of an agent elsewhere, under an alias, only the name is known here; its
    "elsewhere" is True. Raises ApiError."""
    try:
        agent: dict[str, Any] = client.get(agent_path(address, "status"), {"detail": 1})
    except ApiError as error:
        if (alias := error.details.get("alias")) is None:
            raise
        return {"id": alias, "name": alias, "elsewhere": True}
    return agent


def answer(client: Client, target: WhoAsks, text: str, prompt_id: str | None) -> Any:
    """Gives `text` to the question; with `prompt_id` only if it is still this very prompt. Raises ApiError."""
    body = {"input": text} | ({"prompt_id": prompt_id} if prompt_id else {})
    if target.task:
        return client.post(task_path(target.task, "input"), body)
    if not target.here:
        raise ApiError("NOT_WAITING", f"{target.name} asks nothing")
    return client.post(agent_path(target.name, "input", control=True), body)


def choose(prompt: dict[str, Any], *, accept: bool) -> str:
    """Returns the key of the option that says yes (or no) to the present question. Raises NoSuchChoice, also if several
    do."""
    try:
        return choice(prompt, accept=accept)
    except ValueError as error:
        raise NoSuchChoice(f"{error}: choose one with 'synapsectl input'") from None


def example(prompt: dict[str, Any]) -> str:
    """Returns the example answer for the line to copy after a question: the first option that agrees to the present
    question only; a placeholder if no option is sure to leave the program running."""
    options = prompt.get("options") or []
    if not options or prompt.get("own_words"):
        return "TEXT"
    goes_on = [] if asks_to_end(prompt) else [option for option in options if _goes_on(option)]
    return str(goes_on[0]["key"]) if goes_on else "KEY"


def asks_to_end(prompt: dict[str, Any]) -> bool:
    """Returns True if the question itself is about the end of the program, so that a plain yes may end it."""
    return _ENDING.search(str(prompt.get("prompt", ""))) is not None


def _goes_on(option: dict[str, Any]) -> bool:
    label = str(option.get("label", "")).lower()
    if _ENDING.search(label) or any(word in label for word in LASTING) or str(option["key"]).lower() in NO:
        return False
    first = _FIRST.match(label)
    return first is None or first[1] not in NO


def show_prompt(out: CommandOutput, prompt: dict[str, Any] | None) -> None:
    """Prints the prompt and its options on stderr."""
    if prompt is None:
        return
    for line in whole(prompt).splitlines():
        out.remark(f"  {line}")
    for option in prompt.get("options") or []:
        mark = " (default)" if option["key"] == prompt.get("default") else ""
        out.remark(f"    {option['key']}  {option['label']}{mark}")
    if prompt.get("own_words") and prompt.get("options"):
        out.remark("    or words of your own")


def hands(agent: str) -> str:
    """Returns the commands with which a person goes on if nothing can be answered from here."""
    return f"attach answers it: synapsectl attach {agent}; or synapsectl keys {agent} KEY…"


def behind(name: str, task: str | None, prompt: dict[str, Any] | None) -> str:
    """Returns words why a message waits for `name`: the `task` on which the agent works, and its question, with a way
    to answer."""
    what = f"task {short_id(task)}" if task else f"what {name} does"
    if prompt is None:
        return f"waits behind {what}"
    lines = str(prompt.get("prompt", "")).split()
    question = " ".join(lines)
    question = f"{question[:QUESTION_MAX]}…" if len(question) > QUESTION_MAX else question
    if prompt.get("type") == SCREEN:
        return f"waits behind {what}: its screen is not understood: {question}; {hands(name)}"
    target = short_id(task) if task else name
    yes = prompt.get("type") in ("permission", "confirmation", "trust") and not asks_to_end(prompt)
    verb = "approve" if yes else "input"
    more = "" if verb == "approve" else " …"
    return f"waits behind {what}, which asks: {question}; 'synapsectl {verb} {target}{more}' answers it"


def tell_hands(ctx: CommandContext, who: WhoAsks, host: str = "") -> None:
    """Says how a person goes on if nothing can be answered from here; says nothing for an agent without a terminal."""
    if who.here:
        ctx.out.remark(hands(who.agent + host))


def only_there(task: dict[str, Any]) -> str | None:
    """Returns the way to answer the question of a task on another host, if that host takes no answer to it from a
    person here; else None."""
    there = (task.get("metadata") or {}).get("external") or {}
    prompt, answers = task.get("prompt") or {}, there.get("answers")
    if answers is None or prompt.get("type") in answers:
        return None
    host = there.get("host") or "its host"
    persons = "" if prompt.get("type") == "password" else ", or here once that host takes persons of this one for its"
    return f"answer it on {host}{persons}"


def tell_waiting(ctx: CommandContext, name: str, target: str, task: dict[str, Any]) -> None:
    """Says that the agent `name` waits for a person, the reason, and the way to answer."""
    prompt = task.get("prompt")
    unread = prompt is not None and prompt.get("type") == SCREEN
    why = ": what stands on its screen is not understood:" if unread else ":" if prompt else ""
    ctx.out.note(f"{name} waits for a person{why}")
    show_prompt(ctx.out, prompt)
    if (only := only_there(task)) is not None:
        ctx.out.remark(only)
        return
    there = is_elsewhere(str(task.get("agent_id", "")))
    if unread and not there:
        ctx.out.remark(hands(name))
        ctx.out.remark(LEARNED)
    if task["status"] == "auth_required":
        done = f"sign in as it says; if it does not go on then: synapsectl input {target} done"
        ctx.out.remark(done if there else f"log in there: synapsectl attach {name}")
        return
    prompt = prompt or {}
    if unread and not prompt.get("own_words"):
        return
    if prompt.get("type") == "password":
        ctx.out.remark(f"answer with: synapsectl input {target}   (it is asked for, and not shown)")
        return
    ctx.out.remark(f"answer with: synapsectl input {target} {example(prompt)}")
