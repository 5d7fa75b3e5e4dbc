"""Reports of hooks, as the real programs send them, and what is told of them."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from synapsed.channels.adapters import NO_ADAPTERS, known, side_channels
from synapsed.channels.launch_additions import needs_port
from synapsed.clock import PastDates
from synapsed.interfaces import SideChannel
from synapsed.model.facts import (
    AssistantSaid,
    AssistantSaying,
    BackgroundTold,
    ChannelFact,
    PermissionAsked,
    PromptAccepted,
    SessionStarted,
    TurnAnswered,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
)
from synapsed.parts.hooks import channel as hooks
from synapsed.parts.hooks.channel import HookChannel
from synapsed.parts.loading import adapters
from synapsed.parts.session_server.delivery import SessionDelivery
from synapsed.profiles.library import ProfileLibrary
from tests.channels.conftest import Launch
from tests.fakes.clock import DAY_S, JUMPS, FakeClock, until


@pytest.fixture
async def channel(launch: Launch) -> AsyncIterator[HookChannel]:
    made = HookChannel(name="hooks", channel=launch.profile.channels["hooks"], context=launch.context)
    await made.open(launch.facts.append)
    yield made
    await made.close()


def claude(**more: Any) -> dict[str, Any]:
    return {"session_id": "s1", "prompt_id": "p1", "cwd": "/", **more}


def shape(facts: list[ChannelFact]) -> list[type]:
    """But for what only may be a turn's end."""
    return [type(fact) for fact in facts if not isinstance(fact, TurnAnswered)]


async def rested(channel: HookChannel) -> None:
    """What came is told, and then the program rests."""
    await channel.poll()
    await channel.rests()


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Gemini:
    """A gemini that writes its transcript."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, kind: str, content: Any, **more: Any) -> None:
        record = {"id": str(time.monotonic_ns()), "timestamp": stamp(time.time()), "type": kind, "content": content}
        with self.path.open("a") as file:
            file.write(json.dumps({**record, **more}) + "\n")

    def prompt(self, text: str) -> None:
        self.write("user", [{"text": text}])

    def says(self, text: str, **more: Any) -> None:
        self.write("gemini", text, tokens={"total": 20}, **more)

    def payload(self, **more: Any) -> dict[str, Any]:
        return {"session_id": "g1", "transcript_path": str(self.path), **more}


@pytest.fixture
def gemini(tmp_path: Path) -> Gemini:
    return Gemini(tmp_path / "chats" / "session.jsonl")


async def test_a_turn_of_claude(launch: Launch, channel: HookChannel) -> None:
    launch.report("SessionStart", {"session_id": "s1", "transcript_path": "/t.jsonl"})
    at = launch.report("UserPromptSubmit", claude(prompt="hello"))
    launch.report("PermissionRequest", claude(tool_name="Bash", tool_input={"command": "ls"}))
    end = launch.report("Stop", claude(last_assistant_message="**Hi** 日本"))
    await rested(channel)
    started, accepted, asked, answered, ended = launch.facts
    assert isinstance(answered, TurnAnswered)
    assert isinstance(started, SessionStarted)
    assert started.session == "s1"
    assert isinstance(accepted, PromptAccepted)
    assert (accepted.prompt, accepted.turn, accepted.at_ns, accepted.channel) == ("hello", "p1", at, "hooks")
    assert isinstance(asked, PermissionAsked)
    assert (asked.tool, asked.input) == ("Bash", {"command": "ls"})
    assert isinstance(ended, TurnEnded)
    assert (ended.answer, ended.turn, ended.at_ns) == ("**Hi** 日本", "p1", end)


async def test_a_transcript_that_is_at_no_path(launch: Launch, channel: HookChannel) -> None:
    launch.report("SessionStart", {"session_id": "s1", "transcript_path": "/\0"})
    launch.report("UserPromptSubmit", claude(prompt="hello"))
    await channel.poll()
    launch.report("Stop", claude(last_assistant_message="Hi"))
    await rested(channel)
    assert shape(launch.facts) == [SessionStarted, PromptAccepted, TurnEnded]


async def test_a_report_that_is_not_understood_takes_no_other_along(
    launch: Launch, channel: HookChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        monkeypatch.undo()
        raise TypeError("a defect")

    monkeypatch.setattr(channel, "_tell_background", broken)
    launch.report("SessionStart", {"session_id": "s1"})
    launch.report("UserPromptSubmit", claude(prompt="hello"))
    with capture_logs() as logs:
        await channel.poll()
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["a hook's report is not understood"]
    assert shape(launch.facts) == [PromptAccepted]


async def test_what_runs_in_the_background_is_told_at_a_turns_end(launch: Launch, channel: HookChannel) -> None:
    running: list[Any] = [{"id": "a", "description": "Serve"}, {"id": "b"}, "not understood"]
    launch.report("UserPromptSubmit", claude(prompt="hello"))
    launch.report("Stop", claude(last_assistant_message="Hi", background_tasks=running))
    launch.report("UserPromptSubmit", claude(prompt="again", prompt_id="p2"))
    launch.report("Stop", claude(last_assistant_message="Hi", prompt_id="p2", background_tasks=[]))
    await rested(channel)
    told = [fact.names for fact in launch.facts if isinstance(fact, BackgroundTold)]
    assert told == [("Serve", "task"), ()]


async def test_a_turn_goes_on_until_the_program_rests(launch: Launch, channel: HookChannel) -> None:
    """What a person's own hook makes of its end is not known before."""
    launch.report("UserPromptSubmit", claude(prompt="hello"))
    launch.report("Stop", claude(last_assistant_message="First."))
    await channel.poll()
    launch.report("Stop", claude(last_assistant_message="Second."))
    await channel.poll()
    assert shape(launch.facts) == [PromptAccepted]
    await channel.rests()
    await channel.rests()
    assert shape(launch.facts) == [PromptAccepted, TurnEnded]
    assert launch.facts[-1].answer == "Second."  # type: ignore[attr-defined]  # it is a TurnEnded


