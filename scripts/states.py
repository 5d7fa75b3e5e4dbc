"""The tables of `docs/states.md`: words, colours and signs of the list, the inbox, `top` and the page.

python -m scripts.states
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from synapsectl.agentrows import HELD, ORDER, STYLES
from synapsectl.colours import BLUE, BOLD, CYAN, GREEN, MAGENTA, RED, YELLOW
from synapsectl.commands.tasks import OPEN as OPEN_TASKS
from synapsectl.commands.tasks import STYLES as TASK_STYLES
from synapsectl.inbox.items import KINDS, order
from synapsectl.inbox.view import STYLES as KIND_STYLES
from synapsed.model.agent import Activity, ProcessState
from synapsed.model.attention import AttentionKind
from synapsed.model.task import TaskState

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "states.md"
STATIC = ROOT / "synapsed" / "parts" / "web" / "static"
BEGIN, END = "<!-- made by python -m scripts.states from here -->", "<!-- to here -->"

COLOURS = {
    BOLD: "bold",
    RED: "red",
    GREEN: "green",
    YELLOW: "yellow",
    BLUE: "blue",
    MAGENTA: "magenta",
    CYAN: "cyan",
}

MEANS = {
    "waiting": "it asks a person something",
    "unknown": "its screen is not understood: look, and answer there",
    "failed": "its program ended too often in a row; it is tried again slowly",
    "backoff": "its program ended, and is started again in a moment",
    "limited": "its account's usage limit is reached; messages wait",
    "starting": "its program comes up",
    "busy": "it works",
    "ready": "it can take a message",
    "parked": "its idle program was ended to save memory; the next message starts it",
    "stopping": "its program is being ended",
    "stopped": "it was stopped",
    "exited": "its program has ended, and is not started again",
}
KIND_MEANS = {
    "permission": "may it do that?",
    "question": "it asks for a choice or for words",
    "plan": "may it go on as it has planned?",
    "sign_in": "its program wants an account",
    "limit": "the usage limit of its account is reached",
    "account": "its account does not work",
    "failure": "a message failed",
    "crash_loop": "its program ends again and again",
    "unreadable": "its screen is not understood: attach",
    "finished": "what you sent is done, and nobody waited for it",
    "alert": "something about it is to be mended",
}
TASK_MEANS = {
    "input_required": "its agent asks something about it",
    "auth_required": "its agent wants a sign-in for it",
    "working": "its agent works on it",
    "submitted": "it waits for its agent",
    "completed": "done, with an answer",
    "failed": "it failed, with a code",
    "canceled": "it was canceled",
    "rejected": "it was not accepted",
}
PLACES = ("asks", "else needs you", "is finished")
"""By the number that `synapsectl.inbox.items.order` gives."""


def document() -> str:
    """Returns `docs/states.md` with its tables as they are to be."""
    before, rest = DOCUMENT.read_text().split(BEGIN)
    return f"{before}{BEGIN}\n\n{_tables()}\n\n{END}{rest.split(END)[1]}"


def words() -> list[str]:
    """Returns the words of an agent's state, who needs a person first."""
    every = {str(each) for each in (*ProcessState, *Activity)} - {str(ProcessState.RUNNING)}
    return [*ORDER, *sorted(every - set(ORDER), key=list(MEANS).index)]


def page_colour(rule: str) -> str:
    """Returns the colour that the page's style sheets have for a class; grey is all that has none."""
    sheets = "".join(file.read_text() for file in sorted(STATIC.glob("*.css")))
    for selectors, body in re.findall(r"^([^{}\n]+) \{([^}]*)\}", sheets, re.MULTILINE):
        if rule in (one.strip() for one in selectors.split(",")):
            found = re.search(r"var\(--(amber|accent|green|red|soft)\)", body)
            name = {"accent": "blue", "soft": "grey"}.get(found[1], found[1]) if found else "grey"
            return f"{name} ring" if "inset" in body else name
    return "grey"


def _colour(style: str | None) -> str:
    return " ".join(COLOURS[code] for code in style.split(";")) if style else "dim"


def _tables() -> str:
    return "\n".join([*_states(), "", *_held(), "", *_kinds(), "", *_tasks()])


def _states() -> Iterable[str]:
    yield "## Of an agent"
    yield ""
    yield from ("| state | means | `list`, `top` | dot on the page |", "|---|---|---|---|")
    for word in words():
        yield f"| `{word}` | {MEANS[word]} | {_colour(STYLES.get(word))} | {page_colour(f'.d-{word}')} |"


def _held() -> Iterable[str]:
    yield "Why messages wait for it (`held`):"
    yield ""
    yield from ("| `held` | is shown as |", "|---|---|")
    for word, shown in HELD.items():
        yield f"| `{word}` | {shown} |"


def _kinds() -> Iterable[str]:
    yield "## Of what waits for you"
    yield ""
    yield from ("| kind | is shown as | means | place | inbox, `top` | the page |", "|---|---|---|---|---|---|")
    kinds = sorted(get_args(AttentionKind.__value__), key=lambda kind: (_place(kind), list(KIND_MEANS).index(kind)))
    for kind in kinds:
        colours = f"{_colour(KIND_STYLES[kind])} | {page_colour(f'.k-{kind}')}"
        yield f"| `{kind}` | {KINDS[kind]} | {KIND_MEANS[kind]} | {PLACES[_place(kind)]} | {colours} |"


def _place(kind: str) -> int:
    prompt = "p1" if kind in ("permission", "question", "plan") else None
    return order({"kind": kind, "prompt_id": prompt, "since": "", "id": ""})[0]


def _tasks() -> Iterable[str]:
    yield "## Of a task"
    yield ""
    yield from ("| status | is shown as | means | `tasks`, `top` | the page |", "|---|---|---|---|---|")
    every = [*OPEN_TASKS, *sorted({str(each) for each in TaskState} - set(OPEN_TASKS), key=list(TASK_MEANS).index)]
    for status in every:
        shown = status.replace("_", " ")
        colours = f"{_colour(TASK_STYLES.get(status))} | {page_colour(f'.s-{status}')}"
        yield f"| `{status}` | {shown} | {TASK_MEANS[status]} | {colours} |"


if __name__ == "__main__":
    DOCUMENT.write_text(document())
