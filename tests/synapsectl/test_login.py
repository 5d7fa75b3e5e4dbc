"""What the login shell is asked, with shells that are scripts of the test's own and the real ones of the machine."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from synapsectl.service import login
from synapsectl.service.login import ask_login_shell


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for place in ("login", "caller", "hidden"):
        (tmp_path / place).mkdir()
    return tmp_path


def program(path: Path) -> str:
    path.write_text("#!/bin/sh\necho 1.2.3\n")
    path.chmod(0o755)
    return str(path)


def environ(home: Path, shell: str) -> dict[str, str]:
    return {"HOME": str(home), "SHELL": shell, "PATH": f"{home / 'caller'}:/usr/bin:/bin", "SECRET": "hush"}


@pytest.fixture(params=["bash", "zsh", "fish", "dash"])
def shell(request: pytest.FixtureRequest) -> str:
    found = shutil.which(request.param)
    if found is None:
        pytest.skip(f"no {request.param} here")
    return found


PROFILES = {"bash": ".bash_profile", "zsh": ".zprofile", "dash": ".profile", "fish": ".config/fish/config.fish"}


def test_real_shells_find_what_their_start_up_files_put_on_path(home: Path, shell: str) -> None:
    profile = home / PROFILES[Path(shell).name]
    profile.parent.mkdir(parents=True, exist_ok=True)
    profile.write_text(f'echo noise\nexport PATH="{home}/login:$PATH"\necho "more noise" >&2\n')
    here = program(home / "login" / "one")
    only = program(home / "caller" / "two")
    told = ask_login_shell(["one", "two", "three"], environ(home, shell))
    assert told.problem == ""
    assert [p.path for p in told.programs] == [here, only, None]
    assert "this shell's PATH only" in told.programs[1].remark
    places = told.path.split(os.pathsep)
    assert places[0] == str(home / "login")
    assert places[-1] == str(home / "caller")
    assert "SECRET" not in told.environ


@pytest.mark.parametrize("name", ["bash"])
def test_an_alias_is_followed(home: Path, name: str) -> None:
    target = program(home / "hidden" / "agent")
    other = program(home / "hidden" / "agent-real")
    (home / ".bash_profile").write_text(f"alias agent='{target} --flag'\nalias other='{other}'\n")
    told = ask_login_shell(["agent", "other"], environ(home, shutil.which(name) or ""))
    assert told.programs[0].path == target
    assert "alias" in told.programs[0].remark
    assert str(home / "hidden") in told.path.split(os.pathsep)
    assert told.programs[1].path is None
    assert f'command = "{other}"' in told.programs[1].remark


def test_paths_are_taken_as_they_are(home: Path) -> None:
    there = program(home / "hidden" / "x y")
    told = ask_login_shell([there, str(home / "nothing"), sys.executable], environ(home, "/bin/sh"))
    assert [p.path for p in told.programs] == [there, None, sys.executable]


@pytest.mark.parametrize("script", ["exit 3", "exec cat /dev/zero | head -c 100000", "echo hello"])
def test_a_shell_that_says_something_else(home: Path, script: str) -> None:
    shell = home / "shell"
    shell.write_text(f"#!/bin/sh\n{script}\n")
    shell.chmod(0o755)
    told = ask_login_shell(["sh"], environ(home, str(shell)))
    assert "did not answer" in told.problem
    assert told.path.startswith(str(home / "caller"))
    assert told.programs[0].path is not None


def test_a_shell_that_hangs_is_ended_with_what_it_started(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "SHELL_TIMEOUT_S", 0.5)
    (home / ".profile").write_text("sleep 1000\n")
    told = ask_login_shell([], environ(home, "/bin/sh"))
    assert "timed out" in told.problem


def test_no_such_shell(home: Path) -> None:
    assert "did not answer" in ask_login_shell([], environ(home, "/no/such/shell")).problem
