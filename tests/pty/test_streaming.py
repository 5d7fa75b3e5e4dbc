"""A turn's text in pieces: what is told, how often, and what is never told."""

import functools
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.model.facts import AssistantSaid, AssistantSaying, TurnEnded
from synapsed.model.masking import mask_text, unfinished
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import AnswerSpec, StreamSpec
from synapsed.pty.streaming import TOLD_EVERY_S, TOLD_MAX, Piece, Speech, TurnStream
from synapsed.pty.turn import PtyTurn
from synapsed.pty.turn_types import Phase, TurnState
from synapsed.terminal.delivery import type_message
from synapsed.terminal.observer import TerminalObserver
from tests.pty.playbook import delivery_of
from tests.support.secrets import planted

LINES = Profile(name="p", command="p")
SERVER = Profile(name="p", command="p", stream=StreamSpec(source="channel"))
BLOCKS = Profile(name="p", command="p", answer=AnswerSpec(mode="blocks", start="^● ", strip="^  "))
BOTH = BLOCKS.model_copy(update={"stream": StreamSpec(source="channel")})


def saying(message: str, piece: str, at_ns: int = 1) -> AssistantSaying:
    return AssistantSaying(channel="server", at_ns=at_ns, message_id=message, piece=piece)


def test_what_a_channel_tells_is_passed_on_at_most_five_times_a_second() -> None:
    stream = TurnStream(SERVER, "hi", begun=False)
    assert (stream.due, stream.take(0.0)) == (None, None)
    stream.told(saying("m1", "Hel"))
    assert stream.take(1.0) == Piece("Hel", append=True)
    stream.told(saying("m1", "lo"))
    stream.told(saying("m1", " you"))
    assert stream.due == 1.0 + TOLD_EVERY_S
    assert stream.take(1.1) is None
    assert stream.take(1.2) == Piece("lo you", append=True)
    assert stream.due is None
    stream.told(saying("m2", "Another"))
    assert stream.take(2.0) == Piece("Another", append=False)
    stream.told(TurnEnded(channel="server", at_ns=2, answer="x"))
    assert stream.take(3.0) is None


def test_a_channel_and_the_screen_tell_one_text() -> None:
    """Lines that a channel tells whole, words of the next one off the screen as they come."""
    stream = TurnStream(BOTH, "hi", begun=False)

    def look(screen: str, now: float) -> Piece | None:
        stream.seen(screen)
        stream.seen(screen)
        return stream.take(now)

    assert stream.wants_screen(0.0)
    assert look("❯ hi\n● One two", 1.0) == Piece("One", append=True)
    stream.told(saying("m1", "One two three.\n\n"))
    assert stream.take(2.0) == Piece(" two three.\n\n", append=True)
    assert look("❯ hi\n● One two three.\n\n  Then more of", 3.0) == Piece("Then more", append=True)
    stream.told(saying("m1", "Then more of it.\n```py\nx\n```\n"))
    assert look("❯ hi\n● One two three.\n\n  Then more of it.\n\n  x", 4.0) == Piece(
        " of it.\n```py\nx\n```\n", append=True
    )
    stream.told(saying("m2", "Another.\n"))
    assert stream.take(5.0) == Piece("Another.\n", append=False)


def test_where_the_channel_is_silent_the_screen_tells_each_message() -> None:
    stream = TurnStream(BOTH, "hi", begun=False)
    told = []
    for number, look in enumerate(["❯ hi\n● I will look now", "❯ hi\n● I will look now\n● It is there"]):
        for _ in range(2):
            stream.seen(look)
        told.append(stream.take(float(number)))
    assert told == [Piece("I will look", append=True), Piece("It is", append=False)]


def drawn(stream: TurnStream, look: str, now: float) -> Piece | None:
    for _ in range(2):
        stream.seen(look)
    return stream.take(now)


def test_the_end_of_a_message_is_told_when_a_channel_has_it_whole() -> None:
    """The program asks whether it may, so that nothing is drawn any more by which its last word would be certain."""
    stream = TurnStream(BLOCKS, "hi", begun=False)
    assert drawn(stream, "❯ hi\n● I will rename it now.", 1.0) == Piece("I will rename it", append=True)
    assert stream.said("I will rename it now.") == Piece(" now.", append=True)
    assert stream.said("I will rename it now.") is None
    assert drawn(stream, "❯ hi\n● I will rename it now.\n● Now the next", 2.0) == Piece("Now the", append=False)
    assert stream.said("Now the next one.") == Piece(" next one.", append=True)


def test_another_message_is_no_end_of_the_one_that_is_being_said() -> None:
    stream = TurnStream(BLOCKS, "hi", begun=False)
    drawn(stream, "❯ hi\n● I will look now", 1.0)
    assert drawn(stream, "❯ hi\n● I will look now\n● It is there", 2.0) == Piece("It is", append=False)
    assert stream.said("It is what I will look for now.") is None, "the first one, told late"
    assert stream.said("Something else.") is None
    assert stream.said("It is there, too.") == Piece(" there, too.", append=True)


def test_a_channel_tells_it_to_the_turn_that_runs() -> None:
    told: list[Piece] = []
    speech = Speech(SERVER, told.append)
    speech.said(AssistantSaid(channel="hooks", at_ns=5, text="Hello."))  # no turn runs
    state = TurnState(phase=Phase.WORKING, submitted=True, submit_ns=10)
    compose = functools.partial(type_message, SERVER.delivery, bracketed=True)
    speech.begin(PtyTurn(SERVER, delivery_of("hi"), compose, state, channels_tell=True))
    speech.told(saying("m1", "Hel", at_ns=20))
    speech.seen(TerminalObserver(SERVER, cols=80, rows=24, offset=0).look(1.0), 1.0)
    for at_ns in (5, 30):
        speech.said(AssistantSaid(channel="hooks", at_ns=at_ns, text="Hello."))
    assert told == [Piece("Hel", append=False), Piece("lo.", append=True)]


