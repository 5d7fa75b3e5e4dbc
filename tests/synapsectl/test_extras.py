"""The command for an extra is that of the program by which synapsed was installed."""

from pathlib import Path

import pytest

from synapsectl.commands import top
from synapsectl.upgrading import extras
from synapsectl.upgrading.extras import extra_command, for_this_installer
from synapsectl.upgrading.installation import BASE, Installation, Installer
from synapsed.parts import outside
from tests.synapsectl.conftest import Ctl

PYTHON = "/opt/synapsed/bin/python"
PIPX = f"pipx install --python {BASE} --force"
TOOL = f"uv tool install --python {BASE} --force"


def by(installer: Installer, source: str = "") -> Installation:
    return Installation(installer, Path("/opt/synapsed"), PYTHON, source)


@pytest.mark.parametrize(
    ("installer", "command"),
    [
        (Installer.CHECKOUT, "pip install 'synapsed[otel]'"),
        (Installer.UV_TOOL, f"{TOOL} 'synapsed[otel]'"),
        (Installer.UVX, f"{TOOL} 'synapsed[otel]'"),
        (Installer.PIPX, "pipx runpip synapsed install 'synapsed[otel]'"),
        (Installer.PIPX_RUN, f"{PIPX} synapsed && pipx runpip synapsed install 'synapsed[otel]'"),
        (Installer.UV, f"uv pip install --python {PYTHON} 'synapsed[otel]'"),
        (Installer.PIP, f"{PYTHON} -m pip install 'synapsed[otel]'"),
        (Installer.HOMEBREW, f"{PYTHON} -m pip install 'synapsed[otel]'"),
        (Installer.DEBIAN, f"sudo {PYTHON} -m pip install --target /opt/synapsed 'synapsed[otel]'"),
        (Installer.UNKNOWN, f"{PYTHON} -m pip install 'synapsed[otel]'"),
    ],
)
def test_each_installer_has_its_command(installer: Installer, command: str) -> None:
    assert extra_command(by(installer), "otel") == command


def test_an_extra_comes_from_where_synapsed_came_from(tmp_path: Path) -> None:
    wheel = str(tmp_path / "synapsed-1.2.0-py3-none-any.whl")
    pip = f"{PYTHON} -m pip install"
    found = extra_command(by(Installer.PIP, wheel), "fleet")
    assert found == f"{pip} --find-links {tmp_path} '{wheel}[fleet]'", "the fleet's wheel is beside it"
    assert extra_command(by(Installer.PIP, str(tmp_path)), "otel") == f"{pip} '{tmp_path}[otel]'"
    sister = tmp_path / "packages/synapsed-fleet"
    sister.mkdir(parents=True)
    assert extra_command(by(Installer.PIP, str(tmp_path)), "fleet") == f"{pip} {sister} '{tmp_path}[fleet]'"
    broker = extra_command(by(Installer.UV_TOOL, str(tmp_path)), "broker")
    assert broker == f"{TOOL} --with '{sister}[broker]' '{tmp_path}[broker]'"
    git = extra_command(by(Installer.PIPX, "git+https://example.org/s.git@v2"), "otel")
    assert git == "pipx runpip synapsed install 'synapsed[otel] @ git+https://example.org/s.git@v2'"


@pytest.fixture
def pipx(monkeypatch: pytest.MonkeyPatch) -> str:
    """Has the program be installed by pipx; returns the beginning of its command."""
    monkeypatch.setattr(extras, "find_installation", lambda: by(Installer.PIPX))
    return "pipx runpip synapsed install"


def test_other_texts_stay(pipx: str) -> None:
    for text in ("", "pip install synapsed", "pip install 'other[tui]'", "apt install x"):
        assert for_this_installer(text) == text
    both = for_this_installer("pip install 'synapsed[tui]', or pip install 'synapsed[mcp]'")
    assert both == f"{pipx} 'synapsed[tui]', or {pipx} 'synapsed[mcp]'"


def test_verbs_that_lack_one_say_it(ctl: Ctl, pipx: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "has_tui", lambda: False)
    refused = ctl("top")
    assert (refused.code, f": {pipx} 'synapsed[tui]'\n" in refused.err) == (6, True), refused
    monkeypatch.setattr("synapsectl.parsing.RELEASED", {"flight": "fleet"})
    refused = ctl("flight")
    assert (refused.code, f"is not installed: {pipx} 'synapsed[fleet]'" in refused.err) == (2, True), refused
    assert outside.missing("fleet").endswith("pip install 'synapsed[fleet]'"), "the daemon's words are for logs, too"
