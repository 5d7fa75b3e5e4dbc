"""Children that are started beside the event loop, and talked with once."""

import asyncio
import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil
import pytest

from synapsed.keepers import spawning
from synapsed.keepers.spawning import Child
from tests.fakes.clock import until
from tests.support.patience import PATIENCE_S

DEADLINE = PATIENCE_S
LARGE = b"0123456789abcdef" * 65_536


def python(script: str, **environ: str) -> Child:
    return Child([sys.executable, "-S", "-E", "-I", "-c", script], environ)


@pytest.mark.parametrize("old", [False, True], ids=["closefrom", "an old C library"])
async def test_it_has_what_it_was_told_and_nothing_else(monkeypatch: pytest.MonkeyPatch, old: bool) -> None:
    if old:
        monkeypatch.setattr(spawning, "_LIBC", Without(spawning._LIBC, "posix_spawn_file_actions_addclosefrom_np"))
    monkeypatch.setenv("NOT_FOR_IT", "1")
    held, other = os.pipe()
    os.set_inheritable(held, True)
    script = (
        "import os, sys; told = sys.stdin.buffer.read();"
        "print(told, os.getcwd(), os.environ['NAME'], 'NOT_FOR_IT' in os.environ, flush=True);"
        f"\ntry: os.fstat({held}); print('inherited')\nexcept OSError: pass\n"
        "sys.stderr.write('trouble'); sys.exit(7)"
    )
    ended = await python(script, NAME="välue").talk(b"hello")
    os.close(held)
    os.close(other)
    assert ended.output.decode().split() == ["b'hello'", "/", "välue", "False"]
    assert (ended.code, ended.errors) == (7, b"trouble")


class Without:
    """A library that lacks a function."""

    def __init__(self, library: Any, lacks: str) -> None:
        self._library = library
        self._lacks = lacks

    def __getattr__(self, name: str) -> Any:
        if name == self._lacks:
            raise AttributeError(name)
        return getattr(self._library, name)


async def test_much_is_told_both_ways() -> None:
    script = (
        "import sys; sys.stderr.buffer.write(b'e' * (1 << 20)); sys.stderr.flush();"
        "sys.stdout.buffer.write(sys.stdin.buffer.read())"
    )
    ended = await python(script).talk(LARGE)
    assert ended.output == LARGE
    assert len(ended.errors) == 1 << 20


async def test_one_that_reads_nothing_ends_as_it_does() -> None:
    assert (await python("import os; os.kill(os.getpid(), 9)").talk(LARGE)).code == -9


async def test_what_is_no_program_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match="/no/such/program"):
        await Child(["/no/such/program"], {}).talk()


async def test_whoever_stops_waiting_kills_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = f"import os, time; open({str(note)!r} + '.new', 'w').write(str(os.getpid()));"
    script += f"os.rename({str(note)!r} + '.new', {str(note)!r}); time.sleep(3600)"
    talking = asyncio.create_task(python(script).talk())
    await until(note.exists)
    pid = int(note.read_text())
    talking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await talking
    await until(lambda: not psutil.pid_exists(pid))


async def test_one_that_is_not_wanted_any_more_does_not_begin(tmp_path: Path) -> None:
    note, gate = tmp_path / "begun", tmp_path / "gate"
    os.mkfifo(gate)
    waits = f"open({str(gate)!r}).read()"
    before = [asyncio.create_task(python(waits).talk()) for _ in range(spawning.AT_ONCE)]
    late = asyncio.create_task(python(f"open({str(note)!r}, 'w')").talk())
    await asyncio.sleep(0)
    late.cancel()
    with pytest.raises(asyncio.CancelledError):
        await late
    for task in before:
        task.cancel()
    await asyncio.gather(*before, return_exceptions=True)
    assert (await python("pass").talk()).code == 0, "the others have left their places"
    assert not note.exists()


async def test_it_starts_when_the_folder_for_temporary_files_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (tmp_path / "temporary").mkdir()
    assert Path(tempfile.gettempdir()) == tmp_path / "temporary"
    (tmp_path / "temporary").rmdir()
    ended = await python("import sys; sys.stderr.write('trouble')").talk()
    assert (ended.code, ended.errors) == (0, b"trouble")


async def test_at_the_limit_of_open_files_none_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    await python("pass").talk()  # what is opened once is open
    made = os.pipe

    def pipe() -> tuple[int, int]:
        monkeypatch.setattr(os, "pipe", full)
        return made()

    def full() -> tuple[int, int]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    before = psutil.Process().num_fds()
    monkeypatch.setattr(os, "pipe", pipe)  # the second is one too many
    with pytest.raises(OSError, match="open files"):
        await python("pass").talk()
    assert psutil.Process().num_fds() == before


async def test_nothing_is_forked_by_an_interpreter_that_holds_its_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    def forked(*_: object, **__: object) -> None:
        raise AssertionError("the loop stands until the child has become its program")

    monkeypatch.setattr(subprocess.Popen, "__init__", forked)
    monkeypatch.setattr(os, "posix_spawn", forked)
    monkeypatch.setattr(os, "fork", forked)
    assert (await python("pass").talk()).code == 0
