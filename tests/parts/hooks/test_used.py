"""What turns have used, as the real programs write it."""

from typing import Any

import pytest

from synapsed.channels.transcripts import used
from synapsed.model.facts import ChannelFact, TurnEnded, TurnUsed
from synapsed.parts.hooks.channel import HookChannel
from synapsed.profiles.channel_spec import UsageLine
from synapsed.profiles.library import ProfileLibrary
from tests.channels.conftest import Launch
from tests.fakes.clock import until
from tests.parts.hooks.test_channel import Gemini, gemini

__all__ = ["gemini"]


def line_of(library: ProfileLibrary, cli: str) -> UsageLine:
    channels = library.get(cli).channels
    channel = channels.get("hooks") or channels["server"]
    found = channel.usage or (channel.transcript and channel.transcript.usage)
    assert found
    return found


def claude(id_: str, given: int, out: int) -> dict[str, Any]:
    usage = {"input_tokens": given, "output_tokens": out, "cache_read_input_tokens": 5}
    return {"message": {"id": id_, "model": "m", "usage": {**usage, "cache_creation_input_tokens": 7}}}


def codex(total: int, given: int, cached: int, out: int) -> dict[str, Any]:
    last = {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": out}
    return {"payload": {"info": {"total_token_usage": {"total_tokens": total}, "last_token_usage": last}}}


def counts(**more: Any) -> dict[str, Any]:
    return {"model": None, **more}


@pytest.mark.parametrize(
    ("cli", "records", "expected"),
    [
        pytest.param(
            "claude",
            [claude("a", 1, 2), claude("a", 1, 20), claude("b", 3, 4)],
            counts(model="m", input_tokens=4, output_tokens=24, cache_read_tokens=10, cache_write_tokens=14),
            id="claude: the last of the records of one message counts",
        ),
        pytest.param(
            "codex",
            [codex(100, 90, 40, 10), codex(100, 90, 40, 10), codex(250, 140, 90, 10)],
            counts(input_tokens=100, output_tokens=20, cache_read_tokens=130),
            id="codex: what is told again counts once",
        ),
        pytest.param(
            "gemini",
            [{"id": "a", "model": "g", "tokens": {"input": 10, "cached": 4, "output": 3, "thoughts": 2, "total": 15}}],
            counts(model="g", input_tokens=6, output_tokens=5, cache_read_tokens=4),
            id="gemini",
        ),
        pytest.param(
            "opencode",
            [
                {
                    "info": {
                        "id": id_,
                        "modelID": "o",
                        "cost": 0.25,
                        "tokens": {"input": 3, "output": 2, "reasoning": 1, "cache": {"read": 4, "write": 5}},
                    }
                }
                for id_ in "ab"
            ],
            counts(
                model="o",
                input_tokens=6,
                output_tokens=6,
                cache_read_tokens=8,
                cache_write_tokens=10,
                cost_usd=0.5,
            ),
            id="opencode",
        ),
    ],
)
def test_requests_of_one_turn_are_added_up(
    library: ProfileLibrary, cli: str, records: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    assert used(records, line_of(library, cli)) == expected


@pytest.mark.parametrize(
    "given", [None, True, "7", -1, float("nan"), float("inf"), pytest.param(10**400, id="huge"), [], {}]
)
def test_what_is_no_number_does_not_count(library: ProfileLibrary, given: Any) -> None:
    assert used([claude("a", given, given) | {}], line_of(library, "claude")) == counts(
        model="m", cache_read_tokens=5, cache_write_tokens=7
    )
    assert used([{}], line_of(library, "claude")) is None
    assert used([], line_of(library, "claude")) is None


@pytest.mark.parametrize("launch", ["gemini"], indirect=True)
async def test_a_turn_of_hooks_is_counted_when_its_transcript_is_whole(launch: Launch, gemini: Gemini) -> None:
    channel = HookChannel(name="hooks", channel=launch.profile.channels["hooks"], context=launch.context)
    await channel.open(launch.facts.append)
    launch.report("BeforeAgent", gemini.payload(prompt="hello"))
    gemini.prompt("hello")
    gemini.write("gemini", "", tokens={"input": 10, "output": 5, "total": 15}, toolCalls=[{"name": "x"}])
    await channel.poll()
    gemini.write("gemini", "Done.", tokens={"input": 20, "output": 7, "total": 27})
    launch.report("AfterAgent", gemini.payload(prompt="hello"))
    await channel.poll()
    await channel.rests()

    def told() -> list[TurnUsed]:
        return [fact for fact in launch.facts if isinstance(fact, TurnUsed)]

    await until(lambda: bool(told()))
    assert [(fact.input_tokens, fact.output_tokens, fact.turn) for fact in told()] == [(30, 12, launch.facts[0].turn)]
    await channel.close()


@pytest.mark.parametrize("launch", ["gemini"], indirect=True)
async def test_a_turn_whose_usage_is_not_durable_is_counted_by_the_next_daemon(launch: Launch, gemini: Gemini) -> None:
    """The daemon is killed after the turn's end was settled: before the transcript had all of it, and before what was
    told of it was durable."""

    def channel() -> HookChannel:
        return HookChannel(name="hooks", channel=launch.profile.channels["hooks"], context=launch.context)

    facts: list[list[ChannelFact]] = [[], [], [], []]

    def told(number: int) -> list[TurnUsed]:
        return [fact for fact in facts[number] if isinstance(fact, TurnUsed)]

    first = channel()
    await first.open(facts[0].append)
    launch.report("BeforeAgent", gemini.payload(prompt="hello"))
    gemini.prompt("hello")
    ended = launch.report("AfterAgent", gemini.payload(prompt="hello"))
    await first.poll()
    await first.rests()
    assert [type(fact) for fact in facts[0]][-1] is TurnEnded
    await first.settled(ended)
    await first.close()  # as good as killed: it tells nothing more
    assert told(0) == []

    gemini.write("gemini", "Done.", tokens={"input": 20, "output": 7, "total": 27})
    second = channel()
    await second.open(facts[1].append)
    await second.rests()
    await until(lambda: bool(told(1)))
    await second.settled(ended)  # what it used is not durable
    await second.close()

    third = channel()
    await third.open(facts[2].append)
    await third.rests()
    await until(lambda: bool(told(2)))
    assert told(2)[0].turn == told(1)[0].turn == facts[0][0].turn
    await third.settled(told(2)[0].at_ns)
    await third.close()

    last = channel()
    await last.open(facts[3].append)
    assert facts[3] == []
    await last.close()
