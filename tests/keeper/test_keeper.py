"""Real keepers with real programs: what a program finds, what a daemon is told, what survives."""

import asyncio
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from synapsed.errors import KeeperLost, LaunchError, ProgramNotFound
from synapsed.keeper.processes import is_before_boot, lived_s, start_mark
from synapsed.keeper.spool import SpoolReader
from synapsed.supervisor.keeper_client import KeeperBusy, KeeperClient, KeeperRefused, Output
from synapsed.supervisor.launchers import (
    KeeperAddress,
    ProcessLauncher,
    age_of,
    find_keepers,
    keeper_command,
    private_directory,
    sweep_launch,
)
from tests.keeper.conftest import DEADLINE_S, Lab, Watcher, kill, living, until_file, until_gone

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
    client = await KeeperClient.connect(spec.socket_path)
    assert client.hello.launch_id == spec.launch_id
    client.close()
    process.terminate()
    assert await process.wait() == 0
    assert living(spec.launch_id) == []
    assert json.loads((lab.root / "state" / "exit.json").read_text())["stopped"] is True


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


# --- output -----------------------------------------------------------------------------------------------------------

TEN_MB = (
    "import os,tty,hashlib\ntty.setraw(1)\nh=hashlib.sha256();left=10_000_000;n=0\n"
    "while left:\n"
    "  d=b'%08d '%n*100; d=d[:left]; n+=1\n"
    "  v=memoryview(d)\n"
    "  while v: v=v[os.write(1,v):]\n"
    "  h.update(d); left-=len(d)\n"
    "open('digest.tmp','w').write(h.hexdigest()); os.rename('digest.tmp','digest')\n"
)


async def test_ten_megabytes_are_the_same_over_many_broken_connections(lab: Lab) -> None:
    keeper = await lab.python(TEN_MB)
    digest = hashlib.sha256()
    cursor = connections = 0
    while True:
        client = await lab.connect(keeper)
        await client.subscribe(cursor)
        connections += 1
        budget = 50_000 * connections  # break at ever other places
        async for event in client.events():
            if isinstance(event, Output):
                assert event.offset == cursor
                cursor = event.end
                digest.update(event.data)
                budget -= len(event.data)
            else:
                break
            if budget < 0 and connections < 15:
                break
        client.close()
        if client.lost and budget >= 0:
            break
    assert connections >= 10
    assert cursor == 10_000_000
    assert digest.hexdigest() == await until_file(lab.root / "digest")


async def test_a_client_that_does_not_read_costs_nothing_and_loses_nothing(lab: Lab) -> None:
    keeper = await lab.python(TEN_MB)
    slow = await lab.connect(keeper)
    await slow.subscribe(0)  # nobody consumes its events: FLOW holds the keeper back
    quick = await lab.watch(keeper)
    record = await quick.until_exit()
    assert record.final_offset == len(quick.output) == 10_000_000
    assert (await slow.ping()).spool_end == 10_000_000  # answers get through a paused connection
    late = Watcher(slow)
    await late.until_exit()
    assert late.output == quick.output


async def test_what_retention_overwrote_is_told_as_a_gap(lab: Lab) -> None:
    keeper = await lab.python(TEN_MB, retention=1)
    first = await lab.watch(keeper)
    await first.until_exit()
    late = await lab.watch(keeper, 0)
    await late.until_exit()
    (gap,) = late.gaps
    assert gap.start == 0
    assert 0 < gap.end < 10_000_000
    assert gap.end + len(late.output) == 10_000_000
    start, data = await late.client.read(0, 100)
    assert (start, data) == (gap.end, bytes(late.output[:100]))


async def test_a_new_launch_continues_the_offsets(lab: Lab) -> None:
    first = await lab.shell("printf first")
    watcher = await lab.watch(first)
    record = await watcher.until_exit()
    assert (record.code, record.final_offset) == (0, 5)
    await watcher.client.acknowledge_exit()
    second = await lab.shell("printf second", spool_at_least=5)
    assert second.spool_start == 5
    watcher = await lab.watch(second)
    await watcher.until_exit()
    assert watcher.output == b"firstsecond"
    with pytest.raises(KeeperRefused) as caught:
        await watcher.client.subscribe(10_000)
    assert caught.value.reason == "beyond_end"


