"""Another user listens on [::1], at the very ports that the daemon has on 127.0.0.1."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ground import other_listener
from tests.ground.installed import Installed
from tests.ground.person import Person, living_somewhere
from tests.support.daemon import PATIENCE_S

pytestmark = [
    pytest.mark.night,
    pytest.mark.skipif(
        sys.platform != "linux" or os.getuid() != 0 or shutil.which("unshare") is None, reason="makes a network"
    ),
]

STRANGER, API, AGENT = 65534, 8090, 8190

LOCALHOST = """import sys, urllib.request
request = urllib.request.Request(sys.argv[1] + "/tasks/send", b'{"message": {"role": "user", "parts": []}}', headers={
    "Content-Type": "application/json", "Authorization": "Bearer " + open(sys.argv[2]).read().strip()})
try:
    urllib.request.urlopen(request, timeout=20)
except urllib.error.HTTPError as error:
    print(error.code)
"""
"""A client that goes where it is told, and brings the token along."""


@pytest.fixture
def person(installed: Installed) -> Iterator[Person]:
    with living_somewhere(installed, "") as person:
        yield person


@contextmanager
def network(tmp_path: Path, *ports: int) -> Iterator[tuple[str, ...]]:
    """One of its own in which another user has [::1] at `ports`: the command that enters it."""
    listener = [sys.executable, str(other_listener.__file__), str(STRANGER), str(tmp_path / "heard"), *map(str, ports)]
    command = ["unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", *listener]
    (tmp_path / "heard").touch()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "listening\n"
            yield ("nsenter", f"--net=/proc/{process.pid}/ns/net")
        finally:
            process.kill()
            process.wait(PATIENCE_S)


@pytest.mark.parametrize("ports", [(API, AGENT), (API,), (AGENT,)], ids=["both", "the daemon's", "an agent's"])
def test_it_gets_nothing(ports: tuple[int, ...], person: Person, tmp_path: Path) -> None:
    with network(tmp_path, *ports) as inside:
        started = person.ctl("start", "dummy", "--name", "d", around=inside)
        assert started.code == 0, started
        sent = person.ctl("send", "d", "--wait", "--", "echo hi", around=inside)
        assert (sent.code, sent.out) == (0, "hi\n"), sent
        (row,) = person.ctl("list", "--json", around=inside).json
        if AGENT in ports:
            assert row["endpoint"] == f"http://127.0.0.1:{AGENT}"
        asked = person.run(*inside, sys.executable, "-c", LOCALHOST, row["endpoint"], str(person.state / "token"))
        assert asked.out == "400\n", asked
        told = person.ctl("doctor", around=inside)
        assert "Traceback" not in told.err, told
        assert f"uid {STRANGER}" in told.out or "nobody" in told.out, told
        assert person.ctl("shutdown", around=inside).code == 0
        token = (person.state / "token").read_text().strip()
        heard = (tmp_path / "heard").read_text()
    assert token not in heard
    assert "/tasks/send" not in heard


def test_both_are_held_where_they_are_free(person: Person, tmp_path: Path) -> None:
    with network(tmp_path) as inside:
        assert person.ctl("start", "dummy", "--name", "d", around=inside).code == 0
        for host in ("127.0.0.1", "[::1]", "localhost"):
            url = f"http://{host}:{AGENT}"
            asked = person.run(*inside, sys.executable, "-c", LOCALHOST, url, str(person.state / "token"))
            assert asked.out == "400\n", (host, asked)
        assert person.ctl("shutdown", around=inside).code == 0
