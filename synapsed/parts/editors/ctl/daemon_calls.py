"""Makes the requests of an editor's session to the daemon: calls that wait for an answer, and event streams that are
opened again after the daemon was killed.

Every function of this module may block; each is called in a thread of its own.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from synapsectl.client import Client, agent_path, task_path
from synapsectl.context import CommandContext
from synapsectl.daemon import ensure_daemon
from synapsectl.errors import ApiError, CtlError, MaybeAccepted, NoDaemon, TimedOut
from synapsed.parts.editors.ctl.limits import UsageLimit, limit_of
from synapsed.parts.editors.ctl.program_commands import ProgramCommand, commands_of
from synapsed.parts.editors.ctl.wire import LINE_MAX

AWAY_MAX: Final = 30.0
"""Seconds that a daemon may be away before prompts that it works on are given up."""

RETRY: Final = 0.1
RETRY_MAX: Final = 2.0
"""Seconds between two attempts to reach the daemon: at first, and at most."""

TICK: Final = 5.0
"""Seconds of silence after which a stream checks if it is still wanted."""

WHOLE_MAX: Final = 256 * 1024
"""Characters up to which left-out fields of a stream's event are read."""

_BUSY: Final = frozenset({"QUEUE_FULL", "BUSY", "NOT_READY"})
"""Codes of refusals of a stream that are over after a while."""
_READ_WHOLE: Final = frozenset({"toolExecution", "turnSeen", "plan", "diff"})


class Reach:
    """The daemon that has an agent, and its address there. With `spawn` a daemon is started if none runs."""

    def __init__(self, ctx: CommandContext, address: str, *, spawn: bool) -> None:
        self._ctx = ctx
        self._spawn = spawn
        self.address = address
        self.client: Client = ctx.client

    def send(self, body: dict[str, Any]) -> dict[str, Any]:
        """Returns the task that a message has become, once, even if the daemon is killed meanwhile. Raises CtlError."""
        key, give_up = os.urandom(16).hex(), time.monotonic() + AWAY_MAX
        given = False
        while True:
            try:
                task: dict[str, Any] = self.client.post(agent_path(self.address, "tasks/send"), body, key=key)["task"]
            except (NoDaemon, TimedOut) as error:
                given = given or not _never_reached(error)
                if time.monotonic() > give_up:
                    raise _unsure(error) if given else error from None
                if not given:
                    ensure_daemon(self._ctx, spawn=self._spawn)
                time.sleep(RETRY)
            else:
                return task

    def task(self, task: str) -> dict[str, Any]:
        """Returns the task, whole; waits for a daemon that is away. Raises CtlError."""
        give_up = time.monotonic() + AWAY_MAX
        while True:
            try:
                found: dict[str, Any] = self.client.get(task_path(task))["task"]
            except (NoDaemon, TimedOut):
                if time.monotonic() > give_up:
                    raise
                time.sleep(RETRY)
            except ApiError as error:
                if error.code != "BUSY" or time.monotonic() > give_up:
                    raise
                time.sleep(RETRY)
            else:
                return found

    def cancel(self, task: str) -> None:
        """Cancels the task. Raises ApiError if the program did not stop, or the task was over before."""
        give_up = time.monotonic() + AWAY_MAX
        while True:
            try:
                self.client.post(task_path(task, "cancel"))
            except (NoDaemon, TimedOut):
                if time.monotonic() > give_up:
                    raise
                time.sleep(RETRY)
            else:
                return

    def waits_for(self) -> tuple[dict[str, Any] | None, UsageLimit | None]:
        """Returns the agent's present question, with its task as `task`, and the usage limit that it has reached.
        Raises CtlError."""
        agent = self.client.get(agent_path(self.address, "status"), {"detail": 1})
        prompt: dict[str, Any] | None = agent.get("prompt")
        asks = None if prompt is None else {**prompt, "task": agent.get("task")}
        return asks, limit_of(agent)

    def commands(self, agent: Mapping[str, Any], *, here: bool) -> list[ProgramCommand]:
        """Returns the slash commands of the agent's program; see `program_commands`. Raises CtlError."""
        return commands_of(self.client, agent, here=here)

    def answer(self, task: str | None, prompt_id: str, key: str) -> None:
        """Gives the program the answer `key`, if it still asks that prompt. Raises ApiError."""
        body = {"input": key, "prompt_id": prompt_id}
        if task is not None:
            try:
                self.client.post(task_path(task, "input"), body)
            except ApiError as error:
                if error.code != "NOT_WAITING":
                    raise
            else:
                return
        self.client.post(agent_path(self.address, "input", control=True), body)