@pytest.mark.parametrize(("chunk", "count"), [(1024, 200), (7, 2000)])
def test_a_long_message_that_is_echoed_hides_nothing_that_is_printed_for_it(chunk: int, count: int) -> None:
    """Where the turn begins is known a moment later; what is kept until then is bounded, and the last of it counts."""
    stream = TurnStream(LINES, "hi", begun=False)
    for number in range(count):
        stream.printed(number * chunk, b"m" * chunk)
    submitted = chunk * count
    stream.printed(submitted, b"\r\nfirst\r\n")
    stream.submitted(submitted)
    assert stream.take(0.0) is None
    stream.printed(submitted + 9, b"second\r\n")
    assert stream.take(1.0) == Piece("first\nsecond", append=True)


def test_pieces_told_before_the_turn_is_known_count() -> None:
    """A restarted daemon's channels tell them again before the turn is taken up."""
    told: list[Piece] = []
    speech = Speech(SERVER, told.append)
    speech.told(saying("m0", "of an earlier turn", at_ns=5))
    speech.told(saying("m1", "Hel", at_ns=20))
    state = TurnState(phase=Phase.WORKING, submitted=True, submit_ns=10)
    compose = functools.partial(type_message, SERVER.delivery, bracketed=True)
    speech.begin(PtyTurn(SERVER, delivery_of("hi"), compose, state, channels_tell=True))
    assert speech.missed_from is None, "nothing of it is read off the output"
    speech.told(saying("m1", "lo", at_ns=30))
    look = TerminalObserver(SERVER, cols=80, rows=24, offset=0).look(1.0)
    speech.seen(look, 1.0)
    assert told == [Piece("Hello", append=False)]


def test_after_a_restart_the_first_piece_replaces_what_was_told() -> None:
    stream = TurnStream(SERVER, "hi", begun=True)
    assert stream.take(0.0) is None
    stream.told(saying("m1", "Hel"))
    assert stream.take(1.0) == Piece("Hel", append=False)
    stream.told(saying("m1", "lo"))
    assert stream.take(2.0) == Piece("lo", append=True)


def test_output_from_the_submission_on() -> None:
    stream = TurnStream(LINES, "hi", begun=False)
    stream.printed(90, b"> hi")
    stream.printed(94, b"\r\nHel")
    stream.submitted(94)
    stream.submitted(500)
    stream.printed(99, b"lo\r\nyou\r\n> ")
    assert stream.take(1.0) is None  # were it all, it would be told whole, at once
    assert stream.due == 1.0 + TOLD_EVERY_S
    assert stream.take(1.2) == Piece("Hello\nyou", append=True)
    assert not stream.wants_screen(1.0)


def test_output_without_end_costs_nothing_after_a_while() -> None:
    stream = TurnStream(LINES, "hi", begun=False)
    stream.submitted(0)
    at, told, now = 0, 0, 0.0
    for _ in range(100):
        stream.printed(at, b"x" * 9_999 + b"\n")
        at, now = at + 10_000, now + 1
        if (piece := stream.take(now)) is not None:
            told += len(piece.text)
    assert told <= TOLD_MAX
    assert stream.due is None


def test_a_screen_counts_when_it_was_read_twice_the_same() -> None:
    stream = TurnStream(BLOCKS, "hi", begun=False)
    looks = ["❯ hi", "❯ hi\n● one two", "❯ hi\n● one two", "❯ hi\n● one\n  xx flicker", "❯ hi\n● one two three four"]
    looks += [looks[-1], "❯ hi\n● one three four", "❯ hi\n● one three four"]
    told = []
    for number, look in enumerate(looks):
        assert stream.wants_screen(number)
        stream.seen(look)
        told.append(stream.take(number))
    assert told == [
        None,
        None,
        Piece("one", append=True),
        None,
        None,
        Piece(" two three", append=True),
        None,
        Piece("one three", append=False),
    ]


@pytest.mark.parametrize("size", [1, 5, 40])
def test_a_secret_is_in_one_piece(size: int) -> None:
    """So that it can be masked where pieces are told one by one."""
    text, secret = planted()["github"]
    stream, pieces = TurnStream(SERVER, "hi", begun=False), []
    for at in range(0, len(said := f"Take it: {text}. Then go on with all the rest of the work."), size):
        stream.told(saying("m", said[at : at + size]))
        if (piece := stream.take(at + 1.0)) is not None:
            pieces.append(piece.text)
    assert any(secret in piece for piece in pieces)
    assert not [piece for piece in pieces if secret[8:24] in mask_text(piece)]


@given(st.lists(st.tuples(st.floats(0, 0.5), st.text(max_size=5), st.integers(0, 2)), max_size=40), st.booleans())
def test_pieces_put_together_are_the_text(facts: list[tuple[float, str, int]], begun: bool) -> None:
    stream = TurnStream(SERVER, "hi", begun=begun)
    now, said, told, times = 0.0, "", "", []
    last = None
    for pause, piece, message in facts:
        now += pause
        said = said + piece if message == last else piece
        last = message
        stream.told(saying(str(message), piece))
        if (new := stream.take(now)) is not None:
            told = told + new.text if new.append else new.text
            times.append(now)
            assert told == said[: len(said) - unfinished(said)], "but for what may be the beginning of a secret"
    assert all(b - a > TOLD_EVERY_S - 1e-9 for a, b in pairwise(times))
