"""Another user of the machine opens all the connections that he can, to a daemon with few descriptors."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon import ANY_PORTS, PATIENCE_S, Daemon, eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

FLOOD = """
import os, resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
os.setgroups([]); os.setgid(65534); os.setuid(65534)
kept = []
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    for port in map(int, sys.argv[2:]):
        one = socket.socket()
        one.setblocking(False)
        try:
            one.connect(("127.0.0.1", port))
        except BlockingIOError:
            pass
        kept.append(one)
    if len(kept) > 3000:
        for one in kept: one.close()
        kept.clear()
"""
FLOOD_S = 5.0
LOG_MAX = 100_000


@pytest.mark.parametrize("hard", [1024, 4096])
def test_a_flood_of_connections(tmp_path: Path, hard: int) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 4096:
        pytest.skip("needs a hard limit of 4,096 files")
    daemon = Daemon(tmp_path / "home", config=ANY_PORTS)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    (tmp_path / "home").mkdir(exist_ok=True)
    limited = ["prlimit", f"--nofile=1024:{hard}", sys.executable, "-m", "synapsed", "run"]
    with (daemon.home / "daemon.log").open("ab") as log:
        daemon.process = subprocess.Popen(limited, env=daemon.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        eventually(daemon._answers, "the daemon answers")
        now = Path(f"/proc/{daemon.pid}/limits").read_text()
        assert f"Max open files            {hard}" in now, "the soft limit is the hard one"
        agent = daemon.start_agent()
        given = Path(f"/proc/{agent['pid']}/limits").read_text()
        assert given.partition("Max open files")[2].split()[:2] == ["1024", str(hard)], "the agent has what was given"
        ports = [str(daemon.port), str(agent["port"])]
        with subprocess.Popen([sys.executable, "-c", FLOOD, str(FLOOD_S), *ports]) as flood:
            asked = 0
            while flood.poll() is None:
                assert daemon.ctl("list").code == 0
                assert daemon.ctl("send", "dummy", "--wait", "--", "echo through it").out == "through it\n"
                asked += 1
            assert asked > 0
            assert flood.wait(PATIENCE_S) == 0
        told = daemon.log()
        assert len(told) < LOG_MAX
        assert "connections refused" in told
        assert "Too many open files" not in told
    finally:
        daemon.end()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
