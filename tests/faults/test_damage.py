"""Faults 6, 7, 11 to 15: keepers and programs that are killed, full disks, deaf programs, strangers, a reboot."""

import contextlib
import itertools
import json
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.faults.house import PATIENT_S, House, lag_of
from tests.support.daemon import NO_PORTS, PATIENCE_S, eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

MakeHouse = Callable[..., House]

PASTE = 10 * 1024 * 1024

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


def _gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_6_a_keeper_is_killed(house: MakeHouse) -> None:
    here = house("6", "kill -9 of a keeper")
    daemon = here.daemon.start()
    hit, spared = here.start_agents(2)
    pids = here.pids()
    both = [here.send(f"spawn\nbusy 2\nflood 16 {name}", name) for name in (hit, spared)]
    eventually(lambda: daemon.agent(hit)["activity"] == "busy", "it works")
    here.keeper_of(hit).kill()
    here.fault()
    failed = daemon.ended(str(both[0]))
    assert failed["error"]["code"] == "AGENT_EXITED"
    eventually(lambda: _gone(pids[hit]), "the program is gone")
    again = eventually(lambda: daemon.agent(hit)["pid"], "another is started")
    assert again != pids[hit]
    daemon.ready(hit)
    assert here.pids()[spared] == pids[spared]
    here.audit_bytes(hit, pids[hit], ended=True)
    here.audit_tasks(may_fail=frozenset({str(both[0])}))
    here.audit_bytes(spared, pids[spared])


def test_7_daemon_and_keeper_are_killed_together(house: MakeHouse) -> None:
    here = house("7", "kill -9 of daemon and keeper together")
    daemon = here.daemon.start()
    hit, spared = here.start_agents(2)
    pids = here.pids()
    both = [here.send(f"spawn\nbusy 5\nflood 16 {name}", name) for name in (hit, spared)]
    eventually(lambda: "spawned" in daemon.agent(hit)["screen"], "it has a descendant that would stay")
    keeper = here.keeper_of(hit)
    os.kill(daemon.pid, signal.SIGSTOP)  # it is not to learn of the keeper's end
    keeper.kill()
    daemon.kill9()
    here.fault()
    daemon.start()
    failed = daemon.ended(str(both[0]))
    assert (failed["status"], failed["error"]["code"]) == ("failed", "INTERRUPTED")
    daemon.ready(hit)
    assert _gone(pids[hit])
    here.audit_bytes(hit, pids[hit], ended=True)
    here.audit_tasks(may_fail=frozenset({str(both[0])}))
    assert here.pids()[spared] == pids[spared]


@needs_root
def test_11_the_disk_of_the_spool_is_full(house: MakeHouse) -> None:
    here = house("11", "the spool's disk is full, and has space again")
    agents = here.daemon.home / "state" / "agents"
    agents.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=0700", "none", str(agents)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        daemon = here.daemon.start()
        names = here.start_agents(2)
        pids = here.pids()
        task = here.send(f"flood 128 {names[0]}", names[0])  # 8 MiB into 3
        told = eventually(lambda: daemon.agent(names[0]).get("alerts"), "the alert is in status")
        assert "space" in told[0]
        assert "alert" in daemon.ctl("status", names[0]).out
        here.fault()
        assert psutil.pid_exists(here.keeper_of(names[0]).pid)
        daemon.kill9()  # and the next daemon says so too
        daemon.start()
        eventually(lambda: daemon.agent(names[0]).get("alerts"), "the alert is in status again")
        assert daemon.task(str(task))["status"] == "working"
        subprocess.run(["mount", "-o", "remount,size=64m", str(agents)], check=True)
        here.audit_tasks()
        eventually(lambda: daemon.agent(names[0])["alerts"] == [], "the alert is over")
        assert here.pids() == pids
        here.audit_bytes(names[0], pids[names[0]])
        alerts = [event["data"] for event in _events(here) if event["type"] == "agentAlert"]
        full = [alert["details"]["state"] for alert in alerts if alert["code"] == "DISK_FULL"]
        assert full[-1] == "over"  # a machine that is slow for minutes may have told of the screen as well
    finally:
        here.daemon.end()
        subprocess.run(["umount", "-l", str(agents)], check=False)


def _events(here: House) -> list[dict[str, Any]]:
    """The rows of the log: `type`, `at`, `agent`, `data`."""
    connection = sqlite3.connect(f"file:{here.daemon.home}/state/synapsed.db?mode=ro", uri=True)
    try:
        rows = connection.execute("SELECT at, agent_id, data FROM events ORDER BY id").fetchall()
    finally:
        connection.close()
    found = [(at, agent, json.loads(payload)) for at, agent, payload in rows]
    return [{"at": at, "agent": agent, "type": data["type"], "data": data} for at, agent, data in found]


