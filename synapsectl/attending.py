"""Waits for a task on behalf of a person: shows the time, asks the task's questions, and asks again at Ctrl-C."""

import json
from typing import Any

from synapsectl.asking import ask_line
from synapsectl.client import task_path
from synapsectl.context import CommandContext
from synapsectl.errors import ApiError, NoDaemon
from synapsectl.following import TaskPrinter
from synapsectl.output import short_id
from synapsectl.progress import StatusLine
from synapsectl.questions import ask, can_ask
from synapsectl.waiting import INTERRUPTED, Waiter
from synapsed.shared.sse_parser import SseEvent

CHOICES = "[c] cancel the task, [s] stop watching, [Enter] go on"


class Attendant:
    """Waits for one task of `agent`. With `follow` its text is printed as it comes; with `asks` its questions are asked
    here, if there is a person."""

    def __init__(self, ctx: CommandContext, agent: str, *, deadline: float | None, follow: bool, asks: bool) -> None:
        self._ctx = ctx
        self._agent = agent
        self._follow = follow
        self._person = asks and can_ask(ctx)
        self._line = StatusLine(ctx.out.stderr, ctx.environ, on=not ctx.as_json)
        self._state = "submitted"
        self._waiter = Waiter(
            ctx.client, deadline=deadline, note=self._note, on_event=self._on_event, on_tick=self._on_tick
        )
        self.follower = TaskPrinter(ctx.out)

    def wait(self, task: dict[str, Any], request: dict[str, Any] | None, *, sent: str) -> dict[str, Any]:
        """Waits as `Waiter.wait` does; `sent` is the task that Ctrl-C can cancel. Raises KeyboardInterrupt if the
        person stops watching."""
        again = False
        while True:
            try:
                found = self._waiter.wait(task, request, again=again)
                again = True
                if found["status"] not in INTERRUPTED or not self._person:
                    return found
                self._make_room()
                if not self._ask(found):
                    return found
            except KeyboardInterrupt:
                again = True
                self._make_room()
                if not self._person:
                    self._leave(sent)
                self._think_twice(sent)
            finally:
                self._line.clear()

    def end(self) -> None:
        """Ends the output."""
        self._line.clear()
        self.follower.end()

    # --- inside ---

    def _ask(self, task: dict[str, Any]) -> bool:
        """Asks the task's question; returns True if the wait goes on. If the daemon goes away meanwhile, the wait goes
        on, and the question is asked again."""
        try:
            return ask(self._ctx, self._agent, task)
        except NoDaemon as error:
            self._ctx.out.remark()
            self._note(str(error))
            return True

    def _on_event(self, event: SseEvent) -> None:
        if event.event == "status":
            self._state = str(json.loads(event.data).get("state", self._state))
        if self._follow:
            self._line.clear()
            self.follower.event(event)

    def _on_tick(self) -> None:
        if not self.follower.open:
            self._line.show(f"{self._agent}: {self._state.replace('_', ' ')}")

    def _note(self, text: str) -> None:
        self._make_room()
        self._ctx.out.note(text)

    def _make_room(self) -> None:
        """Makes the next output begin on a line of its own."""
        self._line.clear()
        self.follower.end()

    def _think_twice(self, sent: str) -> None:
        """Asks the person what Ctrl-C means; returns if the wait goes on. Raises KeyboardInterrupt if the person stops
        watching."""
        out = self._ctx.out
        try:
            out.stderr.write(f"\n{CHOICES}")
            typed = ask_line(out.stderr, ": ")
        except KeyboardInterrupt:
            out.remark()
            self._leave(sent)
        if not typed or typed.strip().lower() in ("s", "stop"):
            self._leave(sent)
        if typed.strip().lower() in ("c", "cancel"):
            try:
                self._ctx.client.post(task_path(sent, "cancel"))
            except ApiError as error:
                out.note(str(error))

    def _leave(self, sent: str) -> None:
        """Leaves: raises KeyboardInterrupt."""
        self._ctx.out.note(f"no longer waiting for task {sent}, which goes on; 'synapsectl cancel {short_id(sent)}'")
        raise KeyboardInterrupt
