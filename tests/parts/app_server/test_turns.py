"""The app-server adapter: turns, what they ask, and what else is told of them."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from synapsed.interfaces import Delivering, FoundTurn
from synapsed.model.facts import (
    AssistantSaid,
    AssistantSaying,
    ChannelFact,
    DiffTold,
    LimitsTold,
    LimitWindow,
    PermissionAsked,
    PermissionOver,
    PlanTold,
    PromptAccepted,
    SessionStarted,
    ToolBegan,
    ToolOver,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
    TurnUsed,
)
from synapsed.parts.app_server import channel as app_server
from synapsed.parts.app_server.channel import AppServerChannel
from synapsed.parts.app_server.items import answer_in, call_in, code_of, key_of, limits_in, script_in
from synapsed.parts.app_server.questions import ASKED_AGAIN_S
from synapsed.parts.app_server.turns import AppTurns
from tests.channels.conftest import Launch
from tests.fakes.clock import JUMPS
from tests.parts.app_server.scripted import THREAD, AppServer, begun, made, reached, until
from tests.parts.session_server.test_channel import Facts

pytestmark = pytest.mark.parametrize("launch", ["codex"], indirect=True)


async def test_a_turn(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, facts = channel
    assert isinstance(it, Delivering)
    assert facts[0] == replace(facts[0], session=THREAD)
    assert isinstance(facts[0], SessionStarted)
    key = await begun(it, server, facts)
    (sent,) = server.called("turn/start")
    assert sent == {
        "threadId": THREAD,
        "input": [{"type": "text", "text": "do it"}],
        "clientUserMessageId": key,
    }
    accepted = await facts.until(PromptAccepted)
    assert (accepted.turn, accepted.prompt, accepted.key, accepted.own) == ("turn-1", "do it", key, True)
    assert it.reach() == "busy"
    await server.says("First I look.", "m1")
    await server.tell("item/agentMessage/delta", turnId="turn-1", itemId="m0", delta="of one that had begun before")
    await server.item({"type": "agentMessage", "id": "m2", "text": ""}, started=True)
    await server.tell("item/agentMessage/delta", turnId="turn-1", itemId="m2", delta="Done")
    await server.says("Done.", "m2")
    last = {"inputTokens": 10, "cachedInputTokens": 4, "outputTokens": 3}
    await server.tell(
        "thread/tokenUsage/updated", turnId="turn-1", tokenUsage={"total": {"totalTokens": 13}, "last": last}
    )
    await server.ends()
    ended = await facts.until(TurnEnded)
    assert (ended.turn, ended.answer) == ("turn-1", "Done.")
    assert (await facts.until(AssistantSaid)).text == "First I look."
    assert (await facts.until(AssistantSaying)).piece == "Done"
    used = await facts.until(TurnUsed)
    assert (used.input_tokens, used.output_tokens, used.cache_read_tokens) == (6, 3, 4)
    await reached(it, "idle")


async def test_a_turn_that_runs_already_is_joined(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, facts = channel
    await server.tell("turn/started", turn={"id": "turn-1"})
    await server.item({"type": "userMessage", "id": "u0", "clientId": "theirs", "content": []})
    theirs = await facts.until(PromptAccepted)
    assert (theirs.own, theirs.key) == (False, None)
    assert (await it.submit(it.key("task-1", 0), "also this")).joined


async def test_what_was_said_before_ours_is_no_answer(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, facts = channel
    await server.tell("turn/started", turn={"id": "turn-1"})
    await server.says("of the person's", "m1")
    await server.item({"type": "userMessage", "id": "u2", "clientId": it.key("t", 0), "content": []})
    await server.says("of ours", "m2")
    await server.ends()
    assert (await facts.until(TurnEnded)).answer == "of ours"


async def became(it: AppServerChannel, key: str) -> ChannelFact | None:
    """How the turn of that message has ended, without when that was found out."""
    found = await it.find(key)
    assert found is not None
    return replace(found.over, at_ns=0) if found.over is not None else None


def end(kind: type[ChannelFact], **fields: Any) -> ChannelFact:
    return kind(**{"channel": "server", "at_ns": 0, "turn": "turn-1", **fields})


def typed(text: str = "and this", id_: str = "u9") -> dict[str, Any]:
    """What a person has typed."""
    content = [{"type": "text", "text": text}]
    return {"type": "userMessage", "id": id_, "clientId": "theirs", "content": content}


COMMENTARY = {"type": "agentMessage", "id": "m1", "text": "I look.", "phase": "commentary"}


@pytest.mark.parametrize(
    "before",
    [
        [],
        [COMMENTARY],
        [{"type": "agentMessage", "id": "m1", "text": "I look."}, {"type": "commandExecution", "id": "c1"}],
    ],
)
async def test_what_a_person_types_into_a_turn_that_has_no_answer_yet_is_of_that_turn(
    channel: tuple[AppServerChannel, Facts], server: AppServer, before: list[dict[str, Any]]
) -> None:
    """It is answered with the message, and nobody else's turn."""
    it, facts = channel
    key = await begun(it, server, facts)
    for item in before:
        await server.item(item)
    await server.item({"type": "agentMessage", "id": "m2", "text": ""}, started=True)  # the program drops it
    for item in (typed(), {"type": "agentMessage", "id": "m3", "text": "to both"}):
        await server.item(item)
    user = {"type": "userMessage", "id": "u1", "clientId": key}
    last = {"type": "agentMessage", "id": "m3", "text": "to both"}
    server.turns = [{"id": "turn-1", "status": "completed", "items": [user, *before, typed(), last]}]
    await server.ends()
    await facts.until(TurnEnded)
    assert [fact.answer for fact in facts if isinstance(fact, TurnEnded)] == ["to both"]
    assert [fact.own for fact in facts if isinstance(fact, PromptAccepted)] == [True]
    assert await became(it, key) == end(TurnEnded, answer="to both")


