"""The link to a program in a terminal: what is typed for a person, answers and keys."""

import asyncio
import contextlib

import pytest

from synapsed.errors import KeeperLost, NotReady, NotTaken, PromptChanged
from synapsed.pty import answering
from synapsed.pty.screen_looks import Looks
from synapsed.pty.session import HANDS_OFF_S, Session
from tests.fakes.clock import until
from tests.pty.conftest import Opens, prints


async def test_a_dialog_that_is_drawn_anew_can_be_answered_meanwhile(opens: Opens) -> None:
    drawn = b"Allow it?\r\n1. Yes\r\n2. No"
    link, typed = opens(drawn)
    prompt = (await link.observe()).prompt
    assert prompt is not None
    prints(link, b"\x1b[H\x1b[2J")
    answering = asyncio.ensure_future(link.answer("1", prompt.prompt_id))
    await until(lambda: link._driver.looks._waiting)
    prints(link, drawn)
    await link.observe()
    await until(lambda: typed or answering.done())
    assert typed == [b"1"]
    answering.cancel()


async def test_of_two_answers_at_the_same_moment_one_is_typed(opens: Opens) -> None:
    """The program may be slow to react, or ask the same thing again: the second was not for that."""
    link, typed = opens(b"Allow it?\r\n1. Yes\r\n2. No")
    prompt = (await link.observe()).prompt
    assert prompt is not None
    first = asyncio.ensure_future(link.answer("1", prompt.prompt_id))
    await until(lambda: typed)
    with pytest.raises(PromptChanged, match="another answer"):
        await link.answer("2", prompt.prompt_id)
    assert typed == [b"1"]
    first.cancel()  # it was not taken
    await asyncio.gather(first, return_exceptions=True)
    second = asyncio.ensure_future(link.answer("2", prompt.prompt_id))
    await until(lambda: len(typed) == 2)
    second.cancel()


