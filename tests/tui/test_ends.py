"""When a turn is over: quick and slow answers, silent gaps, programs that nobody knows."""

import pytest

from tests.tui.conftest import Tui

pytestmark = pytest.mark.night  # `tests/pty/test_turn_end.py` is the gate's

TRICKS = [{}, {"status": True, "silent": True}, {"noise": True}]


@pytest.mark.parametrize("delay", ["0", "0.05", "2"])
@pytest.mark.parametrize("tricks", TRICKS, ids=lambda tricks: "-".join(tricks) or "none")
def test_each_message_has_its_own_answer(tui: Tui, tricks: dict[str, object], delay: str) -> None:
    tui.start(**tricks)
    for n in range(3):
        assert tui.ask(f"message {n} delay={delay}") == f"You said: message {n} delay={delay}"
    assert len(tui.submitted) == 3


@pytest.mark.parametrize("tricks", TRICKS, ids=lambda tricks: "-".join(tricks) or "none")
def test_silent_gaps_end_nothing(tui: Tui, tricks: dict[str, object]) -> None:
    tui.start(**tricks)
    text = tui.ask("in pieces delay=0.5 gaps=3")
    assert text == "You said: in pieces delay=0.5 gaps=3\n  piece 2\n  piece 3"


@pytest.mark.parametrize("tricks", [{}, {"bare": True}], ids=["composer", "no composer"])
def test_unknown_program_that_reports_its_status_needs_no_profile(tui: Tui, tricks: dict[str, object]) -> None:
    tui.start("generic", status=True, silent=True, **tricks).ready()
    first, second = tui.send("first delay=1.5"), tui.send("second delay=0.05 gaps=2")
    assert "You said: first delay=1.5" in tui.answer(tui.ended(first))
    answer = tui.answer(tui.ended(second))
    assert "You said: second delay=0.05 gaps=2" in answer
    assert "piece 2" in answer
    assert tui.submitted == ["first delay=1.5", "second delay=0.05 gaps=2"]


def test_what_decides_is_explained(tui: Tui) -> None:
    tui.start(status=True).ready()
    chain = tui.daemon.ctl("status", tui.name, "--explain", "--json").json["explain"]
    assert [row["channel"] for row in chain][:3] == ["process", "dialog", "status record"]
    assert [row["channel"] for row in chain if row["decides"]] == ["status record"]
    shown = tui.daemon.ctl("status", tui.name, "--explain").out
    assert "=>\tstatus record\t" in shown