CRASHING = """
[agents.loop]
profile = "flooder"
command = "/bin/false"
autostart = true
cwd = "/"
restart = {initial = 0.05, maximum = 0.4, jitter = 0.1, limit = 6, window = 60.0, retry = 3600.0}
"""


def test_12_an_agent_in_a_crash_loop(house: MakeHouse) -> None:
    here = house("12", "an agent crashes again and again", config=NO_PORTS + CRASHING)
    daemon = here.daemon.start()
    (other,) = here.start_agents(1)
    task = here.send("busy 2\necho unmoved", other)
    eventually(lambda: daemon.agent("loop")["state"] == "failed", "it is left alone for a while")
    mine = daemon.agent("loop")["id"]
    told = [event for event in _events(here) if event["type"] == "agentState" and event["agent"] == mine]
    states = [(event["at"], event["data"]["state"]) for event in told]
    starts = [at for at, state in states if state == "starting"]
    ends = [at for at, state in states if state in ("exited", "backoff", "failed")]
    pauses = [next(at for at in starts if at > end) - end for end in sorted(set(ends)) if end < starts[-1]]
    here.fault(len(starts))
    here.row.figures["pauses before the restarts"] = ", ".join(f"{pause:.2f}" for pause in pauses) + " s"
    assert len(starts) == 7  # the limit, and the one that broke it
    for number, pause in enumerate(sorted(pauses)):
        assert pause >= 0.9 * min(0.05 * 2**number, 0.4) - 0.01
    assert task is not None
    here.audit_tasks()
    assert daemon.agent(other)["restarts"] == 0


def test_13_a_slow_viewer_and_a_paste_that_nobody_reads(house: MakeHouse) -> None:
    here = house("13", "a viewer and a program that read nothing, 10 MB for it")
    daemon = here.daemon.start()
    deaf, loud, other = here.start_agents(3)
    here.send("deaf", deaf)
    eventually(lambda: "deaf" in daemon.agent(deaf)["screen"].splitlines()[-1], "it reads nothing any more")
    memory = psutil.Process(daemon.pid)
    before = memory.memory_info().rss
    with _viewer(here, loud) as slow, _viewer(here, deaf) as typist, lag_of(daemon) as took:
        del slow
        here.fault(2)
        load = here.send(f"flood 320 {loud}", loud)  # 20 MiB past a viewer that reads nothing
        accepted = _paste(typist)
        done = here.send("echo quick", other)
        daemon.ended(str(done))
        daemon.task_in(str(load), "completed", patience=PATIENT_S)
    grown = memory.memory_info().rss - before
    took.sort()
    here.row.figures["answers of the daemon meanwhile"] = (
        f"p50 {took[len(took) // 2] * 1e3:.0f} ms, p99 {took[len(took) * 99 // 100] * 1e3:.0f} ms, "
        f"most {took[-1] * 1e3:.0f} ms"
    )
    here.row.figures["memory of the daemon"] = f"{grown / 1e6:+.0f} MB"
    here.row.figures["taken of the paste before it was refused or held"] = f"{accepted / 1e6:.1f} MB"
    assert grown < 100e6
    keeper = here.keeper_of(deaf)
    assert keeper.memory_info().rss < 60e6
    here.sent.pop(next(task for task, text in here.sent.items() if text == "deaf"))
    here.audit_tasks()
    here.audit_bytes(loud, here.pids()[loud])


