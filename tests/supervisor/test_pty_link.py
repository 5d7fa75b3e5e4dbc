"""The link to a program in a terminal: what it begins with."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.errors import PromptChanged
from synapsed.model.records import Checkpoint, LaunchRecord
from synapsed.profiles import Dialog, Profile, Prompts
from synapsed.supervisor.pty_link import PtyLink
from synapsed.supervisor.pty_watch import Watch
from synapsed.supervisor.times import OutputTimes
from tests.fakes.clock import FakeClock, until
from tests.fakes.store import MemoryStore


@pytest.mark.parametrize(("offset", "shown"), [(99, ""), (100, ""), (105, "hello")])
async def test_a_checkpoint_of_an_earlier_launch_is_not_this_launch_s_screen(
    offset: int, shown: str, tmp_path: Path
) -> None:
    clock = FakeClock()
    launch = LaunchRecord(
        launch_id="new", socket="/none", keeper_pid=1, keeper_start=1, pid=2, pid_start=2, spool_start=100, started_at=0
    )
    checkpoint = Checkpoint(offset=offset, cols=80, rows=24, redraw=b"hello", state={"activity": "ready"})
    link = PtyLink(
        agent_id="a",
        profile=Profile(name="a", command="a"),
        launch=launch,
        size=(80, 24),
        checkpoint=checkpoint,
        channels=[],
        times=OutputTimes(tmp_path / "times"),
        store=MemoryStore(clock),
        clock=clock,
    )
    assert link.screen_text() == shown


DIALOG = Profile(
    name="a",
    command="a",
    prompts=Prompts(
        dialogs=[Dialog(type="permission", when=[r"^Allow it\?"], option=r"^(?P<key>\d)\. (?P<label>.*)$")]
    ),
)


async def test_of_two_answers_at_the_same_moment_one_is_typed(tmp_path: Path, monkeypatch) -> None:
    """The program may be slow to react, or ask the same thing again: the second was not for that."""
    clock = FakeClock()
    launch = LaunchRecord(
        launch_id="l", socket="/none", keeper_pid=1, keeper_start=1, pid=2, pid_start=2, spool_start=0, started_at=0
    )
    link = PtyLink(
        agent_id="a",
        profile=DIALOG,
        launch=launch,
        size=(80, 24),
        checkpoint=Checkpoint(offset=1, cols=80, rows=24, redraw=b"Allow it?\r\n1. Yes\r\n2. No", state={}),
        channels=[],
        times=OutputTimes(tmp_path / "times"),
        store=MemoryStore(clock),
        clock=clock,
    )
    typed: list[bytes] = []

    class Keeper:
        async def write(self, data: bytes) -> Any:
            typed.append(data)
            return SimpleNamespace(hidden=False)

    monkeypatch.setattr(link, "_client", Keeper())
    prompt = link.observe().prompt
    assert prompt is not None
    first = asyncio.ensure_future(link.answer("1", prompt.prompt_id))
    await until(lambda: typed)
    with pytest.raises(PromptChanged, match="somebody else"):
        await link.answer("2", prompt.prompt_id)
    assert typed == [b"1"]
    first.cancel()  # it was not taken
    await asyncio.gather(first, return_exceptions=True)
    second = asyncio.ensure_future(link.answer("2", prompt.prompt_id))
    await until(lambda: len(typed) == 2)
    second.cancel()


async def test_a_person_s_key_waits_for_no_look_at_the_screen(tmp_path: Path, monkeypatch) -> None:
    """A look is most of what a key's way costs; it is needed only while a message is being typed."""
    clock = FakeClock()
    launch = LaunchRecord(
        launch_id="l", socket="/none", keeper_pid=1, keeper_start=1, pid=2, pid_start=2, spool_start=0, started_at=0
    )
    link = PtyLink(
        agent_id="a",
        profile=Profile(name="a", command="a"),
        launch=launch,
        size=(80, 24),
        checkpoint=None,
        channels=[],
        times=OutputTimes(tmp_path / "times"),
        store=MemoryStore(clock),
        clock=clock,
    )
    typed: list[bytes] = []

    class Keeper:
        async def write(self, data: bytes) -> None:
            typed.append(data)

    def look(_: Watch) -> None:
        raise AssertionError("a key had to wait for a look")

    monkeypatch.setattr(link, "_client", Keeper())
    monkeypatch.setattr(Watch, "look", look)
    await link._type_person(b"x")
    assert typed == [b"x"]
