"""From whatever shell, and by whatever spelling of the home: one daemon for one state."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ground.person import Person, living_at


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    with living_at(tmp_path / "home") as person:
        yield person


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
