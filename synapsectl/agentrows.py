"""Words of an agent's row in `synapsectl list`. Pure: the daemon's row and the time go in, words come out.

Agents that need a person come first, then those that cannot go on, then working ones, then resting ones.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from synapsectl.ages import clock_time
from synapsectl.colours import BLUE, BOLD, CYAN, DIM, GREEN, MAGENTA, RED, YELLOW
from synapsectl.output import TableCell, display_width

HEADINGS = ("NAME", "STATE", "FOR", "WHAT", "FOLDER")

FOLDERS_FROM = 60
"""Least columns of a list with folders; in a narrower list, the question gets their room."""

ORDER = ("waiting", "unknown", "failed", "backoff", "limited", "starting", "busy", "ready", "parked")
"""Order of the rows; other words come last."""

STYLES = {
    "waiting": f"{BOLD};{YELLOW}",
    "unknown": f"{BOLD};{YELLOW}",
    "failed": f"{BOLD};{RED}",
    "backoff": RED,
    "limited": MAGENTA,
    "starting": CYAN,
    "busy": BLUE,
    "ready": GREEN,
}
"""Styles of states; all others are dim."""

UNREAD_SCREEN = "unknown screen"

HELD = {
    "typing": "its input line is not empty",
    "keeper": "the process that holds its terminal does not answer",
    "dialog": "it asks something",
    "limit": "its usage limit is reached",
    "account": "its account does not work: see inbox",
    "unread": "it has not read what was typed",
    "restart": "it is restarted before its next message",
    "no composer on the screen": "it shows no input line",
}
"""Phrases for the daemon's words why messages are held."""

NAME_SHARE, FOLDER_SHARE = 4, 5
"""A name gets at most a fourth of the terminal's columns, a folder a fifth; but each gets at least `LEAST`."""
LEAST = 12


def state_of(agent: Mapping[str, Any]) -> str:
    """Returns one word: a running agent's activity, else the state of its process. It is `unknown` for a screen that is
    not understood, even if the program reports rest in another way."""
    if agent["state"] != "running":
        return str(agent["state"])
    return "unknown" if agent["held"] == UNREAD_SCREEN else str(agent["activity"])


def by_need(agents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the agents in the order of `ORDER`. In a state that may need a person, the one that has waited longest
    comes first; all others keep their order."""

    def place(agent: dict[str, Any]) -> tuple[int, str]:
        state = state_of(agent)
        rank = ORDER.index(state) if state in ORDER else len(ORDER)
        return rank, str(agent["since"]) if rank < ORDER.index("starting") else ""

    return sorted(agents, key=place)


def what(agent: Mapping[str, Any], now: datetime) -> str:
    """Returns the number of waiting messages; the question, the reason for waiting or not running, or the work; and the
    number of background tasks."""
    queue = f"{agent['queue']} wait{'s' if agent['queue'] == 1 else ''}" if agent["queue"] else ""
    background = f"{agent['background']} in the background" if agent.get("background") else ""
    return " · ".join(part for part in (queue, _matter(agent, now), background) if part)


def _matter(agent: Mapping[str, Any], now: datetime) -> str:
    state = state_of(agent)
    if state in ("backoff", "failed"):
        return str(agent["evidence"])
    if asks := agent.get("asks"):
        return f"not understood: {asks}" if agent["held"] == UNREAD_SCREEN else str(asks)
    if state == "limited":
        return f"until {clock_time(agent['until'], now)}" if agent.get("until") else str(agent["evidence"])
    if agent["task"]:
        return str(agent.get("doing") or f"task {agent['task'][:8]}")
    held = agent["held"]
    return "" if held is None or held == state else HELD.get(held, held)


def row(agent: Mapping[str, Any], now: datetime, *, age: str, folder: str, columns: int) -> list[TableCell]:
    """Returns the row under `HEADINGS`. `columns`: the width of the terminal."""
    state = state_of(agent)
    needs = ORDER.index(state) <= ORDER.index("backoff") if state in ORDER else False
    return [
        TableCell(agent["name"], BOLD if needs else "", most=max(LEAST, columns // NAME_SHARE)),
        TableCell(state, STYLES.get(state, DIM)),
        TableCell(age, DIM),
        TableCell(what(agent, now)),
        TableCell(end_of(folder, max(LEAST, columns // FOLDER_SHARE)), DIM),
    ]


def asking(agents: Iterable[dict[str, Any]], items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the agents with the data of `items` of the inbox for those that ask: the command in place of the words
    around it, and the time of the question, even if another activity has begun since."""
    asked = {item["agent_id"]: item for item in items if item.get("prompt_id")}
    return [agent | _asked(agent, asked.get(agent["id"])) for agent in agents]


def _asked(agent: Mapping[str, Any], item: Mapping[str, Any] | None) -> dict[str, Any]:
    if item is None or not agent.get("asks"):
        return {}
    return {"asks": item["command"] or agent["asks"], "since": item["since"]}


def shorter(path: str, home: str) -> str:
    """Returns `path` with a tilde for the person's home."""
    return "~" + path[len(home) :] if home and (path + "/").startswith(home + "/") else path


def end_of(path: str, columns: int) -> str:
    """Returns the end of `path`, in which folders differ, in at most `columns` columns."""
    if display_width(path) <= columns:
        return path
    kept, used = "", 1
    for character in reversed(path):
        used += display_width(character)
        if used > columns:
            break
        kept = character + kept
    return "…" + kept
