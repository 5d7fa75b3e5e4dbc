"""Decides what to do with one launch of a program that speaks ACP on pipes: takes the program's output and the requests
to it, and returns commands. Pure.

The output is read from where the launch began, also by the next daemon: the program's state follows from the output, so
little else has to be kept (`KeptSession`). The request with a prompt has an id that is recorded for the task; the
keeper writes each id only once, and the answer is found by that id. Output that was reported before (up to `told_to`)
only decides the state, and is not reported again.
"""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from synapsed.errors import NotWaiting, PromptChanged
from synapsed.model.agent import Activity
from synapsed.model.facts import (
    AssistantSaid,
    AssistantSaying,
    ChannelFact,
    PromptAccepted,
    ToolBegan,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
    TurnOver,
)
from synapsed.model.link import LinkObserved, LinkRefused, LinkTold
from synapsed.pipes.acp_opening import LOAD, SESSIONS, AcpOpening, AcpStage, SessionOpening
from synapsed.pipes.acp_reports import CHANNEL, ProgramCalls, plan, used
from synapsed.pipes.commands import NotRefused, OfTurn, PipesCommand, Saved, ShowLine, ShowText, Write
from synapsed.pipes.kept_session import KeptPrompt, KeptSession
from synapsed.pipes.permission_request import OpenRequest, asked, open_request
from synapsed.pipes.program_requests import SAVE_EVERY, ProgramRequests
from synapsed.pipes.rpc import RpcLine
from synapsed.pipes.speech import PromptedTurn, PromptResponse, TurnSpeech, outcome
from synapsed.profiles.channel_spec import ACP_REQUEST
from synapsed.profiles.profile import Profile
from synapsed.pty.keyboard import Emit

PERSON: Final = "person."
"""Beginning of the ids of requests with a person's prompt; the ids for a task's message begin with the task's id."""

FINISHED_MAX: Final = 16
"""Largest number of ended turns that are kept until the daemon asks for them."""

ALONE_S: Final = 3.0
"""Seconds of quiet after which a program no longer works by itself. It works by itself if it says or does something
while no prompt is open: one that was confused by a set clock asked its model two thousand times."""

WORK: Final = frozenset({"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"})

TOLD: Final = WORK | {"user_message_chunk", "plan"}
"""Updates by which a program repeats an earlier conversation."""