async def test_what_a_person_types_behind_the_answer_is_a_turn_of_theirs(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    """The message has its own answer, also where it is looked for later."""
    it, facts = channel
    key = await begun(it, server, facts)
    await server.says("to ours", "m1")
    await server.item(typed())
    assert (await facts.until(TurnEnded)).answer == "to ours"
    assert it.reach() == "busy"
    user = {"type": "userMessage", "id": "u1", "clientId": key}
    said = [{"type": "agentMessage", "id": f"m{n}", "text": text} for n, text in enumerate(("to ours", "to theirs"), 1)]
    server.turns = [{"id": "turn-1", "status": "inProgress", "items": [user, said[0], typed()]}]
    assert await became(it, key) == end(TurnEnded, answer="to ours")
    await server.says("to theirs", "m2")
    await server.ends()
    await reached(it, "idle")
    assert [fact.answer for fact in facts if isinstance(fact, TurnEnded)] == ["to ours", "to theirs"]
    assert [fact.own for fact in facts if isinstance(fact, PromptAccepted)] == [True, False]
    server.turns = [{"id": "turn-1", "status": "completed", "items": [user, said[0], typed(), said[1]]}]
    assert await became(it, key) == end(TurnEnded, answer="to ours")


async def test_a_plan_behind_a_message_shows_that_it_was_no_answer(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.says("I plan.", "m1")
    await server.tell("turn/plan/updated", turnId="turn-1", plan=[{"step": "one", "status": "pending"}])
    await server.item(typed())
    await server.says("to both", "m2")
    await server.ends()
    await facts.until(TurnEnded)
    assert [fact.answer for fact in facts if isinstance(fact, TurnEnded)] == ["to both"]


async def test_the_first_turn_of_a_thread_is_heard_once_it_can_be_resumed(launch: Launch, server: AppServer) -> None:
    server.resumable = False
    it, facts = made(launch), Facts()
    await it.open(facts)
    try:
        await reached(it, "idle")
        key = it.key("task-1", 0)
        await it.submit(key, "x")
        await until(lambda: len(server.called("thread/resume")) >= 3)
        user = {"type": "userMessage", "id": "u1", "clientId": key, "content": [{"type": "text", "text": "x"}]}
        said = {"type": "agentMessage", "id": "m1", "text": "It was fast."}
        server.turns = [{"id": "turn-1", "status": "completed", "items": [user, said]}]
        server.resumable = True
        ended = await facts.until(TurnEnded)
        assert (ended.turn, ended.answer) == ("turn-1", "It was fast.")
    finally:
        await it.close()


async def test_an_end_that_never_comes_is_read(
    channel: tuple[AppServerChannel, Facts], server: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    it, facts = channel
    monkeypatch.setattr(app_server, "SETTLE_AFTER_S", (0.0, 0.01))
    key = await begun(it, server, facts)
    user = {"type": "userMessage", "id": "u1", "clientId": key, "content": []}
    server.turns = [
        {"id": "turn-1", "status": "completed", "items": [user, {"type": "agentMessage", "id": "m", "text": "late"}]}
    ]
    await server.tell("thread/status/changed", status={"type": "idle"})
    assert (await facts.until(TurnEnded)).answer == "late"


async def test_an_end_that_was_missed_and_is_written_late_is_read(
    channel: tuple[AppServerChannel, Facts], server: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pages say for longer than the first looks take that it runs, and one of these is not answered."""
    it, facts = channel
    monkeypatch.setattr(app_server, "SETTLE_AFTER_S", (0.0, 0.01))
    key = await begun(it, server, facts)
    user = {"type": "userMessage", "id": "u1", "clientId": key, "content": []}
    server.turns = [{"id": "turn-1", "status": "inProgress", "items": [user]}]
    looks = len(server.called("thread/turns/list"))
    await server.tell("thread/status/changed", status={"type": "idle"})
    await until(lambda: len(server.called("thread/turns/list")) > looks + 3)
    server.refuses = {"thread/turns/list": "not now"}
    looks = len(server.called("thread/turns/list"))
    await until(lambda: len(server.called("thread/turns/list")) > looks + 1)
    assert not any(isinstance(fact, TurnEnded | TurnInterrupted) for fact in facts)
    server.turns = [
        {"id": "turn-1", "status": "completed", "items": [user, {"type": "agentMessage", "id": "m", "text": "late"}]}
    ]
    server.refuses = {}
    assert (await facts.until(TurnEnded)).answer == "late"


def test_a_turn_that_is_read_again_tells_only_what_is_new(launch: Launch) -> None:
    """Its list has the messages under other ids than their notifications, and the calls under the same."""
    told: list[ChannelFact] = []
    turns = AppTurns("server", launch.profile.channels["server"], told.append)
    key = key_of("task-1", 0)
    call = {"type": "commandExecution", "id": "call-1", "command": "ls", "status": "completed"}

    def new() -> list[tuple[type[ChannelFact], Any]]:
        found = [
            (
                type(fact),
                next(getattr(fact, name) for name in ("key", "text", "call", "answer") if hasattr(fact, name)),
            )
            for fact in told
        ]
        told.clear()
        return found

    def heard(id_: str, text: str) -> None:
        turns.hear("item/completed", {"item": {"type": "agentMessage", "id": id_, "text": text}}, "turn-1")

    def listed(*texts: str | dict[str, Any]) -> dict[str, Any]:
        said = [{"type": "agentMessage", "text": each} if isinstance(each, str) else each for each in texts]
        items = [{"type": "userMessage", "clientId": key, "content": []}, *said]
        numbered = [{"id": f"item-{number}", **item} for number, item in enumerate(items)]
        return {"id": "turn-1", "status": "inProgress", "items": numbered}

    user = {"type": "userMessage", "id": "u1", "clientId": key, "content": []}
    for method in ("item/started", "item/completed"):
        turns.hear(method, {"item": user}, "turn-1")
    heard("m1", "I look.")
    turns.hear("item/started", {"item": call | {"status": "inProgress"}}, "turn-1")
    assert new() == [(PromptAccepted, key), (ToolBegan, "call-1")]
    turns.read(listed("I look.", call | {"status": "inProgress"}), runs=True)
    assert new() == []
    other = call | {"id": "call-2", "status": "inProgress"}
    missed = listed("I look.", call, "I look.", other)
    turns.read(missed, runs=True)
    assert new() == [(ToolOver, "call-1"), (AssistantSaid, "I look."), (ToolBegan, "call-2")]
    turns.read(missed, runs=True)
    assert new() == []
    heard("m4", "Done.")  # before the answer to the next reading, which has what was missed before
    assert new() == [(AssistantSaid, "I look.")]
    last = listed("I look.", call, "I look.", other | {"status": "completed"}, "Almost.", "Done.")
    turns.read(last, runs=True)
    assert new() == [(ToolOver, "call-2"), (AssistantSaid, "Almost.")]
    turns.read(last | {"status": "completed"}, runs=False)
    assert new() == [(TurnEnded, "Done.")]
    turns.hear("item/completed", {"item": user}, "turn-1")
    assert (new(), turns.open) == ([], {})


async def test_what_became_of_a_message_is_found(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, _ = channel
    key = it.key("task-1", 0)
    assert await it.find(key) is None
    user = {"type": "userMessage", "id": "u1", "clientId": key, "content": []}
    before = {"type": "agentMessage", "id": "m0", "text": "before"}
    after = {"type": "agentMessage", "id": "m1", "text": "after"}
    turn: dict[str, Any] = {"id": "turn-1", "status": "completed", "items": [before, user, after]}
    server.turns = [{"id": "turn-0", "status": "completed", "items": []}, turn]
    assert await became(it, key) == end(TurnEnded, answer="after")
    turn |= {"items": [before, user]}
    assert await became(it, key) == end(TurnEnded, answer="")
    turn |= {"status": "failed", "error": {"message": "no", "codexErrorInfo": "usageLimitExceeded"}}
    assert await became(it, key) == end(TurnFailed, code="RATE_LIMITED", message="no")
    turn |= {"status": "interrupted", "error": None}
    assert await became(it, key) == end(TurnInterrupted)


async def test_a_turn_is_found_by_its_id_before_its_message_stands_in_it(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    """Its thread may be told as idle until it has begun. So codex 0.157.0 lists it for seconds on a busy machine."""
    it, _ = channel
    key = it.key("task-1", 0)
    server.turns = [{"id": "turn-0", "status": "completed", "items": []}]
    assert await it.find(key, "turn-1") is None
    server.turns.append({"id": "turn-1", "status": "inProgress", "items": []})
    assert await it.find(key) is None
    assert await it.find(key, "turn-1") == FoundTurn(turn="turn-1")
    server.turns[1] |= {"status": "completed", "items": [{"type": "agentMessage", "id": "m", "text": "done"}]}
    found = await it.find(key, "turn-1")
    assert found is not None
    assert isinstance(found.over, TurnEnded)
    assert found.over.answer == "done"


async def test_a_turn_that_has_just_ended_is_read_once_more(
    channel: tuple[AppServerChannel, Facts], server: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages call it interrupted for a moment."""
    it, _ = channel
    key = it.key("task-1", 0)
    user = {"type": "userMessage", "id": "u1", "clientId": key, "content": []}
    server.turns = [{"id": "turn-1", "status": "interrupted", "items": [user]}]

    monkeypatch.setattr(app_server, "STALE_S", 0.05)
    before = len(server.called("thread/turns/list"))
    finding = asyncio.create_task(it.find(key))
    await until(lambda: len(server.called("thread/turns/list")) > before)
    server.turns[0] |= {"status": "completed", "items": [user, {"type": "agentMessage", "id": "m", "text": "it"}]}
    found = await finding
    assert found is not None
    assert isinstance(found.over, TurnEnded)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        ({"message": '{"error": {"message": "bad"}}', "codexErrorInfo": "other"}, "MODEL_ERROR", "bad"),
        (
            {
                "message": "exceeded retry limit",
                "codexErrorInfo": {"responseTooManyFailedAttempts": {"httpStatusCode": 429}},
            },
            "RATE_LIMITED",
            "exceeded retry limit",
        ),
        ({"message": "unexpected status 401 Unauthorized", "codexErrorInfo": "other"}, "AUTH_REQUIRED", None),
        ({"message": "too long", "codexErrorInfo": "contextWindowExceeded"}, "CONTEXT_FULL", "too long"),
        (None, "MODEL_ERROR", "the program says no more"),
    ],
)
async def test_a_failure_has_its_code(
    channel: tuple[AppServerChannel, Facts], server: AppServer, error: Any, code: str, words: str | None
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ends("failed", error=error)
    failed = await facts.until(TurnFailed)
    assert failed.code == code
    assert words is None or failed.message == words


async def test_a_turn_that_was_begun_just_now_is_not_over(
    channel: tuple[AppServerChannel, Facts], server: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its beginning is told the thread looks as one at rest, and the turn as one that was interrupted."""
    it, facts = channel
    monkeypatch.setattr(app_server, "SETTLE_AFTER_S", (0.0,))
    await until(lambda: it._subscribed)
    server.turns = [{"id": "turn-1", "status": "interrupted", "items": []}]
    await it.submit(it.key("task-1", 0), "do it")
    await it._settled_soon()
    assert it.reach() == "busy"
    assert not any(isinstance(fact, TurnInterrupted) for fact in facts)


async def test_an_interrupted_turn(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, facts = channel
    await begun(it, server, facts)
    assert await it.interrupt("turn-1")
    assert server.called("turn/interrupt") == [{"threadId": THREAD, "turnId": "turn-1"}]
    await server.ends("interrupted")
    assert not (await facts.until(TurnInterrupted)).refused


# --- what it asks ----------------------------------------------------------------------------------------------------

COMMAND = "item/commandExecution/requestApproval"


def asking(**more: Any) -> dict[str, Any]:
    return {
        "turnId": "turn-1",
        "itemId": "call-1",
        "startedAtMs": time.time() * 1000 + 1000,
        "command": "/bin/bash -lc 'ls; rm -rf x'",
        "reason": "outside the sandbox",
        "proposedExecpolicyAmendment": ["ls"],
        **more,
    }


async def test_a_question_has_the_whole_command_and_is_answered_once(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(7, COMMAND, **asking())
    asked: PermissionAsked = await facts.until(PermissionAsked)
    assert asked.question == "Would you like to run the following command?\noutside the sandbox\nls; rm -rf x"
    assert asked.tool == "Bash"
    assert not asked.again
    labels = {option.key: option.label for option in asked.options}
    assert labels["always"] == "Yes, and don't ask again for commands that start with ls"
    assert it.reach() == "asking"
    assert await it.answer("7", "always")
    await until(lambda: server.answers)
    decision = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["ls"]}}
    assert server.answers == [{"id": 7, "result": {"decision": decision}}]
    assert (await facts.until(PermissionOver)).request == "7"
    assert not await it.answer("7", "no")
    assert len(server.answers) == 1


async def test_one_that_is_answered_at_the_terminal_is_over(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(7, COMMAND, **asking())
    await facts.until(PermissionAsked)
    await server.tell("serverRequest/resolved", requestId=7)
    assert (await facts.until(PermissionOver)).request == "7"
    assert not await it.answer("7", "yes")


async def test_one_without_a_proposal_does_not_offer_it(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(7, COMMAND, **asking(proposedExecpolicyAmendment=None))
    asked: PermissionAsked = await facts.until(PermissionAsked)
    assert [option.key for option in asked.options] == ["yes", "no"]
    assert not await it.answer("7", "always")
    assert server.answers == []


async def test_a_decision_of_the_policy(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(7, COMMAND, **asking())
    await facts.until(PermissionAsked)
    assert await it.reply("7", {"decision": "decline"})
    await until(lambda: server.answers)
    assert server.answers == [{"id": 7, "result": {"decision": "decline"}}]


async def test_what_was_asked_before_is_a_person_s(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(7, COMMAND, **asking(startedAtMs=1000))
    assert (await facts.until(PermissionAsked)).again


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_question_without_a_date_is_new_though_the_clock_was_set(
    channel: tuple[AppServerChannel, Facts], server: AppServer, jump: float
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    it._questions._since -= jump + ASKED_AGAIN_S
    it._questions._connected -= ASKED_AGAIN_S
    await server.ask(7, COMMAND, **asking(startedAtMs=None))
    assert not (await facts.until(PermissionAsked)).again


async def test_requests_that_are_not_known_are_left_to_the_terminal(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(8, "item/tool/requestUserInput", turnId="turn-1", questions=[])
    await server.tell("something/new", turnId="turn-1")
    await server.ends()
    await facts.until(TurnEnded)
    assert server.answers == []
    assert it.reach() == "idle"


async def test_a_turn_that_ends_takes_its_questions_with_it(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(7, COMMAND, **asking())
    await facts.until(PermissionAsked)
    await server.ends("interrupted")
    await facts.until(PermissionOver)
    await reached(it, "idle")


async def test_one_that_is_answered_while_there_is_no_connection_is_over(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(7, COMMAND, **asking())
    await facts.until(PermissionAsked)
    await server.stop()
    await reached(it, "away")
    server.status = "idle"
    server.turns = [{"id": "turn-1", "status": "completed", "items": [{"type": "agentMessage", "text": "Done."}]}]
    await server.start()
    assert (await facts.until(TurnEnded)).answer == "Done."
    assert (await facts.until(PermissionOver)).request == "7"
    await reached(it, "idle")


# --- tools, plans, diffs, limits -------------------------------------------------------------------------------------


async def test_what_else_is_told(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, facts = channel
    await begun(it, server, facts)
    call = {
        "type": "commandExecution",
        "id": "c1",
        "command": "/bin/bash -lc 'ls'",
        "cwd": "/x",
        "status": "inProgress",
    }
    await server.item(call, started=True)
    await server.item({**call, "status": "completed", "aggregatedOutput": "a\n", "exitCode": 0, "durationMs": 12})
    began, over = await facts.until(ToolBegan), await facts.until(ToolOver)
    assert (began.tool, began.input, began.call) == ("Bash", {"command": "ls", "cwd": "/x"}, "c1")
    assert (over.output, over.error, over.duration_ms) == ({"text": "a\n"}, None, 12)
    plan = [{"step": "one", "status": "inProgress"}, {"step": "two", "status": "odd"}]
    await server.tell("turn/plan/updated", turnId="turn-1", plan=plan, explanation="so")
    told = await facts.until(PlanTold)
    assert (told.steps, told.note) == ((("one", "in_progress"), ("two", "pending")), "so")
    await server.tell("turn/diff/updated", turnId="turn-1", diff="--- a\n+++ b\n")
    assert (await facts.until(DiffTold)).diff == "--- a\n+++ b\n"
    limits = {"primary": {"usedPercent": 42, "windowDurationMins": 300, "resetsAt": 1_700_000_000}, "planType": "pro"}
    await server.tell("account/rateLimits/updated", rateLimits=limits)
    found = await facts.until(LimitsTold)
    assert found.windows == (LimitWindow(name="primary", used=42.0, minutes=300, resets_at=1_700_000_000.0),)
    assert found.plan == "pro"


def test_calls_and_scripts_as_they_come(launch: Launch) -> None:
    assert script_in("/bin/bash -lc 'ls; date'") == "ls; date"
    for odd in ("bash -lc 'a' b", "/bin/bash -lc 'unclosed", "ls -la", "", "python -c x"):
        assert script_in(odd) == odd
    declined = call_in({"type": "fileChange", "id": "c", "status": "declined", "changes": "odd"}, {})
    assert declined is not None
    assert (declined.denied, declined.error, declined.input) == (True, "declined", {"changes": []})
    assert call_in({"type": "reasoning", "id": "r"}, {}) is None
    assert call_in({"type": "commandExecution"}, {}) is None
    assert limits_in({"rateLimits": {"primary": {"usedPercent": "x"}}}) is None
    assert limits_in({"rateLimits": {"primary": {"usedPercent": 1, "resetsAt": 1e300}}}) == (
        LimitWindow(name="primary", used=1.0),
    )
    assert answer_in({"items": "odd"}) == ""
    assert code_of(launch.profile.channels["server"], "odd")[0] == "MODEL_ERROR"
