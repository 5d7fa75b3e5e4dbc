"""Real keepers with real programs: what a program finds, and launches that fail."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from synapsed.errors import LaunchError, ProgramNotFound
from synapsed.keepers.client import KeeperClient
from synapsed.keepers.launchers import ProcessLauncher, keeper_command, sweep_launch
from synapsed.process.file_owners import private_directory
from tests.fakes.clock import until
from tests.keeper.conftest import DEADLINE_S, Lab, kill, living, until_file, until_gone

# --- what the program finds -------------------------------------------------------------------------------------------


async def test_the_program_has_a_controlling_terminal_of_the_right_size(lab: Lab) -> None:
    keeper = await lab.python(
        "import os,sys\n"
        "tty=os.open('/dev/tty',os.O_RDWR)\n"
        "print('size',os.get_terminal_size(tty),os.tcgetpgrp(tty)==os.getpgrp(),os.getsid(0)==os.getpid(),flush=True)\n"
        "print('done',flush=True)",
        cols=101,
        rows=33,
    )
    watcher = await lab.watch(keeper)
    assert b"size os.terminal_size(columns=101, lines=33) True True" in await watcher.until_output(b"done")


async def test_a_resize_reaches_the_program(lab: Lab) -> None:
    keeper = await lab.python(
        "import os,signal,time\n"
        "signal.signal(signal.SIGWINCH,lambda *_:os.write(1,b'now %d %d\\n'%os.get_terminal_size()))\n"
        "print('go',flush=True)\n"
        "while True: time.sleep(0.01)"
    )
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"go")
    await watcher.client.resize(77, 22)
    await watcher.until_output(b"now 77 22")
    hello = (await lab.connect(keeper)).hello
    assert (hello.cols, hello.rows) == (77, 22)
    ((start, *_), (at, *size)) = hello.sizes
    assert (start, size) == (0, [77, 22])
    assert len(b"go") <= at < hello.spool_end, "what the program draws for it comes after it"


@pytest.mark.parametrize("transport", ["pty", "pipes"])
async def test_the_program_starts_with_a_clean_slate(lab: Lab, transport: str) -> None:
    """Default signals, an empty mask, the asked umask and directory, three fds, and the environment it was given."""
    code = (
        "import os,signal\n"
        "os.system('grep Sig[BI] /proc/self/status' if os.path.exists('/proc/self') else 'true')\n"
        "print(signal.pthread_sigmask(signal.SIG_BLOCK,()), oct(os.umask(0)), os.getcwd(),sorted(os.environ))\n"
        "fds=[]\n"
        "for fd in range(200):\n"
        "  try: os.fstat(fd); fds.append(fd)\n"
        "  except OSError: pass\n"
        "print('fds',fds,flush=True)\n"
    )
    keeper = await lab.python(code, transport=transport, umask=0o027)
    watcher = await lab.watch(keeper)
    text = (await watcher.until_output(b"fds [")).decode()
    await watcher.until_exit()
    text = watcher.output.decode()
    assert "fds [0, 1, 2]" in text
    assert "set() 0o27" in text
    assert os.path.realpath(lab.root) in text or str(lab.root) in text
    assert "'LAB'" in text
    assert "'SYNAPSE_LAUNCH_ID'" in text
    assert "HOME" not in text
    if sys.platform == "linux":
        assert "SigBlk:\t0000000000000000" in text
        # Python itself ignores SIGPIPE and SIGXFSZ; 32 and 33 belong to the C library and cannot be reset.
        ignored = next(line.split()[1] for line in text.splitlines() if line.startswith("SigIgn"))
        own = sum(1 << number - 1 for number in (signal.SIGPIPE, signal.SIGXFSZ, 32, 33))
        assert int(ignored, 16) & ~own == 0


async def test_the_keeper_inherits_nothing_and_is_nobodys_child(lab: Lab) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        keeper = await lab.shell("cat")
    finally:
        os.close(writer)
    assert os.read(reader, 1) == b""  # end of file: nobody else has the writing end
    os.close(reader)
    with pytest.raises(ChildProcessError):
        os.waitpid(keeper.keeper_pid, os.WNOHANG)
    assert os.getsid(keeper.keeper_pid) == keeper.keeper_pid
    assert stat.S_IMODE(keeper.socket_path.stat().st_mode) == 0o600
    assert stat.S_IMODE(keeper.socket_path.parent.stat().st_mode) == 0o700
    assert all(not file.stat().st_mode & 0o077 for file in (lab.root / "state").rglob("*"))


async def test_in_the_foreground_the_launched_process_is_the_keeper(lab: Lab) -> None:
    """For service managers: the specification in a file that is removed, the facts on standard output, TERM to end."""
    spec = lab.spec("sleep", "1000", launch_id="foreground", term_grace_s=0)
    private_directory(spec.socket_path.parent)
    path = lab.root / "spec.json"
    path.write_bytes(spec.to_json())
    process = await asyncio.create_subprocess_exec(
        *keeper_command(sys.executable, "--foreground", "--spec", str(path)), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    facts = json.loads(await process.stdout.readline())
    assert facts["keeper_pid"] == process.pid
    assert not path.exists()
    client = await KeeperClient.connect(spec.socket_path, timeout=DEADLINE_S)
    assert client.hello.launch_id == spec.launch_id
    client.close()
    process.terminate()
    assert await process.wait() == 0
    assert living(spec.launch_id) == []
    assert json.loads((lab.root / "state" / "exit.json").read_text())["stopped"] is True


IGNORES = "signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
BLOCKS = "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP})"


@pytest.mark.parametrize("before", [IGNORES, BLOCKS], ids=["ignores", "blocks"])
async def test_a_keeper_hears_its_signals_whoever_started_it(lab: Lab, before: str) -> None:
    python = lab.root / "python"
    python.write_text(
        f"#!{sys.executable} -SEI\nimport os, signal, sys\n{before}\n"
        f"os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])\n"
    )
    python.chmod(0o755)
    for launch_id, script in (("ends", "exit 7"), ("stays", "exec sleep 1000")):
        spec = lab.spec("sh", "-c", script, launch_id=launch_id, state_dir=lab.root / launch_id, term_grace_s=0)
        keeper = await ProcessLauncher(python=str(python)).launch(spec)
        lab.launched.append(keeper)
        watcher = await lab.watch(keeper)
        if launch_id == "stays":
            os.kill(keeper.keeper_pid, signal.SIGTERM)
            assert (await watcher.until_exit()).stopped
        else:
            assert (await watcher.until_exit()).code == 7


async def test_a_launch_that_nobody_learns_of_leaves_nothing(lab: Lab) -> None:
    spec = lab.spec("sleep", "1000", launch_id="untold", transport="pipes", term_grace_s=0)
    private_directory(spec.socket_path.parent)
    path = lab.root / "spec.json"
    path.write_bytes(spec.to_json())
    hear, tell = os.pipe()
    os.close(hear)
    keeper = keeper_command(sys.executable, "--foreground", "--spec", str(path))
    process = await asyncio.create_subprocess_exec(*keeper, stdout=tell, stderr=subprocess.PIPE)
    os.close(tell)
    _, errors = await process.communicate()
    assert living(spec.launch_id) == []
    assert b"the launch cannot be reported" in errors
    assert json.loads((lab.root / "state" / "exit.json").read_text())["stopped"] is True
    assert not spec.socket_path.exists()


# --- launches that fail -----------------------------------------------------------------------------------------------


async def test_a_program_that_is_nowhere_is_named_with_the_places(lab: Lab) -> None:
    with pytest.raises(ProgramNotFound, match=r"'no-such-agent' was not found; looked in /nowhere, /bin"):
        await lab.launch("no-such-agent", env={"PATH": "/nowhere:/bin"})
    assert not list((lab.root / "run").iterdir())


@pytest.mark.parametrize(
    ("argv", "options", "reason"),
    [
        (("/no/such/program",), {}, "program_not_found"),
        (("./plain",), {}, "program_not_found"),
        (("./badshebang",), {}, "exec_failed"),
        (("cat",), {"cwd": "/no/such/directory"}, "cwd_missing"),
        (("cat",), {"cols": 0}, "bad_spec"),
        (("cat",), {"cwd": "relative"}, "bad_spec"),
        (("",), {}, "bad_spec"),
        (("cat", "a\0b"), {}, "bad_spec"),
        (("cat",), {"env": {"A=B": "c"}}, "bad_spec"),
        (("cat",), {"state_dir": Path("/dev/null/state")}, "state_failed"),
        (("cat",), {"socket_path": "too long"}, "socket_failed"),
    ],
)
@pytest.mark.parametrize("transport", ["pty", "pipes"])
async def test_every_refusal_has_its_reason(
    lab: Lab, argv: tuple[str, ...], options: dict[str, object], reason: str, transport: str
) -> None:
    (lab.root / "plain").write_text("no program")
    (lab.root / "badshebang").write_text("#!/no/such/interpreter\n")
    (lab.root / "badshebang").chmod(0o755)
    if reason == "socket_failed":
        options = {"socket_path": lab.root / ("x" * 120) / "s"}
    with pytest.raises((LaunchError, ProgramNotFound)) as caught:
        await lab.launch(*argv, transport=transport, **options)
    assert caught.value.details["reason"] == reason
    assert caught.value.message
    assert living(f"{lab.root.name}-0") == []


async def test_two_programs_never_share_a_spool(lab: Lab) -> None:
    await lab.shell("cat")
    with pytest.raises(LaunchError) as caught:
        await lab.shell("cat", launch_id="second")
    assert caught.value.details["reason"] == "state_in_use"


async def test_a_stale_socket_is_replaced_and_a_live_one_is_not(lab: Lab) -> None:
    first = await lab.shell("cat")
    with pytest.raises(LaunchError) as caught:
        await lab.launch("cat", launch_id="b", state_dir=lab.root / "other", socket_path=first.socket_path)
    assert caught.value.details["reason"] == "socket_in_use"
    kill(first.keeper_pid)
    await until_gone(first.keeper_pid, first.keeper_start)
    await sweep_launch(first.launch_id)
    assert first.socket_path.exists()
    second = await lab.launch("cat", launch_id="c", socket_path=first.socket_path)
    assert (await lab.connect(second)).hello.launch_id == second.launch_id


def test_a_directory_for_sockets_is_private_or_refused(tmp_path: Path) -> None:
    private_directory(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(LaunchError, match="no link"):
        private_directory(tmp_path / "link")
    (tmp_path / "file").write_text("")
    with pytest.raises(LaunchError):
        private_directory(tmp_path / "file")
    (tmp_path / "open").mkdir(mode=0o755)
    assert stat.S_IMODE(private_directory(tmp_path / "open").stat().st_mode) == 0o700


@pytest.mark.parametrize("runs", [False, True])
async def test_a_launch_that_is_cancelled_leaves_nothing(lab: Lab, runs: bool) -> None:
    """Before its keeper begins, and when the program runs."""
    python, told = lab.root / "python", lab.root / "told"
    keeper = f'"{sys.executable}" "$@"\n' if runs else ""
    python.write_text(f"#!/bin/sh\n{keeper}: >'{told}'\nexec sleep 1000\n")
    python.chmod(0o755)
    spec = lab.spec("sleep", "1000", launch_id="cancelled")
    launch = asyncio.create_task(ProcessLauncher(python=str(python)).launch(spec))
    await until_file(told)
    # What stands for the interpreter, and the program, which has its keeper's command line for a moment.
    await until(lambda: len(living(spec.launch_id)) == (2 if runs else 1))
    launch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await launch
    assert living(spec.launch_id) == []


async def test_a_launch_whose_end_is_not_seen_leaves_nothing(lab: Lab) -> None:
    """A daemon that ignores SIGCHLD, as whoever started it may have left that, cannot wait for its children."""
    spec = lab.spec("sleep", "1000", launch_id="unseen")
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(ChildProcessError):
            await ProcessLauncher().launch(spec)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert living(spec.launch_id) == []


async def test_a_keeper_that_dies_while_it_launches_leaves_nothing(lab: Lab) -> None:
    """Its program may run already."""
    python = lab.root / "python"
    python.write_text("#!/bin/sh\nsleep 1000 </dev/null >/dev/null 2>&1 &\nkill -9 $$\n")
    python.chmod(0o755)
    spec = lab.spec("sleep", "1000", launch_id="dies")
    with pytest.raises(LaunchError):
        await ProcessLauncher(python=str(python)).launch(spec)
    assert living(spec.launch_id) == []


def test_an_option_without_its_value_is_refused() -> None:
    command = keeper_command(sys.executable, "--spec")
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 1
    assert "usage: keeper" in done.stderr
