"""`doctor` on what draws screens: what a process can give up here, and what makes the rest hold."""

import os
import subprocess
from pathlib import Path

import pytest

from synapsectl.checkup import screens
from synapsectl.checkup.finding import NOTE, OK, WRONG
from synapsectl.checkup.screens import judged, look_at_screens
from tests.synapsectl.conftest import Ctl

ALL = ["landlock", "limits", "no new privileges", "seccomp", "undumpable"]


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


def test_doctor_says_it(ctl: Ctl, home: Path) -> None:
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text('[api]\ntls_listen = "0.0.0.0:8443"\n')
    said = ctl("doctor").out
    assert "screens: drawn by processes" in said
    assert f"certificate: {home}/state/tls: none yet" in said