@pytest.mark.parametrize("reacts", [True, False])
async def test_an_answer_is_over_when_the_program_took_it(
    reacts: bool, opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is typed once; who answers hears whether that was for something."""
    monkeypatch.setattr(answering, "TAKEN_S", 30.0 if reacts else 0.05)
    link, keys = opens(b"Allow it?\r\n1. Yes\r\n2. No")
    prompt = (await link.observe()).prompt
    assert prompt is not None
    told = asyncio.ensure_future(link.answer("2", prompt.prompt_id))
    await until(lambda: keys)
    if reacts:
        prints(link, b"\x1b[H\x1b[2JWorking")
        await link.observe()
        assert await told is False
    else:
        with pytest.raises(NotTaken, match="asks the same") as refused:
            await told
        assert refused.value.details["prompt_id"] == prompt.prompt_id
    assert keys == [b"2"]


async def test_an_answer_is_not_given_up_while_the_program_computes(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine's program reads the answer long before it acts on it."""
    monkeypatch.setattr(answering, "TAKEN_S", 0.02)
    link, keys = opens(b"Allow it?\r\n1. Yes\r\n2. No")
    prompt = (await link.observe()).prompt
    assert prompt is not None
    rounds = 0

    async def rests() -> bool:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            prints(link, b"\x1b[H\x1b[2JWorking")
        return False

    monkeypatch.setattr(link._driver.kernel, "rests_with_keys_read", rests)
    assert await link.answer("2", prompt.prompt_id) is False
    assert rounds == 2
    assert keys == [b"2"]


async def test_an_answer_is_over_when_the_next_question_is_told(opens: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever answers at once again, and names no prompt, means that one."""
    monkeypatch.setattr(answering, "NEXT_S", 30.0)
    link, keys = opens(b"Allow it?\r\n1. Yes\r\n2. No")
    first = (await link.observe()).prompt
    assert first is not None
    told = asyncio.ensure_future(link.answer("1", first.prompt_id))
    await until(lambda: keys)
    prints(link, b"\x1b[H\x1b[2JWhich one?")
    await link.observe()
    done, _ = await asyncio.wait({told}, timeout=0.2)
    assert not done, "it is still being drawn"
    link._clock.advance(5.0)  # type: ignore[attr-defined]  # it is a fake
    await link.observe()
    await told
    second = (await link.observe()).prompt
    assert second is not None
    assert second.type == "question"


@pytest.mark.parametrize("exits", [True, False])
async def test_an_answer_at_which_the_program_ends_was_taken(
    exits: bool, opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a refusal of its folder does with claude. A screen that is let go of says nothing of it."""
    monkeypatch.setattr(answering, "EXIT_S", 0.05)
    monkeypatch.setattr(answering, "TAKEN_S", 30.0 if exits else 0.05)
    link, keys = opens(b"Allow it?\r\n1. Yes\r\n2. No")
    prompt = (await link.observe()).prompt
    assert prompt is not None
    told = asyncio.ensure_future(link.answer("2", prompt.prompt_id))

    async def gone(*_: object) -> None:
        raise KeeperLost("the screen is not drawn any more")

    await until(lambda: keys and link._driver.looks._waiting)
    monkeypatch.setattr(link._stage, "look", gone)
    if exits:
        link._program._finish(1, "the program ended")
        assert await told is False
    else:
        with pytest.raises(KeeperLost):
            await told


async def test_a_dialog_that_comes_back_after_its_answer_is_asked_again(opens: Opens) -> None:
    """Two calls that look the same, one after the other: the second must not pass for the first."""
    drawn = b"Allow it?\r\n1. Yes\r\n2. No"
    link, keys = opens(drawn)
    first = await link.observe()
    assert first.prompt is not None
    told = asyncio.ensure_future(link.answer("1", first.prompt.prompt_id))
    await until(lambda: keys)
    prints(link, b"\x1b[H\x1b[2J")
    await link.observe()
    await told
    prints(link, drawn)
    await link.observe()
    link._clock.advance(5.0)  # type: ignore[attr-defined]  # it is a fake
    again = await link.observe()
    assert again.prompt is not None
    assert again.prompt.prompt == first.prompt.prompt
    assert again.asking != first.asking
    with pytest.raises(PromptChanged):  # it was for the first
        await link.answer("1", first.prompt.prompt_id)
    assert len(keys) == 1
    second = asyncio.ensure_future(link.answer("2", again.prompt.prompt_id))
    await until(lambda: len(keys) == 2)
    second.cancel()


@pytest.mark.parametrize("redrawn", [True, False])
async def test_a_dialog_that_is_drawn_again_after_its_answer_may_be_another_one(
    redrawn: bool, opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was never seen to be gone. One on which nothing is drawn has not taken the answer, and stays the same."""
    monkeypatch.setattr(answering, "TAKEN_S", 0.05)
    drawn = b"\x1b[H\x1b[2JAllow it?\r\n1. Yes\r\n2. No"
    link, keys = opens(drawn)
    first = (await link.observe()).prompt
    assert first is not None
    told = asyncio.ensure_future(link.answer("1", first.prompt_id))
    await until(lambda: keys)
    prints(link, drawn if redrawn else b"")
    with pytest.raises(NotTaken):
        await told
    link._clock.advance(5.0)  # type: ignore[attr-defined]  # it is a fake
    again = (await link.observe()).prompt
    assert again is not None
    assert (again.prompt_id != first.prompt_id) is redrawn


async def test_one_that_a_person_answered_there_and_that_comes_back_is_another(opens: Opens) -> None:
    drawn = b"\x1b[H\x1b[2JAllow it?\r\n1. Yes\r\n2. No"
    link, _ = opens(drawn)
    first = (await link.observe()).prompt
    assert first is not None
    await link._person_keys.type(b"1")
    told = []
    for shown in (b"\x1b[H\x1b[2J", drawn, b"\x1b[H\x1b[2J", drawn):
        prints(link, shown)
        await link.observe()
        link._clock.advance(5.0)  # type: ignore[attr-defined]  # it is a fake
        told.append((await link.observe()).prompt)
    second = told[1]
    assert second is not None
    assert (second.prompt, second.prompt_id == first.prompt_id) == (first.prompt, False)
    assert told[3] == second, "nobody has answered that"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shown", "typed"),
    [
        (b"Which colour?\r\nred, or\r\n> your words", [b"first", b"then"]),
        (b"Which size?", [b"first"]),
        (b"> ", [b"first"]),
    ],
    ids=["a row for words", "another question", "none"],
)
async def test_an_answer_of_several_steps_is_typed_while_that_question_stands(
    shown: bytes, typed: list[bytes], opens: Opens
) -> None:
    """The row that words go into may look like a composer."""
    link, keys = opens(b"Which colour?\r\nred, or")
    prompt = (await link.observe()).prompt
    assert prompt is not None
    answering = asyncio.ensure_future(link.answer("next", prompt.prompt_id))
    await until(lambda: keys)
    prints(link, b"\x1b[H\x1b[2J" + shown)
    await link.observe()
    await until(lambda: answering.done() or len(keys) > 1)
    assert keys == typed
    answering.cancel()
    (outcome,) = await asyncio.gather(answering, return_exceptions=True)
    assert isinstance(outcome, PromptChanged) == (len(typed) == 1)


async def test_nothing_is_answered_while_a_turn_is_being_stopped(opens: Opens) -> None:
    """The key would be text in the composer that follows, where it would keep the messages waiting."""
    link, keys = opens(b"Allow it?\r\n1. Yes\r\n2. No")
    prompt = (await link.observe()).prompt
    assert prompt is not None
    stopping = asyncio.ensure_future(link.interrupt())
    await until(lambda: keys)
    with pytest.raises(PromptChanged, match="stopped"):
        await link.answer("1", prompt.prompt_id)
    assert keys == [b"\x1b"]
    stopping.cancel()


@pytest.mark.parametrize(
    ("data", "answer", "typed"),
    [
        (b"\x1b[C", "1", False),
        (b"\x1b[<35;10;2M", "1", False),
        (b"\x1b[I", "1", True),
        (b"\x1b[C", "2", True),
    ],
)
async def test_what_a_person_may_have_selected_is_not_chosen_for_them(
    data: bytes, answer: str, typed: bool, opens: Opens
) -> None:
    link, keys = opens(b"Allow it?\r\n1. Yes\r\n2. No")
    prompt = (await link.observe()).prompt
    assert prompt is not None
    await link._person_keys.type(data)
    answering = asyncio.ensure_future(link.answer(answer, prompt.prompt_id))
    if data == b"\x1b[C":
        await until(lambda: link._driver.looks._waiting)  # what the key did may not be shown yet
        link._clock.advance(HANDS_OFF_S)  # type: ignore[attr-defined]  # it is a fake
        await link.observe()
    await until(lambda: answering.done() or len(keys) > 1)
    assert keys == [data, *([answer.encode()] if typed else [])]
    answering.cancel()
    (outcome,) = await asyncio.gather(answering, return_exceptions=True)
    assert isinstance(outcome, asyncio.CancelledError if typed else PromptChanged)


@pytest.mark.parametrize(
    ("data", "receives"),
    [
        (b"\x1b[I", True),
        (b"\x1b[<35;10;2M\x1b[<0;11;2m\x1b[M !!", True),
        (b"x", False),
        (b"\x1b[Ix", False),
        (b"\x1b[<35;10;2Mhello", False),
    ],
)
async def test_keys_beside_reports_of_a_terminal_are_a_person_s(data: bytes, receives: bool, opens: Opens) -> None:
    """What they write may not be on the screen yet: no message is typed into it."""
    link, typed = opens(b"> ")
    assert (await link.observe()).can_receive
    await link._person_keys.type(data)
    assert typed == [data]
    assert (await link.observe()).can_receive is receives


@pytest.mark.parametrize(
    ("data", "passes"),
    [
        *((keys, False) for keys in (b"y\r", b"\x15", b"\x1b[A", b"\x03y", b"\x04")),
        *((keys, True) for keys in (b"\x1b", b"\x03", b"\x1c", b"\x1a", b"\x1b[99;5u", b"\x1b[I")),
        *((keys, True) for keys in (b"\x03\x03", b"\x1b\x1b", b"\x1b[I\x03", b"\x1b[99;5u\x1b[99;5:3u")),
    ],
)
async def test_beside_a_message_that_is_typed_for_too_long_only_keys_that_interrupt_pass(
    data: bytes, passes: bool, opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, typed = opens(b"> ")
    monkeypatch.setattr(Session, "half_typed", True)
    link._person_keys._patience = 0.0
    with contextlib.nullcontext() if passes else pytest.raises(NotReady, match="is being typed"):
        await link._person_keys.type(data)
    assert typed == ([data] if passes else [])


async def test_a_person_s_key_waits_for_no_look_at_the_screen(opens: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look is most of what a key's way costs; it is needed only while a message is being typed."""
    link, typed = opens()

    def look(_: Looks) -> None:
        raise AssertionError("a key had to wait for a look")

    monkeypatch.setattr(Looks, "look", look)
    await link._person_keys.type(b"x")
    assert typed == [b"x"]
