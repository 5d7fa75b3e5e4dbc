"""Messages to a program that plays every trick, judged by what it says it received: exactly once, never mixed."""

import pytest

from tests.support.daemon import Daemon, eventually
from tests.synapsectl.pty_tool import PtyTool
from tests.tui.conftest import Tui


@pytest.mark.parametrize(
    "tricks",
    [
        {"boot": True},
        *(
            pytest.param(tricks, marks=pytest.mark.night, id="-".join(tricks) or "none")
            for tricks in (
                {},
                {"swallow": 1},
                {"swallow": 3},
                {"forget": 1},
                {"boot": True, "swallow": 3, "alternate": True},
                {"alternate": True},
                {"noise": True},
                {"late": 1.0},
                {"slow": 3},
                {"newline": 1},
                {"alternate": True, "deface": True},
                {"status": True},
                {"status": True, "silent": True, "alternate": True},
            )
        ),
    ],
    ids="-".join,
)
def test_two_messages_arrive_once_each(tui: Tui, tricks: dict[str, object]) -> None:
    tui.start(**tricks)
    first, second = tui.send("first message"), tui.send("second message\nof two lines")
    assert tui.answer(tui.ended(first)) == "You said: first message"
    assert tui.answer(tui.ended(second)) == "You said: second message"
    assert tui.submitted == ["first message", "second message\nof two lines"]


@pytest.mark.night
def test_a_message_in_the_composer_is_nobodys_draft(tui: Tui) -> None:
    tui.start(swallow=1).ready()
    task, held = tui.send("it stands there until the second Enter"), set()
    while not tui.submitted:
        held.add(tui.state["held"])
    tui.ended(task)
    assert held == {None}


@pytest.mark.night
def test_a_program_that_has_not_come_to_the_submit_key_gets_no_second_one(tui: Tui) -> None:
    """It has read it, and computes, or the machine is busy: it would take the message twice."""
    tui.start(compute=3).ready()
    assert tui.ask("once") == "You said: once"
    assert tui.submitted == ["once"]


@pytest.mark.night
def test_a_program_that_waits_for_a_hook_gets_no_second_submit_key(tui: Tui) -> None:
    """It rests meanwhile, with its message in the composer. gemini 0.51.0 took a message twice so."""
    tui.start(hook=4).ready()
    assert tui.ask("once") == "You said: once"
    assert tui.submitted == ["once"]


@pytest.mark.night
def test_no_bracketed_paste(tui: Tui) -> None:
    tui.start("scripted-plain", plain=True)
    assert tui.ask("typed, not pasted") == "You said: typed, not pasted"
    assert tui.submitted == ["typed, not pasted"]


@pytest.mark.night
def test_much_text_for_a_program_that_reads_slowly(tui: Tui) -> None:
    tui.start(slow=1000)
    text = "\n".join(f"line {n} {'x' * 70}" for n in range(120))
    tui.ended(tui.send(text))
    assert tui.submitted == [text]


@pytest.mark.night
def test_dialog_at_the_start_is_not_answered_by_a_message(tui: Tui) -> None:
    tui.start(dialog="start")
    task = tui.send("after the dialog")
    prompt = tui.becomes(activity="waiting", held="dialog")["prompt"]
    assert [option["key"] for option in prompt["options"]] == ["1", "2"]
    assert (tui.submitted, tui.logged("key")) == ([], [])
    assert tui.daemon.ctl("approve", tui.name).code == 0
    assert tui.answer(tui.ended(task)) == "You said: after the dialog"
    assert (tui.submitted, tui.logged("key")) == (["after the dialog"], ["1"])


@pytest.mark.night
def test_dialog_that_is_drawn_anew_is_told_once(tui: Tui) -> None:
    with tui.daemon.sse("/events") as events:

        def told(last: str) -> list[str]:
            activities: list[str] = []
            while activities[-1:] != [last]:
                event = next(events)["data"]
                if event["event"] == "activity" and event["agent"] == tui.state["id"]:
                    activities.append(event["data"]["activity"])
            return activities

        tui.start(dialog="start", blink=3)
        told("waiting")
        eventually(lambda: tui.logged("blinked")[-1:] == [0], "it has blinked")
        assert tui.daemon.ctl("approve", tui.name).code == 0
        assert "waiting" not in told("ready")


def test_dialog_between_the_paste_and_enter_gets_no_enter(tui: Tui) -> None:
    tui.start(dialog="paste").ready()
    task = tui.send("pasted before the dialog")
    tui.daemon.task_in(task, "input_required")
    assert (tui.submitted, tui.logged("key")) == ([], [])
    assert tui.daemon.ctl("input", task, "2").code == 0
    assert tui.answer(tui.ended(task)) == "You said: pasted before the dialog"
    assert (tui.submitted, tui.logged("key")) == (["pasted before the dialog"], ["2"])


@pytest.mark.night
def test_message_canceled_behind_a_dialog_is_gone_when_the_composer_comes_back(tui: Tui) -> None:
    tui.start(dialog="paste").ready()
    task = tui.send("pasted before the dialog")
    tui.daemon.task_in(task, "input_required")
    assert tui.daemon.ctl("cancel", task).code == 0
    assert (tui.submitted, tui.logged("key")) == ([], [])
    assert tui.daemon.ctl("input", tui.name, "2").code == 0
    assert tui.ask("the next one") == "You said: the next one"
    assert (tui.submitted, tui.logged("key")) == (["the next one"], ["2"])


@pytest.mark.night
def test_composer_that_takes_nothing_is_told_with_the_screen(tui: Tui) -> None:
    tui.start(deaf=True).ready()
    task = tui.ended(tui.send("lost"))
    assert (task["status"], task["error"]["code"]) == ("failed", "UNDELIVERED")
    assert "scripted program" in task["error"]["details"]["screen"]
    assert tui.submitted == []


