"""`synapsectl report` as a person has it: shown, asked for, and written once."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from synapsed.parts.profile_tools.reports.report import read
from tests.parts.profile_tools.reports.made import KEY
from tests.support.daemon import NO_PORTS, Daemon


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path / "daemon", config=NO_PORTS)
    yield daemon
    daemon.end()


@pytest.fixture
def echoed(daemon: Daemon) -> None:
    """An agent runs that has shown KEY."""
    daemon.start()
    assert daemon.ctl("start", "dummy").code == 0
    assert daemon.ctl("send", "dummy", "--wait", f"echo the key {KEY} is it").code == 0


@pytest.mark.night
@pytest.mark.usefixtures("echoed")
def test_it_is_shown_and_written_with_a_yes(daemon: Daemon, tmp_path: Path) -> None:
    shown = daemon.ctl("report", "dummy", "--mask", "echo")
    assert (shown.code, "the daemon says: ready" in shown.out) == (6, True), shown
    assert "these screens alone are read as: ready" in shown.out
    assert "masked: secret (1), your words (1)" in shown.out
    assert KEY[13:21] not in shown.out
    for said in ("no program finds every secret", "--yes"):
        assert said in shown.err

    file = tmp_path / "r.json"
    words = ("--says", f"mail a@b.org, {KEY}", "--should-be", "busy")
    made = daemon.ctl("report", "@dummy", "--yes", "--json", "-o", str(file), *words)
    assert made.code == 0, made.err
    assert (made.json["file"], made.json["start"]) == (str(file), "launch")
    assert (made.json["drawn"], made.json["altered"]) == (True, False)
    assert file.stat().st_mode & 0o777 == 0o600
    text = file.read_text()
    assert KEY[13:21] not in text
    report = read(file.read_bytes())
    assert (report.says, report.should_be) == (f"mail xxxxxxx, {'x' * len(KEY)}", "busy")
    assert report.told is not None
    assert report.told.activity == report.recording.reads["activity"] == "ready"
    assert [row["channel"] for row in report.told.explain or ()][:2] == ["process", "dialog"]


@pytest.mark.night
@pytest.mark.usefixtures("echoed")
def test_of_one_that_runs_and_of_one_that_has_ended(daemon: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    made = daemon.ctl("report", "@dummy", "--yes", "--json", "-o", str(file), "--should-be", "busy")
    assert made.code == 0, made.err
    text = file.read_text()
    again = daemon.ctl("report", "dummy", "--yes", "-o", str(file))
    assert (again.code, file.read_text()) == (6, text)
    (tmp_path / "l.json").symlink_to(tmp_path / "nowhere")
    assert daemon.ctl("report", "dummy", "--yes", "-o", str(tmp_path / "l.json")).code == 6
    assert daemon.ctl("report", "dummy", "--yes", "-o", str(tmp_path / "no" / "folder")).code == 2
    assert sorted(path.name for path in tmp_path.iterdir() if "json" in path.name) == ["l.json", "r.json"]

    printed = daemon.ctl("report", "dummy", "--stdout", env={"MY_API_KEY": "the key"})
    assert read(printed.out.encode()).masked.keys() >= {"secret", "value of a setting"}
    assert daemon.ctl("report", "dummy", "--stdout", "--json").code == 2
    assert daemon.ctl("report", "dummy", "--mask", " ").code == 2
    assert daemon.ctl("report", "nobody").code == 4
    agents = psutil.Process(daemon.ctl("status", "dummy", "--json").json["pid"]).environ()
    inside = {key: value for key, value in agents.items() if key.startswith("SYNAPSE_")}
    refused = daemon.ctl("report", "dummy", "--stdout", env={**inside, "SYNAPSED_HOME": ""})
    assert (refused.code, refused.out) == (6, ""), refused
    own = daemon.ctl("profiles", "show", "dummy")
    (tmp_path / "dummy.toml").write_text(own.out)
    held = daemon.ctl("profiles", "check", str(tmp_path / "dummy.toml"), "--against", str(file))
    assert (held.code, "busy" in held.err) == (1, True), held

    assert daemon.ctl("stop", "dummy").code == 0
    ended = daemon.ctl("report", "dummy", "--yes", "--json", "-o", str(tmp_path / "s.json"))
    assert (ended.code, ended.json["drawn"]) == (0, None), ended.err
    assert (
        "that only it had are not masked" in daemon.ctl("report", "dummy", "--yes", "-o", str(tmp_path / "e.json")).err
    )


def test_without_a_daemon_there_is_none(daemon: Daemon) -> None:
    assert daemon.ctl("report", "dummy").code == 3
