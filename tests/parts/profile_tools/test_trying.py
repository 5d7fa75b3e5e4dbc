"""A profile that is tried with one message: what is said of what was seen, over a daemon of the test's."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from synapsectl.client import Client
from synapsed.parts.profile_tools.ctl import trying
from synapsed.parts.profile_tools.ctl.trying import _Trial


class Daemon:
    """Answers what is asked of one agent: each of `looks` is (activity, evidence, rows of its screen, its prompt), the
    task has ended with the one that is `over`, and the last goes on for ever."""

    def __init__(self, *looks: tuple[str, str, list[str], str | None], over: int, answer: str = "hello") -> None:
        self.looks = looks
        self.over = over
        self.answer = answer
        self.at = 0
        self.posted: list[str] = []

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        activity, evidence, rows, asks = self.looks[min(self.at, len(self.looks) - 1)]
        if path.endswith("/status"):
            return {"activity": activity, "evidence": evidence, "prompt": None if asks is None else {"prompt": asks}}
        if path.endswith("/screen"):
            self.at += 1
            return {"lines": [*rows, ""]}
        return {"task": self.task()}

    def task(self) -> dict[str, Any]:
        done = self.at >= self.over
        answer = [{"artifact_id": "answer", "parts": [{"text": self.answer}]}] if self.answer else []
        return {"id": "t", "status": "completed" if done else "working", "artifacts": answer if done else []}

    def post(self, path: str, body: Any = None, *, key: str | None = None) -> Any:
        self.posted.append(path)
        return {"task": self.task()}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(trying, "LOOK_S", 0.0)
    monkeypatch.setattr(trying, "STILL_S", 0.02)
    monkeypatch.setattr(trying, "READY_S", 0.02)
    return


def trial(daemon: Daemon) -> _Trial:
    return _Trial(cast("Client", daemon), "it")


REST = ["one", "> "]
READY = ("ready", "composer: empty", REST, None)


def test_a_profile_that_fits_is_nothing_to_tell() -> None:
    working = ("busy", "screen: esc to stop", ["one", "esc to stop", "> "], None)
    seen = trial(Daemon(READY, *[working] * 5, ("ready", "", ["one", "hello", "> "], None), over=7))
    assert seen.comes_up()
    assert seen.answers("say hello", 10.0) == "hello"
    assert seen.told == []


def test_one_that_is_never_ready() -> None:
    seen = trial(Daemon(("unknown", "quiet: no sign of anything", REST, None), over=1))
    assert not seen.comes_up()
    assert "never ready: unknown (quiet: no sign of anything)" in seen.told[0]


def test_one_that_asks_is_no_fault_of_the_profile() -> None:
    seen = trial(Daemon(("waiting", "screen: login prompt", REST, "Sign in?"), over=1))
    assert not seen.comes_up()
    assert (seen.asks, seen.told) == ("Sign in?", [])


def test_an_answer_that_is_not_read_is_told() -> None:
    seen = trial(Daemon(READY, over=1, answer=""))
    seen.answers("say hello", 10.0)
    assert "no answer was read" in seen.told[0]


def test_a_turn_that_ends_while_rows_move_is_told() -> None:
    """Other tasks' answers would be taken for this one's."""
    moving = [("ready", "", ["one", f"thinking {n}", "> "], None) for n in range(100_000)]
    seen = trial(Daemon(READY, *moving, over=2))
    seen.answers("say hello", 10.0)
    assert any("'thinking" in line and "belongs to [busy]" in line for line in seen.told)


def test_what_stood_there_only_meanwhile_may_be_the_sign_of_work() -> None:
    silent = ("busy", "quiet: the screen changes", ["one", "Pondering", "> "], None)
    seen = trial(Daemon(READY, *[silent] * 5, READY, over=7))
    seen.answers("say hello", 10.0)
    assert any("'Pondering'" in line for line in seen.told)


def test_a_turn_that_does_not_end_is_cancelled() -> None:
    daemon = Daemon(READY, over=1 << 30)
    seen = trial(daemon)
    assert seen.answers("say hello", 0.02) is None
    assert "did not end" in seen.told[0]
    assert daemon.posted[-1].endswith("/cancel")
