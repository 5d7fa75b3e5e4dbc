"""Events for people: one line each, as in a log."""

import json
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from synapsectl.colours import BLUE, BOLD, DIM, GREEN, RED, YELLOW, painted, wanted
from synapsectl.output import harmless, one_line, short_id

VALUE_SHOWN = 100
"""Characters of one fact; `--json` has all of them."""

IDS = frozenset({"id", "prompt_id"})

_COLOURS = {
    "attention": YELLOW,
    "inputRequired": YELLOW,
    "inputAnswered": GREEN,
    "agentAlert": RED,
    "gap": RED,
    "toolExecution": BLUE,
}
_STATES = {"failed": RED, "completed": GREEN, "opened": YELLOW, "input_required": YELLOW, "auth_required": YELLOW}
"""Colour by an event's state or status, if its type has no colour of its own."""


class Lines:
    """Writes a line for each event. Times are of the local zone, with the day if it differs from that of the line
    before. Colours are used only on a terminal, and not with NO_COLOR; text from agents never adds colours."""

    def __init__(self, *, on_terminal: bool, environ: Mapping[str, str], today: date | None = None) -> None:
        self._coloured = wanted(environ, on_terminal=on_terminal)
        self._day = today or datetime.now().astimezone().date()

    def of(self, event: dict[str, Any]) -> str:
        data: dict[str, Any] = event["data"]
        number = "-" if event["id"] is None else str(event["id"])
        about = [event["agent"] or "", short_id(event["task"] or "")]
        words = [
            self._painted(number, DIM),
            self._painted(self._time(event["time"]), DIM),
            *(self._painted(one_line(word), BOLD) for word in about if word),
            self._painted(one_line(event["event"]), _colour(event["event"], data)),
            _facts(data),
        ]
        return " ".join(word for word in words if word)

    def brief(self, event: dict[str, Any], names: Mapping[str, str]) -> str:
        """Returns a line for a narrow place: the time of day, the agent's name (of `names`, by id), the event, and its
        facts without ids."""
        data = {key: value for key, value in event["data"].items() if key not in IDS}
        agent = event["agent"] or ""
        words = [
            self._painted(f"{datetime.fromisoformat(event['time']).astimezone():%H:%M:%S}", DIM),
            self._painted(one_line(names.get(agent, agent)), BOLD) if agent else "",
            self._painted(one_line(event["event"]), _colour(event["event"], data)),
            _facts(data),
        ]
        return " ".join(word for word in words if word)

    def _time(self, time: str) -> str:
        when = datetime.fromisoformat(time).astimezone()
        before, self._day = self._day, when.date()
        return when.strftime("%H:%M:%S" if before == self._day else "%Y-%m-%d %H:%M:%S")

    def _painted(self, text: str, colour: str) -> str:
        return painted(text, colour) if self._coloured else text


def _facts(data: Mapping[str, Any]) -> str:
    return " ".join(f"{one_line(key)}={_short(value)}" for key, value in data.items() if value not in (None, "", False))


def _colour(kind: str, data: dict[str, Any]) -> str:
    said = data.get("state", data.get("status"))
    state = _STATES.get(said, "") if isinstance(said, str) else ""
    return state or _COLOURS.get(kind, "")


def _short(value: Any) -> str:
    """Returns a fact in a few words, harmless and on one line."""
    if isinstance(value, dict):
        if value.get("truncated") is True:
            return f"({value.get('size')} characters)"
        if "parts" in value:
            value = "".join(str(part.get("text", "")) for part in value["parts"])
        elif "prompt" in value:
            value = value["prompt"]
    plain = isinstance(value, str) and value.isprintable()
    text = value if plain else json.dumps(value, ensure_ascii=False)
    return harmless(text if len(text) <= VALUE_SHOWN else text[: VALUE_SHOWN - 1] + "…")
