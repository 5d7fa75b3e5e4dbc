"""Every verb where somebody has removed the current folder: a word about it, or what it does elsewhere."""

from pathlib import Path

import pytest

from synapsectl.verbs import all_verbs
from tests.synapsectl.conftest import Ctl

ARGUMENTS = {
    "acp": ["claude", "--no-spawn-daemon"],
    "adopt": ["--no-spawn-daemon"],
    "completion": ["bash"],
    "external": ["list"],
    "fleet": ["status"],
    "history": ["search", "x"],
    "host": ["list"],
    "profiles": ["list"],
    "run": ["dummy", "--no-spawn-daemon"],
    "schedule": ["list"],
    "send": ["x", "hello", "--no-spawn-daemon"],
    "start": ["dummy", "--no-spawn-daemon"],
    "token": ["list"],
    "worktree": ["list"],
}
ELSEWHERE = {"doctor", "install", "mcp", "uninstall", "up", "version", "web"}
"""They start processes, or a daemon."""


@pytest.mark.parametrize("verb", sorted(all_verbs().keys() - ELSEWHERE))
def test_a_folder_that_is_gone(verb: str, ctl: Ctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    told = ctl(verb, *ARGUMENTS.get(verb, []))
    assert "Traceback" not in told.err
    assert told.code in (0, 2, 3, 6), told


def test_root_starts_no_daemon_in_a_persons_home(ctl: Ctl, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "synapsed.process.file_owners.why_not_as_root", lambda _places, _environ: "this home is alice's"
    )
    for verb in (("start", "dummy"), ("send", "x", "hello"), ("up",), ("install",)):
        told = ctl(*verb)
        assert (told.code, told.err) == (6, "synapsectl: this home is alice's\n"), verb
    assert list(home.iterdir()) == [], "nothing was made"
