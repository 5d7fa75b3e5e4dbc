"""From wherever it is called: one daemon for one state, an exact answer, nothing in a wrong place."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.ground.installed import Installed
from tests.ground.person import Person, is_alive, living_somewhere
from tests.ground.situations import ROOT_ONLY, SITUATIONS, Called, Situation
from tests.support.daemon import Ctl, eventually
from tests.support.shadows import Shadows

ANSWER = "äöü € 🙂 'quoted' \"twice\" \\ $HOME"
AS_ROOT = sys.platform == "linux" and os.getuid() == 0


STARTED_IN_THE_GATE = (
    "a job of cron",
    "a state directory without its whole path",
    "one more file that leads to who reads the output",
)


def cases(gate: Sequence[str], situations: Sequence[Situation]) -> list[object]:
    night = [pytest.mark.night]
    return [pytest.param(one, id=one.name, marks=[] if one.name in gate else night) for one in situations]


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
        person.with_dummy("d")
        yield person


@pytest.mark.parametrize("situation", cases([one.name for one in SITUATIONS if one.gate], SITUATIONS))
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


@pytest.mark.parametrize("situation", cases(STARTED_IN_THE_GATE, [one for one in SITUATIONS if one.starts]))
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
    assert set(STARTED_IN_THE_GATE) <= set(names)
    assert len([one for one in SITUATIONS if one.ours]) >= 10


@pytest.mark.night
def test_a_folder_of_shadows(installed: Installed, tmp_path: Path) -> None:
    """Modules with the names of the standard library's, of ours and of others': none is imported."""
    shadows = Shadows(tmp_path / "folder")
    with living_somewhere(installed) as person:
        for verb in (
            ("start", "dummy", "--name", "d"),
            ("send", "d", "--wait", "--", "echo hi"),
            ("start", "generic", "--name", "sh", "--", "bash", "--norc"),
            ("screen", "d"),
            ("version", "--json"),
            ("profiles", "show", "dummy"),
            ("restart", "d"),
            ("doctor",),
            ("shutdown",),
        ):
            done = person.ctl(*verb, cwd=shadows.folder)
            assert_plain(done, done.code if verb == ("doctor",) else 0)
            assert shadows.imported() == [], verb
        for words in (("version",), ("check-config",)):
            assert_plain(person.run(str(installed.daemon), *words, cwd=shadows.folder))
        with subprocess.Popen([installed.daemon, "run"], env=person.cron, cwd=shadows.folder) as daemon:
            try:
                eventually(lambda: person.ctl("list", env=person.cron).code == 0, "it answers")
                assert_plain(person.ctl("start", "dummy", "--name", "e", cwd=shadows.folder))
                sent = person.ctl("send", "e", "--wait", "--", "echo hi", cwd=shadows.folder)
                assert sent.out == "hi\n"
                assert_plain(person.ctl("shutdown"))
            finally:
                daemon.terminate()
        assert shadows.imported() == []


@pytest.mark.night
def test_many_shells_at_once_start_one(installed: Installed, tmp_path: Path) -> None:
    """Each of another kind, all of them before there is a daemon."""
    with living_somewhere(installed) as person:
        names = (
            "a login",
            "a job of cron",
            "a home by a link",
            "WSL, whose runtime directory is everybody's",
            "docker exec",
            "a runtime directory that is gone",
            "the language C",
            "SYNAPSED_HOME that is named by nothing",
        )
        there = [Called(one, person, tmp_path / f"f{n}") for n, one in enumerate(SITUATIONS) if one.name in names]
        with ThreadPoolExecutor(len(there)) as pool:
            started = [*pool.map(lambda one: one[1].ctl("start", "dummy", "--name", f"d{one[0]}"), enumerate(there))]
        for done in started:
            assert_plain(done)
        assert sum("started one" in done.err for done in started) == 1, started
        listed = {row["name"]: row["pid"] for row in person.ctl("list", "--json").json}
        assert sorted(listed) == [f"d{n}" for n in range(len(names))]
        sent = person.ctl("send", "--all", "--wait", "--", "echo hi", env=person.cron)
        assert (sent.code, sent.out.count("hi")) == (0, len(names)), sent
