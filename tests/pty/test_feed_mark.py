"""A mark that outlives the daemon says where the emulator was at work; output that ends it is not fed again."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from synapsed.model.records import Checkpoint
from synapsed.profiles import Profile
from synapsed.pty import feed_mark
from synapsed.pty.feed_mark import MARK_FILE, TRIES_MAX, FeedMark, FeedMarks, survives
from synapsed.terminal.look import Harm
from synapsed.terminal.observer import TerminalObserver

LAUNCH = "0123456789abcdef0123456789abcdef"
PROFILE = Profile(name="a", command="a")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / MARK_FILE


def ended_at(path: Path, start: int, end: int) -> FeedMark:
    """The mark as the next daemon finds it, after one that was killed while output was fed."""
    child = os.fork()
    if child == 0:
        mark = FeedMark(path, LAUNCH)
        mark.at(start, end)
        mark.begins()
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    return FeedMark(path, LAUNCH)


async def examine(mark: FeedMark, folder: Path, checkpoint: Checkpoint | None, start: int, agent: str) -> None:
    marks = FeedMarks(mark, FeedMark(folder.parent / "other", LAUNCH))
    await feed_mark.examine(marks, folder, checkpoint, start, agent)


def spool(tmp_path: Path, data: bytes) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir(exist_ok=True)
    (folder / f"{0:020d}.seg").write_bytes(data)
    return folder


def poison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Output with POISON in it ends every process that feeds it, those of this test's children."""
    lines = [
        "import os, synapsed.terminal.screen as screens",
        "apply = screens.Screen._apply",
        "screens.Screen._apply = lambda self, data: os.abort() if b'POISON' in data else apply(self, data)",
    ]
    (tmp_path / "sitecustomize.py").write_text("\n".join(lines))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))


def test_a_mark_is_left_where_a_process_was_ended(path: Path) -> None:
    assert ended_at(path, 100, 200).left == (100, 200)
    assert FeedMark(path, "f" * 32).left is None  # of another launch


def test_work_that_ended_leaves_no_mark(path: Path) -> None:
    mark = FeedMark(path, LAUNCH)
    mark.at(100, 200)
    mark.begins()
    mark.begins()
    mark.ends()
    mark.ends()
    assert FeedMark(path, LAUNCH).left is None


def test_where_no_file_can_be_had_there_is_no_mark(tmp_path: Path) -> None:
    mark = FeedMark(tmp_path / "none" / MARK_FILE, LAUNCH)
    mark.begins()
    mark.ends()
    mark.close()
    mark.begins()


async def test_good_output_is_fed_again_after_a_kill(path: Path, tmp_path: Path) -> None:
    mark = ended_at(path, 0, 5)
    await examine(mark, spool(tmp_path, b"hello world"), None, 0, "a")
    assert mark.left is None
    assert mark.harm is None


