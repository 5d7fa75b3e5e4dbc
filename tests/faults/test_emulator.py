"""Faults 17 to 19: output that ends the emulator, in a process of its own, and a fuzz of the emulator."""

import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from synapsed.keeper.spool import SpoolReader
from tests.faults.emulator_fuzz import fuzz, limit_cpu
from tests.faults.house import PATIENT_S, House
from tests.support.begun import begins_with
from tests.support.daemon import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

MakeHouse = Callable[..., House]

POISONED = """
import os, synapsed.terminal.emulator as emulators
feed = emulators.Emulator.feed
emulators.Emulator.feed = lambda self, data: os.abort() if b"POI" b"SON" in data else feed(self, data)
"""
"""Output with a certain word ends the process in which it is fed to an emulator."""


def poisoned(folder: Path) -> Path:
    """A folder with a start-up file of Python's: its daemon has processes of screens that are POISONED."""
    (folder / "poison.py").write_text(POISONED)
    (site := folder / "site").mkdir()
    begins = begins_with(folder / "poison.py")
    lines = ("from synapsed import own_python", f"own_python.FILE = {begins!r}")
    (site / "sitecustomize.py").write_text("\n".join(lines))
    return site


def shell(here: House, name: str) -> None:
    here.daemon.start_agent(profile="generic", name=name, args=["bash", "--norc"], env={"PS1": "$ "})


def test_17_characters_without_a_width(house: MakeHouse, tmp_path: Path) -> None:
    here = house("17", "cat of 2,000 characters without a width")
    daemon = here.daemon.start()
    shell(here, "sh")
    (spared,) = here.start_agents(1)
    here.send("say before", spared)
    pid = daemon.pid
    for number, text in enumerate(["\u200b", "\ufeff", "\u0301", "\u200d", "\u1161"]):
        path = tmp_path / f"{number}.txt"
        path.write_text(f"a{text * 2000}\n")
        done = daemon.ended(daemon.send(f"cat {path}; echo done-{number}", "sh"))
        assert f"done-{number}" in str(done), done
        here.fault()
    assert daemon.pid == pid
    assert daemon.process is not None
    assert daemon.process.poll() is None
    here.audit_tasks()


def test_18_output_that_ends_the_emulator(house: MakeHouse, tmp_path: Path) -> None:
    """What no bound foresees: a process without rights ends, the daemon does not, and the next one knows it too."""
    here = house("18", "output that ends the process that feeds it")
    here.daemon.environ = {**os.environ, "PYTHONPATH": str(poisoned(tmp_path))}
    daemon = here.daemon.start()
    shell(here, "sh")
    (spared,) = here.start_agents(1)
    here.send("say before", spared)
    pids = here.pids()
    process = daemon.process
    assert process is not None
    (tmp_path / "poison.txt").write_text("POISON\n")
    daemon.send(f"cat {tmp_path}/poison.txt", "sh")
    eventually(lambda: daemon.agent("sh").get("alerts"), "it is told", patience=PATIENT_S)
    here.fault()
    assert process.poll() is None, "the daemon lives"
    for number in range(3):  # this daemon, the next, and one after it
        status = eventually(lambda: daemon.agent("sh").get("alerts") and daemon.agent("sh"), "it is told")
        assert "its output ended the terminal emulator" in status["alerts"][0]
        eventually(lambda: "[synapsed: its output ended" in daemon.ctl("screen", "sh").out, "its screen says so")
        assert here.pids() == pids
        daemon.ready(spared)
        here.send(f"say after {number}", spared)
        here.audit_tasks()
        daemon.kill9()
        daemon.start()
    # Behind the poison the screen is there, and messages arrive.
    daemon.ready("sh")
    done = daemon.ended(daemon.send("echo it goes on", "sh"))
    assert "it goes on" in str(done), done
    here.row.figures["alerts"] = str(daemon.agent("sh")["alerts"])


