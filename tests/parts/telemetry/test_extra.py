"""Where OpenTelemetry is configured and not installed, who asks is told what to do; nothing else is harmed."""

import io
import json
from pathlib import Path

import pytest

from synapsectl.checkup import surroundings
from synapsectl.checkup.finding import NOTE
from synapsectl.context import CommandContext
from synapsectl.output import CommandOutput
from synapsectl.service.login import Login
from synapsectl.service.settings import ServiceSettings
from synapsed.cli import main
from synapsed.config.config_files import load_config
from synapsed.config.paths import Paths
from synapsed.errors import ConfigError
from synapsed.parts.loading import config_model
from synapsed.parts.telemetry import extra
from synapsed.parts.telemetry.extra import MISSING, missing
from synapsed.parts.telemetry.face import TracesConfig
from synapsed.supervisor.reload import differences

Config = config_model()
ON = Config(traces=TracesConfig(endpoint="http://127.0.0.1:4318/v1/traces"))


def test_it_is_found_where_it_is_installed() -> None:
    pytest.importorskip("opentelemetry.sdk")
    assert missing(ON) is None
    assert missing(Config()) is None


@pytest.mark.parametrize("how", ["the module", "its parent"])
def test_check_config_says_so(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find(name: str) -> None:
        if how == "its parent":
            raise ModuleNotFoundError(name)

    monkeypatch.setattr(extra, "find_spec", find)
    monkeypatch.setenv("SYNAPSED_HOME", str(tmp_path))
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.toml").write_text('[traces]\nendpoint = "http://127.0.0.1:4318/v1/traces"\n')
    assert main(["check-config"]) == 0, "it is no error"
    assert MISSING in capsys.readouterr().err
    assert main(["check-config", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["missing"] == [MISSING]
    (tmp_path / "config/config.toml").write_text("")
    assert main(["check-config", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["missing"] == []


def test_doctor_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = Paths.from_environ({"SYNAPSED_HOME": str(tmp_path), "HOME": str(tmp_path)})
    settings = ServiceSettings(paths, "python", None, (), Login("sh", "", {}, ()), {}, (MISSING,))
    monkeypatch.setattr(surroundings, "gather", lambda *_: settings)
    context = CommandContext(
        {"SYNAPSED_HOME": str(tmp_path), "HOME": str(tmp_path)},
        CommandOutput(io.StringIO(), io.StringIO(), columns=None),
    )
    found = [one for one in surroundings.look_around(context) if one.what == "extras"]
    assert [(one.status, one.detail, one.mend) for one in found] == [
        (NOTE, MISSING, "install what is named there, or take the lines out")
    ]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('endpoint = "localhost:4318"', "http"),
        ('endpoint = "ftp://localhost/v1/traces"', "http"),
        ('endpoint = "http://user:secret@localhost/v1/traces"', "without a user"),
        ("sample = 1.5", "sample"),
        ("timeout = 0", "timeout"),
        ('headers = { "A b" = "x" }', "header"),
        ('headers = { A = "x\\r\\nHost: y" }', "header"),
        ('endpont = "x"', "endpoint"),
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, line: str, word: str) -> None:
    paths = Paths.from_environ({"SYNAPSED_HOME": str(tmp_path), "HOME": str(tmp_path)})
    paths.config.mkdir()
    paths.config_file.write_text(f"[traces]\n{line}\n")
    with pytest.raises(ConfigError) as refused:
        load_config(paths, Config)
    assert word in refused.value.message
    assert "traces" in refused.value.message
    assert "secret" not in refused.value.message


def test_a_reload_says_what_counts_later_and_no_secret() -> None:
    new = ON.model_copy(update={"traces": ON.traces.model_copy(update={"headers": {"Authorization": "Geheimnis"}})})
    (change,) = differences([], Config(), new, lambda _: None, lambda _: None)
    assert (change.action, change.reason) == (
        "daemon",
        "[traces] endpoint, headers count after a restart of the daemon",
    )
    assert "Geheimnis" not in repr(new)
