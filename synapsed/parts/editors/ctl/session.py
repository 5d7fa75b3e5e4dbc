"""One agent, as a session of an editor: requests of the editor and events of the daemon go in, commands come out. Pure.

A prompt is a task. It is over when the agent's own events say so and the task, read whole after that, has been sent:
earlier parts (pieces of text, tool calls) are in order with its end, even if some were lost on the way. Turns of others
are sent too, but never within a prompt: an editor takes every text within a prompt for the answer. They wait for the
prompt's end.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from synapsectl.errors import ApiError, CtlError
from synapsed.parts.editors.ctl import asking, limits, program_commands
from synapsed.parts.editors.ctl.content import id_for
from synapsed.parts.editors.ctl.limits import UsageLimit
from synapsed.parts.editors.ctl.order import EndPart, Part, PiecePart, UpdatesPart
from synapsed.parts.editors.ctl.program_commands import ProgramCommand
from synapsed.parts.editors.ctl.tools import EditorCalls
from synapsed.parts.editors.ctl.turn import Turn, is_shown, seen
from synapsed.parts.editors.ctl.wire import AUTH_REQUIRED, INTERNAL_ERROR, INVALID_PARAMS, NOT_FOUND, Id

PROMPTS_MAX: Final = 32
"""Prompts of a session at once."""

LATER_MAX: Final = 4 * 1024 * 1024
"""Characters of other turns that wait for the end of a prompt; more are left out, with a note."""

TURNS_MAX: Final = 64
"""Most tasks of others that are known."""

ASKED_MAX: Final = 3
"""Times that the editor gets the same question: the program may not have taken an answer."""

LOOKS_MAX: Final = 3
"""Most requests for the program's commands, until the program has sent some."""

TERMINAL: Final = frozenset({"completed", "failed", "canceled", "rejected"})
_CODES: Final = {
    "AUTH_REQUIRED": AUTH_REQUIRED,
    "UNKNOWN_AGENT": NOT_FOUND,
    "TASK_NOT_FOUND": NOT_FOUND,
    "INVALID_REQUEST": INVALID_PARAMS,
    "TOO_LARGE": INVALID_PARAMS,
}
"""JSON-RPC's codes for our own."""
_ASKS: Final = frozenset({"inputRequired", "inputAnswered", "attention", "taskStatus", "activity", "agentState"})
"""Events after which the agent's question is read."""


class Update(NamedTuple):
    """A `session/update`."""

    update: dict[str, Any]


class Reply(NamedTuple):
    id: Id
    result: dict[str, Any]


class Fail(NamedTuple):
    id: Id
    code: int
    message: str
    data: dict[str, Any]


class Send(NamedTuple):
    """Gives the agent the message of the prompt that `message_id` stands for."""

    message_id: str
    body: dict[str, Any]


class Cancel(NamedTuple):
    task: str


class ReadTask(NamedTuple):
    """Reads the task."""

    task: str


class FollowTask(NamedTuple):
    """Follows the text of the task, from its beginning."""

    task: str


class LeaveTask(NamedTuple):
    task: str


class AskWhat(NamedTuple):
    """Reads the agent's question."""


class ReadCommands(NamedTuple):
    """Reads the slash commands of the agent's program."""


class AskEditor(NamedTuple):
    """Asks the editor for permission; the answer comes under `prompt_id`."""

    prompt_id: str
    params: dict[str, Any]


class Withdraw(NamedTuple):
    """Withdraws the request for `prompt_id`: it was answered elsewhere."""

    prompt_id: str


class GiveAnswer(NamedTuple):
    """Gives the program the chosen answer."""

    prompt_id: str
    key: str


type Command = (
    Update
    | Reply
    | Fail
    | Send
    | Cancel
    | ReadTask
    | FollowTask
    | LeaveTask
    | AskWhat
    | ReadCommands
    | AskEditor
    | Withdraw
    | GiveAnswer
)


class OpenPrompt:
    """One `session/prompt`. `task` is None until the daemon has it."""

    __slots__ = ("canceled", "id", "message_id", "task")

    def __init__(self, id_: Id, message_id: str) -> None:
        self.id = id_
        self.message_id = message_id
        self.task: str | None = None
        self.canceled = False


