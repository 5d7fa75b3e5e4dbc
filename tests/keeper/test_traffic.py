"""Real keepers with real programs: what a program writes and is written."""

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import termios
import tty
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import psutil
import pytest

from synapsed.errors import KeeperLost
from synapsed.keeper.inputs import MAX_LINE, LineCheck
from synapsed.keeper.spool import SEGMENT_SIZE
from synapsed.keeper.writer import InputWriter
from synapsed.keepers.client import KeeperClient
from synapsed.keepers.keeper_messages import KeeperBusy, KeeperEvent, KeeperRefused, Output
from tests.keeper.conftest import DEADLINE_S, Lab, until_file

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
        async for event in lab.told[client].events():
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
    slow.pause_output()
    await slow.subscribe(0)
    late = lab.watcher(slow)
    quick = await lab.watch(keeper)
    record = await quick.until_exit()
    assert record.final_offset == len(quick.output) == 10_000_000
    assert (await slow.ping()).spool_end == 10_000_000  # answers get through a paused connection
    assert not late.output
    slow.resume_output()
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


async def test_what_the_disk_does_not_give_back_is_told_as_a_gap(lab: Lab) -> None:
    """A bad sector under the first segment; here a directory in its place cannot be read."""
    keeper = await lab.python(TEN_MB)
    first = await lab.watch(keeper)
    await first.until_exit()
    (lab.root / "state" / "spool" / f"{0:020d}.seg").unlink()
    (lab.root / "state" / "spool" / f"{0:020d}.seg").mkdir()
    late = await lab.watch(keeper, 0)
    await late.until_exit()
    assert [(gap.start, gap.end) for gap in late.gaps] == [(0, SEGMENT_SIZE)]
    assert late.output == first.output[SEGMENT_SIZE:]


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


async def test_an_owner_that_fails_at_an_event_keeps_its_connection(lab: Lab) -> None:
    keeper = await lab.shell("echo first; read line; echo second; read line")
    output = bytearray()
    came = asyncio.Event()

    def take(event: KeeperEvent) -> None:
        output.extend(getattr(event, "data", b""))
        came.set()
        raise KeyError("scripted")

    client = await KeeperClient.connect(keeper.socket_path, on_event=take, timeout=DEADLINE_S)
    await client.subscribe(0)
    for expected in (b"first", b"second"):
        async with asyncio.timeout(DEADLINE_S):
            while expected not in output:
                came.clear()
                await came.wait()
        await client.write(b"on\r")
    assert client.lost is None
    client.close()


# --- input ------------------------------------------------------------------------------------------------------------


async def test_an_input_is_written_once_whoever_repeats_it(lab: Lab) -> None:
    keeper = await lab.shell("stty raw -echo; echo ready; exec cat")
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready\n")
    before = len(watcher.output)
    first = await watcher.client.write(b"<one>", "t.1.paste")
    assert (first.status, first.written, first.length) == ("written", 5, 5)
    assert first.at == first.offset == before
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


@pytest.mark.parametrize("transport", ["pty", "pipes"])
async def test_what_the_program_has_not_read_is_known(lab: Lab, transport: Literal["pty", "pipes"]) -> None:
    keeper = await lab.shell(
        "[ -t 0 ] && stty raw -echo; echo ready; kill -STOP $$; head -c 5; echo; exec sleep 1000", transport=transport
    )
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    client = watcher.client
    said = await client.ping()
    assert said.unread == 0
    program = psutil.Process(said.pid)
    await client.write(b"12345")
    async with asyncio.timeout(DEADLINE_S):
        while (await client.ping()).unread != 5 or program.status() != psutil.STATUS_STOPPED:
            await asyncio.sleep(0.005)  # the shell stops, and the kernel moves what is more than a key, in its own time
    await client.signal(signal.SIGCONT)
    await watcher.until_output(b"12345")
    assert (await client.ping()).unread == 0
    await client.stop(1)
    assert (await client.ping()).unread == 0


def test_a_key_is_unread_from_the_moment_when_it_is_written() -> None:
    """Also on a busy machine, where Linux brings it late to the program's side."""
    keeper_side, program_side = os.openpty()
    tty.setraw(program_side)
    program: Any = SimpleNamespace(terminal=True, tty=os.ttyname(program_side), input=keeper_side)
    unused: Any = None
    writer = InputWriter(program, unused, unused, unused)
    burner = [sys.executable, "-S", "-E", "-c", "while True: pass"]
    burners = [subprocess.Popen(burner) for _ in range(os.cpu_count() or 1)]
    try:
        for _ in range(500):
            os.write(keeper_side, b"\r")
            assert writer.unread() == 1
            os.read(program_side, 1)
            assert writer.unread() == 0
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
        os.close(keeper_side)
        os.close(program_side)