@pytest.mark.night
def test_message_that_is_shown_too_late_is_taken_out_and_typed_again(tui: Tui) -> None:
    tui.start(stall=4).ready()
    late = tui.send("shown too late")
    assert tui.ask("the next one") == "You said: the next one"
    assert tui.answer(tui.ended(late)) == "You said: shown too late"
    assert tui.submitted == ["shown too late", "the next one"]


@pytest.mark.parametrize(
    "draft",
    [b"what a person types", pytest.param(b"\x1b[200~\nbelow an empty line\x1b[201~", marks=pytest.mark.night)],
)
def test_draft_of_a_person_is_never_mixed_with_a_message(tui: Tui, draft: bytes) -> None:
    tui.start().ready()
    person = PtyTool("attach", tui.name, env=tui.daemon.env, rows=40, cols=120)
    try:
        person.until(b"scripted program")
        person.type(draft)
        tui.becomes(held="typing")
        task = tui.send("a message meanwhile")
        assert tui.daemon.task(task)["status"] == "submitted"
        person.type(b"\r")
        assert tui.answer(tui.ended(task)) == "You said: a message meanwhile"
    finally:
        person.close()
    typed = draft.decode().replace("\x1b[200~", "").replace("\x1b[201~", "").strip()
    assert tui.submitted == [typed, "a message meanwhile"]


@pytest.mark.night
def test_keys_of_a_person_and_a_message_at_the_same_moment_are_never_mixed(tui: Tui) -> None:
    tui.start().ready()
    person = PtyTool("attach", tui.name, env=tui.daemon.env, rows=40, cols=120)
    try:
        person.until(b"scripted program")
        for number in range(6):
            # Whoever comes first, it is not shown yet when the other comes.
            typed, message = f"person {number}", f"message {number}"
            if number % 2:
                person.type(typed.encode())
            task = tui.send(message)
            if not number % 2:
                person.type(typed.encode())
            tui.becomes(held="typing")
            person.type(b"\r")
            assert tui.answer(tui.ended(task)) == f"You said: {message}"
            eventually(lambda: len(tui.submitted) == 2 * (number + 1), "both are submitted")  # noqa: B023 - at once
            assert sorted(tui.submitted[-2:]) == [message, typed]
            tui.becomes(activity="ready", held=None)
    finally:
        person.close()


@pytest.mark.parametrize("by", ["cancel", pytest.param("a person", marks=pytest.mark.night)])
@pytest.mark.parametrize(
    "message",
    [pytest.param("to be stopped delay=60", marks=pytest.mark.night), "to be\nstopped\n\nsoon delay=60"],
)
def test_message_given_back_after_an_interrupt_is_not_mixed_with_the_next(tui: Tui, message: str, by: str) -> None:
    tui.start(restore=True, placeholder=True).ready()
    task = tui.send(message)
    eventually(lambda: tui.submitted, "it is submitted")
    tui.becomes(activity="busy")
    if by == "cancel":
        assert tui.daemon.ctl("cancel", task).code == 0
    else:
        person = PtyTool("attach", tui.name, env=tui.daemon.env, rows=40, cols=120)
        try:
            person.until(b"scripted program")
            person.type(b"\x1b")
            tui.ended(task)
        finally:
            person.close()
    ended = tui.ended(task)
    assert (ended["status"], ended["metadata"]["reason"]) == ("canceled", "canceled" if by == "cancel" else "person")
    assert tui.ask("the next one") == "You said: the next one"
    assert tui.submitted == [message, "the next one"]
    assert tui.logged("interrupted") == [message]


@pytest.mark.night
@pytest.mark.parametrize("tricks", [{}, {"slow": 8}], ids=["quick", "slow"])
def test_message_canceled_while_it_is_typed_does_not_stay(tui: Tui, tricks: dict[str, object]) -> None:
    tui.start(placeholder=True, **tricks).ready()
    message = "to be canceled" + "\nat once" * 60
    task = tui.send(message)
    assert tui.daemon.post(f"/control/tasks/{task}/cancel", {}).status == 200
    assert tui.ended(task)["status"] == "canceled"
    assert tui.ask("the next one") == "You said: the next one"
    assert tui.submitted in (["the next one"], [message, "the next one"])


@pytest.mark.night
@pytest.mark.parametrize("status", [False, True])
def test_message_canceled_before_the_program_begins_with_it_is_stopped(tui: Tui, status: bool) -> None:
    tui.start(sluggish=0.5, status=status).ready()
    task = tui.send("to be stopped delay=60")
    eventually(lambda: tui.submitted, "it is submitted")
    assert tui.daemon.post(f"/control/tasks/{task}/cancel", {}).status == 200
    assert tui.ended(task)["status"] == "canceled"
    assert tui.logged("interrupted") == ["to be stopped delay=60"]
    assert tui.ask("the next one") == "You said: the next one"


@pytest.mark.night
def test_line_that_the_terminal_would_cut_is_refused(daemon: Daemon, tui: Tui) -> None:
    reader = "while read -r line; do :; done"
    name = tui.name
    answer = daemon.post(
        "/control/start",
        {"profile": "generic", "name": name, "cwd": "/", "args": ["sh", "-c", f"printf '> '; {reader}"]},
    )
    assert answer.status == 200, answer.json
    tui.ready()
    task = tui.ended(tui.send("x" * 5000))
    assert (task["status"], task["error"]["code"]) == ("failed", "UNDELIVERED")
    assert "line mode and would cut a line of 5000 bytes" in task["error"]["message"]
