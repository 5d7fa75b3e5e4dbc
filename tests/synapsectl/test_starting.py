"""What `start` says of a program that does not look as it should, and for how long it looks."""

from typing import Any

import pytest

from synapsectl import launching
from synapsed.model.agent import Activity, ProcessState
from synapsed.model.task import Prompt
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon, permission

DRIFT = "profile verified on 2.0, this is 1.9"
SCREEN = Prompt(prompt_id="s", type="screen", prompt="What is new in 1.9\n  press space to see more")


class Time:
    """Passes as `start` sleeps; `then` is what happens to the agent at which second."""

    def __init__(self, daemon: FakeDaemon) -> None:
        self.now = 0.0
        self.then: dict[float, dict[str, Any]] = {}
        self._daemon = daemon

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for at in [at for at in self.then if at <= self.now]:
            self.change(**self.then.pop(at))

    def change(self, **changes: Any) -> None:
        self._daemon.agents["codex"] = self._daemon.agents["codex"].model_copy(update=changes)


@pytest.fixture
def time(daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> Time:
    del daemon.agents["codex"]
    daemon.starts_as = {"activity": Activity.STARTING, "drift": DRIFT, "screen": ""}
    monkeypatch.setattr(launching, "time", faked := Time(daemon))
    return faked


def looks(daemon: FakeDaemon) -> int:
    return sum(path.endswith("status?detail=1") for _, path, _ in daemon.requests)


def test_a_screen_that_is_not_understood_is_told_with_its_rows_and_how_to_go_on(time: Time, ctl: Ctl) -> None:
    time.then = {
        0.5: {"screen": "What is new"},
        3.0: {"activity": Activity.UNKNOWN},
        6.0: {"prompt": SCREEN, "held": "unknown screen"},
    }
    started = ctl("start", "codex")
    assert (started.code, started.out.split("\t")[0]) == (0, "codex")
    assert started.err.splitlines() == [
        f"synapsectl: codex: {DRIFT}",
        "synapsectl: codex waits for a person: what stands on its screen is not understood:",
        "  What is new in 1.9",
        "    press space to see more",
        "attach answers it: synapsectl attach codex; or synapsectl keys codex KEY…",
        (
            "where that is the prompt of a program without a profile: a line that you type there teaches it, "
            "or start it with --prompt 'TEXT'"
        ),
    ]
    assert time.now < 7


def test_a_question_is_told_as_one(time: Time, ctl: Ctl) -> None:
    time.then = {1.0: {"activity": Activity.WAITING, "prompt": permission(), "screen": "Do you want to proceed?"}}
    told = ctl("start", "codex", "--json").err
    assert "codex waits for a person:\n  Do you want to proceed?" in told
    assert "answer with: synapsectl input codex 1" in told
    assert time.now < 2


@pytest.mark.parametrize(
    ("then", "seconds"),
    [
        ({0.5: {"screen": "> ", "activity": Activity.READY}}, 1),
        ({0.5: {"screen": "starts"}, 5.0: {"screen": "> ", "activity": Activity.READY}}, 6),
        ({0.5: {"state": ProcessState.FAILED, "activity": Activity.UNKNOWN}}, 1),
        ({}, launching.FIRST_S),
        ({0.5 * n: {"screen": f"{n} %"} for n in range(60)}, launching.FIRST_S),
        ({0.5: {"screen": "a clock", "activity": Activity.UNKNOWN}}, launching.STUCK_S),
    ],
    ids=["ready", "ready late", "failed", "shows nothing", "draws", "rests"],
)
def test_how_long_is_looked(time: Time, ctl: Ctl, then: dict[float, Any], seconds: float) -> None:
    time.then = then
    assert "waits for a person" not in ctl("start", "codex").err
    assert time.now <= seconds + 0.2


@pytest.mark.parametrize("activity", Activity)
def test_a_program_as_it_was_verified_is_not_looked_at(
    daemon: FakeDaemon, time: Time, ctl: Ctl, activity: Activity
) -> None:
    daemon.starts_as = {"activity": activity}
    ctl("start", "codex")
    assert (time.now, looks(daemon)) == (0, 0)


def test_neither_is_one_that_is_ready(daemon: FakeDaemon, time: Time, ctl: Ctl) -> None:
    daemon.starts_as["activity"] = Activity.READY
    ctl("start", "codex")
    assert (time.now, looks(daemon)) == (0, 0)
