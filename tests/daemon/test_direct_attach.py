"""The direct way of an attached terminal, with a real daemon: text and its echo need no daemon, and nothing is lost,
mixed or out of order where they do."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.test_attach_screens import SHELL, Stand
from tests.support.seen import PATIENCE_S, Seen, shows

RAW = "import os,tty\ntty.setraw(0)\nos.write(1,b'> ')\nwhile True: os.write(1,os.read(0,99).replace(b'\\r',b'\\r\\n'))"
ECHO = [sys.executable, "-S", "-c", RAW]
LINES = 'while read -r line; do echo "got <$line>"; done'
TRY_S = 2.0
"""How long a key may take before another is tried: at most, it takes one more round until the way has begun."""


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    stand = Stand(tmp_path)
    yield stand
    stand.daemon.process.send_signal(signal.SIGCONT)
    stand.end()


def go_direct(stand: Stand, seen: Seen) -> str:
    """Type until a key is echoed with the daemon stopped; what was typed. The daemon goes on standing still."""
    typed, deadline = "", time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for letter in "ab":
            seen.type(letter.encode())
            typed += letter
            seen.until(shows("> " + typed), "it echoes")
        os.kill(stand.daemon.pid, signal.SIGSTOP)
        seen.type(b"c")
        typed += "c"
        tried = time.monotonic() + TRY_S
        while time.monotonic() < tried:
            if any("> " + typed in line for line in seen.lines):
                return typed
        os.kill(stand.daemon.pid, signal.SIGCONT)
        seen.until(shows("> " + typed), "it echoes")
    raise AssertionError("no key is echoed while the daemon stands still")


def test_text_needs_no_daemon_and_no_key_overtakes_another(stand: Stand) -> None:
    stand.start(ECHO)
    seen = stand.attach()
    seen.until(shows(">"), "it is there")
    typed = go_direct(stand, seen)
    seen.type(b"\rnext\x1b[")
    seen.type(b"C!")
    os.kill(stand.daemon.pid, signal.SIGCONT)
    lines = seen.until(shows("next !"), "the rest follows in its order")
    assert any(line.rstrip() == "> " + typed for line in lines)
    # A terminal that is lent is given up where the screen has to be drawn again, and the keys go on.
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
    typed = go_direct(stand, seen)
    seen.type(b"last")
    stand.daemon.kill9()  # before these keys are read, or after
    seen.until(shows("the daemon is away"), "it is missed")
    stand.daemon.start()
    seen.type(b"+more")
    seen.until(shows("> " + typed + "last+more"), "the next daemon is found, and no key is lost")
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
