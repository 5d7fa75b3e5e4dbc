"""A long run's judge finds each fault, and is not fooled by what only looks like one."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.real.agents import nonce
from tests.real.judgement import DAY_S, Happening, Journal, Letter, ends_of, judge, letters_of, unaccounted
from tests.real.model import Request
from tests.real.pace import Pace
from tests.support.daemon import Daemon, eventually

AGENT = "synapse-claude-8100"
WORD, OTHER, PERSON = (f"nonce-{digit * 12}" for digit in "abc")


def letter(text: str = f"Say {WORD}.", **fields: Any) -> Letter:
    """One that was sent at 100, typed at 101 and answered at 103."""
    usual = {"task_id": "1234abcd-0", "agent": AGENT, "status": "completed", "answer": f"Answer to {WORD}."}
    return Letter(**{**usual, "text": text, "sent": 100.0, "begun": 101.0, "ended": 103.0, **fields})


def request(*users: str, at: float = 101.5, reply: str = "text", outcome: str = "sent") -> Request:
    return Request(
        n=1,
        at=at,
        api="messages",
        path="/",
        model="scripted",
        stream=True,
        side=None,
        user=users[-1],
        users=users,
        notes=(),
        results=(),
        all_results=(),
        tools=(),
        reply=reply,
        status=200,
        outcome=outcome,
        ended_at=at + 1,
    )


ARRIVED = request(f"Say {WORD}.")


def did(what: str, since: float = 101.0, until: float = 102.0, **fields: str) -> Happening:
    return Happening(what=what, since=since, until=until, **{"agent": AGENT, **fields})


def faults(
    letters: Sequence[Letter], requests: Sequence[Request] = (ARRIVED,), happenings: Sequence[Happening] = ()
) -> set[str]:
    return set(judge(letters, requests, happenings).faults)


def test_a_message_that_was_answered_is_no_fault() -> None:
    verdict = judge([letter()], [ARRIVED], [])
    assert not verdict.faults
    assert verdict.outcomes == {"completed": 1}
    assert verdict.figures["longest delivery, s"] == 0.5


@pytest.mark.parametrize(
    ("told", "requests", "kind"),
    [
        (letter(ended=None, status="working"), [ARRIVED], "stranded"),
        (letter(), [request(f"Say {WORD}.", f"Say {WORD}.")], "doubled"),
        (letter(), [ARRIVED, ARRIVED], "doubled"),
        (letter(), [request(f"Say {WORD}.Say {OTHER}.")], "concatenated"),
        (letter(), [request(f"draft 1234 Say {WORD}.")], "draft submitted"),
        (letter(), [], "completed without a submission"),
        (letter(answer=f"Answer to {OTHER}."), [ARRIVED], "misattributed"),
        (letter(answer="Answer to"), [ARRIVED], "wrong answer"),
        (letter(answer=None), [ARRIVED], "wrong answer"),
        (letter(status="failed", code="MODEL_ERROR"), [ARRIVED], "failed"),
        (letter(status="failed", code="UNDELIVERED"), [ARRIVED], "told as undelivered, but it arrived"),
        (letter(status="failed", code="UNDELIVERED", ended=112.0), [], "late"),
        (letter(), [request(f"Say {WORD}.", at=111.5)], "late"),
        (letter(sent=80.0, idle=((85.0, 101.0),)), [ARRIVED], "late"),
        (letter(status="canceled", reason="canceled"), [ARRIVED], "canceled by nobody"),
        (letter(status="canceled", reason="person"), [ARRIVED], "canceled by nobody"),
    ],
)
def test_every_fault_is_found(told: Letter, requests: list[Request], kind: str) -> None:
    ended = letter(ended=120.0) if kind == "late" and requests and told.sent == 100.0 else told
    assert faults([ended], requests) == {kind}


@pytest.mark.parametrize("what", ["draft", "prompt", "esc", "kill", "no"])
def test_nothing_that_people_do_excuses_what_is_doubled_or_wrong(what: str) -> None:
    happenings = [did(what, 0.0, 1000.0, word=PERSON)]
    assert faults([letter(answer=f"Answer to {OTHER}.")], happenings=happenings) == {"misattributed"}
    assert faults([letter()], [ARRIVED, ARRIVED], happenings) == {"doubled"}


def test_a_program_that_asks_again_and_again_after_the_clock_was_set_is_no_fault_of_ours() -> None:
    """It was given the message once, and a person stopped it, or synapsed after the third answer."""
    stopped, again = letter(status="canceled", reason="canceled"), [ARRIVED, ARRIVED]
    done = [did("cancel", word=WORD, told="canceled")]
    clock = Happening(what="clock", since=50.0, until=50.0)
    assert faults([stopped], again, done) == {"doubled"}
    assert not faults([stopped], again, [*done, clock])
    assert faults([stopped], [request(f"Say {WORD}.", f"Say {WORD}.")], [*done, clock]) == {"doubled"}
    assert faults([letter()], again, [*done, clock]) == {"doubled"}
    assert not faults([letter()], [*again, ARRIVED], [clock])


def test_a_turn_of_which_a_killed_daemon_saw_nothing_may_have_had_no_word_after_the_clock_was_set() -> None:
    unknown = letter(status="failed", code="TIMEOUT", answer=None)
    clock, kill = Happening(what="clock", since=50.0, until=50.0), did("kill", 101.0, 110.0)
    assert not faults([unknown], [], [clock, kill])
    assert faults([unknown], [], [clock]) == faults([unknown], [], [kill]) == {"failed"}
    assert faults([unknown], [], [clock, did("kill", 10.0, 20.0)]) == {"failed"}


def test_a_program_that_answers_what_it_repeats_is_no_fault_of_ours() -> None:
    """Its next prompt is answered with what it says to the last one by date."""
    clock = Happening(what="clock", since=50.0, until=50.0)
    repeated = [request(f"Say {OTHER}."), request(f"Say {OTHER}.")]
    told = letter(answer=f"Answer to {OTHER}.")
    assert faults([told], [ARRIVED, *repeated], [clock]) == set()
    assert faults([told], [ARRIVED, *repeated]) == {"misattributed"}
    assert faults([told], [ARRIVED, repeated[0]], [clock]) == {"misattributed"}


def test_an_answer_without_a_word_that_is_that_of_a_repeated_message_is_no_fault_of_ours() -> None:
    clock = Happening(what="clock", since=50.0, until=50.0)
    text = f"{OTHER} [[tool:shell-ask:touch x]] say: After the tool."
    repeated = [request(text), request(text)]
    told = letter(answer="After the tool.")
    assert faults([told], [ARRIVED, *repeated], [clock]) == set()
    assert faults([told], [ARRIVED, *repeated]) == {"wrong answer"}
    assert faults([told], [ARRIVED], [clock]) == {"wrong answer"}


def test_what_is_canceled_needs_its_cause_there_and_then() -> None:
    stopped = letter(status="canceled", reason="person")
    assert not faults([stopped], happenings=[did("esc")])
    for elsewhere in (did("esc", 10.0, 11.0), did("esc", 110.0, 111.0), did("esc", agent="another"), did("draft")):
        assert faults([stopped], happenings=[elsewhere]) == {"canceled by nobody"}


@pytest.mark.parametrize(
    ("told", "seconds", "ended", "kinds"),
    [
        ("canceled", 2.9, 103.0, set()),
        ("canceled", 3.1, 103.0, {"cancel confirmed late"}),
        ("TASK_NOT_CANCELABLE", 6.0, 103.0, set()),
        ("TASK_NOT_CANCELABLE", 1.0, 103.0, {"cancel not confirmed"}),
        ("", 30.0, 103.0, set()),
    ],
    ids=["in time", "late", "it had ended", "it went on", "the daemon was killed"],
)
def test_a_cancel_is_confirmed_in_time(told: str, seconds: float, ended: float, kinds: set[str]) -> None:
    canceled = letter(ended=ended, **({"status": "canceled", "reason": "canceled"} if told == "canceled" else {}))
    asked = did("cancel", 101.0, 101.0 + seconds, word=WORD, told=told)
    assert faults([canceled], happenings=[asked]) == kinds
    assert not faults([canceled], happenings=[asked, did("kill", 101.0, 120.0)]) - {"cancel not confirmed"}


def test_a_refused_tool_is_answered_as_the_note_is() -> None:
    note = request(f"Say {WORD}.", "[A2A:1234abcd:synapse-system] Refused nonce-dddddddddddd.")
    told = letter(f"{WORD} [[tool:shell:touch x]] say: After.", answer="Answer to nonce-dddddddddddd.")
    assert not faults([told], [ARRIVED, note])
    assert faults([told], [ARRIVED]) == {"misattributed"}


def test_a_person_who_steers_a_running_turn_ends_it_with_their_answer() -> None:
    steered = letter(answer=f"Answer to {PERSON}.")
    requests = [ARRIVED, request(f"Say {WORD}.", f"person {PERSON}", at=102.0)]
    assert not faults([steered], requests, [did("prompt", word=PERSON)])
    assert faults([steered], requests) == {"misattributed"}
    before = [ARRIVED, request(f"person {PERSON}", at=50.0)]
    assert faults([steered], before, [did("prompt", word=PERSON)]) == {"misattributed"}


@pytest.mark.parametrize("what", ["draft", "kill", "prompt"])
def test_waiting_for_a_person_or_a_daemon_is_not_late(what: str) -> None:
    late = [request(f"Say {WORD}.", at=120.0)]
    assert faults([letter(ended=121.0)], late) == {"late"}
    assert not faults([letter(ended=121.0)], late, [did(what, 101.0, 117.0)])
    assert faults([letter(ended=121.0)], late, [did(what, 101.0, 102.0)]) == {"late"}
    assert not faults([letter(ended=121.0, asked=((102.0, 119.0),))], late)


def test_a_program_that_is_slow_to_ask_the_model_has_taken_the_message_in_time() -> None:
    late = [request(f"Say {WORD}.", at=120.0)]
    assert not faults([letter(ended=121.0, taken=102.0)], late)
    assert faults([letter(ended=121.0, taken=115.0)], late) == {"late"}
    assert "late" in faults([letter(ended=121.0, taken=102.0)], []), "it never came"


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    happenings = [did("draft"), did("prompt", word=PERSON)]
    journal = Journal(tmp_path / "journal.jsonl")
    for happening in happenings:
        journal.note(happening)
    assert Journal.read(tmp_path / "journal.jsonl") == happenings


def test_letters_are_read_from_a_daemons_store(tmp_path: Path) -> None:
    begun = time.time()
    daemon = Daemon(tmp_path / "synapsed").start()
    try:
        daemon.start_agent()
        word = nonce()
        task_id = daemon.send(f"sleep 1\necho {word}")
        daemon.ended(task_id)
        now = 4e9
        store = daemon.home / "state" / "synapsed.db"
        (told,) = letters_of(store, now)
        (days_later,) = letters_of(store, now, begun - 20 * DAY_S)
        assert ends_of(store) == []
        assert daemon.ctl("kill", "dummy").code == 0
        eventually(lambda: ends_of(store), "its end is told")
    finally:
        daemon.end()
    assert (told.task_id, told.word, told.status) == (task_id, word, "completed")
    assert told.answer is not None
    assert told.begun is not None
    assert told.ended is not None
    assert told.taken is not None
    assert told.sent <= told.begun <= told.taken <= told.ended
    assert told.idle[-1][1] == now
    assert days_later.begun is not None
    assert told.begun - days_later.begun == pytest.approx(20 * DAY_S), "the daemon's clock was set ahead"
    assert told.sent - days_later.sent == pytest.approx(20 * DAY_S)
    assert all(end <= told.begun or start >= told.ended for start, end in told.idle)


def test_each_word_that_was_taken_is_known_once() -> None:
    """One whose sender was cut off by a kill may be known."""
    known = [letter(), letter(f"Say {OTHER}.")]
    assert list(unaccounted([WORD, OTHER], [WORD], known)) == []
    assert list(unaccounted([WORD, OTHER, PERSON], [WORD, OTHER], known)) == []
    assert list(unaccounted([WORD, OTHER, PERSON], [PERSON], known)) == [f"{PERSON} was taken, and is not known"]
    assert list(unaccounted([WORD], [WORD], known)) == [f"{OTHER} is known, and was never sent"]
    assert list(unaccounted([WORD, OTHER], [], [*known, letter()])) == [f"{WORD} is known 2 times"]


def test_a_turn_that_was_not_asked_after_the_clock_was_set_is_counted() -> None:
    failed = letter(status="failed", code="MODEL_ERROR", answer=None)
    later = request(f"Say {WORD}.", f"Say {OTHER}.", at=110.0)
    assert not faults([failed], [later], [did("clock", 50.0, 50.0)])
    assert faults([failed], [later], []) == {"failed"}
    assert faults([failed], [ARRIVED], [did("clock", 50.0, 50.0)]) == {"failed"}


def test_seconds_of_a_slow_machine_count_as_less(tmp_path: Path) -> None:
    path = tmp_path / "pace"
    path.write_text("".join(f"[{at}, {0.08 if 20 <= at < 30 else 0.01}]\n" for at in range(10, 100)))
    pace = Pace.read(path)
    assert pace.seconds([(40.5, 45.0)]) == 4.5
    assert pace.seconds([(20.0, 24.0)]) == pytest.approx(1.0), "it takes eight times as long, of which two are usual"
    assert pace.seconds([(18.0, 22.0), (29.5, 31.0)]) == pytest.approx(2.0 + 0.5 + 0.125 + 1.0)
    assert (pace.seconds([(2.0, 8.0)]), pace.seconds([(8.0, 11.0)]), pace.seconds([(150.0, 151.0)])) == (6.0, 3.0, 1.0)
    assert (Pace().seconds([(1.0, 3.0)]), Pace.read(tmp_path / "none")) == (2.0, Pace())
    late = [request(f"Say {WORD}.", at=120.0)]
    slow = Pace([(at, 0.05 if 100 <= at < 120 else 0.01) for at in range(90, 290)])
    assert "late" in judge([letter(ended=121.0)], late, []).faults
    assert not judge([letter(ended=121.0)], late, [], slow).faults
