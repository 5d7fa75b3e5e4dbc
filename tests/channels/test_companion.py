"""The launcher of a program beside its server, as the real process that it is."""

import json
import os
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from synapsed.channels.launch_additions import COMPANION, has_companion, plan, prepare, with_companion
from tests.channels.conftest import Launch

LISTENS = """
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
print(os.getpid(), flush=True)
time.sleep(60)
"""


def launched(
    folder: Path, companion: list[str], *, wait_s: float = 50
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """What it printed, after what it became; and the file that says why it is alone."""
    said = "import os, sys; print(sys.argv[1], os.getpid(), os.getsid(0))"
    document = {
        "socket": str(folder / "servers" / "agent" / "s"),
        "companion": companion,
        "attached": [sys.executable, "-c", said, "attached"],
        "alone": [sys.executable, "-c", said, "alone"],
        "wait_s": wait_s,
        "failed": str(folder / "failed"),
        "log": str(folder / "log"),
    }
    (folder / "plan.json").write_text(json.dumps(document))
    argv = [sys.executable, "-S", "-E", "-I", str(COMPANION), str(folder / "plan.json")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        out, _ = process.communicate(timeout=60)
        assert out.split()[1] == str(process.pid), "pid and exit code are the program's"
        return subprocess.CompletedProcess(argv, process.returncode, out), folder / "failed"


def servers(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if str(folder) in " ".join(process.cmdline()) and "time.sleep(60)" in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_it_becomes_the_program_when_the_server_listens(tmp_path: Path) -> None:
    socket = tmp_path / "servers" / "agent" / "s"
    done, failed = launched(tmp_path, [sys.executable, "-c", LISTENS, str(socket)])
    (server,) = servers(tmp_path)
    try:
        word, _, session = done.stdout.split()
        assert (word, done.returncode, failed.exists()) == ("attached", 0, False)
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        assert os.getsid(server.pid) == server.pid, "no key of a person's reaches it"
        assert session != str(server.pid)
    finally:
        server.kill()


def test_a_server_that_ends_leaves_a_person_their_program(tmp_path: Path) -> None:
    began = time.monotonic()
    done, failed = launched(tmp_path, [sys.executable, "-c", "raise SystemExit(3)"])
    assert done.stdout.startswith("alone ")
    assert "ended at once, with 3" in failed.read_text()
    assert stat.S_IMODE(failed.stat().st_mode) == 0o600
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("wait_s", "times"), [(0.2, 1), pytest.param(0, 8, id="mostly before it has a session of its own")]
)
def test_one_that_does_not_listen_is_ended(tmp_path: Path, wait_s: float, times: int) -> None:
    server = [sys.executable, "-c", f"import time; '{tmp_path}'; time.sleep(60)"]
    for _ in range(times):
        done, failed = launched(tmp_path, server, wait_s=wait_s)
        assert done.stdout.startswith("alone ")
        assert f"did not listen within {wait_s} s" in failed.read_text()
    assert servers(tmp_path) == []


def test_one_that_is_not_there(tmp_path: Path) -> None:
    done, failed = launched(tmp_path, [str(tmp_path / "missing")])
    assert done.stdout.startswith("alone ")
    assert "ended at once, with 127" in failed.read_text()


def test_a_folder_that_is_not_one_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "servers").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "servers" / "agent").symlink_to(tmp_path / "elsewhere")
    done, failed = launched(tmp_path, [sys.executable, "-c", LISTENS, str(tmp_path / "servers" / "agent" / "s")])
    assert done.stdout.startswith("alone ")
    assert "is not a folder of this user's" in failed.read_text()
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("launch", ["codex"], indirect=True)
def test_codex_beside_its_server_has_no_hooks_and_alone_has_them(launch: Launch) -> None:
    assert has_companion(launch.profile)
    context = replace(launch.context, companion=True)
    made = plan(launch.profile, context, resume=True, args=["-c", "model=x", "--search"], instructions="be brief")
    argv, files = with_companion(context, made, "/opt/codex")
    (path,) = files
    assert argv == [context.python, "-S", "-E", "-I", str(COMPANION), str(path)]
    document: dict[str, Any] = json.loads(files[path])
    socket = str(context.server_socket)
    assert document["socket"] == socket
    attached, server, alone = document["attached"], document["companion"], document["alone"]
    assert attached == ["/opt/codex", "resume", context.conversation, "--remote", f"unix://{socket}", "--search"]
    assert server[:4] == ["/opt/codex", "app-server", "--listen", f"unix://{socket}"]
    assert "model=x" in server
    assert any("developer_instructions" in word for word in server)
    assert any("mcp_servers.synapsed" in word for word in server)
    assert not any("hooks." in word for word in [*attached, *server])
    assert alone[:4] == ["/opt/codex", "resume", context.conversation, "--no-daemon"]
    assert any("hooks.Stop" in word for word in alone)
    assert not any("--remote" in word for word in alone)
    prepare(context, made, files)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("launch", ["codex"], indirect=True)
@pytest.mark.parametrize(
    ("args", "to_server", "kept"),
    [
        (["-c", "model=x"], ["-c", "model=x"], []),
        (["-cmodel=x", "--search"], ["-cmodel=x"], ["--search"]),
        (["-c=model=x"], ["-c=model=x"], []),
        (["--config=model=x"], ["--config=model=x"], []),
        (["--search", "-c"], [], ["--search", "-c"]),
        (["--config-file", "x"], [], ["--config-file", "x"]),
        (["-C", "/tmp"], [], ["-C", "/tmp"]),
        (["--", "-cmodel=x"], [], ["--", "-cmodel=x"]),
    ],
)
def test_a_setting_goes_to_the_server_in_each_form(
    launch: Launch, args: list[str], to_server: list[str], kept: list[str]
) -> None:
    context = replace(launch.context, companion=True)
    plain = plan(launch.profile, context, resume=False).companion
    made = plan(launch.profile, context, resume=False, args=args).companion
    assert plain is not None
    assert made is not None
    assert made.server == (*plain.server, *to_server)
    assert made.attached == (*plain.attached, *kept)


@pytest.mark.parametrize("launch", ["codex", "opencode"], indirect=True)
def test_a_launch_without_one_is_the_program_alone(launch: Launch) -> None:
    made = plan(launch.profile, replace(launch.context, port=4000), resume=False)
    argv, files = with_companion(launch.context, made, "/opt/program")
    assert argv == ["/opt/program", *made.argv[1:]]
    assert files == {}


@pytest.mark.parametrize("launch", ["codex"], indirect=True)
def test_an_older_codex_has_none(launch: Launch) -> None:
    older = launch.profile.at("0.156.0")
    assert not has_companion(older)
    made = plan(older, launch.context, resume=False)
    assert "--remote" not in made.argv
    assert any("hooks.Stop" in word for word in made.argv)
    assert made.companion is None
    assert has_companion(launch.profile.at("0.157.0"))
