"""`synapsectl profiles try`: starts an agent of a profile, gives it one message, watches it to the end, and reports
differences from the profile."""

import os
import re
import time
from collections.abc import Callable
from typing import Any

from synapsectl.client import Client, agent_path, task_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, TASK_FAILED, WAITS
from synapsectl.launching import start_agent, take_back, unasked
from synapsectl.waiting import TERMINAL, answer_of

MESSAGE = "Say hello."
READY_S = 60.0
ANSWER_S = 180.0
LOOK_S = 0.2
STILL_S = 2.0
"""Seconds for which the screen is watched after the reported end of the turn: a working program would still move
something."""
OFTEN = 3
"""Least number of looks at a row before it is reported."""
BOTTOM = 10
"""Number of rows at the bottom that may have signs of work."""


class _Trial:
    """Observations of one agent. `told` are the differences."""

    def __init__(self, client: Client, agent: str) -> None:
        self._client = client
        self._agent = agent
        self.told: list[str] = []
        self.asks: str | None = None
        self.busy: set[str] = set()
        """Evidence with which the agent was reported as busy."""
        self.moved: dict[str, int] = {}
        """Rows at the bottom while the agent worked, each with the number of looks that saw it."""

    def rows(self) -> list[str]:
        """Returns the last rows of its screen that have text."""
        screen = self._client.get(agent_path(self._agent, "screen"), {"format": "json"})
        return [line.rstrip() for line in screen["lines"] if line.strip()][-BOTTOM:]

    def look(self) -> dict[str, Any]:
        seen: dict[str, Any] = self._client.get(agent_path(self._agent, "status"), {"detail": 1})
        prompt = seen.get("prompt")
        self.asks = prompt["prompt"] if prompt is not None else None
        if seen["activity"] == "busy":
            self.busy.add(seen["evidence"])
        return seen

    def until(self, wanted: Callable[[], bool], within: float) -> bool:
        """Returns True if `wanted` becomes true within `within` seconds, and before the program asks something."""
        end = time.monotonic() + within
        while not wanted():
            if self.asks is not None or time.monotonic() > end:
                return False
            time.sleep(LOOK_S)
        return True

    def comes_up(self) -> bool:
        seen: dict[str, Any] = {}

        def ready() -> bool:
            nonlocal seen
            seen = self.look()
            return str(seen["activity"]) == "ready"

        if self.until(ready, READY_S):
            return True
        if self.asks is None:
            self.told.append(f"it was never ready: {seen['activity']} ({seen['evidence']}); see [composer] and [ready]")
        return False

    def answers(self, message: str, within: float) -> str | None:
        """Returns the answer to one message, and reports differences."""
        before = self.rows()
        body = {"message": {"role": "user", "parts": [{"type": "text", "text": message}]}, "metadata": {}}
        task = self._client.post(agent_path(self._agent, "tasks/send"), body, key=os.urandom(16).hex())["task"]

        def over() -> bool:
            nonlocal task
            self.look()
            task = self._client.get(task_path(task["id"]))["task"]
            for row in set(self.rows()) - set(before):
                self.moved[row] = self.moved.get(row, 0) + 1
            return str(task["status"]) in TERMINAL

        if not self.until(over, within):
            self._client.post(task_path(task["id"], "cancel"))
            if self.asks is None:
                self.told.append(f"its turn did not end within {within:g} s; see [busy] and [composer]")
            return None
        if task["status"] != "completed":
            self.told.append(f"the message {task['status']}: {(task.get('error') or {}).get('message', '')}")
            return None
        answer = answer_of(task)
        if not (answer or "").strip():
            self.told.append("no answer was read: see [answer], 'start' and 'end'")
        self._stands_still(message)
        return answer

    def _stands_still(self, message: str) -> None:
        """Reports rows that still move after the reported end of the turn."""
        last = self.rows()
        moving: set[str] = set()
        end = time.monotonic() + STILL_S
        while time.monotonic() < end:
            time.sleep(LOOK_S)
            rows = self.rows()
            moving |= set(rows) ^ set(last)
            last = rows
        if moving:
            row = min(moving, key=len).strip()
            self.told.append(f"rows moved when its turn was said to be over, which is work: {row!r} belongs to [busy]")
        gone = [
            row
            for row, seen in self.moved.items()
            if seen >= OFTEN and row not in last and re.search(r"\w", row) and message not in row
        ]
        if gone and not any(why.startswith(("screen", "title", "progress", "status")) for why in self.busy):
            shown = ", ".join(repr(row.strip()) for row in sorted(gone, key=lambda row: -self.moved[row])[:3])
            self.told.append(
                f"nothing said that it worked; what stood there only meanwhile may: {shown} ([busy] screen)"
            )


def try_profile(profile: str, rest: list[str], message: str, limit: float, ctx: CommandContext) -> tuple[int, Any]:
    """Starts an agent of `profile`, gives it `message`, and removes it; returns the exit code, and the observations.
    Raises the errors of `start_agent`."""
    wanted = unasked(profile, name=f"try-{os.urandom(3).hex()}", no_port=True, rest=rest)
    agent = start_agent(wanted, ctx)
    trial = _Trial(ctx.client, agent["id"])
    answer = None
    try:
        with ctx.busy(f"trying {profile}"):
            if trial.comes_up():
                answer = trial.answers(message, limit)
    finally:
        take_back(agent, ctx)
    seen = {"profile": profile, "answer": answer, "asks": trial.asks, "wrong": trial.told}
    return (WAITS if trial.asks is not None else TASK_FAILED if trial.told else DONE), seen


def show(seen: dict[str, Any], ctx: CommandContext) -> None:
    """Prints the result of a trial."""
    profile = seen["profile"]
    for line in seen["wrong"]:
        ctx.out.note(f"{profile}: {line}")
    if seen["asks"] is not None:
        ctx.out.note(f"{profile}: it asks, and a person has to answer before it can be tried:\n{seen['asks']}")
    elif not seen["wrong"]:
        ctx.out.note(f"{profile}: it took one message, and its answer was read")