async def test_history_is_read_in_any_length(lab: Lab) -> None:
    keeper = await lab.python(TEN_MB)
    watcher = await lab.watch(keeper)
    await watcher.until_exit()
    client = watcher.client
    assert await client.read(123, 1_000_000) == (123, bytes(watcher.output[123:1_000_123]))
    assert await client.read(9_999_990, 500) == (9_999_990, bytes(watcher.output[-10:]))
    assert await client.read(10_000_000, 500) == (10_000_000, b"")


# --- input ------------------------------------------------------------------------------------------------------------


async def test_an_input_is_written_once_whoever_repeats_it(lab: Lab) -> None:
    keeper = await lab.shell("stty raw -echo; echo ready; exec cat")
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    first = await watcher.client.write(b"<one>", "t.1.paste")
    assert (first.status, first.written, first.length) == ("written", 5, 5)
    assert first.at == first.offset == len(watcher.output)
    await watcher.until_output(b"<one>")
    again = await watcher.client.write(b"<one>", "t.1.paste")
    watcher.client.close()
    successor = await lab.watch(keeper)
    third = await successor.client.write(b"<one>", "t.1.paste")
    assert again == third
    assert (third.status, third.offset, third.written) == ("duplicate", first.offset, 5)
    await successor.client.write(b"<two>", "t.1.submit")
    assert (await successor.until_output(b"<two>")).count(b"<one>") == 1


async def test_a_daemon_killed_between_send_and_answer_repeats_without_harm(lab: Lab) -> None:
    """The program does not read; the first client is gone before its write is done; the second joins that write."""
    keeper = await lab.python(
        "import os,tty,signal,time\ntty.setraw(0)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK,[signal.SIGUSR1])\nprint('ready',flush=True)\n"
        "signal.sigwait([signal.SIGUSR1])\nn=0\n"
        "while n<100_000: n+=len(os.read(0,65536))\n"
        "print('got',n,flush=True)\n"
        "print('more',len(os.read(0,65536)),flush=True)"
    )
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    write = asyncio.create_task(watcher.client.write(b"x" * 100_000, "t.1.paste"))
    await asyncio.sleep(0)  # the task sends
    await watcher.client.ping()  # requests are taken in order: the keeper has the write
    watcher.client.close()
    with pytest.raises(KeeperLost):
        await write
    successor = await lab.watch(keeper)
    repeated = asyncio.create_task(successor.client.write(b"x" * 100_000, "t.1.paste"))
    await successor.client.signal(signal.SIGUSR1)
    await successor.until_output(b"got 100000")
    assert (await repeated).written == 100_000
    await successor.client.write(b"e", "t.1.submit")
    await successor.until_output(b"more 1")


async def test_a_large_paste_into_a_program_that_does_not_read_is_bounded(lab: Lab) -> None:
    keeper = await lab.shell("stty raw -echo; echo ready; exec sleep 1000")
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    client = watcher.client
    paste = asyncio.create_task(client.write(b"p" * 3_000_000, "t.1.paste"))
    others = [asyncio.create_task(client.write(b"o" * 200_000)) for _ in range(10)]
    done, waiting = await asyncio.wait(others, timeout=DEADLINE_S, return_when=asyncio.FIRST_COMPLETED)
    assert waiting
    with pytest.raises(KeeperBusy, match="does not read"):
        await done.pop()
    hello = await client.ping()  # the keeper is well
    assert hello.pid == keeper.pid
    if sys.platform == "linux":
        rss = next(
            int(line.split()[1])
            for line in Path(f"/proc/{keeper.keeper_pid}/status").read_text().splitlines()
            if line.startswith("VmRSS")
        )
        assert rss < 32_000  # kB: 3 MB never sat in it, the interpreter is 13,000
    dropped = await client.discard_input()
    assert dropped > 0
    with pytest.raises(KeeperRefused) as caught:
        await paste
    assert caught.value.reason == "discarded"
    assert 0 < caught.value.details["written"] < 3_000_000
    outcomes = await asyncio.gather(*others, return_exceptions=True)
    assert {outcome.reason for outcome in outcomes if isinstance(outcome, KeeperRefused)} == {"busy", "discarded"}


async def test_a_large_paste_arrives_whole(lab: Lab) -> None:
    keeper = await lab.python(
        "import os,tty,hashlib\ntty.setraw(0)\nprint('ready',flush=True)\nh=hashlib.sha256();n=0\n"
        "while n<3_000_000:\n  d=os.read(0,65536); n+=len(d); h.update(d)\n"
        "print(h.hexdigest(),flush=True)"
    )
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    data = bytes(i * 7 % 251 for i in range(3_000_000))
    result = await watcher.client.write(data, "big")
    assert (result.status, result.written) == ("written", len(data))
    await watcher.until_output(hashlib.sha256(data).hexdigest().encode())