class EditorSession:
    """Decides for one session. `session_id` is the editor's name of the session, `name` the agent's name for people."""

    def __init__(self, session_id: str, *, name: str, cwd: str) -> None:
        self.session_id = session_id
        self.name = name
        self._tools = EditorCalls(cwd)
        self._prompts: dict[str, OpenPrompt] = {}
        """Prompts by the id of their message."""
        self._unsent: deque[tuple[str, dict[str, Any]]] = deque()
        self._sending: str | None = None
        """The message that is being sent to the daemon."""
        self._turns: dict[str, Turn] = {}
        self._strange: dict[str, None] = {}
        """Tasks that are being read, and those that are no turns; in the order in which they came."""
        self._later: deque[dict[str, Any]] = deque()
        self._later_size = 0
        self._left_out = False
        self._asked: dict[str, Any] | None = None
        """The agent's question that the editor has got."""
        self._times: dict[str, int] = {}
        self._answering: str | None = None
        """The prompt whose answer is being given: its presence means nothing."""
        self._done: str | None = None
        """The prompt that was answered last: it may stay a moment longer on the agent's screen, until a new event asks
        it again."""
        self._limit: UsageLimit | None = None
        """The usage limit that the editor knows."""
        self._looking = False
        self._look_again = False
        self._look_later = False
        """True if the editor is asked after it has got all parts before the question."""
        self._commands: list[ProgramCommand] = []
        self._told_commands: list[ProgramCommand] = []
        self._looks_left = LOOKS_MAX
        self._newest = 0
        """Position in the agent's events."""

    def begin(self, shown: Iterable[str], task: str | None, newest: int) -> Iterator[Command]:
        """Sets the state at the session's beginning: the tasks that the editor is `shown` already, the present task,
        and the newest event."""
        self._newest = newest
        self._strange.update(dict.fromkeys(shown))
        if task is not None and task not in self._strange:
            self._strange[task] = None
            yield ReadTask(task)
        yield ReadCommands()

    # --- commands of the program --------------------------------------------------------------------------------------

    @property
    def with_words(self) -> frozenset[str]:
        """Names of the commands that may have words after them."""
        return frozenset(each.name for each in self._commands if each.hint)

    def commands(self, found: list[ProgramCommand]) -> Iterator[Command]:
        """Takes the commands of the program: an editor may refuse a command that it does not know."""
        self._looks_left = 0 if found else self._looks_left
        self._commands = found
        if found != self._told_commands:
            self._told_commands = found
            yield Update(program_commands.update(found))

    def opened_again(self) -> Iterator[Command]:
        """Notes that the editor has opened the session once more, and may have forgotten the earlier updates."""
        self._told_commands = []
        yield ReadCommands()

    # --- what the editor asks -----------------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """True if the session takes no further prompt."""
        return len(self._prompts) >= PROMPTS_MAX

    def prompt(self, id_: Id, message_id: str, body: dict[str, Any]) -> Iterator[Command]:
        self._prompts[message_id] = OpenPrompt(id_, message_id)
        self._unsent.append((message_id, body))
        yield from self._send_next()

    def _send_next(self) -> Iterator[Command]:
        """Sends prompts one after the other, so that the first is first in the mailbox."""
        while self._unsent and self._sending is None:
            message_id, body = self._unsent.popleft()
            if message_id in self._prompts:
                self._sending = message_id
                yield Send(message_id, body)

    def cancel(self, only: Id | None = None) -> Iterator[Command]:
        """Cancels this editor's prompts, or only the prompt `only`."""
        for prompt in list(self._prompts.values()):
            if only is not None and prompt.id != only:
                continue
            prompt.canceled = True
            if prompt.task is not None:
                yield Cancel(prompt.task)
            elif prompt.message_id != self._sending:
                del self._prompts[prompt.message_id]
                yield Reply(prompt.id, {"stopReason": "cancelled"})

    def has(self, id_: Id) -> bool:
        """Returns True if `id_` is a prompt that is not over."""
        return any(prompt.id == id_ for prompt in self._prompts.values())

    # --- what became of it --------------------------------------------------------------------------------------------

    def accepted(self, message_id: str, task: Mapping[str, Any]) -> Iterator[Command]:
        """Notes that the daemon has made a task of the prompt that was sent."""
        self._sending = None
        if (prompt := self._prompts.get(message_id)) is not None:
            yield from self._became(prompt, task)
        yield from self._send_next()

    def _became(self, prompt: OpenPrompt, task: Mapping[str, Any]) -> Iterator[Command]:
        if prompt.task is not None:
            return
        prompt.task = task["id"]
        self._strange.pop(task["id"], None)
        self._turns[task["id"]] = Turn(task["id"])
        yield FollowTask(task["id"])
        if prompt.canceled:
            yield Cancel(task["id"])
        yield from self._ask_what()
        if task["status"] in TERMINAL:
            yield ReadTask(task["id"])

    def refused(self, message_id: str, error: CtlError) -> Iterator[Command]:
        """Ends a prompt that the daemon did not take, or whose result is unknown."""
        if message_id == self._sending:
            self._sending = None
        yield from self._send_next()
        prompt = self._prompts.pop(message_id, None)
        if prompt is None:
            return
        if prompt.canceled:
            yield Reply(prompt.id, {"stopReason": "cancelled"})
        else:
            yield Fail(prompt.id, *failure_of(error))
        yield from self._calm()

    def unknown(self, task: str, error: CtlError) -> Iterator[Command]:
        """Handles a task that could not be read."""
        prompt = self._of(task)
        self._strange.pop(task, None)
        if prompt is not None:
            yield from self.refused(prompt.message_id, error)

    def read(self, document: Mapping[str, Any]) -> Iterator[Command]:
        """Takes a task, whole."""
        task, over = document["id"], document["status"] in TERMINAL
        prompt = self._of(task) or self._prompts.get((document.get("message") or {}).get("message_id", ""))
        if prompt is not None:
            yield from self._became(prompt, {**document, "status": "submitted"})
        turn = self._turns.get(task)
        if turn is None:
            if task not in self._strange or not is_shown(document):
                return  # it was sent before, or is no turn
            turn = self._turns[task] = Turn(task)
            self._strange.pop(task, None)
            yield from self._tell(turn.asked(document))
            if not over:
                yield FollowTask(task)
                self._bound()
        if over:
            yield from self._go_on(turn, turn.order.then(EndPart(document)))

    def _over(self, turn: Turn, document: Mapping[str, Any]) -> Iterator[Command]:
        if turn.task not in self._turns:
            return  # it was read twice
        prompt = self._of(turn.task)
        yield from self._tell(turn.end(document), own=prompt is not None)
        self._turns.pop(turn.task, None)
        self._tools.end(turn.task)
        self._seen_to(turn.task)
        yield LeaveTask(turn.task)
        if prompt is None:
            return
        self._prompts.pop(prompt.message_id, None)
        yield _end_of(prompt, document)
        yield from self._calm()

    # --- what the daemon reports --------------------------------------------------------------------------------------

    def piece(self, task: str, id_: int, told: Mapping[str, Any] | None) -> Iterator[Command]:
        """Notes that the stream of a followed task has come to `id_`: an `artifact`, or (None) another event."""
        if (turn := self._turns.get(task)) is not None:
            yield from self._go_on(turn, turn.order.piece(id_, told, newest=self._newest))

    def unwatched(self, task: str) -> Iterator[Command]:
        """Handles a task whose stream does not come: nothing waits for it."""
        if (turn := self._turns.get(task)) is not None:
            yield from self._go_on(turn, turn.order.give_up())

    def _go_on(self, turn: Turn, parts: Iterable[Part]) -> Iterator[Command]:
        for part in parts:
            own = self._of(turn.task) is not None
            match part:
                case PiecePart(told):
                    yield from self._tell(turn.piece(told), own=own)
                case UpdatesPart(updates):
                    yield from self._tell(updates, own=own)
                case EndPart(document):
                    yield from self._over(turn, document)
        if self._look_later and not self._behind:
            yield from self._ask_what()

    @property
    def _behind(self) -> bool:
        """True if the editor has not got all parts of its prompts so far."""
        turns = [self._turns.get(prompt.task) for prompt in self._prompts.values() if prompt.task is not None]
        return any(turn is not None and turn.order.waits for turn in turns)

    def event(self, event: Mapping[str, Any]) -> Iterator[Command]:
        """Takes an event of the agent."""
        kind, task = event["event"], event.get("task")
        self._newest = max(self._newest, event.get("id") or 0)
        turn = self._turns.get(task) if task is not None else None
        if kind in ("toolExecution", "plan", "diff"):
            updates = list(self._tools.updates(event) if kind == "toolExecution" else self._tools.told(event))
            yield from self._tell(updates) if turn is None else self._go_on(turn, turn.order.then(UpdatesPart(updates)))
        elif kind == "taskArtifact" and turn is not None:
            yield from self._go_on(turn, turn.order.place(event["id"]))
        elif kind == "turnSeen":
            yield from self._tell(seen(event))
        elif kind == "gap":
            yield from self.resume()
        elif task is not None and kind in ("taskStatus", "taskDelivered"):
            yield from self._moved(task, str(event["data"].get("state", "working")))
        elif kind == "inputAnswered":
            self._done = event["data"]["prompt_id"]
        elif kind == "inputRequired":
            self._done = None
        elif kind == "activity" and event["data"].get("activity") == "ready" and self._looks_left:
            self._looks_left -= 1  # a program may send them when it has come up
            yield ReadCommands()
        if kind in _ASKS and self._prompts:
            yield from self._ask_what()

    def _moved(self, task: str, state: str) -> Iterator[Command]:
        if state in TERMINAL:
            if task in self._turns:
                yield ReadTask(task)
            self._seen_to(task)
        elif state == "working" and task not in self._turns and task not in self._strange:
            self._strange[task] = None
            self._bound()
            yield ReadTask(task)

    def resume(self) -> Iterator[Command]:
        """Reads everything open again, because events may have been missed."""
        for turn in list(self._turns.values()):
            yield from self._go_on(turn, turn.order.release())
            yield ReadTask(turn.task)
        yield from self._ask_what()

    def away(self, error: CtlError) -> Iterator[Command]:
        """Ends the prompts, because the daemon stays away and their ends are unknown."""
        for prompt in [prompt for prompt in self._prompts.values() if prompt.task is not None]:
            yield from self.refused(prompt.message_id, error)

    def closed(self) -> Iterator[Command]:
        """Ends the session: the editor's prompts are canceled, and the agent goes on."""
        yield from self.cancel()
        for prompt in self._prompts.values():
            yield Reply(prompt.id, {"stopReason": "cancelled"})
        self._prompts.clear()
        self._unsent.clear()
        if self._asked is not None:
            yield Withdraw(self._asked["prompt_id"])
        for task in self._turns:
            yield LeaveTask(task)

    # --- what the agent asks ------------------------------------------------------------------------------------------

    def asks(self, prompt: Mapping[str, Any] | None, limit: UsageLimit | None = None) -> Iterator[Command]:
        """Takes the agent's present question and usage limit; the editor gets the question only while one of its
        prompts waits for it."""
        self._looking = False
        if self._look_again:
            yield from self._ask_what()  # something has happened since: what was seen may be over
            return
        yield from self._limited(limit if self._prompts else None)
        self._look_later = self._behind and prompt is not None
        if self._answering is not None or self._look_later:
            return
        asked = prompt is not None and prompt["prompt_id"] != self._done
        now = dict(prompt) if prompt is not None and asked and self._prompts else None
        before = self._asked
        if before is not None and now is not None and before["prompt_id"] == now["prompt_id"]:
            return
        self._asked = now
        if before is not None:
            yield from self._no_more(before)
        if now is None:
            return
        times = self._times[now["prompt_id"]] = self._times.get(now["prompt_id"], 0) + 1
        if times > ASKED_MAX:
            return
        if asking.can_be_asked(now):
            call = next((self._tools.only_open(prompt.task) for prompt in self._prompts.values() if prompt.task), None)
            yield AskEditor(now["prompt_id"], asking.request(now, self.session_id, call))
        else:
            yield Update(asking.waits(now, self.name))

    def _limited(self, limit: UsageLimit | None) -> Iterator[Command]:
        """Sends the editor a new limit once, and its end."""
        before, self._limit = self._limit, limit
        if before is not None and before != limit:
            yield Update(limits.over(before))
        if limit is not None and before != limit:
            yield Update(limits.begins(limit, self.name))

    def _no_more(self, prompt: Mapping[str, Any]) -> Iterator[Command]:
        yield Withdraw(prompt["prompt_id"]) if asking.can_be_asked(prompt) else Update(asking.over(prompt))

    def cannot_tell(self) -> Iterator[Command]:
        """Handles a failure to read the agent's question: the question that was known before stays."""
        self._looking = self._look_again = False
        return iter(())

    def chosen(self, prompt_id: str, key: str | None) -> Iterator[Command]:
        """Takes the choice of the editor's person; None: no choice, so that others may answer it."""
        if key is None:
            self._times[prompt_id] = ASKED_MAX
        elif self._asked is not None and self._asked["prompt_id"] == prompt_id:
            self._asked, self._answering = None, prompt_id
            yield GiveAnswer(prompt_id, key)

    def answered(self) -> Iterator[Command]:
        """Notes that an answer was given, or refused."""
        self._answering = None
        yield from self._ask_what()

    def _ask_what(self) -> Iterator[Command]:
        self._look_again = self._looking
        if not self._looking:
            self._looking = True
            yield AskWhat()

    # --- what waits ---------------------------------------------------------------------------------------------------

    def _tell(self, updates: Iterable[dict[str, Any]], *, own: bool = False) -> Iterator[Command]:
        """Sends updates of a prompt at once; those of other turns after it."""
        for update in updates:
            if own or not self._prompts:
                yield Update(update)
            elif self._later_size <= LATER_MAX:
                self._later.append(update)
                self._later_size += len(str(update.get("content", ""))) + 100
            else:
                self._left_out = True

    def _calm(self) -> Iterator[Command]:
        """Sends the waiting updates if no prompt is left."""
        if self._prompts:
            return
        if self._asked is not None:
            asked, self._asked = self._asked, None
            yield from self._no_more(asked)
        yield from self._limited(None)
        self._times.clear()
        while self._later:
            yield Update(self._later.popleft())
        if self._left_out:
            note = {"type": "text", "text": "(turns of others were left out here: load the session again for them)"}
            message = id_for(self.session_id, "left out", self._later_size)
            yield Update({"sessionUpdate": "user_message_chunk", "messageId": message, "content": note})
        self._later_size, self._left_out = 0, False

    def _of(self, task: str) -> OpenPrompt | None:
        return next((prompt for prompt in self._prompts.values() if prompt.task == task), None)

    def _seen_to(self, task: str) -> None:
        self._strange.pop(task, None)

    def _bound(self) -> None:
        """Limits the known tasks of others to `TURNS_MAX`: the newest ones stay, which may be being read."""
        while len(self._strange) > TURNS_MAX:
            self._strange.pop(next(iter(self._strange)))


