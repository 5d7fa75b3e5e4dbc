"""A folder of profiles is looked at before they stand in for built-in ones."""

from pathlib import Path
from typing import Any

import pytest

from synapsed import __version__
from synapsed.errors import ConfigError
from synapsed.parts.profile_tools.proving import Proved, prove_folder
from synapsed.profiles.library import CHECKOUT, NEWER, StandIn

DUMMY = (CHECKOUT / "dummy.toml").read_text()
ACP = (CHECKOUT / "acp.toml").read_text()


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "profiles").mkdir()
        (root / "before").mkdir()
        self.now: dict[str, StandIn] = {}

    def has(self, name: str, text: str) -> "Folder":
        (self.root / "profiles" / f"{name}.toml").write_text(text)
        return self

    def had(self, name: str, text: str) -> "Folder":
        file = self.root / "before" / f"{name}.toml"
        file.write_text(text)
        self.now[name] = StandIn(file, __version__)
        return self

    def proved(self, since: str = __version__, *, recorded: bool = True) -> Proved:
        return prove_folder(self.root, since, user=self.root / "user", now=lambda: self.now, recorded=recorded)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def keys(profile: dict[str, Any]) -> list[str]:
    return [change["key"] for change in profile["changes"]]


def test_what_a_profile_changes_and_holds_for(folder: Folder) -> None:
    found = folder.has("dummy", DUMMY.replace("quiet_ms = 20", "quiet_ms = 30")).proved()
    assert set(found.profiles) == {"dummy"}
    told = found.profiles["dummy"]
    assert (told["verified"], told["new"], told["inside"], told["own"], told["left_out"]) == (
        "1",
        False,
        True,
        False,
        None,
    )
    assert keys(told) == ["ready.quiet_ms"]


def test_what_changes_with_what_it_extends_is_told_too(folder: Folder) -> None:
    found = folder.has("acp", f'{ACP}\n[env]\nX = "1"\n').proved()
    assert {"acp", "qwen", "vibe"} <= set(found.profiles)
    assert found.profiles["acp"]["inside"]
    assert not found.profiles["qwen"]["inside"]
    assert keys(found.profiles["qwen"]) == ["env.X"]


def test_what_is_no_more_in_it_is_told(folder: Folder) -> None:
    folder.had("dummy", DUMMY.replace("quiet_ms = 20", "quiet_ms = 30")).had("more", 'command = "sh"')
    found = folder.has("another", 'command = "sh"').proved()
    assert found.gone == ["more"]
    assert keys(found.profiles["dummy"]) == ["ready.quiet_ms"]
    assert found.profiles["another"]["new"]


def test_one_that_is_older_than_the_built_in_does_not_count(folder: Folder) -> None:
    found = folder.has("dummy", DUMMY.replace('verified = "1"', 'verified = "0.9"')).proved()
    assert found.profiles["dummy"]["left_out"] == NEWER
    assert found.profiles["dummy"]["changes"] == []


@pytest.mark.parametrize(
    "text", ["cols = 1", "command =", 'extends = "nobody"', 'verified = "1"\n[busy]\nscreen = ["("]']
)
def test_one_that_cannot_be_read_is_an_error(text: str, folder: Folder) -> None:
    with pytest.raises(ConfigError, match=r"dummy\.toml"):
        folder.has("dummy", text).proved()


def test_a_persons_own_that_cannot_be_read_with_it_is_an_error(folder: Folder) -> None:
    (folder.root / "user").mkdir()
    (folder.root / "user" / "fork.toml").write_text('extends = "more"\ncols = 1')
    with pytest.raises(ConfigError, match=r"fork\.toml"):
        folder.has("more", 'command = "sh"').proved()


def test_recordings_are_of_profiles_of_the_folder(folder: Folder) -> None:
    (folder.root / "recordings" / "nobody-1.0").mkdir(parents=True)
    with pytest.raises(ConfigError, match="PROFILE-VERSION"):
        folder.has("dummy", DUMMY).proved()
    assert folder.proved(recorded=False).faults == []