async def test_a_line_that_the_terminal_would_cut_is_refused(lab: Lab) -> None:
    keeper = await lab.shell("echo ready; exec cat >got")
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    client = watcher.client
    with pytest.raises(KeeperRefused) as caught:
        await client.write(b"x" * 5000 + b"\n", "long")
    assert caught.value.reason == "line_too_long"
    await client.write(b"y" * 3000, "half")
    with pytest.raises(KeeperRefused):
        await client.write(b"z" * 2000, "too much for the open line")
    await client.write(b"\n" + b"short\n" * 2000, "many short lines")
    result = await client.write(b"fine\n\x04", "long")  # nothing was written under this id, so it is free
    assert result.status == "written"
    await watcher.until_exit()
    got = (lab.root / "got").read_bytes()
    assert got == b"y" * 3000 + b"\n" + b"short\n" * 2000 + b"fine\n"


async def test_what_a_terminal_hides_is_told(lab: Lab) -> None:
    keeper = await lab.shell("echo open; read a; stty -echo; echo shut; read b; stty raw; echo raw; exec cat")
    watcher = await lab.watch(keeper)
    hidden = {}
    for state in ("open", "shut", "raw"):
        await watcher.until_output(state.encode())
        hidden[state] = (await watcher.client.write(b"x\n", state)).hidden
    assert hidden == {"open": False, "shut": True, "raw": False}


async def test_output_older_than_an_input_is_below_its_offset(lab: Lab) -> None:
    """Also output that the keeper had not read yet when the write arrived."""
    keeper = await lab.python(
        "import os,tty\ntty.setraw(0)\nprint('ready',flush=True)\n"
        "for n in range(200):\n"
        "  c=os.read(0,1)\n"
        "  os.write(1,b'[%03d]'%n)\n"
    )
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    for number in range(200):
        result = await watcher.client.write(b"x", f"i{number}")
        text = await watcher.until_output(b"[%03d]" % number)
        assert text.index(b"[%03d]" % number) >= result.at
        if number:
            assert text.index(b"[%03d]" % (number - 1)) < result.at


async def test_nothing_is_written_to_a_program_that_ended(lab: Lab) -> None:
    keeper = await lab.shell("exit 0")
    watcher = await lab.watch(keeper)
    await watcher.until_exit()
    with pytest.raises(KeeperRefused) as caught:
        await watcher.client.write(b"hello")
    assert caught.value.reason == "exited"
    with pytest.raises(KeeperRefused) as caught:
        await watcher.client.signal(signal.SIGTERM)
    assert caught.value.reason == "exited"
    assert await watcher.client.stop(1) == 0


# --- exits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["pty", "pipes"])
@pytest.mark.parametrize(("script", "code", "signum"), [("exit 7", 7, None), ("kill -9 $$", None, 9)])
async def test_exit_records(lab: Lab, transport: str, script: str, code: int | None, signum: int | None) -> None:
    keeper = await lab.shell(f"echo last words; {script}", transport=transport)
    watcher = await lab.watch(keeper)
    record = await watcher.until_exit()
    assert (record.code, record.signal, record.stopped) == (code, signum, False)
    assert record.exit_code == (code if signum is None else -signum)
    assert b"last words" in watcher.output
    assert record.final_offset == len(watcher.output)
    assert record.started_at <= record.exited_at
    stored = json.loads((lab.root / "state" / "exit.json").read_text())
    assert type(record).from_json(stored) == record


async def test_an_exit_while_nobody_is_connected_waits_to_be_acknowledged(lab: Lab) -> None:
    keeper = await lab.shell("read x; echo bye; exit 7")
    client = await lab.connect(keeper)
    await client.write(b"\n")
    client.close()
    await until_file(lab.root / "state" / "exit.json")
    client = await lab.connect(keeper)
    assert client.hello.exit is not None
    assert client.hello.exit.code == 7
    assert start_mark(client.hello.pid) is None
    watcher = Watcher(client)
    await client.subscribe(0)
    await watcher.until_exit()
    assert b"bye" in watcher.output
    await client.acknowledge_exit()
    await watcher.until_lost()
    await until_gone(keeper.keeper_pid, keeper.keeper_start)
    assert not keeper.socket_path.exists()


async def test_an_exit_is_not_acknowledged_too_early_or_for_another(lab: Lab) -> None:
    keeper = await lab.shell("cat")
    client = await lab.connect(keeper)
    with pytest.raises(KeeperRefused) as caught:
        await client.acknowledge_exit()
    assert caught.value.reason == "running"