async def test_an_answer_that_is_told_while_the_rest_is_told_waits_for_its_own(
    launch: Launch, channel: HookChannel
) -> None:
    launch.report("UserPromptSubmit", claude(prompt="hello"))
    launch.report("Stop", claude(last_assistant_message="First."))
    await channel.poll()
    launch.report("UserPromptSubmit", claude(prompt="queued", prompt_id="p2"))
    launch.report("Stop", claude(last_assistant_message="Of the next.", prompt_id="p2"))
    await channel.rests()
    assert [fact.turn for fact in launch.facts if isinstance(fact, TurnEnded)] == ["p1"]
    await channel.rests()
    assert [fact.turn for fact in launch.facts if isinstance(fact, TurnEnded)] == ["p1", "p2"]


async def test_the_transcript_tells_the_rest_too(launch: Launch, channel: HookChannel, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    records: list[dict[str, Any]] = [
        {
            "type": "user",
            "isSidechain": False,
            "promptSource": "typed",
            "promptId": "p1",
            "message": {"content": "hello"},
        },
        {
            "type": "assistant",
            "isSidechain": False,
            "message": {"id": "m1", "content": [{"type": "text", "text": "Hi"}]},
        },
    ]
    path.write_text("".join(json.dumps({**record, "timestamp": stamp(time.time())}) + "\n" for record in records))
    told = {"transcript_path": str(path)}
    launch.report("UserPromptSubmit", claude(prompt="hello", **told))
    launch.report("Stop", claude(last_assistant_message="Hi", **told))
    await channel.poll()
    assert shape(launch.facts) == [PromptAccepted]
    over = {"type": "system", "subtype": "turn_duration", "timestamp": stamp(time.time())}
    with path.open("a") as file:
        file.write(json.dumps(over) + "\n")
    await channel.poll()
    assert shape(launch.facts) == [PromptAccepted, TurnEnded]


async def test_a_prompt_that_a_hook_refuses_fails_with_its_words(
    launch: Launch, channel: HookChannel, tmp_path: Path
) -> None:
    path = tmp_path / "s1.jsonl"
    launch.report("UserPromptSubmit", claude(prompt="hello", transcript_path=str(path)))
    await channel.poll()
    content = "UserPromptSubmit operation blocked by hook:\n[/bin/check]: Not now.\nLater.\n\n\nOriginal prompt: hello"
    record = {"type": "system", "subtype": "informational", "content": content, "timestamp": stamp(time.time())}
    path.write_text(json.dumps(record) + "\n")
    await channel.poll()
    refused = launch.facts[-1]
    assert isinstance(refused, TurnFailed)
    assert (refused.code, refused.message, refused.turn) == ("UNDELIVERED", "[/bin/check]: Not now.\nLater.", "p1")


async def test_failure_has_its_sentence_and_its_code(launch: Launch, channel: HookChannel) -> None:
    cases = [
        ("unknown", "API Error: 400 bad", "MODEL_ERROR"),
        ("rate_limit", "API Error: slow down", "RATE_LIMITED"),
        ("authentication_failed", "Please run /login", "AUTH_REQUIRED"),
        ("unknown", "Prompt is too long", "CONTEXT_FULL"),
    ]
    for error, sentence, _ in cases:
        launch.report("StopFailure", claude(error=error, last_assistant_message=sentence))
    await channel.poll()
    told = [(fact.code, fact.message) for fact in launch.facts if isinstance(fact, TurnFailed)]
    assert told == [(code, sentence) for _, sentence, code in cases]


async def test_unknown_events_and_empty_payloads_are_no_trouble(launch: Launch, channel: HookChannel) -> None:
    launch.report("SomethingNew", {"x": 1})
    for event in launch.profile.channels["hooks"].events:
        for payload in (None, [], "text", {"session_id": 5, "prompt": ["x"], "tool_input": "no table"}):
            launch.report(event, payload)
    await channel.poll()
    assert {type(fact) for fact in launch.facts} == {
        SessionStarted, PromptAccepted, TurnAnswered, TurnFailed, PermissionAsked,
    }  # fmt: skip
    assert all(fact.session is None for fact in launch.facts)


async def test_told_again_until_settled(launch: Launch, channel: HookChannel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn whose usage no transcript tells is settled when that was waited for."""
    monkeypatch.setattr(hooks, "USED_WAIT_SECONDS", 0.0)
    launch.report("UserPromptSubmit", claude(prompt="hello"))
    await channel.poll()
    await channel.close()
    ended = launch.report("Stop", claude(last_assistant_message="Hi"))  # nobody listens
    again: list[ChannelFact] = []
    second = HookChannel(name="hooks", channel=launch.profile.channels["hooks"], context=launch.context)
    await second.open(again.append)
    await second.rests()
    assert shape(again) == [PromptAccepted, TurnEnded]
    assert again[0] == launch.facts[0]
    await second.settled(ended)
    await until(lambda: not launch.names("cur"))
    third: list[ChannelFact] = []
    await HookChannel(name="hooks", channel=launch.profile.channels["hooks"], context=launch.context).open(third.append)
    assert third == []


async def test_turns_long_over_are_not_told_again(
    launch: Launch, channel: HookChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "USED_WAIT_SECONDS", 0.0)
    for n in range(10):
        launch.report("UserPromptSubmit", claude(prompt=str(n), prompt_id=f"p{n}"))
        launch.report("Stop", claude(last_assistant_message=str(n), prompt_id=f"p{n}"))
        await rested(channel)
    await until(lambda: len(launch.names("cur")) == 4)
    again: list[ChannelFact] = []
    await HookChannel(name="hooks", channel=launch.profile.channels["hooks"], context=launch.context).open(again.append)
    assert [(fact.turn, type(fact)) for fact in again] == [
        ("p8", PromptAccepted),
        ("p8", TurnAnswered),
        ("p8", TurnEnded),
        ("p9", PromptAccepted),
        ("p9", TurnAnswered),
    ]


async def test_news_of_an_interrupted_turn_is_not_told_of_the_next(launch: Launch, channel: HookChannel) -> None:
    launch.report("UserPromptSubmit", claude(prompt="first"))
    launch.report("UserPromptSubmit", claude(prompt="second", prompt_id="p2"))
    launch.report("Stop", claude(last_assistant_message="of the first"))
    await channel.poll()
    assert shape(launch.facts) == [PromptAccepted, PromptAccepted]
    launch.report("Stop", claude(last_assistant_message="of the second", prompt_id="p2"))
    await rested(channel)
    ended = launch.facts[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.answer == "of the second"


@pytest.mark.parametrize(
    ("event", "payload"),
    [("UserPromptSubmit", {"prompt": "first"}), ("Stop", {"last_assistant_message": "of the first"})],
)
async def test_what_is_older_than_the_open_turn_is_not_of_it(
    launch: Launch, channel: HookChannel, event: str, payload: dict[str, str]
) -> None:
    """A hook that was slow reports of a person's turn when the next one runs, whose end that is not (seed 204 of the
    simulated world)."""
    now = time.monotonic_ns()
    launch.report("UserPromptSubmit", {"prompt": "second"}, at_ns=now)
    await channel.poll()
    launch.report(event, payload, at_ns=now - 1_000_000_000)
    await channel.poll()
    assert shape(launch.facts) == [PromptAccepted]
    launch.report("Stop", {"last_assistant_message": "of the second"}, at_ns=now + 1)
    await channel.poll()
    await channel.rests()
    ended = launch.facts[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.answer == "of the second"


async def test_polls_do_not_overtake_each_other(launch: Launch, channel: HookChannel) -> None:
    for n in range(50):
        launch.report("Stop", claude(prompt_id=f"p{n}", last_assistant_message=str(n)))
    await asyncio.gather(*(channel.poll() for _ in range(5)))
    await channel.rests()
    assert [fact.answer for fact in launch.facts if isinstance(fact, TurnEnded)] == [str(n) for n in range(50)]


async def test_disk_trouble_is_not_the_agents(launch: Launch, channel: HookChannel) -> None:
    (launch.context.hooks / "new").rename(launch.context.hooks / "gone")
    (launch.context.hooks / "new").write_text("a file where a directory should be")
    await channel.poll()
    await channel.settled(1)
    assert launch.facts == []


@pytest.mark.parametrize("launch", ["gemini"], indirect=True)
class TestGemini:
    """Its hook's text is corrupt, and comes after errors and interrupts too: the transcript tells."""

    async def test_answer_is_the_transcripts(self, launch: Launch, channel: HookChannel, gemini: Gemini) -> None:
        launch.report("BeforeAgent", gemini.payload(prompt="hello"))
        gemini.prompt("hello")
        gemini.says("I will look.", toolCalls=[{"id": "1"}])
        gemini.says("The answer.")
        launch.report("AfterAgent", gemini.payload(prompt="hello", prompt_response="The ans wer. \nThe answer."))
        await rested(channel)
        assert shape(launch.facts) == [PromptAccepted, AssistantSaid, TurnEnded]
        said, ended = (fact for fact in launch.facts[1:] if not isinstance(fact, TurnAnswered))
        assert isinstance(said, AssistantSaid)
        assert isinstance(ended, TurnEnded)
        assert (said.text, ended.answer, ended.prompt) == ("I will look.", "The answer.", "hello")

    async def test_end_that_is_an_error(self, launch: Launch, channel: HookChannel, gemini: Gemini) -> None:
        launch.report("BeforeAgent", gemini.payload(prompt="hello"))
        gemini.prompt("hello")
        gemini.says("I will look.", toolCalls=[{"id": "1"}])
        launch.report("AfterAgent", gemini.payload(prompt="hello", prompt_response="I will look."))
        polling = asyncio.create_task(channel.poll())
        await asyncio.to_thread(
            gemini.write, "error", '[API Error: {"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]'
        )
        await polling
        failed = launch.facts[-1]
        assert isinstance(failed, TurnFailed)
        assert failed.code == "RATE_LIMITED"

    async def test_end_that_is_an_interrupt(self, launch: Launch, channel: HookChannel, gemini: Gemini) -> None:
        launch.report("BeforeAgent", gemini.payload(prompt="hello"))
        gemini.prompt("hello")
        gemini.write("info", "Request cancelled.")
        launch.report("AfterAgent", gemini.payload(prompt="hello", prompt_response="Half of"))
        await channel.poll()
        assert shape(launch.facts) == [PromptAccepted, TurnInterrupted]

    async def test_refusal_fires_no_hook_but_stands_in_the_transcript(
        self, launch: Launch, channel: HookChannel, gemini: Gemini
    ) -> None:
        launch.report("BeforeAgent", gemini.payload(prompt="hello"))
        gemini.prompt("hello")
        await channel.poll()
        assert shape(launch.facts) == [PromptAccepted]
        gemini.write("info", "Request cancelled.")
        await channel.poll()
        await channel.poll()
        assert shape(launch.facts) == [PromptAccepted, TurnInterrupted]

    @pytest.mark.parametrize("since", [-1.0, -0.0009, 0.0, 20 * DAY_S, -20 * DAY_S])
    async def test_what_a_transcript_dates_is_after_the_acceptance_and_not_after_now(
        self, launch: Launch, channel: HookChannel, gemini: Gemini, since: float
    ) -> None:
        """Its dates are cut to milliseconds, and the clock may have been set in the middle of the turn."""
        accepted = launch.report("BeforeAgent", gemini.payload(prompt="hello"))
        gemini.prompt("hello")
        gemini.write("info", "Request cancelled.", timestamp=stamp(time.time() + since))
        await channel.poll()
        assert shape(launch.facts) == [PromptAccepted, TurnInterrupted]
        assert accepted < launch.facts[1].at_ns <= time.monotonic_ns()

    async def test_hook_that_comes_after_the_transcripts_word_says_nothing_of_the_next_turn(
        self, launch: Launch, channel: HookChannel, gemini: Gemini
    ) -> None:
        launch.report("BeforeAgent", gemini.payload(prompt="hello"))
        gemini.prompt("hello")
        gemini.write("info", "Request cancelled.")
        await channel.poll()
        launch.report("AfterAgent", gemini.payload(prompt="hello", prompt_response="Half of"))
        await channel.poll()
        launch.report("BeforeAgent", gemini.payload(prompt="next"))
        launch.report("AfterAgent", gemini.payload(prompt="hello", prompt_response="Half of"))
        await channel.poll()
        assert shape(launch.facts) == [PromptAccepted, TurnInterrupted, PromptAccepted]

    async def test_a_refused_turn_is_over_when_the_next_prompt_is_taken(
        self, launch: Launch, channel: HookChannel, gemini: Gemini
    ) -> None:
        """No hook said so, and what was queued begins at once: its answer is not that of the turn before."""
        launch.report("BeforeAgent", gemini.payload(prompt="hello"))
        gemini.prompt("hello")
        gemini.says("I will look.", toolCalls=[{"id": "1", "status": "cancelled"}])
        launch.report("BeforeAgent", gemini.payload(prompt="queued"))
        gemini.prompt("queued")
        gemini.says("Yes?")
        launch.report("AfterAgent", gemini.payload(prompt="queued", prompt_response="Yes?"))
        await rested(channel)
        other = (AssistantSaid, TurnAnswered)
        told = [(type(fact), fact.turn) for fact in launch.facts if not isinstance(fact, other)]
        first, _, second, _ = (turn for _, turn in told)
        assert first != second
        gave_up = next(fact for fact in launch.facts if isinstance(fact, TurnInterrupted))
        assert gave_up.at_ns == launch.facts[0].at_ns, "before the other was submitted: it is no word on that"
        assert told == [
            (PromptAccepted, first), (TurnInterrupted, first), (PromptAccepted, second), (TurnEnded, second),
        ]  # fmt: skip
        assert launch.facts[-1].answer == "Yes?"  # type: ignore[attr-defined]  # it is a TurnEnded

    async def test_a_turn_whose_end_was_lost_has_its_answer_when_the_next_prompt_is_taken(
        self, launch: Launch, channel: HookChannel, gemini: Gemini
    ) -> None:
        launch.report("BeforeAgent", gemini.payload(prompt="hello"))
        gemini.prompt("hello")
        gemini.says("The answer.")
        launch.report("BeforeAgent", gemini.payload(prompt="next"))
        gemini.prompt("next")
        await channel.poll()
        accepted, ended, _ = launch.facts
        assert isinstance(ended, TurnEnded)
        assert (ended.answer, ended.turn) == ("The answer.", accepted.turn)

    async def test_a_prompt_that_is_told_again_is_the_same_turn(
        self, launch: Launch, channel: HookChannel, gemini: Gemini
    ) -> None:
        launch.report("BeforeAgent", gemini.payload(prompt="hello"))
        launch.report("BeforeAgent", gemini.payload(prompt="hello"))
        await channel.poll()
        assert shape(launch.facts) == [PromptAccepted, PromptAccepted]
        assert launch.facts[0].turn == launch.facts[1].turn

    async def test_a_hook_that_sends_the_model_back_to_work_begins_no_turn(
        self, launch: Launch, channel: HookChannel, gemini: Gemini
    ) -> None:
        """The hook's words are a prompt there, told and written as such; twice here, and then the person's next one."""
        launch.report("BeforeAgent", gemini.payload(prompt="hello"))
        gemini.prompt("hello")
        gemini.says("First.")
        for number in (1, 2):
            launch.report("AfterAgent", gemini.payload(prompt="hello"))
            gemini.write("warning", f"Agent execution blocked: again {number}")
            launch.report("BeforeAgent", gemini.payload(prompt=f"again {number}"))
            gemini.prompt(f"again {number}")
            gemini.says(f"More {number}.")
            await channel.poll()
        assert not any(isinstance(fact, TurnEnded) for fact in launch.facts)
        launch.report("AfterAgent", gemini.payload(prompt="hello"))
        launch.report("BeforeAgent", gemini.payload(prompt="next"))
        await channel.poll()
        assert [fact.text for fact in launch.facts if isinstance(fact, AssistantSaid)] == ["First.", "More 1."]
        *_, ended, accepted = launch.facts
        assert isinstance(ended, TurnEnded)
        assert isinstance(accepted, PromptAccepted)
        assert (ended.answer, ended.turn) == ("More 2.", launch.facts[0].turn)
        assert accepted.turn != ended.turn

    async def test_a_prompt_that_a_hook_refuses(self, launch: Launch, channel: HookChannel, gemini: Gemini) -> None:
        launch.report("BeforeAgent", gemini.payload(prompt="hello"))
        gemini.write("warning", "Agent execution blocked: Not now.\n")
        await channel.poll()
        refused = launch.facts[-1]
        assert isinstance(refused, TurnFailed)
        assert (refused.code, refused.message, refused.turn) == ("UNDELIVERED", "Not now.", launch.facts[0].turn)

    async def test_end_without_any_word_is_an_end_without_an_answer(
        self, launch: Launch, channel: HookChannel, gemini: Gemini
    ) -> None:
        launch.report("BeforeAgent", gemini.payload(prompt="hello"))
        launch.report("AfterAgent", gemini.payload(prompt="hello", prompt_response=""))
        await rested(channel)
        ended = launch.facts[-1]
        assert isinstance(ended, TurnEnded)
        assert ended.answer is None

    async def test_answer_is_looked_up_where_no_hook_came(
        self, launch: Launch, channel: HookChannel, gemini: Gemini
    ) -> None:
        since = time.monotonic_ns()
        launch.report("SessionStart", gemini.payload())
        await channel.poll()
        gemini.prompt("hello")
        gemini.says("The answer.")
        assert await channel.last_answer(since, bool) == "The answer."
        assert await channel.last_answer(time.monotonic_ns() + 10**9, bool) is None

    async def test_answer_is_looked_up_though_the_machine_slept_or_the_clock_was_set(
        self, launch: Launch, channel: HookChannel, gemini: Gemini
    ) -> None:
        since = time.monotonic_ns()
        clock = FakeClock(monotonic=since / 1e9, wall=time.time())
        channel._dates = PastDates(clock)
        launch.report("SessionStart", gemini.payload())
        await channel.poll()
        gemini.prompt("hello")
        gemini.says("The answer.")
        for change in (partial(clock.sleep, 7200.0), *(partial(clock.jump, jump) for jump in JUMPS)):
            change()
            clock.advance(100)
            assert await channel.last_answer(since, bool) == "The answer."


@pytest.mark.parametrize("launch", ["codex"], indirect=True)
async def test_codex_errors_stand_in_the_transcript_only(launch: Launch, channel: HookChannel, tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    given = {"session_id": "c1", "turn_id": "t1", "transcript_path": str(path)}

    def write(kind: str, **more: Any) -> None:
        record = {
            "timestamp": stamp(time.time()),
            "type": "event_msg",
            "payload": {"type": kind, "turn_id": "t1", **more},
        }
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    launch.report("UserPromptSubmit", {**given, "prompt": "hello"})
    write("task_started")
    write("item_completed", item={"type": "AgentMessage", "id": "m1", "content": [{"type": "Text", "text": "Hm."}]})
    write("task_complete", last_agent_message=None, error={"message": "429 Too Many Requests"})
    await channel.poll()
    failed = launch.facts[-1]
    assert isinstance(failed, TurnFailed)
    assert (failed.code, failed.message, failed.turn) == ("RATE_LIMITED", "429 Too Many Requests", "t1")


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("launch", ["codex"], indirect=True)
async def test_an_end_is_told_though_the_clock_was_set_since(
    launch: Launch, channel: HookChannel, tmp_path: Path, jump: float
) -> None:
    """Lines that were written before have dates of then."""
    path, then = tmp_path / "rollout.jsonl", time.time() - jump
    given = {"session_id": "c1", "turn_id": "t1", "transcript_path": str(path)}
    launch.report("UserPromptSubmit", {**given, "prompt": "hello"}, wall=then)
    with path.open("a") as file:
        for kind in ("task_started", "task_complete"):
            payload = {"type": kind, "turn_id": "t1", "last_agent_message": "Done."}
            file.write(json.dumps({"timestamp": stamp(then + 1), "type": "event_msg", "payload": payload}) + "\n")
    await channel.poll()
    ended = launch.facts[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.answer == "Done."


@pytest.mark.parametrize("launch", ["codex"], indirect=True)
async def test_codex_interrupt_has_a_hook_and_is_told_once(launch: Launch, channel: HookChannel) -> None:
    launch.report("UserPromptSubmit", {"turn_id": "t1", "prompt": "hello"})
    launch.report("Interrupt", {"turn_id": "t1"})
    launch.report("Interrupt", {"turn_id": "t1"})
    await channel.poll()
    assert shape(launch.facts) == [PromptAccepted, TurnInterrupted]


@pytest.mark.parametrize(
    ("launch", "kinds"),
    [("claude", [HookChannel]), ("opencode", [SessionDelivery]), ("dummy", [])],
    indirect=["launch"],
)
def test_factory_makes_what_the_profile_says(launch: Launch, kinds: list[type[SideChannel]]) -> None:
    assert [type(made) for made in side_channels(launch.profile, launch.context, adapters())] == kinds


def test_a_channel_without_its_part_is_left_out(library: ProfileLibrary) -> None:
    profile = known(library.get("opencode"), NO_ADAPTERS)
    assert (profile.channels, needs_port(profile)) == ({}, False)


def shown(message: str, number: Any, text: Any, prompt: str = "p1") -> dict[str, Any]:
    return {"session_id": "s1", "prompt_id": prompt, "message_id": message, "index": number, "delta": text}


async def test_lines_that_are_shown_are_told_in_order_while_their_turn_is_open(
    launch: Launch, channel: HookChannel
) -> None:
    launch.report("MessageDisplay", shown("m0", 0, "before any\n"))
    launch.report("UserPromptSubmit", claude(prompt="hello"))
    launch.report("MessageDisplay", shown("m0", 1, "of another\n", prompt="p0"))
    for number, text in ((1, "two\n"), (0, "one\n"), (2, "three")):
        launch.report("MessageDisplay", shown("m1", number, text))
    for bad in (shown("m1", "3", "x"), shown("m1", 3, None), shown("", 3, "x"), {}, shown("m1", -1, "x")):
        launch.report("MessageDisplay", bad)
    launch.report("Stop", claude(last_assistant_message="one\ntwo\nthree"))
    await rested(channel)
    launch.report("MessageDisplay", shown("m1", 3, "late"))
    await channel.poll()
    told = [fact for fact in launch.facts if isinstance(fact, AssistantSaying)]
    assert [(fact.message_id, fact.piece, fact.turn) for fact in told] == [
        ("m1", "one\ntwo\n", "p1"),
        ("m1", "three", "p1"),
    ]


async def test_lines_that_were_shown_are_told_again_until_settled(launch: Launch, channel: HookChannel) -> None:
    launch.report("UserPromptSubmit", claude(prompt="hello"))
    launch.report("MessageDisplay", shown("m1", 0, "one\n"))
    await channel.poll()
    await channel.close()
    launch.report("MessageDisplay", shown("m1", 1, "two\n"))
    again: list[ChannelFact] = []
    await HookChannel(name="hooks", channel=launch.profile.channels["hooks"], context=launch.context).open(again.append)
    assert [fact.piece for fact in again if isinstance(fact, AssistantSaying)] == ["one\n", "two\n"]