def _end_of(prompt: OpenPrompt, document: Mapping[str, Any]) -> Command:
    """Returns the answer to a prompt whose task is over."""
    status, task = document["status"], document["id"]
    if status == "completed":
        told = {"task": task} | ({"exact": False} if document.get("exact") is False else {})
        return Reply(prompt.id, {"stopReason": "end_turn", "_meta": {"synapsed": told}})
    if status == "canceled" or prompt.canceled:
        return Reply(prompt.id, {"stopReason": "cancelled", "_meta": {"synapsed": {"task": task}}})
    error = document.get("error") or {"code": status.upper(), "message": f"the message was {status}"}
    told = {"code": error["code"], "task": task}
    code, message = _failure(str(error["code"]), str(error["message"]))
    if isinstance(end := (error.get("details") or {}).get("until"), str):
        told["until"], message = end, f"{message} ({limits.until(end)})"
    return Fail(prompt.id, code, message, told)


def failure_of(error: CtlError) -> tuple[int, str, dict[str, Any]]:
    """Returns an error of the daemon, or of reaching it, in the form of JSON-RPC."""
    code, message = _failure(error.code, str(error))
    details = error.details if isinstance(error, ApiError) else {}
    return code, message, {"code": error.code} | ({"details": details} if details else {})


def _failure(code: str, message: str) -> tuple[int, str]:
    return _CODES.get(code, INTERNAL_ERROR), f"{code}: {message}"