async def test_who_reads_the_terminal_and_how_is_known(lab: Lab) -> None:
    keeper = await lab.shell("stty raw -echo; echo ready; head -c 1; stty sane; echo lines; exec sleep 1000")
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    said = await watcher.client.ping()
    assert (said.line_mode, said.foreground) == (False, said.pid)
    await watcher.client.write(b"x")
    await watcher.until_output(b"lines")
    assert (await watcher.client.ping()).line_mode is True


async def test_pipes_have_no_line_mode(lab: Lab) -> None:
    watcher = await lab.watch(await lab.shell("echo ready; exec sleep 1000", transport="pipes"))
    await watcher.until_output(b"ready")
    said = await watcher.client.ping()
    assert (said.line_mode, said.foreground) == (None, None)


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


@pytest.mark.parametrize("key", ["\x03", "\x1c"])
async def test_a_full_line_can_be_interrupted(lab: Lab, key: str) -> None:
    keeper = await lab.shell('trap "echo told; exit 3" INT QUIT; echo ready; cat')
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    await watcher.client.write(b"x" * MAX_LINE)
    with pytest.raises(KeeperRefused):
        await watcher.client.write(b"y")
    result = await watcher.client.write(key.encode())
    assert result.status == "written"
    assert (await watcher.until_exit()).exit_code == 3


async def test_keys_that_erase_make_room_in_a_line(lab: Lab) -> None:
    keeper = await lab.shell("stty -echo; echo ready; exec cat >got")
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    client = watcher.client
    await client.write(b"a" * 3000)
    await client.write(b"\x15" + b"b" * 2000 + b"\r")
    await client.write(b"c" * MAX_LINE)
    await client.write(b"\x7f")
    await client.write(b"d")
    with pytest.raises(KeeperRefused) as caught:
        await client.write(b"e")
    assert caught.value.reason == "line_too_long"
    await client.write(b"\x17" + b"\x7f" * 10 + b"\n")  # a word is erased: the whole line
    await client.write(b"f\x16")  # the next key is text, even if it erases
    await client.write(b"\x15g\n\x04")
    await watcher.until_exit()
    assert (lab.root / "got").read_bytes() == b"b" * 2000 + b"\n\nf\x15g\n"


def test_the_length_of_a_line_is_never_too_small() -> None:
    """Each case has the terminal's flags, the inputs, and the length of the line after them."""
    reader, terminal = os.openpty()
    try:
        usual = termios.tcgetattr(terminal)
        cases: list[tuple[int, int, list[bytes], int]] = [
            (0, 0, [b"abc", b"\x03"], 0),
            (0, termios.NOFLSH, [b"abc", b"\x03\x1c\x1a"], 3),  # no key is text, and the line stays
            (0, -termios.ISIG, [b"abc", b"\x03"], 4),
            (0, 0, [b"abc", b"\x15\x15", b"\x7fd"], 1),
            (0, 0, [b"abc\x7f\x7f\x7f\x7fde"], 2),
            (0, 0, [b"ab cd\x17"], 4),
            (0, -termios.IEXTEN, [b"ab\x17\x16"], 4),
            (0, 0, [b"abc\x16", b"\x15d"], 5),
            (0, 0, [b"abc\x16\x16", b"\x15"], 5),  # the next key is counted too, which erases in truth
            (-termios.IXON, 0, [b"\x11\x13"], 2),
            (0, 0, [b"abc\rd"], 1),
            (-termios.ICRNL, 0, [b"abc\rd"], 5),
            (0, 0, [b"abc\x04"], 0),
        ]
        for input_flags, flags, inputs, length in cases:
            attributes = [*usual]
            attributes[0] = usual[0] | input_flags if input_flags >= 0 else usual[0] & ~-input_flags
            attributes[3] = usual[3] | flags if flags >= 0 else usual[3] & ~-flags
            termios.tcsetattr(terminal, termios.TCSANOW, attributes)
            check = LineCheck(reader)
            for data in inputs:
                assert check.refuses(data) is None
                check.wrote(data)
            room = b"x" * (MAX_LINE - length)
            assert (check.refuses(room), check.refuses(room + b"x")) == (None, MAX_LINE + 1), (flags, inputs)
    finally:
        os.close(reader)
        os.close(terminal)


async def test_a_discarded_line_is_counted_as_far_as_it_was_written(lab: Lab) -> None:
    keeper = await lab.shell("echo ready; until test -e go; do sleep 0.05; done; exec cat >got")
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    client = watcher.client
    waiting = asyncio.create_task(client.write(b"short\n" * 20_000 + b"x" * 4000, "lines"))
    await watcher.until_output(b"short")
    assert await client.discard_input() > 4000
    with pytest.raises(KeeperRefused) as caught:
        await waiting
    late = asyncio.create_task(client.write(b"y" * 200 + b"\n\x04", "line"))
    (lab.root / "go").touch()
    assert (await late).status == "written"
    await watcher.until_exit()
    written = (b"short\n" * 20_000)[: caught.value.details["written"]]
    assert (lab.root / "got").read_bytes() == written + b"y" * 200 + b"\n"


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
