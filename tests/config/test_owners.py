"""Root in a person's home: refused before anything is made; what is found is named."""

import os
from pathlib import Path

import pytest

from synapsed.config.sockets import NoHome, control_socket, lock_file, runtime_directory, settle_home
from synapsed.process.file_owners import NAMED_MAX, mend, told_foreign, user_name, why_not_as_root

STRANGER = 54_321


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's, seen by root."""
    home = tmp_path / "home"
    home.mkdir()
    if os.geteuid() == 0:
        os.chown(home, STRANGER, STRANGER)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
    return home


def test_root_makes_nothing_there(home: Path) -> None:
    reason = why_not_as_root([home / ".local" / "state" / "synapsed"], {"HOME": str(home)})
    assert reason is not None
    assert f"{home} belongs to" in reason
    assert "sudo -H" in reason
    assert list(home.iterdir()) == []


def test_a_home_of_its_own_is_roots(home: Path) -> None:
    named = {"SYNAPSED_HOME": str(home)}
    assert why_not_as_root([home / "state"], named) is None, "a container's, for instance"
    assert why_not_as_root([home / "state"], {**named, "SUDO_UID": "1000"}) is not None
    assert why_not_as_root([Path("/root/.local/state")], {"HOME": "/root"}) is None


def test_whoever_is_not_root_is_not_asked(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert why_not_as_root([home / "state"], {}) is None


def test_what_is_anothers_is_named_with_what_gives_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state" / "logs").mkdir(parents=True)
    (tmp_path / "state" / "token").touch()
    assert told_foreign([tmp_path / "state", tmp_path / "none"]) is None
    owner = user_name(os.geteuid())
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    told = told_foreign([tmp_path / "state"])
    assert told is not None
    assert f"{tmp_path}/state/token ({owner}'s)" in told[0]
    assert told[1] == f"sudo chown -R {STRANGER}:{os.getegid()} {tmp_path}/state"


def test_one_command_mends_all_that_is_below_a_folder() -> None:
    paths = [Path("/a/b"), Path("/a/b/c"), Path("/a/bc"), Path("/d")]
    assert mend(paths).split()[4:] == ["/a/b", "/a/bc", "/d"]


def test_the_command_gives_back_all_of_many(tmp_path: Path) -> None:
    """By the daemon's folders, and never by one above them."""
    folders = [tmp_path / "state", tmp_path / "run"]
    many = [tmp_path / "state" / f"log{n}" for n in range(2 * NAMED_MAX)]
    elsewhere = tmp_path / "elsewhere"
    told = mend([*many, folders[1] / "s", elsewhere], folders)
    assert told.split()[4:] == [str(path) for path in (elsewhere, folders[1], folders[0])]
    assert mend(many).split()[4:] == sorted(map(str, many)), "without folders it names each"


def test_who_has_no_home_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a uid that the system does not know
    with pytest.raises(NoHome, match=f"does not know uid {os.getuid()}: set HOME, or SYNAPSED_HOME"):
        settle_home({})
    named = {"SYNAPSED_HOME": "/srv/synapsed"}
    settle_home(named)
    assert named["HOME"] == "/"
    settle_home({"HOME": "/home/me"})


def test_a_folder_that_is_gone_is_asked_for_where_it_matters_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert control_socket({"SYNAPSED_HOME": "/srv/s"}) == "/srv/s/run/control.sock"
    assert lock_file({"SYNAPSED_HOME": "/srv/s"}) == "/srv/s/state/daemon.lock"
    settle_home({"SYNAPSED_HOME": "/srv/s", "HOME": "/home/me"})
    with pytest.raises(NoHome, match="the current folder is gone"):
        settle_home({"SYNAPSED_HOME": "s", "HOME": "/home/me"})


def test_paths_are_whole_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon is in another folder than who starts it."""
    monkeypatch.chdir(tmp_path)
    environ = {"HOME": "me", "SYNAPSED_HOME": "s", "SYNAPSED_A2A_HOME": "a", "XDG_STATE_HOME": "/x"}
    settle_home(environ)
    assert environ == {
        "HOME": f"{tmp_path}/me", "SYNAPSED_HOME": f"{tmp_path}/s", "SYNAPSED_A2A_HOME": f"{tmp_path}/a",
        "XDG_STATE_HOME": "/x",
    }  # fmt: skip
    environ = {"HOME": "/home/me", "XDG_STATE_HOME": "x", "XDG_CONFIG_HOME": "./c", "XDG_RUNTIME_DIR": "../r"}
    settle_home(environ)
    assert environ == {"HOME": "/home/me"}, "they mean nothing, and nobody is to take them for something"


@pytest.mark.parametrize("name", ["HOME", "SYNAPSED_HOME", "SYNAPSED_A2A_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"])
def test_a_name_that_cannot_be_told(name: str) -> None:
    with pytest.raises(NoHome, match="is not UTF-8: name others with SYNAPSED_HOME"):
        settle_home({"HOME": "/home/me", name: os.fsdecode(b"/caf\xe9")})


def test_a_runtime_directory_is_this_users_alone(tmp_path: Path) -> None:
    """`su` leaves another user's in place, and WSL has one for everybody."""
    environ = {"HOME": "/home/me", "TMPDIR": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "rt")}
    own, other = str(tmp_path / "rt/synapsed"), "/home/me/.local/state/synapsed/run"
    assert runtime_directory(environ) == own, "it comes with the next login"
    (tmp_path / "rt").mkdir(mode=0o700)
    assert runtime_directory(environ) == own
    (tmp_path / "rt").chmod(0o1777)
    assert runtime_directory(environ) == other
    (tmp_path / "rt").rmdir()
    (tmp_path / "rt").touch()
    assert runtime_directory(environ) == other
