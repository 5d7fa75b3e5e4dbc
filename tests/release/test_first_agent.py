"""The way of a newcomer: an installer, a wheel, an agent that is ready (`scripts/first_agent.py` has the seconds)."""

import re
import shutil
from pathlib import Path

import pytest

from scripts import first_agent
from tests.release.test_installed import INSTALLING_S, UNREACHED
from tests.support.daemon import PATIENCE_S


@pytest.mark.night
@pytest.mark.timeout(2 * INSTALLING_S + 4 * PATIENCE_S)
@pytest.mark.parametrize("by", ["uv", "pipx", "pip"])
def test_from_a_wheel_to_an_agent_that_is_ready(by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second time, when the installer has the packages, the 60 s of `scripts.first_agent` hold for uv."""
    if by != "pip" and shutil.which(by) is None:
        pytest.skip(f"NOT TRIED: {by} is not installed")
    way = ["--by", by, "--cache", str(tmp_path)]
    code = first_agent.main([*way, "--limit", str(INSTALLING_S)])
    told = capsys.readouterr()
    if code != 0 and any(words in told.err for words in UNREACHED):
        pytest.skip(f"NOT TRIED: no registry, so nothing can be installed: {told.err.strip().splitlines()[-1]}")
    assert code == 0, told.err
    assert re.search(r" s  from synapsed-[\d.]+-py3-none-any\.whl to an agent that is ready", told.out)
    if by == "uv":
        code = first_agent.main(way)
        told = capsys.readouterr()
        assert code == 0, told.out + told.err


def test_a_failing_step_is_told_with_its_last_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installer = tmp_path / "uv"
    installer.write_text("#!/bin/sh\necho no such index >&2\nexit 3\n")
    installer.chmod(0o755)
    assert (
        first_agent.main(["--wheel", str(tmp_path / "synapsed-0-py3-none-any.whl"), "--program", str(installer)]) == 1
    )
    assert "ended with 3:\nno such index" in capsys.readouterr().err


def test_a_missing_installer_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert first_agent.main(["--by", "pipx"]) == 2
    assert "pipx is not on PATH" in capsys.readouterr().err
