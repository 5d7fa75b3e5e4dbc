"""Waits for a task: to its end, or until a person is needed, and reports its end on stderr and as an exit code; and
waits for the first completed one of several, while the others go on."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from synapsectl.agentrows import HELD
from synapsectl.client import Client, agent_path, task_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, TASK_FAILED, WAITS, ApiError, BadAnswer, NoDaemon, TimedOut
from synapsectl.output import short_id
from synapsectl.prompts import behind, tell_waiting
from synapsed.shared.counts import counted
from synapsed.shared.sse_parser import SseEvent

TERMINAL = frozenset({"completed", "failed", "canceled", "rejected"})
INTERRUPTED = frozenset({"input_required", "auth_required"})

RECONNECT = 10.0
"""Seconds that a daemon may be away: one that was killed is back within two."""

RETRY = 0.1
"""Seconds between two attempts to reach the daemon."""

FIRST_LOOK = 1.0
LAST_LOOK = 4.0
"""Seconds of silence after which the agent's own status is read: at first, and at most."""

RULE_LOOK = 2.0
"""Seconds after which a question outside the task is read again before it goes to a person: a rule may answer it."""

LONG_WAIT = 3.0
"""Seconds after which a message that waits only for the agent itself is mentioned."""

PASSING = frozenset({"unread"})
"""Reasons that hold messages for a moment whenever an answer is typed."""

STANDS = frozenset({"permission", "question", "plan", "sign_in", "unreadable"})
"""Kinds of items at which an agent does not go on."""

LONG_START = 10.0
"""Seconds after which an agent that has not come up is mentioned: programs take less, except the slowest."""


def answer_of(task: dict[str, Any]) -> str | None:
    """Returns the text of the turn's last assistant message, None if there is no such message."""
    for artifact in task.get("artifacts") or []:
        if artifact.get("artifact_id") == "answer":
            return "".join(part.get("text", "") for part in artifact.get("parts") or [])
    return None


