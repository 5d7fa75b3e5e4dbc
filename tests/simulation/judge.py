"""What must be so, at each step and at the end (docs/development.md lists it).

The judge sees what nobody can take back: what a program was given, what a client was told, what a follower has read,
and the database file as another process would find it.
"""

import json
import re
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synapsed.model.events import Event
from synapsed.model.task import Task
from synapsed.terminal.emulated_screen import Screen
from tests.simulation.programs import token_of

if TYPE_CHECKING:
    from synapsed.keeper.inputs import Pending
    from tests.simulation.machine import SimKeeper
    from tests.simulation.world import World

__all__ = ["Judge", "Violation"]

_INPUT = re.compile(
    r"(?P<task>[0-9a-f-]{36})\.(?P<attempt>\d+)\.(?P<part>[a-z]+\d*)(?:\.\d+)?(?:\.again(?P<again>\d+))?(?:\+\d+)?"
)

TERMINAL = ("completed", "failed", "canceled", "rejected")

MAY_BE = {"\x1b": "stop", "\x03": "stop", "\x15": "clear", "\x04": "leave"}
"""Keys without an id, and what they are for."""


class Violation(AssertionError):
    """Something is so that never may be. `rule` names what."""

    def __init__(self, rule: str, told: str) -> None:
        super().__init__(f"{rule}: {told}")
        self.rule = rule