async def test_output_that_ends_the_emulator_is_passed_over(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(tmp_path, monkeypatch)
    folder = spool(tmp_path, b"hello POISON world")
    for ends, harm in ((14, Harm(skip_to=12)), (16, Harm(skip_to=12))):
        mark = ended_at(path, ends - 2, ends)
        await examine(mark, folder, None, 0, "a")  # the second time what comes behind the poison is good
        assert mark.harm == harm
        assert mark.left is None


async def test_a_checkpoint_that_ends_the_emulator_is_passed_over(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(tmp_path, monkeypatch)
    mark = ended_at(path, 10, 10)
    await examine(mark, spool(tmp_path, b"x" * 20), Checkpoint(offset=10, cols=80, rows=24, redraw=b"POISON"), 0, "a")
    assert mark.harm == Harm(skip_to=10)


async def test_what_is_behind_the_harm_is_fed(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read in one piece with it: a prompt that the program does not write again."""
    poison(tmp_path, monkeypatch)
    output = b"$ cat it\r\nPOISON and POISON\r\n$ "
    mark = ended_at(path, 10, len(output))
    await examine(mark, spool(tmp_path, output), None, 0, "a")
    assert mark.harm == Harm(skip_to=len(output) - len(b"\r\n$ "))


async def test_output_behind_a_checkpoint_that_ends_the_emulator_is_fed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(tmp_path, monkeypatch)
    checkpoint = Checkpoint(offset=10, cols=80, rows=24, redraw=b"POISON")
    mark = ended_at(path, 10, 20)
    await examine(mark, spool(tmp_path, b"x" * 20), checkpoint, 0, "a")
    assert mark.harm == Harm(skip_to=10)
    observer = TerminalObserver.restore(PROFILE, checkpoint, 0.0, harm=mark.harm)
    assert observer.lost_screen
    assert "POISON" not in observer.screen.snapshot().text()


@pytest.mark.slow
async def test_output_at_which_daemons_end_over_and_over_is_passed_over(path: Path, tmp_path: Path) -> None:
    """The trial does not show everything: memory that was spoilt before, for one."""
    folder = spool(tmp_path, b"hello world")
    for _ in range(TRIES_MAX):
        mark = ended_at(path, 0, 5)
        await examine(mark, folder, None, 0, "a")
        assert mark.harm is None
    mark = ended_at(path, 0, 5)
    await examine(mark, folder, None, 0, "a")
    assert mark.harm == Harm(skip_to=5)


async def test_an_answer_that_ends_the_emulator_is_not_read_again(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(tmp_path, monkeypatch)
    marks = FeedMarks(FeedMark(tmp_path / "other", LAUNCH), ended_at(path, 6, 14))
    await feed_mark.examine(marks, spool(tmp_path, b"hello POISON world"), None, 0, "a")
    assert marks.answers.harm == Harm(skip_to=12)
    assert marks.screen.harm is None


@pytest.mark.slow
async def test_kills_at_different_places_mean_nothing(path: Path, tmp_path: Path) -> None:
    folder = spool(tmp_path, b"hello world")
    for start in range(0, 10, 2):
        mark = ended_at(path, start + 1, start + 2)
        await examine(mark, folder, None, 0, "a")
        assert mark.harm is None


def test_a_launch_is_blind_in_the_end(path: Path) -> None:
    for times in range(feed_mark.QUARANTINES_MAX + 1):
        mark = ended_at(path, times, times + 1)
        mark.quarantine()
    assert mark.harm == Harm(skip_to=feed_mark.QUARANTINES_MAX + 1, blind=True)


async def test_an_emulator_that_does_not_return_counts_as_one_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import signal; signal.pause()")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    assert not await survives(None, b"", timeout=0.2)


async def test_an_emulator_that_goes_round_in_circles_counts_as_one_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended by the time that it computes; on a busy machine good output takes long by the clock on the wall."""
    lines = ["import synapsed.terminal.screen as screens", "def feed(self, data):", "    while True: pass"]
    (tmp_path / "sitecustomize.py").write_text("\n".join([*lines, "screens.Screen.feed = feed"]))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    assert not await survives(None, b"x", cpu_s=1)


async def test_a_trial_has_nothing_of_the_daemons_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret that stands there would be in reach of what the output does to the emulator."""
    (tmp_path / "sitecustomize.py").write_text("import os; os.environ.get('A_SECRET') and os._exit(1)")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    monkeypatch.setenv("A_SECRET", "sesame")
    assert await survives(None, b"hello")


async def test_a_trial_of_good_output() -> None:
    assert await survives(Checkpoint(offset=1, cols=1, rows=1, redraw=b"x"), b"\x1b[1mhello\r\n" * 1000)
    await asyncio.sleep(0)


def test_the_screen_begins_behind_what_is_passed_over() -> None:
    checkpoint = Checkpoint(offset=10, cols=200, rows=5, redraw=b"POISON", state={"activity": "busy"})
    observer = TerminalObserver.restore(PROFILE, checkpoint, 0.0, harm=Harm(skip_to=20))
    observer.feed(10, b"MORE POISO", 1.0)
    replies = observer.feed(20, b"good\x1b[6n", 2.0)
    first, second = observer.screen.snapshot().lines[:2]
    assert first.startswith("[synapsed: its output ended the terminal emulator")
    assert second == "good"
    assert replies[0].data == b"\x1b[2;5R"


def test_a_piece_may_be_passed_over_in_part() -> None:
    observer = TerminalObserver(PROFILE, cols=200, rows=5, offset=0, harm=Harm(skip_to=6))
    observer.feed(0, b"POISONgood", 1.0)
    assert observer.screen.snapshot().lines[1] == "good"


def test_a_blind_launch_has_its_records_all_the_same() -> None:
    observer = TerminalObserver(PROFILE, cols=200, rows=5, offset=0, harm=Harm(skip_to=6, blind=True))
    observer.feed(100, b"\x1b[6n text", 1.0)
    assert "without a screen" in observer.screen.snapshot().lines[0]
    assert "text" not in observer.screen.snapshot().text()
    assert observer.checkpoint().offset == 109
