"""The hook client as programs run it: a process of its own, with nothing but its arguments and its standard input."""

import contextlib
import json
import os
import pty
import re
import resource
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from synapsed import hookclient
from tests.support.patience import PATIENCE_S

CLIENT = [sys.executable, "-S", "-E", "-I", hookclient.__file__]
DEADLINE = PATIENCE_S


@pytest.fixture
def hooks(tmp_path: Path) -> Path:
    for name in ("tmp", "new"):
        (tmp_path / "hooks" / name).mkdir(parents=True)
    return tmp_path / "hooks"


def command(hooks: Path, event: str = "Stop") -> list[str]:
    return [*CLIENT, str(hooks), str(hooks.parent / "hooks.sock"), "synapse-claude-8100", event]


def run(hooks: Path, payload: bytes, event: str = "Stop") -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(command(hooks, event), input=payload, capture_output=True, timeout=DEADLINE, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return done


def only(hooks: Path) -> Path:
    (path,) = (hooks / "new").iterdir()
    return path


def test_report_has_the_payload_as_it_came_and_both_times(hooks: Path) -> None:
    before_ns, before = time.monotonic_ns(), time.time()
    run(hooks, '{"last_assistant_message": "日本語\\n```x```", "n": 1}'.encode(), "Stop")
    path = only(hooks)
    record = json.loads(path.read_bytes())
    assert record["event"] == "Stop"
    assert record["payload"] == {"last_assistant_message": "日本語\n```x```", "n": 1}
    assert before_ns < record["at_ns"] < time.monotonic_ns()
    assert before - 1 < record["wall"] < time.time() + 1
    assert re.fullmatch(rf"{record['at_ns']:020d}-\d+\.json", path.name)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list((hooks / "tmp").iterdir()) == []


def test_daemon_is_woken_with_the_agents_id(hooks: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(str(hooks.parent / "hooks.sock"))
        daemon.settimeout(DEADLINE)
        run(hooks, b"{}")
        assert daemon.recv(200) == b"synapse-claude-8100"


def test_daemon_dead(hooks: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(str(hooks.parent / "hooks.sock"))  # then closed: a stale socket, as a killed daemon leaves it
    run(hooks, b'{"a": 1}')
    assert json.loads(only(hooks).read_bytes())["payload"] == {"a": 1}


def test_daemon_that_does_not_read_delays_nobody(hooks: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(str(hooks.parent / "hooks.sock"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filler:
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    filler.sendto(b"x", str(hooks.parent / "hooks.sock"))
        run(hooks, b"{}")
    assert only(hooks)


def test_empty_and_closed_standard_input(hooks: Path) -> None:
    run(hooks, b"")
    assert json.loads(only(hooks).read_bytes())["payload"] is None
    only(hooks).unlink()
    done = subprocess.run(f"exec {shlex.join(command(hooks))} <&-", shell=True, timeout=DEADLINE, check=False)
    assert done.returncode == 0
    assert json.loads(only(hooks).read_bytes())["problem"] == "closed"


@pytest.mark.slow
def test_standard_input_that_stays_open(hooks: Path) -> None:
    with subprocess.Popen(command(hooks), stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"whole": true}')
        process.stdin.flush()
        assert process.wait(DEADLINE) == 0
    assert json.loads(only(hooks).read_bytes())["payload"] == {"whole": True}


@pytest.mark.slow
def test_standard_input_that_stays_open_and_silent(hooks: Path) -> None:
    with subprocess.Popen(command(hooks), stdin=subprocess.PIPE) as process:
        assert process.wait(DEADLINE) == 0
    record = json.loads(only(hooks).read_bytes())
    assert (record["payload"], record["problem"]) == (None, "timeout")


def test_terminal_is_never_read(hooks: Path) -> None:
    master, slave = pty.openpty()
    try:
        os.write(master, b"keys of a person\n")
        done = subprocess.run(command(hooks), stdin=slave, timeout=DEADLINE, check=False)
        assert done.returncode == 0
        assert os.read(slave, 100) == b"keys of a person\n"
    finally:
        os.close(master)
        os.close(slave)
    assert json.loads(only(hooks).read_bytes())["problem"] == "terminal"


def test_large_payload_is_kept_and_a_huge_one_is_reported_without_content(hooks: Path) -> None:
    run(hooks, b'{"output": "' + b"x" * (8 << 20) + b'"}')
    assert len(json.loads(only(hooks).read_bytes())["payload"]["output"]) == 8 << 20
    only(hooks).unlink()
    done = subprocess.run(command(hooks), input=b"x" * (40 << 20), capture_output=True, timeout=DEADLINE, check=False)
    assert done.returncode == 0
    record = json.loads(only(hooks).read_bytes())
    assert (record["payload"], record["problem"]) == (None, "too-large")


def test_disk_full_leaves_nothing_behind(hooks: Path) -> None:
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # a write past it is cut, then refused

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(str(hooks.parent / "hooks.sock"))
        daemon.settimeout(DEADLINE)
        done = subprocess.run(
            command(hooks), input=b"x" * 5000, capture_output=True, timeout=DEADLINE, preexec_fn=no_room, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert daemon.recv(200) == b"synapse-claude-8100"  # it may look at the transcript
    assert [*(hooks / "new").iterdir(), *(hooks / "tmp").iterdir()] == []


@pytest.mark.parametrize("arguments", [[], ["/nowhere", "/nowhere/s", "a", "Stop"], ["too", "few"]])
def test_wrong_arguments_are_not_the_agents_trouble(arguments: list[str]) -> None:
    done = subprocess.run([*CLIENT, *arguments], input=b"{}", capture_output=True, timeout=DEADLINE, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_reports_of_one_program_are_in_order(hooks: Path) -> None:
    for n in range(5):
        run(hooks, json.dumps({"n": n}).encode())
    ordered = sorted((hooks / "new").iterdir(), key=lambda path: path.name)
    assert [json.loads(path.read_bytes())["payload"]["n"] for path in ordered] == list(range(5))


def test_it_imports_next_to_nothing() -> None:
    code = f"import sys; exec(open({hookclient.__file__!r}).read()); print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-I", "-c", f"__name__ = 'x'; {code}"], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"socket", "enum", "json", "re", "pathlib", "typing", "selectors", "asyncio", "synapsed"}
