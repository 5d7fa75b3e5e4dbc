"""The tool as a process: what it imports, pipes that close, and the daemon that it starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.synapsectl.fake_daemon import FakeDaemon

HEAVY = ("aiohttp", "pydantic", "asyncio", "http.client", "ssl", "subprocess")


CALL = "from synapsectl.__main__ import main; raise SystemExit(main())"


def run(code: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=cwd
    )


@pytest.mark.parametrize(
    "arguments", [["list"], ["status"], ["status", "claude"], ["send", "claude", "hi", "--wait"], ["list", "--json"]]
)
def test_quick_verbs_import_nothing_heavy(daemon: FakeDaemon, arguments: list[str]) -> None:
    code = f"""
import sys
from synapsectl.__main__ import main
code = main({arguments!r})
loaded = [name for name in {HEAVY!r} if name in sys.modules]
assert not loaded, loaded
assert [name for name in sys.modules if name.startswith("synapsectl.commands.")]
raise SystemExit(code)
"""
    result = run(code)
    assert result.returncode == 0, result.stderr


def test_attach_imports_nothing_heavy_either() -> None:
    code = f"""
import sys
import synapsectl.attachment, synapsectl.commands.attach, synapsectl.commands.logs, synapsectl.commands.run
assert not [name for name in {HEAVY!r} if name in sys.modules]
"""
    result = run(code)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("verb", [["list"], ["profiles", "show", "dummy"]])
def test_a_reader_that_has_enough_is_no_error(daemon: FakeDaemon, verb: list[str]) -> None:
    daemon.redraw = b""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        process = subprocess.run(
            [sys.executable, "-m", "synapsectl", *verb], stdout=closed, stderr=subprocess.PIPE, check=False, timeout=60
        )
    assert (process.returncode, process.stderr) == (141, b"")


@pytest.fixture
def package(home: Path) -> Path:
    """A `synapsed` in the place of the real one, which answers one way or another when it is started."""
    folder = home / "package" / "synapsed"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("__version__ = '0'\n")
    root = Path(__file__).parents[2]
    for path in (root / "synapsed").iterdir():
        if path.name not in ("__init__.py", "__main__.py", "cli.py"):
            (folder / path.name).symlink_to(path)
    (folder.parent / "synapsectl").symlink_to(root / "synapsectl")
    return folder


def spawned(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(CALL, *arguments, cwd=package.parent)


def test_a_daemon_that_fails_shows_its_last_words(package: Path, home: Path) -> None:
    (package / "cli.py").write_text("import sys; sys.exit('config.toml: line 3: no such key')\n")
    for verb in (["start", "dummy"], ["send", "dummy", "hi"]):
        result = spawned(package, *verb)
        assert result.returncode == 3
        assert "line 3: no such key" in result.stderr
        assert str(home / "state/logs/daemon.log") in result.stderr
    assert spawned(package, "list").returncode == 3
    log = (home / "state/logs/daemon.log").read_text()
    assert log.count("no such key") == 2, "list starts none"
    assert spawned(package, "start", "dummy", "--no-spawn-daemon").returncode == 3


DAEMON = """
import json, os, signal, socketserver, sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from synapsed.config.paths import Paths

class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args): pass
    def address_string(self): return ""
    def reply(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.reply([] if self.path == "/agents" else {"pid": os.getpid()})
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        facts = {"argv": sys.argv[1:], "sid": os.getsid(0), "stdin": os.readlink("/proc/self/fd/0"), "cwd": body["cwd"],
                 "variables": [name for name in os.environ if name.startswith("SYNAPSE_")]}
        self.reply({"name": "d", "id": "i", "endpoint": "e", "pid": os.getpid(), "state": "running", "facts": facts})
        self.server.served = True

paths = Paths.from_environ()
paths.control_socket.parent.mkdir(parents=True)
with socketserver.UnixStreamServer(str(paths.control_socket), Handler) as server:
    server.served = False
    while not server.served:
        server.handle_request()

def main(): pass
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at itself in /proc")
def test_start_starts_a_daemon_of_its_own_session(package: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (package / "cli.py").write_text(DAEMON)
    monkeypatch.setenv("SYNAPSE_AGENT_TOKEN", "another agent's")
    result = spawned(package, "start", "dummy", "--json")
    assert result.returncode == 0, result.stderr
    agent = json.loads(result.stdout)
    facts = agent["facts"]
    assert f"no daemon was running: started one (pid {agent['pid']}" in result.stderr
    assert facts["argv"] == ["run", "--late-port"]
    assert facts["stdin"] == "/dev/null"
    assert facts["variables"] == []
    assert facts["cwd"] == str(package.parent.resolve())
    assert facts["sid"] not in (os.getsid(0), agent["pid"]), "it cannot get a terminal by opening one"
    assert (home / "state/logs/daemon.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_words_that_nobody_takes_change_no_exit_code(home: Path) -> None:
    """As on a terminal that hung up: Python would try them again at exit, and end with 120."""
    command = [sys.executable, "-m", "synapsectl", "list"]
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        assert subprocess.run(command, stderr=full, env=buffered, timeout=60, check=False).returncode == 3


def test_arguments_that_are_the_programs_own(daemon: FakeDaemon) -> None:
    said = run(CALL, "start", "claude", "--resume", "last").stderr
    assert "unrecognized arguments: --resume" in said
    assert "synapsectl start … -- --resume" in said
    assert " -- " not in run(CALL, "list", "--resume").stderr, "list has no use for them"
