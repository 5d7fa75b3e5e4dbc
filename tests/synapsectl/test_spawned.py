"""What the daemon that a verb starts has of the shell's environment."""

import io
import sys
from pathlib import Path

import pytest

from synapsectl.context import CommandContext
from synapsectl.output import CommandOutput
from synapsectl.spawn import lasting_environment


def lasting(home: Path, **environ: str) -> dict[str, str]:
    out = CommandOutput(io.StringIO(), io.StringIO(), columns=None)
    found = lasting_environment(CommandContext({"SYNAPSED_HOME": str(home), **environ}, out))
    del found["SYNAPSED_HOME"]
    return found


def test_it_has_what_outlives_the_verb(tmp_path: Path) -> None:
    around = {
        "NOTIFY_SOCKET": "/n",
        "GIT_DIR": ".git",
        "TMUX": "/t",
        "SYNAPSE_AGENT_ID": "a",
        "VIRTUAL_ENV": sys.prefix,
    }
    assert lasting(tmp_path, PYTHONPATH="/p", **around) == {"PYTHONPATH": "/p"}


@pytest.mark.parametrize("text", ["environment = 1", "[environment]\nkeep = 3", "[environment", "\0"])
def test_a_configuration_that_is_broken_is_left_to_the_daemon(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.toml").write_text(text)
    assert lasting(tmp_path, PATH="/bin", TMUX="/t") == {"PATH": "/bin"}


def test_the_configuration_overrules(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.toml").write_text('[environment]\nkeep = ["TMUX"]\ndrop = ["AWS_*"]\n')
    assert lasting(tmp_path, TMUX="/t", AWS_KEY="k", PATH="/bin") == {"TMUX": "/t", "PATH": "/bin"}
