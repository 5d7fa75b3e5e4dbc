"""From wherever it is called: one daemon for one state, an exact answer, nothing in a wrong place."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ground.installed import Installed
from tests.ground.person import Person, is_alive, living_somewhere
from tests.ground.situations import ROOT_ONLY, SITUATIONS, Called, Situation
from tests.support.daemon import Ctl, eventually

ANSWER = "äöü € 🙂 'quoted' \"twice\" \\ $HOME"
AS_ROOT = sys.platform == "linux" and os.getuid() == 0


def cases(situations: list[Situation]) -> list[object]:
    return [pytest.param(one, id=one.name, marks=[] if one.gate else [pytest.mark.night]) for one in situations]


def skip_without(needed: str) -> None:
    if needed and (shutil.which(needed) is None or (needed == ROOT_ONLY and not AS_ROOT)):
        pytest.skip(f"needs {needed}{', as root' if needed == ROOT_ONLY else ''}")


def assert_plain(done: Ctl, code: int = 0) -> None:
    assert "Traceback" not in done.err, done.err
    assert done.code == code, done


@pytest.fixture(scope="module")
def person(installed: Installed) -> Iterator[Person]:
    """One whose daemon runs, with an agent."""
    with living_somewhere(installed) as person:
        assert person.ctl("start", "dummy", "--name", "d").code == 0
        person.ready("d")
        yield person


@pytest.mark.parametrize("situation", cases([*SITUATIONS]))
def test_the_daemon_that_runs_is_found(situation: Situation, person: Person, tmp_path: Path) -> None:
    skip_without(situation.needs)
    there = Called(situation, person, tmp_path / "f")
    pid = person.pid
    sent = there.ctl("send", "d", "--wait", "--", f"echo {ANSWER}")
    assert_plain(sent)
    assert sent.out == f"{ANSWER}\n"
    assert "no daemon was running" not in sent.err
    assert (person.pid, is_alive(pid)) == (pid, True)
    assert person.misplaced() == []


@pytest.mark.parametrize("situation", cases([one for one in SITUATIONS if one.starts]))
def test_one_is_started_there(situation: Situation, installed: Installed, tmp_path: Path) -> None:
    skip_without(situation.needs)
    with living_somewhere(installed) as person:
        there = Called(situation, person, tmp_path / "f")
        started = there.ctl("start", "dummy", "--name", "d")
        if situation.says:
            assert_plain(started, 2)
            assert situation.says in started.err
            return
        assert_plain(started)
        pid = person.pid
        agent = person.ready("d")["pid"]
        sent = person.ctl("send", "d", "--wait", "--", f"echo {ANSWER}")
        assert_plain(sent)
        assert sent.out == f"{ANSWER}\n"
        assert "no daemon was running" not in sent.err
        listed = there.ctl("list", "--json")
        assert_plain(listed)
        assert [(row["name"], row["pid"]) for row in listed.json] == [("d", agent)]
        assert (person.pid, is_alive(pid)) == (pid, True)
        assert person.misplaced() == []
        assert_plain(there.ctl("shutdown"))
        eventually(lambda: not is_alive(pid), "it has ended")
        assert person.misplaced() == []


def test_what_is_tried_is_what_a_person_installs(installed: Installed, person: Person) -> None:
    """Nothing of the checkout is imported, neither by the scripts nor by the daemon and its helpers."""
    told = person.run(
        str(installed.python), "-c", "import synapsed, synapsectl; print(synapsed.__file__, synapsectl.__file__)"
    )
    assert [Path(one).is_relative_to(installed.folder) for one in told.out.split()] == [True, True], told
    for file in (installed.tool, installed.daemon):
        assert str(installed.python) in file.read_text().partition("\n")[0]
    running = [
        Path(f"/proc/{child}/cmdline").read_text()
        for child in [person.pid, *Path(f"/proc/{person.pid}/task/{person.pid}/children").read_text().split()]
    ]
    assert running
    assert all(str(installed.folder) in one for one in running), running
    mapped = Path(f"/proc/{person.pid}/environ").read_text()
    assert str(Path(__file__).parents[2]) not in mapped


def test_there_are_enough_of_them() -> None:
    names = [one.name for one in SITUATIONS]
    assert len(names) == len(set(names))
    assert len(names) >= 40
    assert len([one for one in SITUATIONS if one.ours]) >= 10