class AcpSession:
    """Decides for one launch. `cwd` is the agent's folder, `conversation` the id of the conversation to continue;
    `kept` is the state that an earlier daemon has saved."""

    def __init__(
        self,
        profile: Profile,
        *,
        cwd: str,
        conversation: str | None,
        kept: KeptSession | None = None,
        told_to: int = 0,
        opening: SessionOpening | None = None,
    ) -> None:
        self._profile = profile
        self._out: deque[PipesCommand] = deque()
        opening = opening or SessionOpening()
        self._opening = AcpOpening(
            profile,
            cwd=cwd,
            conversation=conversation,
            session=kept.session if kept is not None else None,
            added=opening.session,
            out=self._out,
            ready=self._ready,
        )
        self._brief = opening.brief
        self._told_to = told_to
        self._ready_at = self._begins_at = kept.at if kept is not None else 0
        """Offsets: output before the first is older than the ready session, before the second older than the turn."""
        self._place = self._read_to = 0
        """Offsets of the beginning and the end of the line that is read."""
        self._kept = kept.prompt if kept is not None else None
        """The last prompt that was open, as far as it is saved."""
        self.turn: PromptedTurn | None = None
        self._heard = PromptedTurn("")
        """The text that came while no turn is known; perhaps of a turn that an earlier daemon began."""
        self._finished: dict[str, tuple[PromptResponse, TurnSpeech]] = {}
        self._ids = False
        self._requests = ProgramRequests(kept)
        self._calls = ProgramCalls()
        self._live = False
        """True if the line that is read was not reported before."""
        self._stopped: set[str] = set()
        """Ids by which a person has stopped the present or the last turn: of refused requests, and of the turn itself.
        Empty once the program works by itself after that turn."""
        self._works = False
        """True if the program did something by itself since the last call of `waited`."""
        self._alone_since: float | None = None
        """Time of the last `waited` that saw such work; None while the program does not work by itself."""
        self._ended_one = False
        """True once a turn has ended while this daemon reads: later text is not the rest of an earlier turn."""

    def _drain(self) -> list[PipesCommand]:
        found = list(self._out)
        self._out.clear()
        return found

    # --- the beginning ---

    def begin(self) -> list[PipesCommand]:
        """Opens the session, or continues to open it (`AcpOpening.begin`)."""
        self._opening.begin()
        return self._drain()

    @property
    def stage(self) -> AcpStage:
        return self._opening.stage

    @property
    def session(self) -> str | None:
        return self._opening.session

    def _ready(self) -> None:
        self._ready_at = self._begins_at = self._read_to
        self._keep(None)

    def _keep(self, prompt: KeptPrompt | None) -> None:
        """Saves the state for the next daemon; `prompt` is the open prompt."""
        assert self.session is not None
        requests, self._kept = self._requests, prompt
        requests.taken = 0
        kept = KeptSession(
            session=self.session, at=self._ready_at, prompt=prompt, asked_to=requests.asked_to, open=requests.open
        )
        self._out.append(Saved(kept))

    def waited(self, now: float) -> list[PipesCommand]:
        """Handles the passing of time (`now` in monotonic seconds)."""
        self._out += self._requests.again()
        if self._alone_since is not None and (self._works or now - self._alone_since >= ALONE_S):
            self._alone_since, self._works = now if self._works else None, False
        self._opening.waited(now)
        return self._drain()

    # --- what the program writes ---

    def read(self, line: RpcLine, now_ns: int) -> list[PipesCommand]:
        """Handles a line of the program's output."""
        self._live, self._place, self._read_to = line.end > self._told_to, line.begin, line.end
        message = line.message
        if message is None:
            if self._live:
                self._out.append(ShowLine(line.text))
        elif "method" in message and "id" in message:
            self._asked(message, now_ns)
        elif message.get("method") == "session/update":
            params = message.get("params")
            update = params.get("update") if isinstance(params, dict) else None
            if isinstance(update, dict):
                self._update(update, now_ns)
        elif "id" in message and ("result" in message or "error" in message):
            self._answered(message, now_ns)
        return self._drain()

    def missed(self) -> None:
        """Notes that output is gone; it may have contained a turn's text."""
        self._brief = None
        self._turn.speech = self._turn.speech.gap()

    @property
    def _turn(self) -> PromptedTurn:
        return self.turn or self._heard

    def _answered(self, message: dict[str, Any], now_ns: int) -> None:
        id_ = message["id"]
        if id_ in SESSIONS:
            self._heard = PromptedTurn("")  # the text so far is of the earlier conversation
            if id_ == LOAD and "error" not in message:
                self._brief = None  # the earlier conversation began with it
        if not self._opening.answered(message) and isinstance(id_, str):
            self._ended(id_, message, now_ns)

    def _ended(self, id_: str, message: dict[str, Any], now_ns: int) -> None:
        """Handles the response to a prompt: its turn is over, and with it the turn's requests. The response may come
        before the keeper's result of the write (`given`), which shows how much of the text is older than the prompt and
        so is no answer to it."""
        turn = self._turn
        if not (turn.id == id_ and turn.is_command):
            self._brief = None
        self._ids = self._ids or turn.speech.ids
        self._heard = PromptedTurn("", speech=TurnSpeech(ids=self._ids, kept=not self._ended_one))
        result = message.get("result")
        if self._live and isinstance(result, dict):
            self._worked(used(result.get("usage"), id_, now_ns))
        response = PromptResponse(message, now_ns, self._live)
        if self.turn is None:
            self._requests.over()
            self._finished[id_] = (response, turn.speech)
            while len(self._finished) > FINISHED_MAX:
                del self._finished[next(iter(self._finished))]
        elif turn.id == id_ and turn.response is None:
            self._requests.over()
            turn.response = response
            if turn.taken:
                self._conclude(turn)

    def _accepted(self, turn: PromptedTurn, now_ns: int) -> None:
        """Notes that the program has the message."""
        if turn.taken:
            return
        turn.taken = True
        if turn.own:
            self._live = True
            fact = PromptAccepted(channel=CHANNEL, at_ns=now_ns, prompt=turn.text, turn=turn.id, key=turn.id, own=True)
            self._fact(fact)
            self._out.append(OfTurn(fact))
            for message in turn.speech.own:
                self._saying(turn, message.name, message.text)

    def _conclude(self, turn: PromptedTurn) -> None:
        assert turn.response is not None
        message, at_ns, self._live = turn.response.message, turn.response.at_ns, turn.own or turn.response.live
        self._end(turn, outcome(message, turn.speech, self._profile.error, turn=turn.id, at_ns=at_ns))

    def _end(self, turn: PromptedTurn, over: TurnOver) -> None:
        self.turn, self._ended_one, at_ns = None, True, over.at_ns
        self._heard.speech.kept = False  # later text cannot be of a turn that an earlier daemon began
        if isinstance(over, TurnEnded) and not over.answer:
            if self._stopped:
                over = TurnInterrupted(channel=CHANNEL, at_ns=at_ns, turn=turn.id)
            elif not (turn.speech.heard or turn.is_command):
                why = "the program ended the turn without a word"
                over = TurnFailed(channel=CHANNEL, at_ns=at_ns, turn=turn.id, message=why)
        if isinstance(over, TurnInterrupted):
            self._out.append(ShowLine("[interrupted]"))
        elif isinstance(over, TurnFailed):
            self._out.append(ShowLine(f"[{over.code.lower().replace('_', ' ')}] {over.message}".rstrip()))
        answer = over.answer if isinstance(over, TurnEnded) else None
        if not turn.own:
            self._keep(None)
            self._fact(PromptAccepted(channel=CHANNEL, at_ns=at_ns, prompt=turn.text, turn=turn.id, own=False))
            self._fact(TurnEnded(channel=CHANNEL, at_ns=at_ns, answer=answer, prompt=turn.text, turn=turn.id))
            return
        if isinstance(over, TurnEnded):
            for message in turn.speech.own[:-1]:
                said = AssistantSaid(
                    channel=CHANNEL, at_ns=at_ns, turn=turn.id, message_id=message.name, text=message.text
                )
                self._out.append(OfTurn(said))
            over = replace(over, truncated=turn.speech.missed)
        self._out.append(OfTurn(over))

    def _update(self, update: dict[str, Any], now_ns: int) -> None:
        kind, turn = str(update.get("sessionUpdate")), self._turn
        if self.stage is not AcpStage.READY or self._place < self._begins_at:
            if kind in TOLD:
                self._opening.told()
            return  # older than the session or the turn: a program that continues a conversation repeats it
        if kind in WORK and self.turn is None and self._live and self._ended_one:
            self._works_alone()
        if kind == "agent_message_chunk":
            if (piece := turn.speech.chunk(update, self._place)) is not None and self._live:
                self._tell(turn, *piece)
        elif kind in ("tool_call", "tool_call_update"):
            turn.speech.interlude(self._place)
            self._worked(self._calls.told(update, now_ns))
            self._told_more(str(update.get("toolCallId") or ""))
        elif kind == "plan":
            turn.speech.interlude(self._place)
            self._fact(plan(update, now_ns))
        elif kind == "agent_thought_chunk":
            turn.speech.hear(self._place)
        elif kind == "user_message_chunk":
            turn.speech.stir(self._place)

    def _works_alone(self) -> None:
        """Notes that the program works by itself. If a person has stopped the last turn, this work is stopped too."""
        self._works = True
        if self._alone_since is None:
            self._alone_since = -math.inf
            if self._stopped:
                self._cancel()
        self._stopped.clear()

    def _cancel(self, input_id: str | None = None) -> None:
        self._out.append(Write({"method": "session/cancel", "params": {"sessionId": self.session}}, input_id))

    def _tell(self, turn: PromptedTurn, name: str, piece: str) -> None:
        self._out.append(ShowText(piece if turn.told in (None, name) else f"\n{piece}"))
        turn.told = name
        if turn.own and turn.taken:
            self._saying(turn, name, piece)

    def _saying(self, turn: PromptedTurn, name: str, piece: str) -> None:
        self._out.append(OfTurn(AssistantSaying(channel=CHANNEL, at_ns=0, turn=turn.id, message_id=name, piece=piece)))

    def _fact(self, fact: ChannelFact) -> None:
        if self._live:
            self._out.append(Emit(LinkTold(fact)))

    def _worked(self, facts: Iterable[ChannelFact]) -> None:
        for fact in facts:
            if isinstance(fact, ToolBegan) and self._live:
                self._out.append(ShowLine(f"[{fact.tool}]"))
                self._out.append(OfTurn(replace(fact, turn=self._turn.id)))
            self._fact(fact)

    def _asked(self, message: dict[str, Any], now_ns: int) -> None:
        """Handles a request from the program: a permission request waits for a person; any other is refused, since
        synapsed offers nothing else."""
        params = message.get("params")
        given = params.get("toolCall") if isinstance(params, dict) else None
        call = self._calls.whole(given if isinstance(given, dict) else {})
        request = open_request(message, call, self._read_to) if message["method"] == ACP_REQUEST else None
        if request is not None and isinstance(given, dict):
            self._worked(self._calls.told(given, now_ns))
        if not self._requests.comes(self._read_to):
            return
        if request is None:
            self._out += self._requests.refuse(message, self._read_to)
            return
        self._requests.ask(request)
        if self._live:
            self._out.append(ShowLine(_shown(request)))
        self._fact(asked(request, call, now_ns))

    def _told_more(self, call: str) -> None:
        """Replaces the open question about that call if it has changed: a yes would be for the earlier content."""
        for known in self._requests.all_waiting:
            if known.call == call and self._calls.knows(call):
                now = open_request(known.message, self._calls.whole({"toolCallId": call}), known.place)
                if now is not None and now.prompt.prompt_id != known.prompt.prompt_id:
                    self._requests.ask(now)
                    if self._live:
                        self._out.append(ShowLine(_shown(now)))

    # --- requests to it ---

    @property
    def has_begun(self) -> bool:
        """Returns True if the program has reported something of the turn, or if there is no turn."""
        return self.turn is None or self.turn.speech.begun or bool(self._requests.all_waiting)

    @property
    def waiting(self) -> OpenRequest | None:
        return self._requests.waiting

    @property
    def unsure(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        """Returns the requests that an earlier daemon may have answered (`ProgramRequests.unsure`)."""
        return self._requests.unsure()

    def was_answered(self, input_id: str) -> list[PipesCommand]:
        """Notes that an earlier daemon has answered the request."""
        self._requests.written(input_id)
        return self._drain()

    def deliver(self, prompt_id: str, text: str, *, fresh: bool, stopped: bool = False) -> list[PipesCommand]:
        """Begins a turn with the message of a task. Without `fresh`, an earlier daemon may have given the message;
        `stopped` then says that a person has stopped that turn, or refused a request of it."""
        response, speech = self._known(prompt_id) if not fresh else (None, TurnSpeech(ids=self._ids))
        turn = PromptedTurn(prompt_id, text, own=True, speech=speech, response=response)
        self._begin(turn, stopped=stopped)
        if fresh:
            self._out.append(ShowLine(text, bold=True))
        return self._drain()

    def _known(self, prompt_id: str) -> tuple[PromptResponse | None, TurnSpeech]:
        """Returns what was read about a prompt that an earlier daemon gave."""
        return self._finished.pop(prompt_id, (None, self._heard.speech))

    def take_up(self) -> list[PipesCommand]:
        """Continues a person's open prompt after all earlier output is read. It is written again if it may not have
        been written; the keeper writes it only once."""
        self._out += self._requests.looked_back()
        kept = self._kept
        if kept is not None and kept.text is not None and self.turn is None:
            response, speech = self._known(kept.id)
            turn = PromptedTurn(kept.id, kept.text, before=list(kept.before), speech=speech, response=response)
            self.turn = turn
            if kept.at is not None:
                self._take(turn, kept.at, 0)
            elif (message := self.prompt(kept.id)) is not None:
                self._out.append(Write(message, kept.id))
            else:
                self._conclude(turn)
        return self._drain()

    def _begin(self, turn: PromptedTurn, *, stopped: bool = False) -> None:
        self.turn, self._stopped = turn, {turn.id} if stopped else set()
        if (
            self._brief is not None and turn.response is None and not turn.is_command
        ):  # a command has to come first in the prompt
            turn.before, self._brief = [self._brief], None

    def typed(self, prompt_id: str, text: str) -> list[PipesCommand]:
        """Handles a person's line at an attached terminal: the answer to the open question if there is one, else a
        message, if no turn runs."""
        if (request := self.waiting) is not None:
            return self.answer(text, request.prompt.prompt_id)
        if self.turn is not None or self.stage is not AcpStage.READY:
            works = "the program is working: Ctrl-C stops it"
            self._out.append(ShowLine(works if self.turn else "it is not ready yet"))
            return self._drain()
        turn = PromptedTurn(prompt_id, text, speech=TurnSpeech(ids=self._ids))
        self._begin(turn)
        message = self.prompt(prompt_id)
        assert message is not None, "it is not over"
        self._keep(KeptPrompt(id=prompt_id, text=text, before=tuple(turn.before)))
        self._out += [ShowLine(text, bold=True), Write(message, prompt_id)]
        return self._drain()

    def prompt(self, prompt_id: str) -> dict[str, Any] | None:
        """Returns the request that gives the message of the turn; None if the turn is over."""
        turn = self.turn
        if turn is None or turn.id != prompt_id or turn.response is not None:
            return None
        blocks = [{"type": "text", "text": each} for each in (*turn.before, turn.text)]
        return {"id": prompt_id, "method": "session/prompt", "params": {"sessionId": self.session, "prompt": blocks}}

    def unwritten(self, prompt_id: str) -> list[PipesCommand]:
        """Handles an input that the keeper refused to write: a message, the answer to a request, or a turn's stop."""
        turn = self.turn
        if turn is not None and turn.id == prompt_id:
            self.turn = None
            self._brief = turn.before[0] if turn.before else self._brief
            if not turn.own:
                self._keep(None)
            self._out.append(ShowLine("[not written]"))
        elif turn is not None and prompt_id.startswith(_stop_id(turn)):
            turn.cancels, turn.canceled = turn.cancels - 1, None
        elif (request := self._requests.unwritten(prompt_id)) is not None:
            if prompt_id in self._stopped:
                self._stopped.discard(prompt_id)
                self._out += [] if self._stopped else [NotRefused()]
            self._out += [ShowLine("[not written: the question is still open]"), ShowLine(_shown(request))]
        return self._drain()

    def given(self, prompt_id: str, now_ns: int, *, at: int | None, whole: bool = False) -> list[PipesCommand]:
        """Notes that the keeper has written the input `prompt_id`: a message, or another input. The program's output up
        to offset `at` is older than a message; None if the keeper has forgotten the offset. `whole` is True if no
        output since then is missing."""
        self._requests.written(prompt_id)
        turn = self.turn
        if turn is None or turn.id != prompt_id:
            if self._requests.taken >= SAVE_EVERY and self.session is not None:
                self._keep(self._kept)
            return self._drain()
        if at is None:
            at = self._kept.at if self._kept is not None and self._kept.id == prompt_id else None
        elif self._kept is None or self._kept.id != prompt_id or self._kept.at is None:
            kept = self._kept if self._kept is not None and self._kept.id == prompt_id else KeptPrompt(id=prompt_id)
            self._keep(kept.model_copy(update={"at": at}))
        turn.speech.missed = turn.speech.missed and not whole
        self._take(turn, at or 0, now_ns)
        return self._drain()

    def _take(self, turn: PromptedTurn, at: int, now_ns: int) -> None:
        """Notes that the program has the message, and that its output up to `at` is older than the message."""
        self._begins_at = max(self._begins_at, at)
        turn.speech.cut(self._begins_at)
        if not turn.speech.messages:
            turn.told = None
        self._accepted(turn, now_ns)
        if turn.response is not None:
            self._conclude(turn)

    def answer(self, text: str, prompt_id: str | None) -> list[PipesCommand]:
        request = self.waiting
        if request is None:
            raise NotWaiting("the agent does not ask anything now")
        if prompt_id is not None and prompt_id != request.prompt.prompt_id:
            raise PromptChanged(
                "it asks something else now; read it and answer that", prompt=request.prompt.model_dump()
            )
        return self._choose(request, request.chosen(text))

    def _choose(self, request: OpenRequest, key: str) -> list[PipesCommand]:
        if request.kinds[key].startswith("reject"):
            self._stopped |= {request.input_id} if self.turn is not None else set()
            self._out.append(Emit(LinkRefused(request.prompt.prompt)))  # first: it is recorded before it is written
        outcome_ = {"outcome": "selected", "optionId": request.options[key]}
        self._out.append(Write({"id": request.id, "result": {"outcome": outcome_}}, request.input_id))
        self._requests.give(request)
        label = next(each.label for each in request.prompt.options if each.key == key)
        self._out.append(ShowLine(f"→ {label}", bold=True))
        return self._drain()

    def decide(self, input_id: str, kind: str) -> list[PipesCommand] | None:
        """Answers a question by a rule, with the only option of that kind. Returns None if there is not exactly one, or
        if the question is no longer open."""
        request = self._requests.get(input_id)
        key = request.of_kind(kind) if request is not None else None
        return self._choose(request, key) if request is not None and key is not None else None

    def asked_to_stop(self) -> None:
        """Notes a new request to stop the turn: cancel messages are counted from it."""
        if self.turn is not None:
            self.turn.asked_at = self.turn.cancels

    def interrupt(self, now: float) -> list[PipesCommand]:
        """Requests the program to stop its turn, and cancels its open requests. `now`: monotonic seconds."""
        turn = self.turn
        if turn is None and self._alone_since is None:
            return self._drain()
        if turn is None:
            self._cancel()
        else:
            self._stopped.add(turn.id)
            if turn.may_cancel(now):
                self._cancel(f"{_stop_id(turn)}{turn.cancels}")
                turn.cancels, turn.canceled = turn.cancels + 1, (now, self._read_to)
        for request in self._requests.all_waiting:
            self._requests.give(request)
            told = {"id": request.id, "result": {"outcome": {"outcome": "cancelled"}}}
            self._out.append(Write(told, request.input_id))
        return self._drain()

    def given_up(self, now_ns: int) -> list[PipesCommand]:
        """Ends a turn as interrupted because the program does not end it; the program itself is about to be killed."""
        if (turn := self.turn) is not None:
            self._live = True
            self._end(turn, TurnInterrupted(channel=CHANNEL, at_ns=now_ns, turn=turn.id))
        return self._drain()

    # --- its activity ---

    def observation(self, *, in_turn: bool = False) -> LinkObserved:
        """Returns the program's activity. `in_turn`: a task's turn runs; its message may not be given yet, or its end
        not be reported."""
        request = self.waiting
        if self.stage is AcpStage.FAILED or self._opening.alerted:
            return LinkObserved(
                Activity.UNKNOWN, f"acp: {self._opening.problem}", None, can_receive=False, held="not ready"
            )
        if self.stage is not AcpStage.READY:
            return LinkObserved(Activity.STARTING, f"acp: {self.stage.value}", None, can_receive=False)
        if request is not None:
            evidence = "acp: session/request_permission"
            return LinkObserved(
                Activity.WAITING, evidence, request.prompt, can_receive=False, held="dialog", whole=True
            )
        if in_turn or self.turn is not None:
            return LinkObserved(Activity.BUSY, "acp: session/prompt is not answered yet", None, can_receive=False)
        if self._alone_since is not None:
            return LinkObserved(Activity.BUSY, "acp: it works by itself, no prompt is open", None, can_receive=False)
        return LinkObserved(Activity.READY, "acp: no prompt is open", None, can_receive=True)


def _stop_id(turn: PromptedTurn) -> str:
    """Returns the beginning of the input ids of requests to stop the turn."""
    return f"stop.{turn.id}."


def _shown(request: OpenRequest) -> str:
    options = "\n".join(f"  {option.key}  {option.label}" for option in request.prompt.options)
    return "\n".join([request.prompt.prompt, *([request.prompt.diff] if request.prompt.diff else []), options])