@contextlib.contextmanager
def _viewer(here: House, name: str) -> Iterator[socket.socket]:
    """The socket of a WebSocket on the agent's terminal; what comes is not read."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(5)
    client.connect(str(here.daemon.socket))
    head = (
        f"GET /agents/{name}/terminal?cols=80&rows=24 HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    client.sendall(head.encode())
    assert b"101" in client.recv(64)
    try:
        yield client
    finally:
        client.close()


def _paste(client: socket.socket) -> int:
    """Bytes that were taken until nothing more was."""
    piece = b"x" * 65536
    frame = b"\x82\xff" + len(piece).to_bytes(8, "big") + b"\0\0\0\0" + piece
    sent = 0
    with contextlib.suppress(TimeoutError, OSError):
        while sent < PASTE:
            client.sendall(frame)
            sent += len(piece)
    return sent


def test_14_a_second_daemon_a_stale_socket_a_stranger(house: MakeHouse) -> None:
    here = house("14", "a second daemon, a stale socket, a client of another uid")
    daemon = here.daemon.start()
    assert daemon.run().wait(PATIENCE_S) == 1
    assert f"pid {daemon.pid}" in daemon.log()
    assert daemon.get("/healthz").status == 200
    here.fault()
    daemon.kill9()
    assert daemon.socket.exists()
    daemon.start()
    here.fault()
    if os.getuid() == 0:
        assert _as_stranger(here) == "refused"
        here.fault()
    assert daemon.get("/healthz").status == 200


def _as_stranger(here: House) -> str:
    """What another uid gets, also where every directory would let it through."""
    opened = [here.daemon.socket, *itertools.takewhile(lambda p: p != Path("/"), here.daemon.socket.parents)]
    modes = [(path, path.stat().st_mode) for path in opened]
    code = (
        "import os, socket, sys\n"
        "os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))\n"
        "s = socket.socket(socket.AF_UNIX); s.settimeout(20)\n"
        "try:\n"
        "    s.connect(sys.argv[1]); s.sendall(b'GET /agents HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')\n"
        "    print('refused' if b'200' not in s.recv(64)[:16] else 'served')\n"
        "except OSError: print('refused')\n"
    )
    stranger = str(pwd.getpwnam("nobody").pw_uid)
    try:
        for path in opened:
            path.chmod(path.stat().st_mode | (0o066 if path.is_socket() else 0o011))
        done = subprocess.run(
            [sys.executable, "-S", "-E", "-I", "-c", code, str(here.daemon.socket), stranger],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        for path, mode in modes:
            path.chmod(mode & 0o7777)
    return done.stdout.strip() or done.stderr


def test_15_killed_for_memory_then_a_reboot(house: MakeHouse) -> None:
    here = house("15", "an agent killed for memory; then a reboot")
    daemon = here.daemon.start()
    hungry, working, stopped = here.start_agents(3)
    pids = here.pids()
    fat = here.send("eat 64\nbusy 30", hungry)
    eventually(lambda: "eaten" in daemon.agent(hungry)["screen"], "it is the biggest")
    os.kill(pids[hungry], signal.SIGKILL)  # as the kernel does it
    here.fault()
    killed = daemon.ended(str(fat))
    assert killed["error"]["details"]["signal"] == "SIGKILL"
    daemon.ready(hungry)
    assert {name: here.pids()[name] for name in (working, stopped)} == {n: pids[n] for n in (working, stopped)}

    daemon.ctl("stop", stopped)
    cut = here.send("busy 300", working)
    waiting = here.send("echo after the reboot", working)
    eventually(lambda: daemon.agent(working)["activity"] == "busy", "it works")
    pids = here.pids()
    for process in [psutil.Process(daemon.pid), *here.left_over()]:
        with contextlib.suppress(psutil.NoSuchProcess):  # one that the death of another has ended
            process.kill()
    assert daemon.process is not None
    daemon.process.wait()
    eventually(lambda: not here.left_over(), "everything is dead")
    shutil.rmtree(daemon.home / "run")
    innocent = subprocess.Popen(["sleep", "600"])
    _reuse(here, innocent.pid)
    here.fault()
    daemon.start()
    try:
        failed = daemon.ended(str(cut))
        assert (failed["status"], failed["error"]["code"]) == ("failed", "INTERRUPTED")
        assert innocent.poll() is None
        daemon.ready(hungry)
        daemon.ready(working)
        states = {agent["name"]: agent["state"] for agent in daemon.get("/agents").json}
        assert states == {hungry: "running", working: "running", stopped: "stopped"}
        assert waiting is not None
        here.audit_tasks(may_fail=frozenset({str(cut), str(fat)}))
        listed = [json.loads(path.read_text()) for path in (daemon.home / "a2a" / "registry").glob("*.json")]
        running = {agent["id"]: agent["pid"] for agent in daemon.get("/agents").json if agent["pid"] is not None}
        assert {entry["agent_id"]: entry["pid"] for entry in listed} == running
        assert innocent.pid not in running.values()
    finally:
        innocent.kill()
        innocent.wait()


def _reuse(here: House, pid: int) -> None:
    """The pids on record belong to somebody else after the reboot."""
    connection = sqlite3.connect(here.daemon.home / "state" / "synapsed.db")
    with connection:
        for agent_id, text in connection.execute("SELECT id, data FROM agents").fetchall():
            record = json.loads(text)
            if record["launch"] is not None:
                record["launch"] |= {"keeper_pid": pid, "pid": pid}
                connection.execute("UPDATE agents SET data = ? WHERE id = ?", (json.dumps(record), agent_id))
    connection.close()