async def test_a_keeper_that_nobody_acknowledges_ends_in_the_end(lab: Lab) -> None:
    keeper = await lab.shell("true", linger_s=0)
    await until_gone(keeper.keeper_pid, keeper.keeper_start)
    assert json.loads((lab.root / "state" / "exit.json").read_text())["code"] == 0
    assert not keeper.socket_path.exists()


async def test_the_last_output_of_a_descendant_that_outlives_the_program_is_kept(lab: Lab) -> None:
    keeper = await lab.shell(
        "(trap '' HUP; : >up; while kill -0 $$; do :; done; echo late) & until test -e up; do :; done; exit 3"
    )
    watcher = await lab.watch(keeper)
    record = await watcher.until_exit()
    assert record.code == 3
    assert b"late" in watcher.output


# --- stopping ---------------------------------------------------------------------------------------------------------

STUBBORN = (
    "import os,signal,sys,time\n"
    "for s in (signal.SIGTERM,signal.SIGHUP,signal.SIGINT): signal.signal(s,signal.SIG_IGN)\n"
    "def stay(): \n"
    "  open('up-%d'%os.getpid(),'w').close()\n"
    "  while True: time.sleep(1000)\n"
    "if os.fork()==0: stay()\n"  # ignores everything
    "if os.fork()==0:\n  os.setsid(); stay()\n"  # of another session
    "if os.fork()==0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n  stay()\n"  # double-forked
    "while len([n for n in os.listdir('.') if n.startswith('up-')])<3: time.sleep(0.01)\n"
    "print('ready',flush=True)\n"
)


@pytest.mark.parametrize("transport", ["pty", "pipes"])
@pytest.mark.parametrize("grace", [0.0, 0.2])
async def test_stop_leaves_no_descendant(lab: Lab, grace: float, transport: str) -> None:
    keeper = await lab.python(STUBBORN + "stay()", transport=transport)
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    assert len(living(keeper.launch_id)) == 4
    assert await watcher.client.stop(grace) == 0
    assert living(keeper.launch_id) == []
    record = await watcher.until_exit()
    assert (record.signal, record.stopped, record.leftover) == (signal.SIGKILL, True, 0)


async def test_a_program_that_heeds_term_is_given_its_time(lab: Lab) -> None:
    keeper = await lab.python(
        "import os,signal,time\n"
        "def bye(*_): time.sleep(0.2); os.write(1,b'saved'); os._exit(5)\n"
        "signal.signal(signal.SIGTERM,bye)\nprint('ready',flush=True)\nwhile True: time.sleep(0.01)"
    )
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    assert await watcher.client.stop(DEADLINE_S) == 0
    record = await watcher.until_exit()
    assert (record.code, record.stopped) == (5, True)
    assert b"saved" in watcher.output


async def test_a_stopped_process_is_ended_too(lab: Lab) -> None:
    keeper = await lab.shell("echo ready; kill -STOP $$; exit 4")
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    await watcher.client.stop(DEADLINE_S)
    assert (await watcher.until_exit()).signal == signal.SIGTERM


async def test_what_a_program_left_behind_is_swept_after_it(lab: Lab) -> None:
    keeper = await lab.python(STUBBORN + "os._exit(0)")
    watcher = await lab.watch(keeper)
    record = await watcher.until_exit()
    assert (record.code, record.stopped, record.leftover) == (0, False, 0)
    assert living(keeper.launch_id) == []


async def test_what_a_program_left_behind_may_stay(lab: Lab) -> None:
    keeper = await lab.python(STUBBORN + "os._exit(0)", sweep_on_exit=False)
    watcher = await lab.watch(keeper)
    assert (await watcher.until_exit()).code == 0
    assert len(living(keeper.launch_id)) == 3


async def test_signals_reach_the_program_or_the_foreground(lab: Lab) -> None:
    keeper = await lab.python(
        "import os,signal,time\n"
        "child=os.fork()\n"
        "name='child' if child==0 else 'parent'\n"
        "signal.signal(signal.SIGUSR1,lambda *_: os.write(1,b'usr1 '+name.encode()+b'\\n'))\n"
        "signal.signal(signal.SIGUSR2,lambda *_: os.write(1,b'usr2 '+name.encode()+b'\\n'))\n"
        "os.write(1,b'ready '+name.encode()+b'\\n')\n"
        "while True: time.sleep(0.01)"
    )
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready parent")
    await watcher.until_output(b"ready child")
    await watcher.client.signal(signal.SIGUSR1, target="foreground")
    await watcher.until_output(b"usr1 parent")
    await watcher.until_output(b"usr1 child")
    await watcher.client.signal(signal.SIGUSR2, target="child")
    await watcher.until_output(b"usr2 parent")
    assert b"usr2 child" not in watcher.output