DRAWS_AGAIN = """
import os, signal, sys, time
begun, go = sys.argv[1:]
signal.signal(signal.SIGWINCH, lambda *_: os.write(1, b"\\r\\x1b[K$ "))
os.write(1, b"$ ")
while line := sys.stdin.readline():
    if "poison" in line:
        open(begun, "w").close()
        while not os.path.exists(go):
            time.sleep(0.05)
        os.write(1, b"$ \\x1b]0;POISON\\x07")
    else:
        os.write(1, b"it goes on\\r\\n$ ")
"""
"""A program whose output ends with the poison: its prompt is before that. It draws it again in another window."""


@pytest.mark.parametrize("program", ["bash", "dash", "draws again"])
def test_18_the_prompt_is_read_in_one_piece_with_output_that_ends_the_emulator(
    house: MakeHouse, tmp_path: Path, program: str
) -> None:
    """The turn waits for the prompt: it is behind the harm, or the program is asked to draw it again."""
    if program == "dash" and shutil.which("dash") is None:
        pytest.skip("there is no dash")
    here = house("18", f"output that ends the emulator, with the prompt: {program}")
    here.daemon.environ = {**os.environ, "PYTHONPATH": str(poisoned(tmp_path))}
    daemon = here.daemon.start()
    begun, go, poison, script = (tmp_path / name for name in ("begun", "go", "poison.txt", "script.py"))
    poison.write_text("POISON\n")
    script.write_text(DRAWS_AGAIN)
    args = {
        "bash": ["bash", "--norc"],
        "dash": ["dash"],
        "draws again": [sys.executable, "-I", str(script), str(begun), str(go)],
    }
    daemon.start_agent(profile="generic", name="sh", args=args[program], env={"PS1": "$ "})
    task = daemon.send(f"touch {begun}; until [ -e {go} ]; do sleep 0.05; done; cat {poison}", "sh")
    eventually(begun.exists, "the program has the message", patience=PATIENT_S)
    process = daemon.process
    assert process is not None
    spool = SpoolReader(str(daemon.home / "state" / "agents" / daemon.agent("sh")["id"] / "spool"))

    def printed() -> bool:
        spool.refresh()
        _, data = spool.read(spool.start, 1 << 20)
        _, found, behind = data.partition(b"POISON")
        return bool(found) and behind.endswith(b"\x07" if program == "draws again" else b"$ ")

    os.kill(daemon.pid, signal.SIGSTOP)
    go.touch()
    eventually(printed, "poison and prompt are in the spool", patience=PATIENT_S)
    os.kill(daemon.pid, signal.SIGCONT)
    done = daemon.ended(task)
    here.fault()
    assert done["status"] == "completed", done
    assert "its output ended the terminal emulator" in daemon.agent("sh")["alerts"][0]
    done = daemon.ended(daemon.send("echo it goes on", "sh"))
    assert "it goes on" in str(done["artifacts"]), done
    assert process.poll() is None, "the daemon lives"


def test_a_case_is_ended_by_what_it_works_not_by_what_it_waits() -> None:
    """A fuzz on a machine with much to do has to wait for it: that is no case that never ends."""
    limit_s = 0.1
    waits_on, ends = os.pipe()
    children = {}
    for name in ("works", "waits"):
        if (child := os.fork()) == 0:
            limit_cpu(limit_s)
            if name == "waits":
                os.close(ends)
                os.read(waits_on, 1)
                os._exit(0)
            while True:
                pass
        children[name] = child
    assert os.waitstatus_to_exitcode(os.waitpid(children["works"], 0)[1]) == -signal.SIGPROF
    os.close(ends)  # the other one has waited as long as this one worked
    assert os.waitstatus_to_exitcode(os.waitpid(children["waits"], 0)[1]) == 0


def test_19_fuzz_of_the_emulator(house: MakeHouse) -> None:
    """`FUZZ_MEGABYTES` and `FAULT_SEED` change its size and its cases; what it finds is in tests/faults/found."""
    here = house("19", "hostile output for the emulator, in a process of its own")
    size = int(float(os.environ.get("FUZZ_MEGABYTES", "10")) * 1e6)
    seed = int(os.environ.get("FAULT_SEED") or random.randrange(10**6))
    found = fuzz(seed, size)
    here.row.figures["fuzz"] = f"{found.fed / 1e6:.1f} MB, seed {found.seed}, {found.seconds:.0f} s"
    assert found.kept == [], f"seed {found.seed}"
