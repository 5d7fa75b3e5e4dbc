"""A process without rights reads what is open, computes and answers, and nothing else; a system may lack some of it."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from synapsed import own_python
from synapsed.process import sandbox
from tests.support.begun import begins_with

PATIENCE_S = 60.0
TRIES = """
import ctypes, json, os, resource, socket, sys, threading
import synapsed.process.sandbox as sandbox
{before}
parent = os.getppid()
libc = ctypes.CDLL(None, use_errno=True)
held = sandbox.give_up_rights()

def tried(what):
    try:
        return f"done: {{what()!r}}"
    except Exception as error:
        return type(error).__name__

def connect():
    libc.connect.restype = ctypes.c_int
    if libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0) < 0:
        raise OSError(ctypes.get_errno(), "")

results = dict(
    read=tried(lambda: open("/etc/hostname").read()),
    write=tried(lambda: open({folder!r} + "/written", "w").write("x")),
    list=tried(lambda: os.listdir("/")),
    unlink=tried(lambda: os.unlink({folder!r} + "/kept")),
    rename=tried(lambda: os.rename({folder!r} + "/kept", {folder!r} + "/moved")),
    network=tried(connect),
    socket=tried(lambda: socket.socket(socket.AF_UNIX)),
    pipe=tried(os.pipe),
    limits=tried(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))),
    memory=tried(lambda: len(bytearray(2 << 30))),
    compute=tried(lambda: len(bytearray(64 << 20))),
    stdin=tried(lambda: sys.stdin.read()),
)
if "seccomp" in held:
    results.update(
        fork=tried(lambda: os.fork() or os._exit(0)),
        run=tried(lambda: os.posix_spawn("/bin/true", ["true"], {{}})),
        become=tried(lambda: os.execv("/bin/true", ["true"])),
        signal=tried(lambda: os.kill(parent, 0)),
        thread=tried(lambda: threading.Thread(target=print).start()),
    )
print(json.dumps([sorted(held), results]))
"""


def tried(folder: Path, before: str = "") -> tuple[set[str], dict[str, str]]:
    """What holds in a process that has given up its rights, and how it fared with each thing."""
    (folder / "kept").write_text("kept")
    done = subprocess.run(
        [sys.executable, "-c", TRIES.format(before=before, folder=str(folder))],
        input="what is open\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    held, results = json.loads(done.stdout)
    return set(held), results


def test_what_is_open_can_be_read_and_nothing_else(tmp_path: Path) -> None:
    held, results = tried(tmp_path)
    for what in ("read", "write", "network", "socket", "pipe", "memory"):
        assert not results[what].startswith("done"), (what, results[what], held)
    assert results["compute"] == f"done: {64 << 20}"
    assert results["stdin"] == "done: 'what is open\\n'"
    assert not (tmp_path / "written").exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what only Linux has")
def test_with_both_of_linuxs_filters_no_call_does_any_harm(tmp_path: Path) -> None:
    held, results = tried(tmp_path)
    if not held >= {"landlock", "seccomp"}:
        pytest.skip(f"this system has only {', '.join(sorted(held))}")
    allowed = {name for name, result in results.items() if result.startswith("done")}
    assert allowed == {"compute", "stdin"}, results
    assert (tmp_path / "kept").read_text() == "kept"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what only Linux has")
@pytest.mark.parametrize("missing", ["landlock", "seccomp"])
def test_each_filter_holds_where_the_other_is_missing(tmp_path: Path, missing: str) -> None:
    function = {"landlock": "_deny_files", "seccomp": "_deny_calls"}[missing]
    held, results = tried(tmp_path, f"sandbox.{function} = lambda libc: False")
    if not held & {"landlock", "seccomp"}:
        pytest.skip("this system has neither")
    assert missing not in held
    for what in ("read", "write", "list", "unlink", "rename", "network"):
        assert not results[what].startswith("done"), (what, results[what])
    assert (tmp_path / "kept").read_text() == "kept"


@pytest.mark.parametrize("before", ["sandbox._LINUX = False", "sandbox.platform.machine = lambda: 'riscv64'"])
def test_what_a_system_does_not_have_is_left_out(tmp_path: Path, before: str) -> None:
    held, results = tried(tmp_path, before)
    assert "seccomp" not in held
    assert results["compute"].startswith("done")
    assert not results["read"].startswith("done")


def test_a_kernel_without_them_refuses_and_nothing_else_happens(tmp_path: Path) -> None:
    refuses = "sandbox._CREATE_RULESET = 1 << 20; sandbox._SECCOMP = {'x86_64': 1 << 20, 'aarch64': 1 << 20}"
    held, results = tried(tmp_path, refuses)
    assert not held & {"landlock", "seccomp"}
    assert results["stdin"].startswith("done")


def test_more_memory_than_is_allowed_already_is_not_asked_for(tmp_path: Path) -> None:
    before = "resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))"
    if sys.platform == "darwin":
        pytest.skip("no limit of the address space there")
    held, results = tried(tmp_path, before)
    assert "limits" in held
    assert not results["memory"].startswith("done")


def test_the_calls_are_numbered_for_every_architecture() -> None:
    for column, machine in enumerate(sandbox._ARCHITECTURES):
        numbers = [call[column] for call in sandbox._CALLS.values() if call[column] is not None]
        assert len(set(numbers)) == len(numbers), machine


@pytest.mark.parametrize(
    ("module", "head"),
    [
        ("synapsed.terminal.probe", {"cols": 80, "rows": 24, "drawn": 0, "cpu_s": 30}),
        ("synapsed.terminal.scrollback_lines", {"cols": 80, "rows": 24, "shown": 0}),
        ("synapsed.parts.profile_tools.drafting", {"cols": 80, "rows": 24, "command": [], "agent": "it"}),
    ],
)
def test_who_draws_output_has_no_rights(
    module: str, head: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code that output might smuggle in runs in a process that opens nothing and connects to nothing."""
    server = socket.create_server(("127.0.0.1", 0))
    lines = [
        "import os, socket, synapsed.terminal.emulated_screen as screens",
        "def feed(self, data):",
        f"    for harm in (lambda: open({str(tmp_path / 'written')!r}, 'w'),",
        f"                 lambda: socket.socket().connect(('127.0.0.1', {server.getsockname()[1]}))):",
        "        try: harm()",
        "        except OSError: continue",
        "        os._exit(7)",
        "screens.Screen.feed = feed",
    ]
    (tmp_path / "sitecustomize.py").write_text("\n".join(lines))
    monkeypatch.setattr("synapsed.own_python.FILE", begins_with(tmp_path / "sitecustomize.py"))
    with server:
        done = subprocess.run(
            own_python.command(module),
            input=json.dumps(head).encode() + b"\nhostile",
            timeout=PATIENCE_S,
            capture_output=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "written").exists()
