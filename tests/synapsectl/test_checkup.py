"""`doctor` on what draws screens: what a process can give up here, and what makes the rest hold."""

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from synapsectl.checkup import screens
from synapsectl.checkup.finding import NOTE, OK, WRONG
from synapsectl.checkup.screens import judged, look_at_screens
from synapsectl.checkup.surroundings import untried_system
from synapsed.config.paths import Paths
from synapsed.process.lock_record import LockRecord, RunningPlace, here
from tests.support.daemon import eventually
from tests.synapsectl.conftest import Ctl

ALL = ["landlock", "limits", "no new privileges", "seccomp", "undumpable"]


@pytest.mark.parametrize(
    ("system", "release", "name"),
    [("darwin", "23.4.0", "macOS"), ("linux", "5.15.153.1-microsoft-standard-WSL2", "WSL"), ("linux", "6.8.0", None)],
)
def test_a_system_on_which_it_never_ran_is_told_as_that(system: str, release: str, name: str | None) -> None:
    found = untried_system(system, release)
    assert (found and found.status) == (name and NOTE)
    assert found is None or found.detail.startswith(f"{name}: ")


def test_it_is_tried_in_a_process_of_its_own() -> None:
    found = look_at_screens(os.environ)
    assert found.what == "screens"
    assert "limits" in found.detail
    assert found.status == OK or found.mend
    with open("/dev/null"):  # whoever asks has given up nothing
        pass


def test_all_is_given_up() -> None:
    found = judged(ALL, linux=True)
    assert (found.status, found.mend) == (OK, "")
    assert "without rights (landlock, limits, no new privileges, seccomp, undumpable)" in found.detail


@pytest.mark.parametrize(
    ("missing", "lacks", "mend"),
    [
        ({"landlock"}, "no landlock, which keeps them from every file", "5.13"),
        ({"seccomp"}, "no seccomp, which", "CONFIG_SECCOMP_FILTER"),
        ({"landlock", "seccomp"}, "from every file and no seccomp", "container"),
    ],
)
def test_what_this_kernel_does_not_have_comes_with_the_next_step(missing: set[str], lacks: str, mend: str) -> None:
    found = judged([name for name in ALL if name not in missing], linux=True)
    assert (found.status, lacks in found.detail, mend in found.mend) == (NOTE, True, True), found


def test_elsewhere_there_are_limits_only() -> None:
    found = judged(["limits"], linux=False)
    assert (found.status, "neither landlock nor seccomp" in found.detail) == (NOTE, True)


def test_a_process_that_does_not_come_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: object, **options: object) -> None:
        raise subprocess.CalledProcessError(-31, "python")

    monkeypatch.setattr(screens.subprocess, "run", run)
    found = look_at_screens({})
    assert (found.status, "SIGSYS" in found.detail) == (WRONG, True)


@pytest.mark.night
def test_doctor_says_it(ctl: Ctl, home: Path) -> None:
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text('[api]\ntls_listen = "0.0.0.0:8443"\n')
    said = ctl("doctor").out
    assert "screens: drawn by processes" in said
    assert f"certificate: {home}/state/tls: none yet" in said


@pytest.fixture
def held(home: Path) -> Iterator[Path]:
    """The lock of a daemon that does not answer: of a process of our own."""
    lock = Paths.from_environ().lock
    lock.parent.mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"]) as process, lock.open("w") as file:
        file.write(LockRecord(process.pid, here(), str(Paths.from_environ().control_socket), 1.0).text())
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        yield lock
        process.kill()


def of_the_daemon(ctl: Ctl) -> dict[str, str]:
    found: dict[str, str] = next(
        one for one in json.loads(ctl("doctor", "--json").out)["checks"] if one["check"] == "daemon"
    )
    return found


def test_a_daemon_without_a_socket_is_not_to_be_killed(ctl: Ctl, held: Path) -> None:
    """It comes up, or makes its socket again within a second."""
    found = of_the_daemon(ctl)
    assert found["status"] == "wrong"
    assert "look again in a moment" in found["mend"]
    assert "kill" not in found["mend"]


@pytest.mark.night
def test_one_that_was_stopped_goes_on(ctl: Ctl, held: Path) -> None:
    pid = int(held.read_text().partition("\n")[0])
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: of_the_daemon(ctl)["mend"] == f"kill -CONT {pid}", "it is seen to be stopped")


@pytest.mark.night
def test_one_on_another_host_is_left_there(ctl: Ctl, held: Path) -> None:
    record = LockRecord.parse(held.read_text())
    assert record is not None
    held.write_text(record._replace(place=RunningPlace("desk", "another", "pid:[1]")).text())
    found = of_the_daemon(ctl)
    assert "that of the daemon on host desk" in found["detail"]
    assert "kill" not in found["mend"]