class Waiter:
    """Waits for one task after the other. `deadline` is on the monotonic clock; `on_event` gets every event, `note`
    gets each reason of a delay once, and `on_tick` is called every second."""

    def __init__(
        self,
        client: Client,
        *,
        deadline: float | None = None,
        on_event: Callable[[SseEvent], None] | None = None,
        note: Callable[[str], None] | None = None,
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._deadline = deadline
        self._on_event = on_event or (lambda event: None)
        self._note = note or (lambda text: None)
        self._on_tick = on_tick
        self._cursor = "0"
        self._noted = ""
        self._since = 0.0
        self._request: dict[str, Any] | None = None

    def wait(
        self, task: dict[str, Any], request: dict[str, Any] | None = None, *, again: bool = False
    ) -> dict[str, Any]:
        """Returns the task when it is at its end or waits for a person. A task that has not begun waits for a person
        too if its agent does (`prompt` is then the agent's). If the task stands for the reply to a `request`, and the
        request waits for a person, the request is returned.

        Raises TimedOut at the deadline, NoDaemon when the daemon stays away. After a restart of the daemon the wait
        goes on from its last place; with `again`, from the last place of an earlier wait for the task.
        """
        self._cursor, self._noted, self._request = self._cursor if again else "0", "", request
        self._since = time.monotonic()
        away_since: float | None = None
        while True:
            seen = self._cursor
            try:
                # Earlier states of a task are not reported twice: with `again` the task is read first.
                held = None if again else self._watch(task)
                current: dict[str, Any] = self._client.get(task_path(task["id"]))["task"]
            except NoDaemon as error:
                now = time.monotonic()
                away_since = away_since or now
                self._check(task)
                if now - away_since > RECONNECT:
                    raise NoDaemon(
                        f"{error}; the task may go on: see 'synapsectl task {short_id(task['id'])}'"
                    ) from None
                time.sleep(RETRY)
                continue
            away_since = None
            if current["status"] in TERMINAL | INTERRUPTED:
                return current
            if held is not None and self._request is not None:
                return held
            if held is not None and current["status"] == "submitted":
                return current | {"status": "input_required", "prompt": held}
            if self._cursor == seen and not again:
                time.sleep(RETRY)
            again = False

    def _watch(self, task: dict[str, Any]) -> dict[str, Any] | None:
        """Follows the task's events to the end of the stream; returns the prompt of an agent that asks a person
        something outside any task, while this one has not begun."""
        look_at = time.monotonic() + FIRST_LOOK
        pause, asked = FIRST_LOOK, None
        with self._client.stream(task_path(task["id"], "wait"), {"after": self._cursor}) as stream:
            for event in stream.events(self._tick):
                if event is not None:
                    self._cursor = event.id or self._cursor
                    self._on_event(event)
                else:
                    self._on_tick()
                if event is None or event.event == "artifact":
                    # Another event may be the task's end, which counts even if it came after the deadline.
                    self._check(task)
                if event is None and time.monotonic() >= look_at:
                    if held := self._held(task):
                        if held == asked:
                            return held
                        pause = RULE_LOOK
                    else:
                        pause = min(2 * pause, LAST_LOOK)
                    asked, look_at = held, time.monotonic() + pause
        return None

    def _check(self, task: dict[str, Any]) -> None:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise TimedOut(
                f"no end yet of task {task['id']}, which goes on: see 'synapsectl task {short_id(task['id'])}'"
            )

    def _tick(self) -> float:
        """Returns the seconds of silence after which to look at the clock."""
        if self._deadline is None:
            return FIRST_LOOK
        return min(FIRST_LOOK, max(0.01, self._deadline - time.monotonic()))

    def _why(self, agent: dict[str, Any], task: dict[str, Any]) -> str:
        """Returns the reason why the task is delayed, for a person, or an empty text: the work before it, the question
        on the agent's screen, or the agent's activity. Text in parentheses may change without a new reason."""
        name, activity, held, prompt = agent["name"], agent["activity"], agent.get("held"), agent.get("prompt")
        if agent["state"] in ("stopped", "failed", "backoff"):
            return f"{name} cannot take a message now: {agent['state']}"
        waited = time.monotonic() - self._since
        before = agent.get("task") if agent.get("task") != task["id"] else None
        if before and prompt:
            return f"the message {behind(name, before, prompt)}"
        if held and held != activity:
            told = prompt is not None or (held in PASSING and waited < LONG_WAIT)
            return "" if told else f"{name} cannot take a message now: {HELD.get(held, held)}"
        works = agent.get("task") == task["id"] and activity != "unknown"
        patience = LONG_START if activity == "starting" else LONG_WAIT
        if activity == "ready" or works or waited < patience:
            return ""
        more = f"({agent['evidence']}); 'synapsectl status {name} --explain' says more"
        if before:
            return f"the message {behind(name, before, None)}: {activity} {more}"
        if activity == "starting":
            return f"{name} is starting, and takes no message yet {more}"
        return f"{name} cannot take a message now: {activity} {more}"

    def _held(self, task: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the question of the task's agent to a person, if it is no task's question; reports another reason of
        the delay once. For a task that stands for the reply to a request: the request, if that waits for a person."""
        if self._request is not None:
            asked: dict[str, Any] = self._client.get(task_path(self._request["id"]))["task"]
            return asked if asked["status"] in INTERRUPTED else None
        try:
            agent = self._client.get(agent_path(task["agent_id"], "status"), {"detail": 1})
        except ApiError:
            # The agent is elsewhere, removed, or not visible to us: the task's own events report its end.
            self._note_once(self._asked_there(task))
            return None
        self._note_once(self._why(agent, task))
        prompt = agent.get("prompt")
        return prompt if prompt and not agent.get("task") else None

    def _note_once(self, held: str) -> None:
        if held and held.partition(" (")[0] != self._noted:
            self._noted = held.partition(" (")[0]
            self._note(held)

    def _asked_there(self, task: dict[str, Any]) -> str:
        """Returns the question of an agent on another host that holds the task up, as that host reports it, or an empty
        text."""
        if "@" not in task["agent_id"] or time.monotonic() - self._since < LONG_WAIT:
            return ""
        try:
            items = self._client.get("/inbox", {"hosts": 1})["items"]
        except ApiError:
            return ""
        for item in items:
            if item["agent"] == task["agent_id"] and item.get("task") != task["id"] and item["kind"] in STANDS:
                return f"the message waits behind what {item['agent']} asks: {item['question']}"
        return ""


def outcome(ctx: CommandContext, agent: str, task: dict[str, Any]) -> int:
    """Returns 0 completed, 1 failed, canceled or rejected, 7 waits for a person; prints remarks on stderr."""
    out = ctx.out
    if task["status"] in INTERRUPTED:
        tell_waiting(ctx, agent, short_id(task["id"]), task)
        return WAITS
    if task["status"] != "completed":
        error = task.get("error") or {}
        reason = f": {error.get('code')}: {error.get('message')}" if error else ""
        out.note(f"task {short_id(task['id'])} {task['status']}{reason}")
        return TASK_FAILED
    return DONE


SENT_AGAIN = "its message was sent again after it was cut off: the agent may have had it before, and forgotten it"


def sent_again(task: Mapping[str, Any]) -> bool:
    """Returns True if the message of a task for an agent elsewhere went there more than once."""
    return bool(((task.get("metadata") or {}).get("external") or {}).get("sent_again"))


def tell_inexact(ctx: CommandContext, tasks: Mapping[str, dict[str, Any]]) -> None:
    """Names the agents whose answers (`tasks` by agent) came from no exact channel, may be given twice, or are cut, and
    their background tasks."""
    read = [agent for agent, task in tasks.items() if task["status"] == "completed" and task.get("exact") is False]
    if read:
        whose = "this answer was" if len(tasks) == 1 else f"the answers of {', '.join(read)} were"
        ctx.out.note(f"{whose} read off the screen and may not be exact")
    for agent, task in tasks.items():
        if task["status"] == "completed" and (count := task.get("metadata", {}).get("in_background")):
            ctx.out.note(f"{agent} runs {count} in its background: what comes of that is not in this answer")
        if sent_again(task):
            ctx.out.note(f"{agent}: {SENT_AGAIN}")
        if task.get("truncated"):
            whose = "this answer" if len(tasks) == 1 else f"the answer of {agent}"
            lost = task.get("missing_lines")
            how_many = "its beginning is missing (how many lines is not known)"
            how_many = how_many if lost is None else f"{counted(lost, 'line is', 'lines are')} missing at its beginning"
            ctx.out.note(f"{whose} is cut: {how_many}; 'synapsectl logs {agent}' has the output")


LOOK_S = 1.0
"""Seconds between two looks at the clock; and at all the tasks, for a client that may not follow the events."""


class FirstOf:
    """Waits for one of `tasks` (ids). `note` gets each that waits for a person, once; `deadline` is on the monotonic
    clock."""

    def __init__(
        self, client: Client, tasks: Sequence[str], *, deadline: float | None, note: Callable[[str], None]
    ) -> None:
        self._client = client
        self._open = dict.fromkeys(tasks)
        self._deadline = deadline
        self._note = note
        self._noted: set[str] = set()
        self.ended: dict[str, dict[str, Any]] = {}
        """Tasks that have ended without success, by id."""

    def wait(self) -> dict[str, Any] | None:
        """Returns the task; None if all have ended, and none is completed. Raises TimedOut, NoDaemon, ApiError."""
        give_up: float | None = None
        while self._open:
            try:
                for task_id in self._changed():
                    give_up = None
                    if (found := self._look(task_id)) is not None:
                        return found
                    if not self._open:
                        return None
            except (NoDaemon, BadAnswer) as error:
                give_up = give_up or time.monotonic() + RECONNECT
                if time.monotonic() > give_up:
                    raise NoDaemon(f"{error}; the tasks go on: see 'synapsectl tasks'") from None
            self._check()
            time.sleep(RETRY)
        return None

    def _changed(self) -> Iterator[str]:
        """Yields all tasks, and then each with an event."""
        try:
            with self._client.stream("/events", {"types": "taskStatus"}) as stream:
                yield from list(self._open)
                for event in stream.events(lambda: LOOK_S):
                    self._check()
                    if event is not None and event.data:
                        yield from self._named(json.loads(event.data))
        except ApiError as error:
            if error.code != "FORBIDDEN":  # an agent may look at its own tasks, and not at everybody's events
                raise
            yield from list(self._open)
            time.sleep(LOOK_S)

    def _named(self, told: dict[str, Any]) -> Iterator[str]:
        events = told["data"] if told.get("event") == "batchEvents" else [told]
        yield from [event["task"] for event in events if event.get("task") in self._open]

    def _look(self, task_id: str) -> dict[str, Any] | None:
        task: dict[str, Any] = self._client.get(task_path(task_id))["task"]
        if task["status"] == "completed":
            return task
        if task["status"] in TERMINAL:
            self._open.pop(task_id, None)
            self.ended[task_id] = task
        elif task["status"] in INTERRUPTED and task_id not in self._noted:
            self._noted.add(task_id)
            self._note(f"task {task_id[:8]} waits for a person: see 'synapsectl task {task_id[:8]}'")
        return None

    def _check(self) -> None:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise TimedOut("none is completed yet; the tasks go on: see 'synapsectl tasks'")