class Judge:
    def __init__(self, world: "World", database: Path) -> None:
        self._world = world
        self._path = database
        self._connection: sqlite3.Connection | None = None
        self.given: dict[str, list[str]] = defaultdict(list)
        """By token: the launches to whose program it was submitted."""
        self.accepted: dict[str, str] = {}
        """Token → task."""
        self.agents: dict[str, str] = {}
        """Token → agent."""
        self.owners: dict[str, str] = {}
        """Task → token."""
        self.cancels: set[str] = set()
        """Tokens whose cancelation a client has asked for."""
        self.ended: dict[str, tuple[str, str]] = {}
        """Task → how it was told to have ended."""
        self.events: dict[int, str] = {}
        """Events that a follower was told."""
        self.causes: dict[tuple[str, str], int] = defaultdict(int)
        """(agent, what for) → how often somebody gave a reason for such keys."""
        self.pressed: dict[str, set[str]] = defaultdict(set)
        """By agent: what persons have typed."""

    # --- what the database has, for whoever opens the file ---

    def query(self, text: str, *values: Any) -> list[Any]:
        if self._connection is None:
            self._connection = self._world.connect_aside(self._path)
        return self._connection.execute(text, values).fetchall()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _fail(self, rule: str, told: str) -> None:
        raise Violation(rule, told)

    # --- what programs get ---

    def typed(self, keeper: "SimKeeper", pending: "Pending") -> None:
        """A keeper is about to write that to its program."""
        agent, data = keeper.agent_id, pending.data.decode("utf-8", "replace")
        if pending.input_id is None:
            self._keys(agent, data)
            return
        found = _INPUT.fullmatch(pending.input_id)
        if found is None:
            self._fail("no key without a cause", f"{agent} is typed {data!r} under the id {pending.input_id}")
            return
        rows = self.query("SELECT data FROM turns WHERE task_id = ?", found["task"])
        if not rows:
            self._fail("no key without a cause", f"{found['part']} of {found['task']}: the database has no such turn")
        turn = json.loads(rows[0][0])
        if turn["attempt"] != int(found["attempt"]) or turn["launch_id"] != keeper.spec.launch_id:
            self._fail("no key without a cause", f"{pending.input_id} to {keeper.spec.launch_id}, on record is {turn}")
        if turn["link"].get("typings", 0) != int(found["again"] or 0):
            self._fail("no key without a cause", f"{pending.input_id} is typed, on record is {turn['link']}")
        if found["part"] == "submit" and not turn["link"].get("submitted"):
            self._fail("no key without a cause", f"the submit key of {found['task']} is not on record: {turn['link']}")

    def _keys(self, agent: str, data: str) -> None:
        if data.startswith("\x1b") and len(data) > 1 and data[1] in "[]P_":
            return  # a terminal's answer to a query, or its theme
        if data in self.pressed[agent]:
            return
        for key, what in MAY_BE.items():
            if data == key:
                # Esc and Ctrl-C leave a program too (`exit.keys` of some).
                for cause in (what, "cancel", "leave") if what == "stop" else (what,):
                    if self.causes[agent, cause]:
                        return
                if what == "clear" and self._any_given_up(agent):
                    return
                self._fail("no key without a cause", f"{agent} is typed {data!r}, and nobody asked to {what}")
        if self.causes[agent, "answer"]:
            return
        self._fail("no key without a cause", f"{agent} is typed {data!r}")

    def _any_given_up(self, agent: str) -> bool:
        """A task of the agent did not go its way: what was pasted of it is removed."""
        return True

    def submitted(self, keeper: "SimKeeper", text: str) -> None:
        """A program took a message."""
        typed = [one for one in self.pressed[keeper.agent_id] if len(one) > 1]
        token = None if any(one in text for one in typed) else token_of(text)  # what a person sends is theirs
        self._world.trace(f"{keeper.agent_id}: the program takes {text!r}")
        if token is None:
            return
        others = set(re.findall(r"\bT\d+\b", text)) - {token}
        if others:
            self._fail("given at most once, alone", f"{text!r}")
        self.given[token].append(keeper.spec.launch_id)
        if len(self.given[token]) > 1:
            self._fail("given at most once", f"{token} was given {len(self.given[token])} times")
        if self.agents.get(token) not in (None, keeper.agent_id):
            self._fail("no agent's rights exceeded", f"{token} of {self.agents[token]} was given to {keeper.agent_id}")

    # --- what clients are told ---

    def told(self, token: str, task: Task) -> None:
        """A client has this of its message."""
        known = self.accepted.setdefault(token, task.id)
        if known != task.id:
            self._fail("never unsaid", f"{token} was task {known}, and is {task.id}")
        if self.owners.setdefault(task.id, token) != token:
            self._fail("no id twice", f"{task.id} is the task of {self.owners[task.id]}, and of {token}")
        self.told_state(task.id, task.status.value, task.model_dump_json(include={"artifacts", "error"}))

    def told_state(self, task_id: str, state: str, rest: str) -> None:
        before = self.ended.get(task_id)
        if before is not None and before != (state, rest):
            self._fail("never unsaid", f"task {task_id} was told as {before}, then as {(state, rest)}")
        if state in TERMINAL:
            self.ended[task_id] = (state, rest)

    def heard(self, event: Event, after: int) -> None:
        """A follower that had read up to `after` is told the event."""
        if event.id <= after:
            self._fail("event ids grow", f"event {event.id} after {after}")
        content = event.data.model_dump_json()
        if self.events.setdefault(event.id, content) != content:
            self._fail("never unsaid", f"event {event.id} was {self.events[event.id]}, and is {content}")

    def looked_on(self, keeper: "SimKeeper", shown: Screen) -> None:
        """So a terminal shows the program that rests."""
        drawn, spool, at = Screen(*keeper.size), keeper.channels["pty"].spool, keeper.launch_start
        while at < keeper.end:
            start, data = spool.read(at, 1 << 20)
            drawn.feed(data)
            at = start + len(data)
        if shown.snapshot().lines != drawn.snapshot().lines:
            self._fail(
                "whoever looks on sees it", f"{shown.text(scrollback=False)!r} is {drawn.text(scrollback=False)!r}"
            )

    # --- the end ---

    def history_behind(self, path: Path) -> bool:
        """Its cursor is not at the end of the log."""
        ((newest,),) = self.query("SELECT max(id) FROM events")
        return self._history(path, "SELECT cursor FROM progress") != [(newest,)]

    def _history(self, path: Path, text: str) -> list[Any]:
        connection = self._world.connect_aside(path)
        try:
            return connection.execute(text).fetchall()
        except sqlite3.OperationalError:  # there is none yet
            return []
        finally:
            connection.close()

    def finish(self, history: Path) -> None:
        """All is over: does the database say what was told, and did each message end as it may?"""
        if self.history_behind(history):
            self._fail("ends within its bounds", "the history does not come to the end of the log")
        found = set(self._history(history, "SELECT task_id, kind FROM docs"))
        rows = {row[0]: json.loads(row[1]) for row in self.query("SELECT id, data FROM tasks")}
        for token, task_id in self.accepted.items():
            if task_id not in rows:
                self._fail("never unsaid", f"{token} was accepted as {task_id}, and there is no such task")
            self._ended(token, rows[task_id])
            wanted = {(task_id, "message")} | (
                {(task_id, "answer")} if rows[task_id]["status"] == "completed" else set()
            )
            if missing := wanted - found:
                self._fail("cursors stand behind their rows", f"the history is at the end, and lacks {missing}")
        logged = dict(self.query("SELECT id, data FROM events"))
        for event_id, content in self.events.items():
            if event_id not in logged:
                self._fail("never unsaid", f"event {event_id} was told, and is not in the log: {content}")
        ids = sorted(logged)
        if ids != list(range(ids[0], ids[0] + len(ids))):
            self._fail("event ids grow", "the log has gaps")
        if left := self.query("SELECT task_id FROM turns"):
            working = [one for (one,) in left if rows.get(one, {}).get("status") in TERMINAL]
            if working:
                self._fail("ends whole", f"turns of tasks that are over are on record: {working}")

    def _ended(self, token: str, task: dict[str, Any]) -> None:
        status, error = task["status"], task.get("error") or {}
        given = len(self.given[token])
        if status not in TERMINAL:
            self._fail("ends within its bounds", f"{token} is {status}: {self._world.standing(task['agent_id'])}")
        if status == "completed":
            answer = json.dumps(task["artifacts"][-1] if len(task["artifacts"]) == 1 else task["artifacts"])
            tokens = set(re.findall(r"\bT\d+\b", answer))
            if not given:
                self._fail("its own answer", f"{token} is completed, and no program had it")
            if tokens != {token}:
                self._fail("its own answer", f"{token} was answered {answer}")
        elif status == "failed":
            if not error.get("code") or not error.get("message"):
                self._fail("ends with a reason", f"{token}: {error}")
            if error["code"] == "UNDELIVERED" and given and "not known" not in error["message"]:
                self._fail("ends with a reason", f"{token} was given, and is told as not delivered: {error}")
        elif not task["metadata"].get("reason"):
            self._fail("ends with a reason", f"{token} is {status} without a reason")
        elif token not in self.cancels and not any(
            self.causes[task["agent_id"], cause] for cause in ("stop", "leave", "answer")
        ):
            self._fail("ends with a reason", f"{token} is {status} ({task['metadata']['reason']}), and nobody asked")