async def test_sigterm_to_the_keeper_ends_everything_and_the_keeper(lab: Lab) -> None:
    """What a service manager does."""
    keeper = await lab.python(STUBBORN + "stay()", term_grace_s=0)
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    os.kill(keeper.keeper_pid, signal.SIGTERM)
    assert (await watcher.until_exit()).stopped
    await until_gone(keeper.keeper_pid, keeper.keeper_start)
    assert living(keeper.launch_id) == []
    assert not keeper.socket_path.exists()


# --- a keeper that is killed ------------------------------------------------------------------------------------------


async def test_kill_9_of_the_keeper_leaves_the_spool_and_the_sweep_finds_the_rest(lab: Lab) -> None:
    keeper = await lab.python(STUBBORN + "print('z'*100000+'END',flush=True)\nstay()")
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"END")
    assert find_keepers([keeper.address]) == {keeper.launch_id: True}
    kill(keeper.keeper_pid)
    await watcher.until_lost()
    await until_gone(keeper.keeper_pid, keeper.keeper_start)
    with pytest.raises(KeeperLost):
        await watcher.client.ping()
    with pytest.raises(KeeperLost):
        await KeeperClient.connect(keeper.socket_path)
    assert find_keepers([keeper.address]) == {keeper.launch_id: False}
    spool = SpoolReader(str(lab.root / "state" / "spool"))
    assert spool.end == len(watcher.output)
    assert spool.read(0, spool.end) == (0, bytes(watcher.output))
    assert len(living(keeper.launch_id)) >= 3
    assert await sweep_launch(keeper.launch_id) >= 3
    assert living(keeper.launch_id) == []


async def test_another_process_with_the_same_pid_is_no_keeper(lab: Lab) -> None:
    keeper = await lab.shell("cat")
    other = KeeperAddress(keeper.launch_id, keeper.socket_path, os.getpid(), keeper.keeper_start)
    assert find_keepers([other]) == {keeper.launch_id: False}


@pytest.mark.skipif(sys.platform != "linux", reason="marks hold the boot on Linux only")
def test_a_start_mark_tells_the_boot_and_the_age() -> None:
    mark = start_mark(os.getpid())
    assert mark is not None
    assert not is_before_boot(mark)
    assert is_before_boot(mark ^ 1 << 40)
    assert abs(lived_s(mark) - (time.time() - psutil.Process().create_time())) < 60
    assert age_of(os.getpid(), mark) is not None
    assert age_of(os.getpid(), mark + 1) is None


def test_a_zombie_has_no_start_mark() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.read() == b""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert start_mark(process.pid) is None
    process.wait()
    process.stdout.close()


async def test_a_launch_that_is_cancelled_leaves_nothing(lab: Lab) -> None:
    launch = asyncio.create_task(ProcessLauncher().launch(lab.spec("sleep", "1000", launch_id="cancelled")))
    await asyncio.sleep(0.02)
    launch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await launch
    assert living(f"{lab.root.name}-cancelled") == []


# --- pipes ------------------------------------------------------------------------------------------------------------


async def test_pipes_keep_output_and_errors_apart(lab: Lab) -> None:
    keeper = await lab.shell("cat; echo problem >&2; echo end", transport="pipes")
    watcher = await lab.watch(keeper)
    client = watcher.client
    assert client.hello.transport == "pipes"
    await client.subscribe(0, channel="stderr")
    big = os.urandom(300_000)
    await client.write(big, "raw")
    await client.close_input()
    with pytest.raises(KeeperRefused):
        await client.write(b"more")
    assert (await watcher.until_exit()).code == 0
    assert watcher.output == big + b"end\n"
    errors = [event for event in watcher.events if isinstance(event, Output) and event.channel == "stderr"]
    assert b"".join(event.data for event in errors) == b"problem\n"
    with pytest.raises(KeeperRefused) as caught:
        await client.subscribe(0, channel="pty")
    assert caught.value.reason == "no_channel"
    with pytest.raises(KeeperRefused) as caught:
        await client.resize(80, 24)
    assert caught.value.reason == "no_terminal"
