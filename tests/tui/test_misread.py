"""A profile whose composer is somewhere else than the program's: nothing is pasted twice, and nothing behind it."""

from collections.abc import Iterator

import pytest

from tests.support.daemon import Daemon, eventually
from tests.tui.conftest import Tui

BLANK = "^(?P<text>)$"
"""Any blank row: nothing ever seems to stand in it."""
HEADING = "^scripted (?P<text>)program"
LONG = "one of many lines " + "\nand one more of them" * 20
HUGE = "\n".join(f"line {n} {'x' * 70}" for n in range(600))


@pytest.fixture(scope="module", params=[BLANK, pytest.param(HEADING, marks=pytest.mark.night)])
def misread(daemon: Daemon, request: pytest.FixtureRequest) -> Iterator[str]:
    profile = daemon.home / "config" / "profiles" / "scripted-misread.toml"
    wrong = f"extends = 'scripted'\n[composer]\nline = '{request.param}'\naround = ''\nempty = ''\n"
    profile.write_text(wrong)
    assert daemon.ctl("reload").code == 0
    yield "scripted-misread"
    profile.unlink()


def is_held(tui: Tui) -> None:
    def misread() -> bool:
        state = tui.state
        return state["held"] == "unknown screen" and any("[composer]" in alert for alert in state["alerts"])

    eventually(misread, "it is held, and its profile is named")


@pytest.mark.night
@pytest.mark.parametrize(
    ("message", "tricks"),
    [
        ("a message", {}),
        *(
            pytest.param(message, tricks, marks=pytest.mark.night, id=name)
            for name, message, tricks in (
                ("placeholder", LONG, {"placeholder": True}),
                ("huge", HUGE, {}),
                ("wide", "終わりまで読んでください" * 12, {}),
                ("late", "shown after a while", {"stall": 3}),
                ("alternate", "on the other screen", {"alternate": True}),
            )
        ),
    ],
)
def test_a_message_is_pasted_once_and_the_next_is_not(
    tui: Tui, misread: str, message: str, tricks: dict[str, object]
) -> None:
    tui.start(misread, **tricks).ready()
    first = tui.send(message)
    second = tui.send("the next one")
    task = tui.ended(first)
    assert (task["status"], task["error"]["code"]) == ("failed", "UNDELIVERED"), task
    assert "[composer]" in task["error"]["message"]
    is_held(tui)
    assert tui.logged("pasted") == [message]
    assert tui.submitted == []
    assert tui.daemon.task(second)["status"] == "submitted"


@pytest.mark.night
def test_a_message_that_is_canceled_there_holds_the_next(tui: Tui, misread: str) -> None:
    tui.start(misread).ready()
    first = tui.send("to be canceled")
    eventually(lambda: tui.logged("pasted"), "it is pasted")
    assert tui.daemon.ctl("cancel", first).code == 0
    second = tui.send("the next one")
    is_held(tui)
    assert tui.logged("pasted") == ["to be canceled"]
    assert tui.daemon.task(second)["status"] == "submitted"


@pytest.mark.night
@pytest.mark.parametrize(("message", "tricks"), [("a message", {}), (LONG, {"placeholder": True})])
def test_what_is_left_there_is_known_to_the_next_daemon(
    tui: Tui, misread: str, message: str, tricks: dict[str, object]
) -> None:
    tui.start(misread, **tricks).ready()
    first = tui.send(message)
    eventually(lambda: tui.logged("pasted"), "it is pasted")
    tui.daemon.kill9()
    tui.daemon.start()
    assert tui.ended(first)["error"]["code"] == "UNDELIVERED"
    is_held(tui)
    second = tui.send("the next one")
    tui.daemon.kill9()
    tui.daemon.start()
    is_held(tui)
    assert tui.daemon.ctl("shutdown", "--keep-agents").code == 0
    tui.daemon.start()
    is_held(tui)
    assert tui.logged("pasted") == [message]
    assert tui.daemon.task(second)["status"] == "submitted"
    assert tui.daemon.ctl("keys", tui.name, "C-u").code == 0
    eventually(lambda: tui.logged("pasted")[1:] == ["the next one"], "the next one is pasted")
