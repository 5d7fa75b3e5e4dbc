"""`synapsectl adopt` against the fake daemon."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon


@pytest.fixture
def found(daemon: FakeDaemon, tmp_path: Path) -> FakeDaemon:
    common = {"profile": "dummy", "cwd": str(tmp_path), "updated_at": "2026-01-01T00:00:00Z", "agent": None}
    daemon.conversations = [
        common | {"id": "0123abcd-1", "prompt": "the first \x1b[31mquestion"},
        common | {"id": "0123abff-2", "prompt": "another", "agent": "d"},
    ]
    return daemon


def asked(daemon: FakeDaemon) -> dict[str, list[str]]:
    path = next(path for _, path, _ in daemon.requests if path.startswith("/control/conversations"))
    return parse_qs(urlsplit(path).query)


def test_they_are_listed(found: FakeDaemon, ctl: Ctl, tmp_path: Path) -> None:
    result = ctl("adopt", HOME="/home/me")
    assert result.code == 0
    first, second = (line.split("\t") for line in result.out.splitlines())
    assert first[:2] == ["dummy", "0123abcd-1"]
    assert first[4:] == [str(tmp_path), "the first \\x1b[31mquestion"]
    assert second[3] == "d"
    assert asked(found) == {"home": ["/home/me"]}
    assert json.loads(ctl("adopt", "dummy", "--list", "--json").out) == found.conversations


def test_a_program_that_keeps_its_files_elsewhere_is_looked_for_there(found: FakeDaemon, ctl: Ctl) -> None:
    ctl("adopt", HOME="/home/me", CLAUDE_CONFIG_DIR="/a", CODEX_HOME="/b", EDITOR="vi")
    assert json.loads(asked(found)["env"][0]) == {"CLAUDE_CONFIG_DIR": "/a", "CODEX_HOME": "/b"}


def test_a_list_that_ends_says_so(found: FakeDaemon, ctl: Ctl) -> None:
    found.conversations = [found.conversations[0] | {"id": f"{number:08d}"} for number in range(200)]
    assert "of dummy these are the newest 200: --cwd DIR" in ctl("adopt").err
    assert "newest" not in ctl("adopt", "--cwd", ".", "dummy", "00000007-no").err
    assert [parse_qs(urlsplit(path).query).keys() >= {"cwd"} for _, path, _ in found.requests if "conv" in path] == [
        False,
        False,
        True,
    ], "one that is not among them is looked for in its folder"


def test_a_profile_and_a_folder_narrow_it(found: FakeDaemon, ctl: Ctl, tmp_path: Path) -> None:
    assert ctl("adopt", "dummy", "--cwd", str(tmp_path)).code == 0
    assert asked(found)["profile"] == ["dummy"]
    assert asked(found)["cwd"] == [str(tmp_path.resolve())]


@pytest.mark.parametrize("words", [["0123abcd"], ["dummy", "0123abcd-1"]])
def test_an_agent_is_started_on_one_where_it_was(found: FakeDaemon, ctl: Ctl, tmp_path: Path, words: list[str]) -> None:
    result = ctl("adopt", *words, "--name", "again", "--json", "--", "--verbose")
    assert result.code == 0, result.err
    assert json.loads(result.out)["name"] == "again"
    body = next(body for _, path, body in found.requests if path == "/control/start")
    assert (body["profile"], body["conversation"], body["args"]) == ("dummy", "0123abcd-1", ["--verbose"])
    assert body["cwd"] == str(tmp_path.resolve())


def test_which_one_must_be_certain(found: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("adopt", "0123ab").code == 2
    assert ctl("adopt", "012").code == 4
    assert ctl("adopt", "dummy", "nothing").code == 4
    assert ctl("adopt", "a", "b", "c").code == 2
    assert not [path for _, path, _ in found.requests if path == "/control/start"]


def test_none(daemon: FakeDaemon, ctl: Ctl) -> None:
    result = ctl("adopt")
    assert (result.code, result.out) == (0, "")
    assert "no conversations" in result.err


def conversation(cwd: Path, hours_ago: float, name: str, agent: str | None = None) -> dict[str, object]:
    used = (datetime.now(UTC) - timedelta(hours=hours_ago)).isoformat()
    return {"profile": "dummy", "cwd": str(cwd), "updated_at": used, "agent": agent, "id": name, "prompt": "x"}


def test_all_of_them_are_the_newest_of_each_folder(daemon: FakeDaemon, ctl: Ctl, tmp_path: Path) -> None:
    one, two, three, four = (tmp_path / name for name in ("one", "two", "three", "four"))
    for folder in (one, two, three, four):
        folder.mkdir()
    daemon.conversations = [
        conversation(one, 3, "one-older"),
        conversation(one, 1, "one-newest"),
        conversation(two, 48, "two-old"),
        conversation(three, 1, "three-taken"),
        conversation(three, 2, "three-agents", agent="d"),
        conversation(four, 0.5, "four"),
        conversation(tmp_path / "gone", 0.1, "gone"),
        conversation(four, 0.1, "nowhere") | {"cwd": None},
    ]
    done = ctl("adopt", "--all", "--json")
    asked = [body["conversation"] for _, path, body in daemon.requests if path == "/control/start"]
    assert asked == ["four", "one-newest"]
    assert len(json.loads(done.out)) == 2
    assert (done.code, "gone is no directory" in done.err) == (2, True), "one that cannot be does not keep the others"
    daemon.requests.clear()
    ctl("adopt", "dummy", "--all", "--since", "3d")
    asked = [body["conversation"] for _, path, body in daemon.requests if path == "/control/start"]
    assert asked == ["four", "one-newest", "two-old"]


@pytest.mark.parametrize(
    "words", [["--all", "0123abcd"], ["--all", "--name", "x"], ["--all", "--list"], ["--since", "1d"]]
)
def test_all_is_not_one(found: FakeDaemon, ctl: Ctl, words: list[str]) -> None:
    assert ctl("adopt", *words).code == 2


def test_all_where_there_is_none(found: FakeDaemon, ctl: Ctl) -> None:
    done = ctl("adopt", "--all")
    assert (done.code, "--since 7d" in done.err) == (0, True)
