"""Two daemons as on two machines, and a real ssh between them."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import NO_PORTS, eventually
from tests.support.namespaces import NETWORK, Housed, inside, needs_namespaces, two_houses

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
pytestmark = [
    needs_namespaces,
    pytest.mark.skipif(not (SSHD and shutil.which("ssh")), reason="NOT TRIED: there is no sshd, or no ssh"),
]

PATIENCE_S = 180.0


@dataclass
class Sshd:
    """The login of the other machine: only for the key of `folder`, on the address of its house."""

    folder: Path
    house: int
    environ: str
    process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        for name in ("host", "user"):
            key = self.folder / name
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, timeout=60)
        (self.folder / "authorized_keys").write_bytes((self.folder / "user.pub").read_bytes())
        (self.folder / "known_hosts").touch()
        (self.folder / "sshd_config").write_text(
            f"ListenAddress {NETWORK}.2\nHostKey {self.folder}/host\nAuthorizedKeysFile {self.folder}/authorized_keys\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
            f"PidFile none\nSetEnv {self.environ}\n"
        )
        (self.folder / "ssh_config").write_text(
            f"Host *\n  IdentityFile {self.folder}/user\n  IdentitiesOnly yes\n  StrictHostKeyChecking yes\n"
            f"  UserKnownHostsFile {self.folder}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
        )

    def trust(self) -> None:
        kind, key, *_ = (self.folder / "host.pub").read_text().split()
        (self.folder / "known_hosts").write_text(f"{NETWORK}.2 {kind} {key}\n")

    def start(self) -> None:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        with (self.folder / "sshd.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    "nsenter",
                    f"--net=/proc/{self.house}/ns/net",
                    str(SSHD),
                    "-D",
                    "-e",
                    "-f",
                    f"{self.folder}/sshd_config",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        """As when the machine is off: it and its sessions are gone."""
        if self.process is None:
            return
        for pid in [*_children(self.process.pid), self.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(PATIENCE_S)
        self.process = None


def _children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                child = int(path.parent.name)
                found += [*_children(child), child]
    return found


@pytest.fixture
def houses() -> Iterator[tuple[int, int]]:
    with two_houses() as both:
        yield both


def host(daemon: Housed) -> dict[str, Any]:
    (found,) = daemon.get("/hosts").json
    return dict(found)


def becomes(daemon: Housed, state: str) -> None:
    eventually(lambda: host(daemon)["state"] == state, f"the host is {state}", patience=PATIENCE_S)


def test_a_host_by_real_ssh(houses, tmp_path: Path):
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    there = Housed(tmp_path / "there", config=NO_PORTS, house=houses[1]).start()
    sshd = Sshd(tmp_path, houses[1], f"SYNAPSED_HOME={there.home} SYNAPSED_A2A_HOME={there.home}/a2a")
    sshd.prepare()
    sshd.start()
    # What is given first counts: a dead connection is noticed within seconds here.
    ssh = ["ssh", "-F", str(tmp_path / "ssh_config"), "-o", "ServerAliveInterval=1", "-o", "ConnectTimeout=2"]
    here = Housed(
        tmp_path / "here", config=f'{NO_PORTS}[hosts]\nname = "laptop"\nssh = {ssh}\n', house=houses[0]
    ).start()
    synapsectl = tmp_path / "synapsectl"
    root = Path(__file__).parents[2]
    synapsectl.write_text(f'#!/bin/sh\nPYTHONPATH={root} exec {sys.executable} -m synapsectl "$@"\n')
    synapsectl.chmod(0o700)
    try:
        there.start_agent()
        added = here.ctl("host", "add", "buildbox", f"ssh://root@{NETWORK}.2", "--synapsectl", str(synapsectl))
        assert added.code == 0, added.err
        # ssh decides about trust.
        becomes(here, "down")
        assert "Host key verification failed" in here.ctl("host", "list").out
        sshd.trust()
        becomes(here, "up")
        (listed,) = here.ctl("list", "--json").json
        assert (listed["name"], listed["host"]) == ("dummy@buildbox", "buildbox")
        sent = here.ctl("send", "dummy@buildbox", "--wait", "hello")
        assert sent.code == 0, sent.err
        assert "hello" in sent.out

        # It is switched off; a message waits, also for another daemon here; it is switched on again.
        sshd.stop()
        there.kill9()
        becomes(here, "down")
        waits = here.send("while it was off", "dummy@buildbox")
        here.kill9()
        here.start()
        assert here.task(waits)["status"] == "submitted"
        there.start()
        sshd.start()
        assert here.task_in(waits, "completed", "failed", patience=PATIENCE_S)["status"] == "completed"

        # The wire is cut in the middle of a turn: nobody says goodbye.
        cut = here.send("sleep 3", "dummy@buildbox")
        eventually(lambda: here.task(cut)["metadata"].get("external", {}).get("task_id"), "it is known there")
        inside(houses[1], "ip", "link", "set", "wire1", "down")
        while_cut = here.send("while it was cut off", "dummy@buildbox")
        becomes(here, "down")
        inside(houses[1], "ip", "link", "set", "wire1", "up")
        for task_id in (cut, while_cut):
            assert here.task_in(task_id, "completed", "failed", patience=PATIENCE_S)["status"] == "completed"
        assert len(there.get("/control/tasks").json) == 4, "each arrived once"
    finally:
        assert here.end() == 0
        sshd.stop()
        assert there.end() == 0
