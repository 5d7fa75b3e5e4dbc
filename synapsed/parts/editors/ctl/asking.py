"""Turns questions of an agent into requests for permission that an editor can show. Pure."""

from collections.abc import Mapping
from typing import Any

from synapsed.parts.editors.ctl.content import id_for
from synapsed.shared.choices import SCREEN, meaning, whole
from synapsed.shared.visible import visible

TITLE_MAX = 200
"""Characters of a question's title."""

_KINDS = {"yes": "allow_once", "lasting": "allow_always", "no": "reject_once"}
_UNANSWERABLE = frozenset({"password", "login", SCREEN})
"""Types of prompts that are answered at the agent's terminal alone."""


def can_be_asked(prompt: Mapping[str, Any]) -> bool:
    """Returns True if an editor can answer the prompt, by one of its options."""
    return bool(prompt.get("options")) and prompt.get("type") not in _UNANSWERABLE


def request(prompt: Mapping[str, Any], session: str, call: str | None) -> dict[str, Any]:
    """Returns the parameters of `session/request_permission`; `call` is the tool call of the question, if it is
    known."""
    options = [
        {"optionId": str(option["key"]), "name": visible(str(option["label"])), "kind": _KINDS[meaning(option)]}
        for option in prompt["options"]
    ]
    about = {"toolCallId": call or call_id(prompt), "title": _title(prompt), "status": "pending", **_words(prompt)}
    return {"sessionId": session, "toolCall": about, "options": options}


def waits(prompt: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns an update for a question that cannot be answered in an editor: the agent waits, and the way to answer."""
    how = f"It is answered at its terminal: synapsectl attach {name}"
    words = f"{_asked(prompt)}\n\n{how}"
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": call_id(prompt),
        "title": f"{name} waits for you: {_title(prompt)}"[:TITLE_MAX],
        "kind": "other",
        "status": "pending",
        "content": [{"type": "content", "content": {"type": "text", "text": words}}],
    }


def over(prompt: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an update that ends the one of `waits`."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id(prompt), "status": "completed"}


def _asked(prompt: Mapping[str, Any]) -> str:
    return visible(str(prompt.get("prompt", "")))


def call_id(prompt: Mapping[str, Any]) -> str:
    return id_for("ask", prompt["prompt_id"])


def _title(prompt: Mapping[str, Any]) -> str:
    """Returns the line of the question, or else the first of the prompt."""
    lines = [line.strip() for line in _asked(prompt).splitlines() if line.strip()]
    line = next((line for line in lines if line.endswith("?")), lines[0] if lines else "a question")
    return line if len(line) <= TITLE_MAX else f"{line[: TITLE_MAX - 1]}…"


def _words(prompt: Mapping[str, Any]) -> dict[str, Any]:
    words = visible(whole(prompt))
    return {"content": [{"type": "content", "content": {"type": "text", "text": words}}]} if words else {}