def newest(client: Client) -> int:
    """Returns the cursor after all events so far. Raises CtlError."""
    try:
        client.get("/events/0")
    except ApiError as error:
        last = error.details.get("last_id")
        if error.code != "EVENT_NOT_FOUND" or not isinstance(last, int):
            raise
        return last
    return 0


class Stream:
    """Follows server-sent events at `path` in a thread of its own, until `close`; opens the stream again after the
    daemon was killed.

    `take` gets each event's name, data and id. `on_state` gets a word about the stream itself, with the error if there
    is one:

    - `away`: the daemon could not be reached for `AWAY_MAX` seconds (reported once)
    - `back`: the stream is open again
    - `busy`: the daemon has no room for another stream now; it is tried again
    - `gone`: there is nothing to follow; the thread ends
    """

    def __init__(
        self,
        client: Client,
        path: str,
        after: int,
        *,
        take: Callable[[str, dict[str, Any], int], None],
        on_state: Callable[[str, CtlError | None], None],
    ) -> None:
        self._client = client
        self._path = path
        self._cursor = str(after)
        self._take = take
        self._on_state = on_state
        self._closed = False
        self._away = False
        self._was_there = False
        self._thread = threading.Thread(target=self._run, name=f"acp {path}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Ends the reports; the thread ends within `TICK` seconds."""
        self._closed = True

    def _run(self) -> None:
        since, pause = time.monotonic(), RETRY
        while not self._closed:
            error: CtlError | None = None
            try:
                if self._follow():
                    since, pause = time.monotonic(), RETRY
            except ApiError as refused:
                if refused.code == "INVALID_REQUEST":
                    error = self._begin_anew()
                elif refused.code in _BUSY:
                    self._tell("busy", refused)
                else:
                    self._tell("gone", refused)
                    return
            except (NoDaemon, TimedOut) as lost:
                error = lost
            if error is not None and not self._away and time.monotonic() - since > AWAY_MAX:
                self._away = True
                self._tell("away", error)
            time.sleep(pause)
            pause = min(2 * pause, RETRY_MAX)

    def _follow(self) -> bool:
        """Takes events until the stream ends; returns True if there was any."""
        any_came = False
        with self._client.stream(self._path, {"after": self._cursor}) as stream:
            self._away = False
            if self._was_there:
                self._tell("back", None)
            self._was_there = True
            for event in stream.events(lambda: TICK):
                if self._closed:
                    return True
                if event is not None:
                    if event.event == "truncated":
                        break
                    any_came = True
                    self._take(event.event, json.loads(event.data), int(event.id or 0))
                    self._cursor = event.id or self._cursor
        return any_came

    def _begin_anew(self) -> CtlError | None:
        """Goes on with the next event, because the log has no such cursor (its database is another one)."""
        try:
            self._cursor = str(newest(self._client))
        except CtlError as error:
            return error
        self._tell("back", None)
        return None

    def _tell(self, state: str, error: CtlError | None) -> None:
        if not self._closed:
            self._on_state(state, error)


def single(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the event, or the events of a batch."""
    if event["event"] == "batchEvents":
        yield from event["data"]
    else:
        yield event


def whole(client: Client, event: dict[str, Any]) -> dict[str, Any]:
    """Returns the event with the fields that its stream has left out, if they are useful and not too large."""
    if event["event"] not in _READ_WHOLE:
        return event
    left_out = [value for value in event["data"].values() if isinstance(value, dict) and value.get("truncated") is True]
    if not left_out or sum(int(value.get("size", LINE_MAX)) for value in left_out) > WHOLE_MAX:
        return event
    try:
        found: dict[str, Any] = client.get(f"/events/{event['id']}")
    except CtlError:
        return event
    return found


def _never_reached(error: CtlError) -> bool:
    """Returns True if nothing can have reached a daemon."""
    return type(error) is NoDaemon


def _unsure(error: CtlError) -> MaybeAccepted:
    return MaybeAccepted(f"{error}: the message may have been accepted: load the session again to see")


def in_folder(agents: list[dict[str, Any]], folder: str) -> list[dict[str, Any]]:
    """Returns the agents of this host whose working directory is `folder`."""
    real = os.path.realpath(folder)
    return [agent for agent in agents if not agent.get("host") and os.path.realpath(agent["cwd"]) == real]
