"""The harness around real programs, tried without them: cache, configuration, isolation, terminal."""

import json
import socket
import sys
from pathlib import Path

import pytest

from tests.real import netns, programs, ways
from tests.real.terminal import COLUMNS, ROWS, Terminal

PROGRAM = """
import os, sys, termios, tty
tty.setraw(0)
def ask(query, end):
    os.write(1, query)
    answer = b""
    while not answer.endswith(end):
        answer += os.read(0, 1)
    return answer
size = os.get_terminal_size()
os.write(1, b"\\x1b]2;asking\\x07\\x1b]7501;state=idle:app=test\\x1b\\\\")
answers = [ask(b"\\x1b[c", b"c"), ask(b"\\x1b[6n", b"R"), ask(b"\\x1b]7501;?\\x07", b"\\x07")]
os.write(1, repr([*answers, tuple(size)]).encode())
os.write(1, b"\\x1b[?2004h\\r\\nready\\r\\n")
text = b""
while not text.endswith(b"\\r"):
    piece = os.read(0, 100)
    text += piece
    os.write(1, piece.removeprefix(b"\\x1b[200~").removesuffix(b"\\x1b[201~"))
os.write(1, b"\\r\\ngot " + repr(text).encode())
sys.exit(3)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache in place of the user's."""
    monkeypatch.setenv("SYNAPSED_CLI_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_empty_or_outdated_cache_is_told(cache: Path, tmp_path: Path) -> None:
    assert "no agent programs" in (programs.missing() or "")
    cache.mkdir()
    (cache / ".installed").write_text("another lock file's hash")
    assert "other versions" in (programs.missing() or "")
    with pytest.raises(programs.MissingProgramsError):
        programs.prepare("claude", tmp_path / "home", tmp_path / "project", "http://127.0.0.1:1")


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((Path(programs.__file__).parent / "npm" / "package-lock.json").read_text())
    assert all("resolved" not in package for package in lock["packages"].values())
    for cli, package in programs.PROGRAMS.items():
        assert lock["packages"][f"node_modules/{package}"]["version"] == programs.version(cli)


@pytest.mark.parametrize("cli", programs.PROGRAMS)
def test_configuration_is_private(cli: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "missing", lambda: None)
    prepared = programs.prepare(cli, tmp_path / "home", tmp_path / "project", "http://127.0.0.1:1")
    assert prepared.argv[0].endswith(f"/{cli}")
    assert prepared.env["HOME"] == str(prepared.home)
    for path in [prepared.home, *prepared.home.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0


def test_a_namespace_with_more_than_loopback_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netns, "interfaces_up", lambda: ["eth0", "lo"])
    with pytest.raises(netns.NotIsolatedError, match="eth0"):
        netns.require()


def test_loopback_is_up_here() -> None:
    assert "lo" in netns.interfaces_up()
    assert "lo" in {name for _, name in socket.if_nameindex()}


def test_the_terminal_answers_queries_and_submits(tmp_path: Path) -> None:
    with Terminal([sys.executable, "-c", PROGRAM], env={"TERM": "xterm-256color"}, cwd=tmp_path) as terminal:
        terminal.wait_screen("ready")
        assert terminal.mode(2004)
        assert (terminal.titles(), terminal.statuses()) == (["asking"], ["state=idle:app=test"])
        assert f"({COLUMNS}, {ROWS})" in terminal.screen()
        assert r"b'\x1b[?62;22c', b'\x1b[1;" in terminal.screen()
        terminal.mark("asked")
        terminal.submit("hello there")
        terminal.wait_screen("got")
        assert r"b'\x1b[200~hello there\x1b[201~\r'" in terminal.screen()
        assert terminal.wait_exit() == 3
    assert terminal.marks[0].label == "asked"


def test_the_terminal_says_what_it_waited_for(tmp_path: Path) -> None:
    argv = ["sh", "-c", "echo here I am; sleep 60"]
    with Terminal(argv, env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path) as terminal:
        terminal.wait_screen("here I am")
        with pytest.raises(TimeoutError, match=r"(?s)never said.*here I am"):
            terminal.wait_screen("never said", timeout=0.1)


def test_the_page_of_ways_keeps_what_was_not_run(tmp_path: Path) -> None:
    page, results = tmp_path / "ways.md", tmp_path / "results.jsonl"

    def run(*told: tuple[str, str, str]) -> list[str]:
        results.write_text("".join(json.dumps(each) + "\n" for each in told))
        ways.write(results, page)
        return [line for line in page.read_text().splitlines() if line.startswith("|")]

    run(("codex-structured", "answers", "yes"), ("codex-keys", "answers", "yes"), ("codex-keys", "a draft", "waits"))
    assert run(
        ("codex-structured", "a draft", "runs"), ("gemini-pipes", "answers", "no"), ("codex-keys", "answers", "all")
    ) == [
        "| | codex, structured | gemini, pipes | codex, keys |",
        "|---|---|---|---|",
        "| answers | yes | no | all |",
        "| a draft | runs |  | waits |",
    ]
