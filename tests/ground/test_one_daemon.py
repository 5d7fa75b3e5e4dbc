"""From whatever shell, and by whatever spelling of the home: one daemon for one state."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ground.installed import Installed
from tests.ground.person import Person, living_somewhere
from tests.support.daemon import eventually


@pytest.fixture
def person(installed: Installed) -> Iterator[Person]:
    with living_somewhere(installed) as person:
        yield person


@pytest.mark.night
def test_every_shell_finds_the_one_that_runs(person: Person, tmp_path: Path) -> None:
    started = person.ctl("start", "dummy", "--name", "d")
    assert started.code == 0, started
    pid = person.pid
    (tmp_path / "link").symlink_to(person.home)
    shells = {
        "cron": person.cron,
        "another runtime directory": {**person.login, "XDG_RUNTIME_DIR": str(tmp_path)},
        "one that is gone": {**person.login, "XDG_RUNTIME_DIR": str(tmp_path / "gone")},
        "a home by a link": {**person.cron, "HOME": str(tmp_path / "link")},
    }
    person.ready("d")
    for name, env in shells.items():
        sent = person.ctl("send", "d", "--wait", "--", f"echo {name}", env=env)
        assert (sent.code, sent.out) == (0, f"{name}\n"), (name, sent)
        assert "no daemon was running" not in sent.err, name
    told = person.ctl("doctor", env=shells["a home by a link"])
    assert "kill" not in told.out, told
    assert "it is found by its lock" in told.out
    second = person.ctl("shutdown", env=person.cron)
    assert second.code == 0, second
    assert (person.state / "daemon.lock").read_text() == "", "the agents have ended with it"
    assert pid != 0


@pytest.mark.night
def test_a_logout_takes_the_runtime_directory(person: Person) -> None:
    """It comes again with the next login only; meanwhile the daemon is below the state directory."""
    assert person.ctl("start", "dummy", "--name", "d").code == 0
    pid = person.pid
    shutil.rmtree(person.runtime)
    person.runtime.touch()  # nothing can be made there
    for env in (person.login, person.cron):
        eventually(lambda env=env: person.ctl("list", env=env).code == 0, "it is found")
    eventually(lambda: "cannot be made again" in person.ctl("status").out, "it says so")
    person.runtime.unlink()
    person.runtime.mkdir(mode=0o700)
    own = person.runtime / "synapsed" / "control.sock"
    eventually(lambda: own.exists() and "cannot be made again" not in person.ctl("status").out, "it is in its place")
    record = person.record
    assert record is not None
    assert (record.pid, record.socket) == (pid, str(own))
    assert person.ctl("shutdown").code == 0
