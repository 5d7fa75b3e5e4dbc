"""Keys of an attached terminal, with a real daemon: none is lost, mixed or out of order where it stands still, is
killed, or types messages meanwhile."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.test_attach_screens import SHELL, Stand
from tests.support.seen import shows

RAW = "import os,tty\ntty.setraw(0)\nos.write(1,b'> ')\nwhile True: os.write(1,os.read(0,99).replace(b'\\r',b'\\r\\n'))"
ECHO = [sys.executable, "-S", "-c", RAW]


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    stand = Stand(tmp_path)
    yield stand
    stand.daemon.process.send_signal(signal.SIGCONT)
    stand.end()


def test_no_key_overtakes_another_while_the_daemon_stands_still(stand: Stand) -> None:
    stand.start(ECHO)
    seen = stand.attach()
    seen.until(shows(">"), "it is there")
    seen.type(b"a")
    seen.until(shows("> a"), "it echoes")
    os.kill(stand.daemon.pid, signal.SIGSTOP)
    for keys in (b"bc", b"\rnext\x1b[", b"C!"):
        seen.type(keys)
    os.kill(stand.daemon.pid, signal.SIGCONT)
    lines = seen.until(shows("next !"), "they follow in their order")
    assert any(line.rstrip() == "> abc" for line in lines)
    seen.type(b"1")
    seen.resize(60, 18)
    for number in "23456":
        seen.type(number.encode())
    seen.until(shows("next !123456"), "no key is lost")


@pytest.mark.night
def test_the_daemon_may_be_killed(stand: Stand) -> None:
    stand.start(ECHO)
    seen = stand.attach()
    seen.until(shows(">"), "it is there")
    seen.type(b"first")
    seen.until(shows("> first"), "the program has it")
    stand.daemon.kill9()
    seen.until(shows("the daemon is away"), "it is missed")
    seen.type(b"+away")
    stand.daemon.start()
    seen.until(shows("> first+away"), "the next daemon is found, and no key is lost or typed twice")
    seen.type(b"+more")
    seen.until(shows("> first+away+more"), "it goes on")
    seen.type(b"\x1d\x1d")
    seen.until(shows("detached"), "it is left")


@pytest.mark.night
def test_a_message_never_meets_a_letter(stand: Stand) -> None:
    stand.start(SHELL)
    seen = stand.attach()
    seen.until(shows("$"), "it waits")
    tasks = []
    for number in range(4):
        for letter in f"echo person-{number}":
            seen.type(letter.encode())
            if letter == "-":
                tasks.append(stand.daemon.send(f"echo message-{number}", "it"))
        seen.type(b"\r")
    for task in tasks:
        stand.daemon.ended(task)
    wanted = {f"{who}-{number}" for who in ("person", "message") for number in range(4)}
    seen.until(lambda _: wanted <= set(seen.everything), "each line came")
    assert not [line for line in seen.everything if "not found" in line or line.count("-") > 1]
