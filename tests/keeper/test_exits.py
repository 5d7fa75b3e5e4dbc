"""Real keepers with real programs: how programs and keepers end, and what survives."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from synapsed.errors import KeeperLost
from synapsed.keeper.processes import is_before_boot, lived_s, start_mark
from synapsed.keeper.spool import SpoolReader
from synapsed.keepers.client import KeeperClient
from synapsed.keepers.keeper_messages import KeeperRefused
from synapsed.keepers.launchers import KEEPER, KeeperAddress, ProcessLauncher, age_of, find_keepers, sweep_launch
from tests.keeper.conftest import DEADLINE_S, Lab, kill, living, until_file, until_gone

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
    watcher = lab.watcher(client)
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


PATIENT = """
import pathlib, runpy, sys
sys.path.append({root!r})
from synapsed.keeper import program, spool

program.RETRY_S = 3600.0
pull = spool.OutputChannel.pull

def noted(channel):
    stored = pull(channel)
    if channel.closed:
        pathlib.Path({seen!r}).touch()
    return stored

spool.OutputChannel.pull = noted
sys.argv[0] = {keeper!r}
runpy.run_path({keeper!r}, run_name="__main__")
"""
"""A keeper that says when it finds the terminal closed, and looks at it again only when something else happens."""

CLOSES_AND_OPENS = (
    "import os\n"
    "os.write(1,b'early')\n"
    "for fd in (0,1,2): os.close(fd)\n"
    "while not os.path.exists('seen'): pass\n"
    "os.write(os.open('/dev/tty',os.O_RDWR),b'late')\n"
)


async def test_a_terminal_that_was_closed_and_opened_again_is_read_to_its_end(lab: Lab) -> None:
    patient = lab.root / "patient.py"
    root, seen = str(Path(KEEPER).parents[2]), str(lab.root / "seen")
    patient.write_text(PATIENT.format(root=root, seen=seen, keeper=str(KEEPER)))
    spec = lab.spec(sys.executable, "-S", "-E", "-c", CLOSES_AND_OPENS)
    keeper = await ProcessLauncher(keeper=patient).launch(spec)
    lab.launched.append(keeper)
    watcher = await lab.watch(keeper)
    record = await watcher.until_exit()
    assert (record.code, bytes(watcher.output)) == (0, b"earlylate")


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


async def test_without_a_foreground_group_the_keeper_itself_is_not_hit(lab: Lab) -> None:
    keeper = await lab.python(
        "import fcntl,os,signal,termios,time\n"
        "signal.signal(signal.SIGHUP,signal.SIG_IGN)\n"
        "fcntl.ioctl(0,termios.TIOCNOTTY)\n"  # the terminal belongs to no session now: its foreground group is 0
        "os.write(1,b'alone\\n')\n"
        "while True: time.sleep(0.01)"
    )
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"alone")
    assert (await watcher.client.ping()).foreground is None
    with pytest.raises(KeeperRefused) as caught:
        await watcher.client.signal(signal.SIGKILL, target="foreground")
    assert caught.value.reason == "exited"
    await watcher.client.stop(0)
    assert (await watcher.until_exit()).stopped


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
    await watcher.until_output(b"END\r\n")  # all that it writes: what the keeper had not sent yet would be lost here
    assert find_keepers([keeper]) == {keeper.launch_id: True}
    kill(keeper.keeper_pid)
    await watcher.until_lost()
    await until_gone(keeper.keeper_pid, keeper.keeper_start)
    with pytest.raises(KeeperLost):
        await watcher.client.ping()
    with pytest.raises(KeeperLost):
        await KeeperClient.connect(keeper.socket_path)
    assert find_keepers([keeper]) == {keeper.launch_id: False}
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
