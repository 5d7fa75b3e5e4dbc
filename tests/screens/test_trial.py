"""Output is tried in a process of its own; what harms there is not drawn again."""

import asyncio
import signal
from pathlib import Path

import psutil
import pytest

from synapsed.model.records import Checkpoint
from synapsed.profiles.profile import Profile
from synapsed.screens.harmful_output import FILE, QUARANTINES_MAX, HarmRecord, _probe_once, harm_end, survives
from synapsed.terminal.look import Harm
from synapsed.terminal.observer import TerminalObserver
from tests.support.begun import begins_with

LAUNCH = "0123456789abcdef0123456789abcdef"
PROFILE = Profile(name="a", command="a")


@pytest.mark.usefixtures("poison")
async def test_what_is_behind_the_harm_is_found() -> None:
    """Read in one piece with it: a prompt that the program does not write again."""
    output = b"$ cat it\r\nPOISON and POISON\r\n$ "
    assert not await survives(None, output)
    assert await harm_end(None, output) == len(output) - len(b"\r\n$ ")


@pytest.mark.usefixtures("poison")
async def test_a_checkpoint_that_does_harm_is_tried_too() -> None:
    checkpoint = Checkpoint(offset=10, cols=80, rows=24, redraw=b"POISON")
    assert not await survives(checkpoint, b"x" * 10)
    assert await harm_end(checkpoint, b"x" * 10) == 0


async def test_an_emulator_that_does_not_return_counts_as_one_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import signal; signal.pause()")
    monkeypatch.setattr("synapsed.own_python.FILE", begins_with(tmp_path / "sitecustomize.py"))
    assert not await survives(None, b"", timeout=0.2)


@pytest.mark.night
@pytest.mark.slow
async def test_an_emulator_that_goes_round_in_circles_counts_as_one_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended by the time that it computes; on a busy machine good output takes long by the clock on the wall."""
    lines = ["import synapsed.terminal.emulated_screen as screens", "def feed(self, data):", "    while True: pass"]
    (tmp_path / "sitecustomize.py").write_text("\n".join([*lines, "screens.Screen.feed = feed"]))
    monkeypatch.setattr("synapsed.own_python.FILE", begins_with(tmp_path / "sitecustomize.py"))
    assert not await survives(None, b"x", cpu_s=1)
    assert (await _probe_once(None, b"x", cpu_s=1))[0] == -signal.SIGXCPU, "nobody else seems to have ended it"


@pytest.mark.parametrize(("times", "lives"), [(0, True), (2, True), (9, False)])
async def test_a_trial_that_others_end_is_made_again(
    times: int, lives: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without memory ends trials as it ends processes of screens: that is no doing of the output."""
    (tmp_path / "sitecustomize.py").write_text(
        f"import os\nwith open({str(tmp_path / 'ended')!r}, 'a+') as file:\n    file.write('x')\n"
        f"    if file.tell() <= {times}:\n        file.flush()\n        os.kill(os.getpid(), 9)\n"
    )
    monkeypatch.setattr("synapsed.own_python.FILE", begins_with(tmp_path / "sitecustomize.py"))
    assert await survives(None, b"hello") is lives


@pytest.mark.parametrize(("times", "lives"), [(2, True), (9, False)])
async def test_a_trial_that_others_stop_is_made_again(
    times: int, lives: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would neither end nor compute, and other agents wait for their trials."""
    (tmp_path / "sitecustomize.py").write_text(
        f"import os, signal\nwith open({str(tmp_path / 'stopped')!r}, 'a+') as file:\n    file.write('x')\n"
        f"    if file.tell() <= {times}:\n        file.flush()\n        os.kill(os.getpid(), signal.SIGSTOP)\n"
    )
    monkeypatch.setattr("synapsed.own_python.FILE", begins_with(tmp_path / "sitecustomize.py"))
    monkeypatch.setattr("synapsed.screens.harmful_output.STOPPED_ASKED_S", 0.05)
    assert await survives(None, b"hello") is lives


async def test_a_search_whose_trials_others_end_finds_the_same(poison: Path) -> None:
    with poison.open("a") as file:
        file.write(
            "\nfork, forks = os.fork, iter(range(99))\ndef forked():\n    child = fork()\n"
            "    if child and next(forks) % 3: os.kill(child, 9)\n    return child\nos.fork = forked\n"
        )
    output = b"$ cat it\r\nPOISON and POISON\r\n$ "
    assert await harm_end(None, output) == len(output) - len(b"\r\n$ ")


async def test_a_trial_has_nothing_of_the_daemons_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret that stands there would be in reach of what the output does to the emulator."""
    (tmp_path / "sitecustomize.py").write_text("import os; os.environ.get('A_SECRET') and os._exit(1)")
    monkeypatch.setattr("synapsed.own_python.FILE", begins_with(tmp_path / "sitecustomize.py"))
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


async def test_what_harms_is_kept_for_the_launch(tmp_path: Path) -> None:
    record = HarmRecord(tmp_path / FILE, LAUNCH)
    assert record.harm is None
    await record.pass_over(17)
    assert HarmRecord(tmp_path / FILE, LAUNCH).harm == record.harm == Harm(skip_to=17)
    assert HarmRecord(tmp_path / FILE, "f" * 32).harm is None


async def test_a_launch_is_blind_in_the_end(tmp_path: Path) -> None:
    record = HarmRecord(tmp_path / FILE, LAUNCH)
    for times in range(QUARANTINES_MAX + 1):
        await record.pass_over(times)
    assert HarmRecord(tmp_path / FILE, LAUNCH).harm == Harm(skip_to=QUARANTINES_MAX, blind=True)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"launch_id": 1}', b"\xff"])
async def test_a_record_that_cannot_be_read_is_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    record = HarmRecord(tmp_path / FILE, LAUNCH)
    assert record.harm is None
    await record.pass_over(3)
    assert HarmRecord(tmp_path / FILE, LAUNCH).harm == Harm(skip_to=3)


async def test_where_no_record_can_be_kept_the_harm_is_passed_over_all_the_same(tmp_path: Path) -> None:
    record = HarmRecord(tmp_path / "none" / FILE, LAUNCH)
    await record.pass_over(3)
    assert record.harm == Harm(skip_to=3)


@pytest.mark.usefixtures("poison")
async def test_a_trial_that_is_called_off_twice_leaves_no_process() -> None:
    """One process of screens after the other ends: the second time it waits for the end of what it has killed."""
    before = set(psutil.Process().children())
    trying = asyncio.create_task(survives(None, b"CIRCLES"))
    mine: set[psutil.Process] = set()
    while not any(process.cpu_times().user > 0 for process in mine):
        await asyncio.sleep(0.01)
        mine = set(psutil.Process().children()) - before
    while not trying.done():
        trying.cancel()
        await asyncio.sleep(0)
    assert trying.cancelled()
    assert not any(process.is_running() for process in mine)


@pytest.mark.parametrize("turns", range(8))
async def test_a_trial_that_is_called_off_while_it_begins_leaves_nothing_open(turns: int) -> None:
    """`turns` of the event loop after its begin, and called off until it gives in."""
    await survives(None, b"")  # whatever is opened once and kept is open
    me = psutil.Process()
    opened, children = me.num_fds(), set(me.children())
    trying = asyncio.create_task(survives(None, b"x" * (1 << 20)))
    for _ in range(turns):
        await asyncio.sleep(0)
    while not trying.done():
        trying.cancel()
        await asyncio.sleep(0)
    assert set(me.children()) <= children, "what tests before it have left may end meanwhile"
    assert me.num_fds() <= opened
